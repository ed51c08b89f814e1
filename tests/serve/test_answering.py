"""What an answer's headers tell its client, in the words of the client's protocol; and who no longer waits."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from reflective_agents.serve import chat_request, messages_request, responses_request
from reflective_agents.serve.answering import Answering, respond
from reflective_agents.serve.policy import policy
from reflective_agents.serve.responses import ResponseRun

HI: dict[str, Any] = {"role": "user", "content": "Hi"}
API: Any = None


@pytest.fixture(autouse=True)
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "policy.json").write_text('{"settings": ["client_tools"]}')
    monkeypatch.setenv("REFLECT_POLICY", str(tmp_path / "policy.json"))
    policy.cache_clear()
    yield
    policy.cache_clear()


@pytest.mark.parametrize(
    ("fields", "ignored"),
    [
        ({"max_tokens": 99, "reasoning_effort": "low"}, "max_tokens, reasoning_effort"),
        ({"max_tokens": 1, "max_completion_tokens": 99}, "max_completion_tokens"),
    ],
)
def test_completions_have_their_own_names(fields: dict[str, Any], ignored: str) -> None:
    request = chat_request.parse({"model": "react", "messages": [HI], **fields})
    assert Answering(API, request).headers()["x-ignored"] == ignored


def test_responses_have_their_own_names() -> None:
    fields = {"max_output_tokens": 99, "reasoning": {"effort": "low"}, "temperature": 0}
    request = responses_request.parse({"model": "react", "input": "Hi", **fields})
    assert ResponseRun(API, request).headers()["x-ignored"] == "max_output_tokens, reasoning.effort, temperature"


def test_messages_have_their_own_names() -> None:
    fields = {
        "thinking": {"type": "enabled", "budget_tokens": 5_000},
        "tools": [{"name": "f"}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    }
    request = messages_request.parse({"model": "react", "messages": [HI], "max_tokens": 99, **fields})
    ignored = "max_tokens, thinking.budget_tokens, tool_choice.disable_parallel_tool_use"
    assert Answering(API, request.chat()).headers()["x-ignored"] == ignored


def test_a_thread_is_named_in_ascii() -> None:
    request = chat_request.parse({"model": "react", "messages": [HI], "thread_id": "Gespräch 1"})
    assert Answering(API, request).headers() == {"x-thread-id": "Gespr%C3%A4ch 1"}


async def test_nothing_waits_for_an_answer_whose_request_the_server_has_cancelled() -> None:
    waits, left = asyncio.Event(), asyncio.Event()

    class Endless(Answering):
        async def parts(self) -> AsyncIterator[Any]:
            waits.set()
            try:
                yield await asyncio.Event().wait()
            finally:
                left.set()

    async def receive() -> Any:
        await asyncio.Event().wait()

    run = Endless(API, chat_request.parse({"model": "react", "messages": [HI]}))
    form: Any = SimpleNamespace(begin=list)
    answering = asyncio.create_task(respond(Request({"type": "http"}, receive), run, form))
    await waits.wait()
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering
    async with asyncio.timeout(5):
        await left.wait()
