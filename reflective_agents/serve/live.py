"""A page to ask, to watch runs while they grow, and to steer them, under /live. It holds nothing: all that it shows is
asked for with the key of whoever looks at it, and comes from the server's own API.

    /live, /live/tree, /live/day               the page, and the views of a tree and a day in it: those of `viewer`
    /live/strategies                           what can be asked, with the settings
    /live/threads                              the caller's threads; POST asks a question
    /live/threads/{thread}                     one of them, as data; POST steers it
    /live/threads/{thread}/events              what happens in its last run, from the first event on
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from langgraph_sdk import schema as sdk
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from reflective_agents.serve.asked import check_settings
from reflective_agents.serve.chat import identify, read_json
from reflective_agents.serve.completions import event
from reflective_agents.serve.policy import policy
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.runs import Begin, OwnApi, Result, Token, failure, values_of
from reflective_agents.serve.thread_view import thread_view
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.policy import operators_settings
from reflective_agents.state.settings import settings_of, strategy_names
from reflective_agents.state.tree import Change
from reflective_agents.text.structure import Json
from reflective_agents.town.page import town_page
from reflective_agents.tree_search.steering import CHANGES, changes_in, go_on, order
from reflective_agents.viewer.page import VIEWER, Page, assets, page

_FOLDER = Path(__file__).parent / "page"
_SCRIPTS = ("api.js", "growing.js", "form.js", "chat.js", "steering.js", "live.js")
_SHELL = Page(
    _FOLDER / "live.html",
    "Reflective agents, live",
    styles=(_FOLDER / "live.css",),
    scripts=(*assets(VIEWER, "elements.js"), *(_FOLDER / name for name in _SCRIPTS)),
    rules=("connect-src 'self'", "frame-src 'self'"),
)
_TITLE = 200
"""Characters of a question by which a thread is listed."""
Handler = Callable[[Request], Awaitable[Response]]


def _answering(handler: Handler) -> Handler:
    """Make a handler answer what it refuses in the form of all others, and nobody without a key."""

    async def answer(request: Request) -> Response:
        try:
            identify(request)
            return await handler(request)
        except Refused as refusal:
            return refusal.response()

    return answer


def _html(text: str) -> Response:
    """Return a page that only this server may frame, and that nobody keeps."""
    return HTMLResponse(text, headers={"x-frame-options": "SAMEORIGIN", "cache-control": "no-store"})


async def shell(_: Request) -> Response:
    """Return the page."""
    return _html(_SHELL.html())


async def tree(_: Request) -> Response:
    """Return the view of a tree, which waits for one."""
    return _html(page(None))


async def day(_: Request) -> Response:
    """Return the view of a town's day, which waits for one."""
    return _html(town_page(None))


async def strategies(_: Request) -> Response:
    """List the strategies that may be run, with the settings that may be chosen."""
    offered = [name for name in strategy_names() if policy().offers(name)]
    return JSONResponse([_strategy(name) for name in offered])


@cache
def _strategy(name: str) -> JsonObject:
    schema = settings_of(name)
    form = schema.model_json_schema()
    allowed, operators = policy().settings, operators_settings(schema)
    fields = {
        key: field
        for key, field in form["properties"].items()
        if key not in operators and (allowed is None or key in allowed)
    }
    own = sorted(fields, key=lambda key: key in _COMMON)
    return {
        "name": name,
        "does": schema.does,
        "use_when": schema.use_when,
        "settings": [[key, fields[key]] for key in own],
    }


_COMMON = settings_of("chain_of_thought").model_fields.keys()


async def threads(request: Request) -> Response:
    """List the threads of the caller."""
    found = await OwnApi(request).threads()
    return JSONResponse([_listed(thread) for thread in found])


def _listed(thread: sdk.Thread) -> dict[str, str]:
    about = thread.get("metadata") or {}
    return {
        "thread_id": str(thread["thread_id"]),
        "status": thread["status"],
        "updated": str(thread["updated_at"]),
        "strategy": about.get("strategy") or about.get("graph_id") or "",
        "question": about.get("question") or "",
    }


