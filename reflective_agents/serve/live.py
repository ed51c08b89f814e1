"""A page to ask questions, to watch runs while they happen, and to steer them, under /live. It stores nothing: all that
it shows comes from the server's own API, requested with the key of whoever looks at it.

    /live, /live/tree, /live/day               the page, and the views of a tree and a day in it: those of `viewer`
    /live/strategies                           the strategies, with their settings
    /live/threads                              the caller's threads; POST asks a question
    /live/threads/{thread}                     a thread, as data; POST steers it
    /live/threads/{thread}/events              what happens in its last run, from the first event on
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from langgraph_sdk import schema as sdk
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from reflective_agents.serve.answering import read_json, with_refusals
from reflective_agents.serve.chat_request import check_settings
from reflective_agents.serve.policy import policy
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.runs import Begin, Result, ServerApi, Token, failure, values_of
from reflective_agents.serve.streaming import event
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


def _html(text: str) -> Response:
    """Return a page that only this server may frame, and that is never cached."""
    return HTMLResponse(text, headers={"x-frame-options": "SAMEORIGIN", "cache-control": "no-store"})


async def shell(_: Request) -> Response:
    """Return the page."""
    return _html(_SHELL.html())


async def tree(_: Request) -> Response:
    """Return the view of a tree, still empty: the page sends it the tree."""
    return _html(page(None))


async def day(_: Request) -> Response:
    """Return the view of a town's day, still empty: the page sends it the day."""
    return _html(town_page(None))


async def strategies(_: Request) -> Response:
    """List the strategies that may be run, with the settings that may be chosen."""
    offered = [name for name in strategy_names() if policy().offers(name)]
    return JSONResponse([_description(name) for name in offered])


@cache
def _description(name: str) -> JsonObject:
    schema = settings_of(name)
    form = schema.model_json_schema()
    allowed, operators = policy().settings, operators_settings(schema)
    fields = {
        key: field
        for key, field in form["properties"].items()
        if key not in operators and (allowed is None or key in allowed)
    }
    return {
        "name": name,
        "does": schema.does,
        "use_when": schema.use_when,
        "settings": [*fields.items()],
    }


async def threads(request: Request) -> Response:
    """List the threads of the caller."""
    return JSONResponse([_summary(thread) for thread in await ServerApi(request).threads()])


def _summary(thread: sdk.Thread) -> dict[str, str]:
    metadata = thread.get("metadata") or {}
    return {
        "thread_id": str(thread["thread_id"]),
        "status": thread["status"],
        "updated": str(thread["updated_at"]),
        "strategy": metadata.get("strategy") or metadata.get("graph_id") or "",
        "question": metadata.get("question") or "",
    }


async def ask(request: Request) -> Response:
    """Ask a question: on a new thread, or on the one that is named."""
    body = await read_json(request)
    strategy, question, settings = body.get("strategy"), body.get("question"), body.get("settings") or {}
    if strategy not in strategy_names() or not policy().offers(str(strategy)):
        raise Refused(f"there is no strategy {strategy!r} here", "strategy", status=404)
    if not isinstance(question, str) or not question.strip():
        raise Refused("the question is empty", "question")
    if not isinstance(settings, dict):
        raise Refused("settings are an object", "settings")
    check_settings(settings_of(str(strategy)), settings)
    api, thread = ServerApi(request), str(body.get("thread_id") or uuid4())
    if not body.get("thread_id"):
        await api.create_thread(thread, {"strategy": str(strategy), "question": question[:_TITLE]})
    begin = Begin(input={"messages": [{"role": "user", "content": question}]})
    run = await api.start(thread, str(strategy), begin, settings, tokens=True)
    return JSONResponse({"thread_id": thread, "run_id": run})


async def thread(request: Request) -> Response:
    """Return what the page shows of a thread."""
    api, name = ServerApi(request), request.path_params["thread"]
    state, run = await _state_and_run(api, name)
    return JSONResponse(await asyncio.to_thread(thread_view, state, run))


async def _state_and_run(api: ServerApi, name: str) -> tuple[sdk.ThreadState, sdk.Run | None]:
    """Return the state of a thread and its last run, read first: if it has ended, the state is final."""
    run = await api.last_run(name)
    return await api.state(name), run


async def steer(request: Request) -> Response:
    """Pause a run, resume it, or change its tree and resume it, unless others have done so meanwhile."""
    body, api, name = await read_json(request), ServerApi(request), request.path_params["thread"]
    state, run = await _state_and_run(api, name)
    running = run is not None and run["status"] in ("pending", "running")
    if body.get("do") == "pause":
        if running and run:
            await api.stop(name, run["run_id"])
        return JSONResponse({})
    if running:
        raise Refused("the run is under way: pause it first", status=409)
    begin = await _begin_of(api, name, state, body)
    strategy = values_of(state).get("strategy")
    if not strategy:
        raise Refused("nothing was asked on this thread yet", status=409)
    return JSONResponse({"run_id": await api.start(name, strategy, begin, {}, tokens=True)})


async def _begin_of(api: ServerApi, name: str, state: sdk.ThreadState, body: Mapping[str, Json]) -> Begin:
    """Return how the run begins that does what the body asks for."""
    values = values_of(state)
    if body.get("do") == "resume":
        return {"checkpoint": state["checkpoint"]}
    # Two people may look at the same tree: an order must not fall on what its sender has not seen.
    if body.get("seen") != changes_in(values):
        raise Refused("somebody else has steered this thread meanwhile: look at it again", status=409)
    if body.get("do") == "fork":
        log = ((earlier, values_of(earlier).get("log") or []) for earlier in await api.history(name))
        fork = next((earlier for earlier, entries in log if len(entries) == body.get("step")), None)
        if fork is None:
            raise Refused(f"nothing was stored after step {body.get('step')}", status=409)
        return {"checkpoint": fork["checkpoint"], "command": _command(go_on())}
    change = {key: value for key, value in body.items() if key not in ("do", "seen")}
    if body.get("do") not in CHANGES:
        raise Refused(f"{body.get('do')!r} cannot be done", "do")
    try:
        return {"command": _command(order(values, cast(Change, {"kind": body["do"], **change})))}
    except (Misuse, TypeError, ValidationError) as error:
        raise Refused(str(error)) from error


def _command(command: Any) -> sdk.Command:
    return {"update": command.update, "goto": command.goto}


async def events(request: Request) -> Response:
    """Stream what happens in the last run of a thread, from its beginning; the run goes on when the client leaves."""
    api, name = ServerApi(request), request.path_params["thread"]
    run = await api.last_run(name)
    if run is None:
        raise Refused("nothing was asked on this thread yet", status=404)
    return StreamingResponse(_server_sent_events(api, name, run["run_id"]), media_type="text/event-stream")


async def _server_sent_events(api: ServerApi, thread: str, run: str) -> AsyncIterator[str]:
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
    Route("/live/strategies", with_refusals(strategies)),
    Route("/live/threads", with_refusals(threads)),
    Route("/live/threads", with_refusals(ask), methods=["POST"]),
    Route("/live/threads/{thread:uuid}", with_refusals(thread)),
    Route("/live/threads/{thread:uuid}", with_refusals(steer), methods=["POST"]),
    Route("/live/threads/{thread:uuid}/events", with_refusals(events)),
]
