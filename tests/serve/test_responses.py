"""What a request to /v1/responses may ask for, and the events of a response."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from httpx import ASGITransport, AsyncClient
from openai.types.responses import Response, ResponseItem, ResponseItemList, ResponseStreamEvent
from psycopg import OperationalError
from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from reflective_agents.serve import chat_request
from reflective_agents.serve.answering import Reply
from reflective_agents.serve.in_process import CallsItself
from reflective_agents.serve.policy import Policy
from reflective_agents.serve.refusals import NoAnswer, Refused
from reflective_agents.serve.response_form import ResponseForm
from reflective_agents.serve.response_queries import ListQuery
from reflective_agents.serve.response_records import MemoryRecords, ResponseRecord
from reflective_agents.serve.responses import routes
from reflective_agents.serve.responses_request import parse, with_answers
from reflective_agents.serve.run_key import RunKey
from reflective_agents.serve.runs import CANCELLED

KEY = RunKey(str(uuid4()), str(uuid4()))
USAGE = {"input_tokens": 3, "output_tokens": 4, "thinking_tokens": 1, "model_calls": 2, "cost": 0.5}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
ITEMS: TypeAdapter[Any] = TypeAdapter(ResponseItem)
TEXT = Reply("One two.", [], False, USAGE)


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "chain_of_thought", "input": "Why?", **fields}


def messages(*items: Any, answers: dict[RunKey, str] | None = None) -> list[tuple[str, Any]]:
    request = parse(with_answers(body(input=[*items]), answers or {})).chat()
    return [(message["role"], message["content"]) for message in request.question()]


def stream(reply: Reply, *texts: str) -> tuple[list[Any], ResponseForm]:
    """Return the events of a response as OpenAI's own types read them, and the response."""
    form = ResponseForm(KEY, parse(body(instructions="Be brief.")))
    events = [*form.begin(), *form.progress({"event": "begin", "strategy": "lats"})]
    events += [event for text in texts for event in form.text(text)]
    events += [*form.progress({"event": "end"}), *form.end(reply)]
    return [EVENTS.validate_python(event) for event in events], form


def kinds(events: list[Any]) -> list[str]:
    return [event.type.removeprefix("response.") for event in events]


REASONING = [
    "created",
    "in_progress",
    "output_item.added",
    "reasoning_summary_part.added",
    "reasoning_summary_text.delta",
]
REASONED = ["reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"]


def test_an_answer_comes_in_the_order_of_the_protocol() -> None:
    events, form = stream(TEXT, "One ", "two.")
    deltas = ["output_text.delta", "output_text.delta"]
    ended = ["output_text.done", "content_part.done", "output_item.done", "completed"]
    assert kinds(events) == [*REASONING, *REASONED, "output_item.added", "content_part.added", *deltas, *ended]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "One two."
    assert events[-1].response.output_text == "One two."
    assert form.whole() == events[-1].response.model_dump(exclude_unset=True)


def test_a_response_says_what_it_has_cost() -> None:
    usage = stream(TEXT, "One two.")[1].whole()["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (3, 4, 7)
    assert (usage["output_tokens_details"]["reasoning_tokens"], usage["model_calls"], usage["cost"]) == (1, 2, 0.5)


def test_calls_of_tools_are_items() -> None:
    events, form = stream(Reply(None, [CALL], False, USAGE))
    called = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"]
    assert kinds(events) == [*REASONING, "reasoning_summary_text.delta", *REASONED, *called, "completed"]
    item = Response.model_validate(form.whole()).output[-1]
    assert item.type == "function_call"
    assert (item.call_id, item.name, item.arguments) == ("call_1", "weather", '{"city": "Oslo"}')


def test_a_limit_makes_it_incomplete() -> None:
    events, form = stream(Reply("One", [], True, USAGE), "One")
    response = Response.model_validate(form.whole())
    assert (kinds(events)[-1], response.status, response.output_text) == ("incomplete", "incomplete", "One")
    assert response.incomplete_details
    assert response.incomplete_details.reason == "max_output_tokens"


def test_an_empty_answer_is_a_message() -> None:
    assert stream(Reply("", [], False, USAGE))[1].whole()["output"][-1]["content"][0]["text"] == ""


def test_a_failure_is_the_last_event() -> None:
    form = ResponseForm(KEY, parse(body()))
    failed = [EVENTS.validate_python(event) for event in (*form.begin(), *form.fail(Refused("No.", status=502)))]
    assert (kinds(failed), failed[-1].response.status) == (["created", "in_progress", "failed"], "failed")
    assert failed[-1].response.error.message == "No."


def test_an_id_names_a_run() -> None:
    assert RunKey.of(KEY.id("resp"), "resp") == KEY
    assert len(KEY.id("resp")) <= 64


@pytest.mark.parametrize("key", ["resp_1", "", "resp_" + "\N{SNOWMAN}" * 43, "resp_" + "A" * 44])
def test_another_id_names_nothing(key: str) -> None:
    with pytest.raises(Refused) as refused:
        RunKey.of(key, "resp")
    assert refused.value.status == 404


def test_text_is_the_message_of_a_user() -> None:
    assert [message["content"] for message in parse(body()).chat().question()] == ["Why?"]


def test_items_are_messages() -> None:
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So.", "extra": 1}]}
    thought: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None}
    ask = {"role": "user", "content": [{"type": "input_text", "text": "Why?"}]}
    assert messages(ask, thought, answer, ask) == [("user", "Why?"), ("assistant", "So."), ("user", "Why?")]