async def ask(request: Request) -> Response:
    """Ask a question: on a new thread, or on the one that is named."""
    asked = await read_json(request)
    strategy, question, settings = asked.get("strategy"), asked.get("question"), asked.get("settings") or {}
    if strategy not in strategy_names() or not policy().offers(str(strategy)):
        raise Refused(f"there is no strategy {strategy!r} here", "strategy", status=404)
    if not isinstance(question, str) or not question.strip():
        raise Refused("the question is empty", "question")
    if not isinstance(settings, dict):
        raise Refused("settings are an object", "settings")
    check_settings(settings_of(str(strategy)), settings)
    api, thread = OwnApi(request), str(asked.get("thread_id") or uuid4())
    if not asked.get("thread_id"):
        await api.make(thread, {"strategy": str(strategy), "question": question[:_TITLE]})
    begin = Begin(input={"messages": [{"role": "user", "content": question}]})
    run = await api.start(thread, str(strategy), begin, settings, tokens=True)
    return JSONResponse({"thread_id": thread, "run_id": run})


async def thread(request: Request) -> Response:
    """Return what a thread holds, as far as it is shown."""
    api, name = OwnApi(request), request.path_params["thread"]
    state, run = await _last(api, name)
    return JSONResponse(await asyncio.to_thread(thread_view, state, run))


async def _last(api: OwnApi, name: str) -> tuple[sdk.ThreadState, sdk.Run | None]:
    """Return the state of a thread, and its last run as it was just before: if that had ended, so has the state."""
    run = await api.last_run(name)
    return await api.state(name), run


async def steer(request: Request) -> Response:
    """Pause a run, go on with it, or change its tree and go on; who has missed what others have done is told."""
    asked, api, name = await read_json(request), OwnApi(request), request.path_params["thread"]
    state, run = await _last(api, name)
    running = run is not None and run["status"] in ("pending", "running")
    if asked.get("do") == "pause":
        if running and run:
            await api.stop(name, run["run_id"])
        return JSONResponse({})
    if running:
        raise Refused("the run is under way: pause it first", status=409)
    begin = await _order(api, name, state, asked)
    strategy = values_of(state).get("strategy")
    if not strategy:
        raise Refused("nothing was asked on this thread yet", status=409)
    return JSONResponse({"run_id": await api.start(name, strategy, begin, {}, tokens=True)})


async def _order(api: OwnApi, name: str, state: sdk.ThreadState, asked: Mapping[str, Json]) -> Begin:
    """Return what a run begins with that does what was asked for."""
    values = values_of(state)
    if asked.get("do") == "resume":
        return {"checkpoint": state["checkpoint"]}
    if asked.get("seen") != changes_in(values):
        raise Refused("somebody else has steered this thread meanwhile: look at it again", status=409)
    if asked.get("do") == "fork":
        log = ((earlier, values_of(earlier).get("log") or []) for earlier in await api.history(name))
        found = next((earlier for earlier, entries in log if len(entries) == asked.get("step")), None)
        if found is None:
            raise Refused(f"nothing was stored after step {asked.get('step')}", status=409)
        return {"checkpoint": found["checkpoint"], "command": _command(go_on())}
    change = {key: value for key, value in asked.items() if key not in ("do", "seen")}
    if asked.get("do") not in CHANGES:
        raise Refused(f"{asked.get('do')!r} cannot be done", "do")
    try:
        return {"command": _command(order(values, cast(Change, {"kind": asked["do"], **change})))}
    except (Misuse, TypeError, ValidationError) as error:
        raise Refused(str(error)) from error


def _command(command: Any) -> sdk.Command:
    return {"update": command.update, "goto": command.goto}


async def events(request: Request) -> Response:
    """Stream what happens in the last run of a thread, from its beginning; whoever leaves, leaves the run alone."""
    api, name = OwnApi(request), request.path_params["thread"]
    run = await api.last_run(name)
    if run is None:
        raise Refused("nothing was asked on this thread yet", status=404)
    return StreamingResponse(_told(api, name, run["run_id"]), media_type="text/event-stream")


async def _told(api: OwnApi, thread: str, run: str) -> AsyncIterator[str]:
    async for part in api.events(thread, run):
        if isinstance(part, Result):
            refusal = failure(part) if part.status in ("error", "timeout") else None
            yield event({"ended": part.status, "error": str(refusal) if refusal else ""})
        elif isinstance(part, Token):
            yield event({"token": part.text})
        else:
            yield event(dict(part))


routes = [
    Route("/live", shell),
    Route("/live/tree", tree),
    Route("/live/day", day),
    Route("/live/strategies", _answering(strategies)),
    Route("/live/threads", _answering(threads)),
    Route("/live/threads", _answering(ask), methods=["POST"]),
    Route("/live/threads/{thread:uuid}", _answering(thread)),
    Route("/live/threads/{thread:uuid}", _answering(steer), methods=["POST"]),
    Route("/live/threads/{thread:uuid}/events", _answering(events)),
]
