"""A page to ask questions, to watch runs while they happen, and to steer them, under /live. It stores nothing: all that
it shows comes from the server's own API, requested with the key of whoever looks at it.

    /live, /live/tree, /live/day               the page, and the views of a tree and a day in it: those of `viewer`
    /live/strategies                           the strategies, with their settings
    /live/threads                              the caller's threads; POST asks a question
    /live/threads/{thread}                     a thread, as data; POST steers it
    /live/threads/{thread}/passages?url=...    what a source of its answers says
    /live/threads/{thread}/events              what happens in its last run, from the first event on
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, cast
from uuid import uuid4

from langgraph_sdk import schema as sdk
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from reflective_agents.models.providers import choose_model
from reflective_agents.nodes.evidence.long_questions import is_text
from reflective_agents.nodes.evidence.long_texts import ALONE, HOLDS, TITLE
from reflective_agents.serve.answering import read_json, with_refusals
from reflective_agents.serve.chat_request import check_settings
from reflective_agents.serve.engine import IN_AEGRA
from reflective_agents.serve.policy import policy
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.runs import Begin, Result, ServerApi, Token, failure, values_of
from reflective_agents.serve.streaming import event
from reflective_agents.serve.thread_view import messages_given, passages_of, thread_view
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse, UnknownModel
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.policy import operators_settings
from reflective_agents.state.settings import settings_of, strategy_names
from reflective_agents.state.tree import Change
from reflective_agents.text.structure import Json
from reflective_agents.town.page import town_page
from reflective_agents.tree_search.steering import CHANGES, changes_in, go_on, order
from reflective_agents.viewer.page import VIEWER, Page, assets, page

_FOLDER = Path(__file__).parent / "page"
_STYLES = ("chat.css", "live.css")
_SCRIPTS = (
    *("api.js", "growing.js", "form.js", "files.js", "markdown.js", "chat.js"),
    *("conversations.js", "steering.js", "live.js"),
)
_SHELL = Page(
    _FOLDER / "live.html",
    "Reflective agents, live",
    styles=tuple(_FOLDER / name for name in _STYLES),
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
        "model": _model_of(schema),
        "settings": [*fields.items()],
    }


def _model_of(schema: type[Context]) -> str:
    """Return the model that answers where a request names none; nothing if none was configured rightly."""
    try:
        return str(choose_model(schema().model)[0])
    except UnknownModel:
        return ""


async def threads(request: Request) -> Response:
    """List the threads of the caller."""
    api = ServerApi(request)
    summaries = await asyncio.gather(*(_summary(api, thread) for thread in await api.threads()))
    return JSONResponse([summary for summary in summaries if summary])


async def _summary(api: ServerApi, thread: sdk.Thread) -> dict[str, str] | None:
    """Return what the list says of a thread; None if it was deleted meanwhile. Its last run tells what it does not."""
    metadata = thread.get("metadata") or {}
    question = metadata.get("question") or metadata.get("thread_name") or ""
    key = str(thread["thread_id"]), str(thread["updated_at"])
    if thread["status"] == "busy" and question:
        status = "running"
    elif key in _summaries:
        status, its_question = _summaries[key]
        question = question or its_question
    else:
        try:
            run = await api.last_run(key[0])
        except Refused as refusal:
            if refusal.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        status = _status(thread, run)
        question = question or (_title(run) if run else "")
        if status != "running":
            _summaries[key] = status, question
        while len(_summaries) > _MOST_SUMMARIES:
            _summaries.popitem(last=False)
    return {
        "thread_id": key[0],
        "status": status,
        "updated": key[1],
        "strategy": metadata.get("strategy") or metadata.get("graph_id") or "",
        "question": question,
    }


_MOST_SUMMARIES = 10_000
_summaries = OrderedDict[tuple[str, str], tuple[str, str]]()
"""Status and question of threads that are at rest, by their ids and the time of their last change."""


def _status(thread: sdk.Thread, run: sdk.Run | None) -> str:
    """Return how far a thread is. Neither server tells a paused run from one that has ended by the thread alone."""
    if thread["status"] == "busy":
        return "running"
    if run is None:
        return "empty"
    if thread["status"] == "error" or run["status"] in ("error", "timeout"):
        return "error"
    # Aegra calls a thread "interrupted" only if it waits, `langgraph dev` only a run that was cancelled.
    waits = thread["status"] == "interrupted" and (IN_AEGRA or run["status"] != "interrupted")
    if waits:
        return "waiting"
    return "paused" if run["status"] == "interrupted" else "ended"


def _title(run: sdk.Run) -> str:
    questions = (given for given in messages_given(run) if given.type == "human" and not is_text(given))
    return next((question.text[:_TITLE] for question in questions), "")


async def ask(request: Request) -> Response:
    """Ask a question: on a new thread, or on the one that is named. A question that takes the place of another one
    (`edits`) is asked on a new thread, after all that came before the other: what has become of that stays."""
    body = await read_json(request)
    strategy, question, settings = body.get("strategy"), body.get("question"), body.get("settings") or {}
    if strategy not in strategy_names() or not policy().offers(str(strategy)):
        raise Refused(f"there is no strategy {strategy!r} here", "strategy", status=404)
    if not isinstance(question, str) or not question.strip():
        raise Refused("the question is empty", "question")
    if not isinstance(settings, dict):
        raise Refused("settings are an object", "settings")
    check_settings(settings_of(str(strategy)), settings)
    api, messages = ServerApi(request), [*_files(body.get("files") or []), {"role": "user", "content": question}]
    thread = str(body.get("thread_id") or "")
    if thread and body.get("edits"):
        messages = [*_before(await api.state(thread), str(body["edits"])), *messages]
        thread = ""
    if not thread:
        thread = str(uuid4())
        await api.create_thread(thread, {"strategy": str(strategy), "question": question[:_TITLE]})
    run = await api.start(thread, str(strategy), Begin(input={"messages": messages}), settings, tokens=True)
    return JSONResponse({"thread_id": thread, "run_id": run})


class _File(BaseModel):
    """A text that comes with a question."""

    name: str = Field(max_length=_TITLE)
    text: str = Field(pattern=r"\S")


_FILES = TypeAdapter(Annotated[list[_File], Field(max_length=20)])


def _files(files: Json) -> list[JsonObject]:
    """Return files as messages, each a text that the answer can cite."""
    try:
        read = _FILES.validate_python(files)
    except ValidationError as error:
        raise Refused("files: at most 20, each with a name and with a text that is not empty", "files") from error
    return [
        {"role": "user", "content": file.text, "additional_kwargs": {HOLDS: ALONE, TITLE: file.name}} for file in read
    ]


def _before(state: sdk.ThreadState, question: str) -> list[JsonObject]:
    """Return the messages of a thread before a question."""
    messages: list[JsonObject] = values_of(state).get("messages") or []
    for number, message in enumerate(messages):
        if message.get("id") == question:
            return messages[:number]
    raise Refused("that question is not on this thread", "edits", status=404)


async def passages(request: Request) -> Response:
    """Return what a source of an answer says, as far as its thread holds it."""
    values = values_of(await ServerApi(request).state(request.path_params["thread"]))
    return JSONResponse(await asyncio.to_thread(passages_of, values, request.query_params.get("url", "")))


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
    Route("/live/threads/{thread:uuid}/passages", with_refusals(passages)),
    Route("/live/threads/{thread:uuid}/events", with_refusals(events)),
]
