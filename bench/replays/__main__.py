"""Replays all data sets and writes the page of their figures."""

import asyncio

from bench.recorded import RECORDED
from bench.replays.catalogue import HEAD, PAGE, REPLAYS, SANDBOXED, TAIL, row, section
from bench.replays.records import manifest


async def main() -> str:
    """Return the page."""
    known = manifest(RECORDED)
    measured = {name: await replay(RECORDED, name) for name, replay in (REPLAYS | SANDBOXED).items()}
    rows = "".join(f"{row(name, known[name], outcome)}\n" for name, outcome in measured.items())
    sections = "".join(section(name, outcome) for name, outcome in measured.items())
    return f"{HEAD}{rows}{TAIL}{sections}"


if __name__ == "__main__":
    PAGE.write_text(asyncio.run(main()), encoding="utf-8")
