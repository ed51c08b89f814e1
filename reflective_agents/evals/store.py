"""The folder in which a run keeps its results, open for writing."""

import hashlib
import json
import os
from contextlib import ExitStack
from glob import escape
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Literal

from filelock import FileLock, Timeout

from reflective_agents.evals.results import RESULTS, RUN, About, Result, read_about, read_run
from reflective_agents.evals.transcripts import TRANSCRIPTS, Transcript, packed
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse
from reflective_agents.state.settings import settings_of, strategy_names

LOCK = "lock"
_SAME: tuple[Literal["strategy", "fingerprint"], ...] = ("strategy", "fingerprint")


class Store:
    """The folder of a run, open for writing; nobody else can write to it meanwhile.

    Attributes:
        about: What is run, as it was first said.
        results: The results so far, by the id of the task.
        close: Lets others write.
    """

    def __init__(self, folder: Path, about: About | None) -> None:
        """Open a folder: a new one, or that of an earlier, interrupted run of the same. With None it must hold a
        run, whichever.

        Raises:
            Misuse: if it holds another run, is in use, or cannot be written.
        """
        self._file = folder / RESULTS
        self._turn = Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with ExitStack() as undo:
                undo.enter_context(FileLock(folder / LOCK, blocking=False, thread_local=False))
                self._open(folder, about, undo)
                # Only if all has gone well; otherwise the lock is given back here.
                self.close = undo.pop_all().close
        except Timeout as error:
            raise Misuse(f"{folder} is in use by another process: wait for it, or choose another --out") from error
        except OSError as error:
            raise Misuse(f"{folder} cannot be written ({error.strerror or error}): choose another --out") from error

    def _open(self, folder: Path, about: About | None, undo: ExitStack) -> None:
        self.about: About
        self.results: dict[str, Result] = {}
        if (folder / RUN).exists():
            self.about, self.results = read_run(folder)
            if about is not None:
                _check_same(folder, self.about, about)
            whole = self._file.read_bytes().rfind(b"\n") + 1 if self._file.exists() else 0
        elif self._file.exists() or about is None:
            raise Misuse(f"{folder} holds {RESULTS} but no {RUN}: choose another --out")
        else:
            self.about, whole = about, 0
            _write_at_once(folder / RUN, json.dumps(about, indent=2, ensure_ascii=False))
        self._lines = undo.enter_context(self._file.open("ab"))
        # Cuts a half-written line off, which would spoil the next one.
        self._lines.truncate(whole)
        self._transcripts = undo.enter_context((folder / TRANSCRIPTS).open("ab"))

    def describe(self, about: About) -> None:
        """Replace what is said of the run."""
        self.about = about
        _write_at_once(self._file.with_name(RUN), json.dumps(about, indent=2, ensure_ascii=False))

    def append(self, result: Result, transcript: Transcript | None = None) -> None:
        """Keep a result for good: it is on the disk when this returns, and its transcript before it. Blocks; threads
        take turns.

        Raises:
            Misuse: if it cannot be written.
        """
        try:
            with self._turn:
                if transcript is not None:
                    data = packed(transcript)
                    # Before the result: one that points to nothing would be worse than a transcript that
                    # nothing points to.
                    result["transcript"] = [self._transcripts.tell(), len(data)]
                    _flush(self._transcripts, data)
                _flush(self._lines, json.dumps(result, ensure_ascii=True).encode() + b"\n")
        except OSError as error:
            raise Misuse(f"{self._file.parent} cannot be written ({error.strerror or error})") from error
        self.results[result["id"]] = result


def _flush(file: BinaryIO, data: bytes) -> None:
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def folder_of(about: About, parent: Path) -> Path:
    """Return the folder of a run: the one that holds the same run already, whichever release began it, else a new
    one. A neighbour that cannot be read is another run."""
    folders = sorted(parent.glob(f"{escape(about['strategy'])}-{escape(about['dataset'])}-*"))
    for folder in folders:
        if _holds(folder, about):
            return folder
    return parent / name_of_run(about)


def _holds(folder: Path, about: About) -> bool:
    try:
        return not _differences(read_about(folder), about)
    except Misuse:
        return False


def name_of_run(about: About) -> str:
    """Return the name of a run: its strategy, its data set, and a digest of all that tells it from others."""
    identity = [about["strategy"], about["settings"], about["fingerprint"]]
    if "scorer" in about:
        identity.append(about["scorer"])
    text = json.dumps(identity, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{about['strategy']}-{about['dataset']}-{digest}"


def _check_same(folder: Path, stored: About, about: About) -> None:
    """Refuse to mix two runs in one folder."""
    differences = _differences(stored, about)
    if differences:
        raise Misuse(f"{folder} holds another run ({', '.join(differences)}): choose another --out")


def _differences(stored: About, about: About) -> list[str]:
    """Say in what two runs differ. A setting that was added since the earlier one had its default then."""
    schema = settings_of(about["strategy"]) if about["strategy"] in strategy_names() else Context
    before = schema.in_new_names(stored["settings"])
    defaults = {name: field.default for name, field in schema.model_fields.items()}
    pairs: dict[str, tuple[Any, Any]] = {name: (stored[name], about[name]) for name in _SAME}
    pairs["scorer"] = stored.get("scorer"), about.get("scorer")
    for name in {**before, **about["settings"]}:
        pairs[name] = before.get(name, defaults.get(name)), about["settings"].get(name)
    different: list[str] = []
    for name, (old, new) in pairs.items():
        if old != new:
            different.append(f"{name}: {old} there, {new} now")
    return different


def _write_at_once(file: Path, text: str) -> None:
    """Write a file so that it is there in full or not at all."""
    partial = file.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(file)
