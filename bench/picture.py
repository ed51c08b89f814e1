"""Draws the pictures of `make run`, in a terminal and as a page, and of a day in the town: `python -m bench.picture`.

Pages are photographed in Chromium.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from bench.options import parser_of
from reflective_agents.cli.progress import Progress
from reflective_agents.cli.report import cost_line
from reflective_agents.graphs.lats import graph
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.viewer.page import page
from reflective_agents.viewer.picture import picture

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PICTURE = DOCS / "run.svg"
DESK, PHONE = (1200, 960), (390, 780)
"""Widths and heights of windows, in pixels."""
SETTINGS = {"model": "offline", "search": "local", "n": 3, "min_score": 0.95}


def question() -> str:
    """Return the question of `make run`."""
    match = re.search(r"^QUESTION := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert match is not None
    return match[1]


async def run() -> tuple[Progress, dict[str, Any]]:
    """Run LATS offline; return what the terminal shows of it in the end, and the output."""
    progress = Progress(LatsContext.model_validate(SETTINGS))
    run_input = {"messages": [("user", question())]}
    result: dict[str, Any] = {}
    data: Any
    async for mode, data in graph.astream(run_input, context=SETTINGS, stream_mode=["custom", "values"]):
        if mode == "custom":
            progress.add(data)
        else:
            result = data
    return progress, result


def draw(progress: Progress, result: dict[str, Any]) -> str:
    """Draw what the terminal shows in the end."""
    console = Console(record=True, width=110, height=40, highlight=False, force_terminal=True, file=StringIO())
    console.print(Text("$ make run", style="bold"))
    console.print(progress)
    console.print(Text(f"\n{result['answer']}\n"))
    console.print(Text(f"{result['outcome']['status']}: {result['outcome']['reason']}", style="green"))
    console.print(Text(f"cost: {cost_line(result['usage'])}", style="dim"))
    svg = console.export_svg(title="reflect", unique_id="run")
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # nothing is fetched


def photograph(html: Path, image: Path, size: tuple[int, int]) -> None:
    """Photograph an HTML page, in a window of this width and height.

    Raises:
        FileNotFoundError: if there is no Chromium.
    """
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise FileNotFoundError("no chromium: install it, or run with --quick")
    with sync_playwright() as driver:
        window = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        opened = window.new_page(viewport={"width": size[0], "height": size[1]})
        opened.goto(html.as_uri())
        opened.wait_for_timeout(1000)  # while it unfolds
        drawn = Image.open(BytesIO(opened.screenshot())).convert("RGB")
        window.close()
    drawn.quantize(64).save(image, "PNG", optimize=True)


def main() -> None:
    """Write the pictures; in the quick form only print what the terminal shows."""
    options = parser_of("bench.picture", __doc__).parse_args()
    progress, result = asyncio.run(run())
    svg = draw(progress, result)
    if options.quick:
        print(svg)
        return
    PICTURE.write_text(svg, "utf-8")
    with tempfile.TemporaryDirectory() as folder:
        tree, day = Path(folder, "tree.html"), Path(folder, "day.html")
        tree.write_text(page(picture(result, "lats", LatsContext.model_validate(SETTINGS).exploration_weight)), "utf-8")
        command: list[str | Path] = [Path(sys.executable).with_name("reflect"), "town", "--html", day]
        environment = {**os.environ, "XDG_DATA_HOME": folder, "MODEL": "offline"}
        subprocess.run(command, check=True, cwd=folder, env=environment, capture_output=True)
        photograph(tree, DOCS / "tree.png", DESK)
        photograph(tree, DOCS / "tree-phone.png", PHONE)
        photograph(day, DOCS / "day.png", DESK)


if __name__ == "__main__":
    main()
