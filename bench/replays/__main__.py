"""Replays all data sets and writes the page of their figures: `python -m bench.replays` makes docs/replays.md."""

import asyncio

from bench.options import parser_of
from bench.recorded import RECORDED
from bench.replays.catalogue import HEAD, PAGE, REPLAYS, SANDBOXED, TAIL, Replay, row, section
from bench.replays.records import manifest

SMALL = ("tot_text_votes",)
"""What the quick form replays."""


async def page(replays: dict[str, Replay]) -> str:
    """Replay data sets, and return the page of their figures."""
    known = manifest(RECORDED)
    measured = {name: await replay(RECORDED, name) for name, replay in replays.items()}
    rows = "".join(f"{row(name, known[name], outcome)}\n" for name, outcome in measured.items())
    sections = "".join(section(name, outcome) for name, outcome in measured.items())
    return f"{HEAD}{rows}{TAIL}{sections}"


def main() -> None:
    """Write the page; in the quick form print what it would be of the smallest data set."""
    if parser_of("bench.replays", __doc__).parse_args().quick:
        print(asyncio.run(page({name: REPLAYS[name] for name in SMALL})))
    else:
        PAGE.write_text(asyncio.run(page(REPLAYS | SANDBOXED)), encoding="utf-8")


if __name__ == "__main__":
    main()
