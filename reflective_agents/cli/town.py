"""`reflect town`: a town's day on the terminal, and as a page."""

import asyncio
import json
from dataclasses import dataclass, field

from reflective_agents.cli.artefact import replay
from reflective_agents.cli.exports import Export, check_targets, write
from reflective_agents.cli.output import clean, print_table
from reflective_agents.cli.request import Request
from reflective_agents.cli.run import run
from reflective_agents.cli.threads import exists, load, open_saver, read_thread, recent
from reflective_agents.cli.timeline import Timeline
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonObject
from reflective_agents.town.files import load_town
from reflective_agents.town.page import town_page, town_picture

STRATEGY = "town"


@dataclass(frozen=True)
class TownRequest:
    """What the user asks for: a day to be played, or with `show` one that was played. `opening` is what the first agent
    is told, and `settings` holds only those that the user set."""

    opening: str | None = None
    thread: str | None = None
    resume: bool = False
    as_json: bool = False
    html: str | None = None
    show: bool = False
    force: bool = False
    settings: JsonObject = field(default_factory=dict)


def town(request: TownRequest) -> int:
    """Play a day, or show one; write its page if that is asked for.

    Returns:
        The exit code.

    Raises:
        Misuse: if it cannot be carried out, or the page cannot be written.
    """
    check_targets({"--html": request.html}, request.force)
    if request.show:
        if request.opening is not None or request.resume or request.settings:
            raise Misuse("--show plays nothing: leave out what the day is played with, or --show")
        return _show(request)
    opening = request.opening
    if request.resume:
        opening = None
    elif not opening:
        opening = load_town(request.settings.get("town", "lindenhof")).opening
    code = run(Request(STRATEGY, opening, request.settings, request.thread, request.resume, as_json=request.as_json))
    if request.html is not None and code == 0:
        _write_page(request, asyncio.run(_read(request.thread)))
    return code


def _show(request: TownRequest) -> int:
    values = asyncio.run(_read(request.thread))
    if request.html is not None:
        _write_page(request, values)
        return 0
    if request.as_json:
        print(json.dumps(town_picture(values)))
        return 0
    timeline = Timeline()
    for event in replay({"day": values["day"]}):
        timeline.add(event)
    print_table(timeline.columns(), timeline.lines())
    print(f"\n{clean(values['answer'] or '')}")
    return 0


def _write_page(request: TownRequest, values: JsonObject) -> None:
    write([Export("--html", request.html or "", town_page(town_picture(values)))], request.force)


async def _read(thread: str | None) -> JsonObject:
    """Read the state of a thread, or of the latest one if none is named."""
    async with open_saver() as saver:
        names = [thread] if thread else [name for name, _ in await recent(saver, STRATEGY)]
        if not names:
            raise Misuse("no day was played yet: play one with: reflect town")
        state = await read_thread(load(STRATEGY, saver), saver, names[0])
    if not exists(state):
        raise Misuse(f"there is no thread {thread}: reflect threads lists them")
    if not state.values.get("agents"):
        raise Misuse(f"the day of thread {names[0]} is not over: reflect town --thread {names[0]} --resume")
    return state.values