def test_an_image_is_that_of_chat_completions() -> None:
    image = {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"}
    [(_, [part])] = messages({"role": "user", "content": [image]})
    assert part == {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def test_a_reference_is_the_answer_of_its_response() -> None:
    reference = {"type": "item_reference", "id": KEY.id("msg")}
    thought = {"type": "item_reference", "id": "rs_1"}
    user = {"role": "user", "content": "And then?"}
    assert parse(body(input=[reference, user])).references() == {KEY}
    found = messages(thought, reference, user, answers={KEY: "So."})
    assert found == [("assistant", "So."), ("user", "And then?")]


def output(key: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": key, "output": f"The result of {key}"}


def test_outputs_at_the_end_are_results() -> None:
    call = {"type": "function_call", "call_id": "1", "name": "weather", "arguments": "{}"}
    request = parse(body(input=[{"role": "user", "content": "Why?"}, call, output("1"), output("2")])).chat()
    assert request.tool_results() == {"1": "The result of 1", "2": "The result of 2"}


def test_an_output_whose_call_is_not_there_is_left_out_later() -> None:
    call = {"type": "function_call", "call_id": "1", "name": "weather", "arguments": "{}"}
    found = messages(call, output("1"), output("2"), {"role": "user", "content": "Why?"})
    assert [role for role, _ in found] == ["assistant", "tool", "user"]


def test_settings_are_those_of_chat_completions() -> None:
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}
    text = {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": True}}
    fields = {"model": "react:offline", "max_output_tokens": 99, "tools": [tool], "text": text}
    context = parse(body(**fields, reasoning={"effort": "low", "summary": "auto"})).chat().context()
    assert context == {
        "model": "offline",
        "max_answer_tokens": 99,
        "answer_schema": {"type": "object"},
        "client_tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        "thinking": "low",
    }


def test_what_is_not_done_is_named_as_the_client_has_sent_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_request, "policy", lambda: Policy(settings=frozenset({"client_tools"})))
    chat = parse(body(max_output_tokens=50, reasoning={"effort": "low"}, temperature=0.5)).chat()
    assert chat.ignored == ["max_output_tokens", "reasoning.effort", "temperature"]


def test_tools_of_a_namespace_are_called_by_their_own_names() -> None:
    tool = {"type": "function", "name": "close", "parameters": {"type": "object"}}
    request = parse(
        body(model="react", tools=[{"type": "namespace", "name": "agents", "description": "", "tools": [tool]}])
    )
    [offered] = request.chat().tools
    call = {"id": "call_1", "type": "function", "function": {"name": offered["function"]["name"], "arguments": "{}"}}
    form = ResponseForm(KEY, request)
    for _ in (*form.begin(), *form.end(Reply(None, [call], False, USAGE))):
        pass
    item = Response.model_validate(form.whole()).output[-1]
    assert item.type == "function_call"
    assert (item.namespace, item.name) == ("agents", "close")


def test_what_codex_sends_is_accepted() -> None:
    fields = {
        "store": False,
        "client_metadata": {},
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "a",
    }
    parse(body(model="react", **fields, parallel_tool_calls=False, tool_choice="auto", reasoning=None, tools=[]))


def test_the_input_is_listed_as_items() -> None:
    call = {"type": "function_call", "call_id": "1", "name": "weather", "arguments": "{}"}
    image = {"type": "input_image", "image_url": "https://example.org/a.png"}
    ask = {"role": "user", "content": [{"type": "input_text", "text": "Why?"}, image]}
    answer = {"role": "assistant", "content": "So."}
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    unseen = {"type": "item_reference", "id": "rs_1"}
    items = parse(body(input=[ask, answer, thought, unseen, call, output("1")])).input_items(KEY)
    page = ResponseItemList.model_validate(ListQuery(order="asc").page(items))
    assert [item.type for item in page.data] == [
        "message",
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert [ITEMS.validate_python(item).type for item in items] == [item.type for item in page.data]
    assert items[0]["content"][1] == {**image, "detail": "auto"}
    assert items[1]["content"] == [{"type": "output_text", "text": "So.", "annotations": []}]


@pytest.mark.parametrize(
    ("query", "found", "more"),
    [({}, "cba", False), ({"order": "asc", "limit": 2}, "ab", True), ({"after": "b", "limit": 1}, "a", False)],
)
def test_items_are_listed_in_pages(query: dict[str, Any], found: str, more: bool) -> None:
    page = ListQuery(**query).page([{"id": name} for name in "abc"])
    assert [item["id"] for item in page["data"]] == [*found]
    assert (page["first_id"], page["last_id"], page["has_more"]) == (found[0], found[-1], more)


def test_what_follows_no_item_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        ListQuery(after="d").page([{"id": "a"}])
    assert refused.value.status == 404


async def test_a_record_is_deleted_and_the_others_of_its_thread_are_counted() -> None:
    records, other = MemoryRecords(), RunKey(KEY.thread_id, str(uuid4()))
    record = ResponseRecord(body(), 1, {})
    for key in (KEY, other, RunKey(str(uuid4()), str(uuid4()))):
        await records.add(key, record)
    assert await records.get(KEY) == record
    assert await records.delete(KEY) == 1
    assert await records.get(KEY) is None
    assert await records.delete(other) == 0


def test_a_cancelled_response_has_no_error() -> None:
    form = ResponseForm(KEY, parse(body(background=True)))
    failed = [*form.begin(), *form.fail(NoAnswer("Stopped.", code=CANCELLED))]
    assert (EVENTS.validate_python(failed[-1]).type, form.whole()["status"]) == ("response.failed", "cancelled")
    assert form.whole()["error"] is None


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tools": [{"type": "namespace", "name": "a", "tools": [{"type": "custom", "name": "b"}]}]}, "tools"),
        ({"background": True, "store": False}, "background"),
        ({"input": [{"type": "item_reference", "id": "item_1"}]}, "input.0.item_reference.id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"include": ["message.output_text.logprobs"]}, "include"),
        ({"input": []}, "input"),
        ({"input": [{"type": "mcp_call"}]}, "input.0"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input.0.message.content"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"previous_response_id": KEY.id("resp"), "store": False}, "store"),
        ({"temperature": 3}, "temperature"),
        ({"top_logprobs": 2}, "top_logprobs"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    def read() -> None:
        request = parse(body(**fields))
        request.previous()
        request.chat()

    with pytest.raises(Refused) as refused:
        read()
    assert refused.value.param == param


async def test_a_run_whose_response_cannot_be_kept_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = asyncio.Event()

    class Away(MemoryRecords):
        async def add(self, key: RunKey, record: ResponseRecord) -> None:
            raise OperationalError("the connection is lost")

    async def create(_: Request) -> JSONResponse:
        return JSONResponse({"run_id": KEY.run_id})

    async def cancel(_: Request) -> JSONResponse:
        cancelled.set()
        return JSONResponse({})

    monkeypatch.setattr("reflective_agents.serve.responses.response_records", Away)
    runs = "/threads/{thread}/runs"
    server = [Route(runs, create, methods=["POST"]), Route(f"{runs}/{{run}}/cancel", cancel, methods=["POST"])]
    app = CallsItself(Starlette(routes=[*routes, *server]))
    async with AsyncClient(transport=ASGITransport(app), base_url="http://localhost") as client:
        answer = await client.post("/v1/responses", json=body(background=True))
        await asyncio.wait_for(cancelled.wait(), 5)
    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "server_error")


async def test_the_answer_of_a_deleted_response_is_unknown() -> None:
    async def history(_: Request) -> JSONResponse:
        return JSONResponse([{"values": {"answer": "So."}, "tasks": []}])

    app = CallsItself(Starlette(routes=[*routes, Route("/threads/{thread}/history", history, methods=["POST"])]))
    items = [{"type": "item_reference", "id": KEY.id("msg")}, {"role": "user", "content": "And then?"}]
    async with AsyncClient(transport=ASGITransport(app), base_url="http://localhost") as client:
        answer = await client.post("/v1/responses", json=body(input=items))
    assert (answer.status_code, answer.json()["error"]["param"]) == (404, "input")
