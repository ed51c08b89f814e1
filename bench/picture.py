"""Draws docs/run.svg, what `make run` looks like in a terminal: `python -m bench.picture`."""

import asyncio
import re
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from bench.options import parser_of
from reflective_agents.cli.progress import Progress
from reflective_agents.cli.report import cost_line
from reflective_agents.graphs.lats import graph
from reflective_agents.state.settings.lats import LatsContext

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "run.svg"
SETTINGS = {"model": "offline", "search": "local", "n": 3, "min_score": 0.95}


def question() -> str:
    """Return the question of `make run`."""
    match = re.search(r"^QUESTION := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert match is not None
    return match[1]


async def draw() -> str:
    """Run LATS offline, and draw what the terminal shows in the end."""
    progress = Progress(LatsContext.model_validate(SETTINGS))
    run_input = {"messages": [("user", question())]}
    result: dict[str, Any] = {}
    data: Any
    async for mode, data in graph.astream(run_input, context=SETTINGS, stream_mode=["custom", "values"]):
        if mode == "custom":
            progress.add(data)
        else:
            result = data
    console = Console(record=True, width=110, height=40, highlight=False, force_terminal=True, file=StringIO())
    console.print(Text("$ make run", style="bold"))
    console.print(progress)
    console.print(Text(f"\n{result['answer']}\n"))
    console.print(Text(f"{result['outcome']['status']}: {result['outcome']['reason']}", style="green"))
    console.print(Text(f"cost: {cost_line(result['usage'])}", style="dim"))
    svg = console.export_svg(title="reflect", unique_id="run")
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # nothing is fetched


def main() -> None:
    """Write the picture; in the quick form only print it."""
    options = parser_of("bench.picture", __doc__).parse_args()
    svg = asyncio.run(draw())
    if options.quick:
        print(svg)
    else:
        PICTURE.write_text(svg, "utf-8")


if __name__ == "__main__":
    main()
