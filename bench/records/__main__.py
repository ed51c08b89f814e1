"""Makes the recorded runs from clones of the repositories that publish the logs: `python -m bench.records FOLDER`.

Without a folder it prints what to clone. Each set is compared with the published one by its hash; what is missing or
differs is named, and the rest is made all the same. The hidden tests of recorded programs run in the sandbox.
"""

import shutil
import sys
from pathlib import Path
from zipfile import BadZipFile

from bench.options import parser_of
from bench.recorded import RECORDED
from bench.records.making import differs, make, write, write_manifest
from bench.records.programs import execute
from bench.records.sources import SOURCES, Clones, Unusable, to_clone
from bench.replays.records import Record

OTHER_FORM = (ValueError, LookupError, TypeError, AttributeError, AssertionError, RuntimeError, BadZipFile)
"""What reading a log of another form raises; those without a known hash may be newer ones."""


def build(clones: Clones, folder: Path, *, run_programs: bool) -> list[str]:
    """Make all sets, and return what is wrong, a line each.

    Args:
        clones: The logs.
        folder: Where the records go.
        run_programs: Whether the verdicts that come from running programs are added.
    """
    made: dict[str, list[Record]] = {}
    wrong: list[str] = []
    for name in SOURCES:
        try:
            made[name] = make(name, clones, made)
        except Unusable as problem:
            wrong.append(f"{name}: {problem}")
            continue
        except OTHER_FORM as problem:
            wrong.append(f"{name}: the log has another form ({type(problem).__name__}: {problem})")
            continue
        if difference := differs(name, made[name]):
            wrong.append(f"{name}: {difference}")
        expected = SOURCES[name]["expected"]
        if run_programs and "exec_pass" in expected:
            execute(made[name], clones.read(SOURCES[name]), first=expected.get("root_exec_pass") is not None)
        write(folder, name, made[name])
        print(f"{name}: {len(made[name])} records", flush=True)
    if made:
        write_manifest(folder)
    return wrong


def main() -> None:
    """Print what to clone, or make the records."""
    ask = parser_of("bench.records", __doc__)
    ask.add_argument("folder", nargs="?", type=Path, help="the clones; without it, what to clone is printed")
    ask.add_argument("--to", type=Path, default=RECORDED, help=f"where the records go; default: {RECORDED}")
    options = ask.parse_args()
    if options.folder is None:
        print(*to_clone(), sep="\n")
        return
    has_sandbox = shutil.which("bwrap") is not None
    wrong = build(Clones(options.folder), options.to, run_programs=has_sandbox and not options.quick)
    if not has_sandbox:
        wrong.append("no program was run: install bubblewrap, and make the records again for the verdicts of programs")
    if wrong:
        sys.exit("\n".join(["", "Not as published:", *wrong]))


if __name__ == "__main__":
    main()
