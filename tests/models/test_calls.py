"""Requests to models: retries, time, candidates, and what they cost."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.exceptions import ModelAuthenticationError, ModelRateLimitError
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from reflective_agents.graphs import lats
from reflective_agents.models.calls import request
from reflective_agents.models.capabilities import takes_n, takes_seed, takes_stop
from reflective_agents.models.costs import estimate_tokens
from reflective_agents.models.meter import Meter
from reflective_agents.offline.model import OfflineChatModel
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached, ModelFailed, UnknownModel
from reflective_agents.state.run import NOTHING_SPENT
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request

PROMPT = [HumanMessage("How are you?")]


def meter(**limits: Any) -> Meter:
    return Meter(Context.model_validate(limits), NOTHING_SPENT)


async def test_a_transient_fault_is_retried_and_every_attempt_counts() -> None:
    limits = meter()
    model = FakeChatModel(reply=lambda r: ModelRateLimitError("busy") if r.attempt < 2 else "fine")
    replies = await request(model, PROMPT, limits)
    assert replies[0].text == "fine"
    assert (limits.usage["model_calls"], limits.usage["failed_calls"]) == (3, 2)


async def test_after_three_attempts_the_model_has_failed() -> None:
    model = FakeChatModel(reply=lambda r: ModelRateLimitError("busy"))
    with pytest.raises(ModelFailed, match="busy"):
        await request(model, PROMPT, meter())
    assert len(model.calls) == 3


async def test_what_a_retry_cannot_mend_is_not_retried() -> None:
    model = FakeChatModel(reply=lambda r: ModelAuthenticationError("wrong key"))
    with pytest.raises(ModelFailed, match="wrong key"):
        await request(model, PROMPT, meter())
    assert len(model.calls) == 1


async def test_a_retry_does_not_exceed_the_limit() -> None:
    model = FakeChatModel(reply=lambda r: ModelRateLimitError("busy"))
    with pytest.raises(LimitReached):
        await request(model, PROMPT, meter(max_model_calls=2))
    assert len(model.calls) == 2


async def test_an_empty_reply_is_a_fault() -> None:
    model = FakeChatModel(reply=lambda r: AIMessage("") if r.attempt == 0 else "fine")
    assert (await request(model, PROMPT, meter()))[0].text == "fine"
    with pytest.raises(ModelFailed, match="neither text nor a tool call"):
        await request(FakeChatModel(reply=lambda r: AIMessage("")), PROMPT, meter())


def test_a_call_that_takes_too_long_is_given_up() -> None:
    model = FakeChatModel(reply=lambda r: "late", latency=lambda r: 30 if r.attempt == 0 else 0)
    [late], seconds = virtually(request(model, PROMPT, meter(call_timeout=5)))
    assert late.text == "late"
    assert 5 <= seconds < 30


async def test_the_deadline_of_the_run_ends_a_call() -> None:
    model = FakeChatModel(reply=lambda r: "late", latency=30)
    with pytest.raises(LimitReached, match="max_seconds"):
        await request(model, PROMPT, meter(max_seconds=0.05))


def test_cancellation_is_no_fault() -> None:
    model, limits = FakeChatModel(reply=lambda r: "late", latency=30), meter()

    async def cancelled() -> None:
        task = asyncio.create_task(request(model, PROMPT, limits))
        await asyncio.sleep(1)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        virtually(cancelled())
    assert limits.usage["total_tokens"] > 2048


async def test_n_candidates_in_one_request_cost_what_the_request_cost() -> None:
    limits = meter()
    model = FakeChatModel(reply=lambda r: f"number {r.index}")
    replies = await request(model, PROMPT, limits, n=3)
    assert [reply.text for reply in replies] == ["number 0", "number 1", "number 2"]
    assert len(model.calls) == limits.usage["model_calls"] == 1
    assert limits.usage["total_tokens"] == sum(
        reply.usage_metadata["total_tokens"] for reply in replies if reply.usage_metadata
    )


async def test_a_provider_without_usage_is_charged_an_estimate() -> None:
    def silent(request: Request) -> Reply:
        return AIMessage("four words of text")

    limits = meter()
    model = FakeChatModel(reply=silent)
    await request(model, PROMPT, limits)
    assert 0 < limits.usage["total_tokens"] < 100


def test_what_a_model_takes() -> None:
    assert takes_n(FakeChatModel(reply=lambda r: ""))
    assert takes_n(OfflineChatModel())
    assert takes_seed(OfflineChatModel())
    assert not takes_n(FakeChatModelWithoutN(reply=lambda r: ""))
    with pytest.raises(UnknownModel, match="a chat model is needed"):
        takes_n(RunnableLambda(lambda text: AIMessage("")))


@pytest.mark.parametrize(
    ("name", "taken"), [("gpt-4.1", True), ("llama3.2", True), ("o3-mini", False), ("gpt-5.1", False)]
)
def test_reasoning_models_are_not_sent_stops(name: str, taken: bool) -> None:
    assert takes_stop(ChatOpenAI(model_name=name, openai_api_key=SecretStr("none"))) is taken


@pytest.mark.parametrize("text", ["plain words of an English sentence", "人工智能的反思", "x=[1,2];print(x)", ""])
def test_the_estimate_counts_bytes_and_messages(text: str) -> None:
    messages = [SystemMessage("abcd"), HumanMessage(text)]
    assert estimate_tokens(messages, {}) >= len(text.encode()) / 2 + 20
    assert estimate_tokens(messages, {"tools": [{"name": "x" * 100}]}) > estimate_tokens(messages, {}) + 50


async def test_four_functions_lie_between_a_node_and_the_client() -> None:
    hops: list[str] = []

    def reply(_: Request) -> str:
        hops.extend(name for name in _suspended() if name.startswith("reflective_agents.models"))
        return "Yes."

    await request(FakeChatModel(reply=reply), [HumanMessage("Why?")], Meter(Context(), NOTHING_SPENT))
    assert len(hops) == 4, hops


async def test_fourteen_functions_in_ten_files_lie_between_a_graph_and_the_client_that_samples() -> None:
    stacks: dict[str | None, list[str]] = {}

    def reply(request: Request) -> Reply:
        frames = [name for name in _suspended() if name.startswith("reflective_agents.")]
        stacks[request.schema] = max(stacks.get(request.schema, []), frames, key=len)
        judgement = {"reasoning": "so so", "score": 0.5, "solved": False}
        return {"judgements": [judgement] * request.text.count("<candidate ")} if request.schema else str(request.index)

    settings = LatsContext(model=FakeChatModel(reply=reply), search="none", max_expansions=3)
    await lats.graph.ainvoke({"messages": [("user", "Why?")]}, context=settings)
    counts = {schema: (len(frames), len({*frames})) for schema, frames in stacks.items()}
    assert counts == {None: (14, 10), "Judgements": (17, 10)}, stacks


def _suspended() -> list[str]:
    """Name the module of each function that waits, in any task."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    return [name for task in tasks for name in _awaited(task.get_coro())]


def _awaited(coroutine: Any) -> Iterator[str]:
    """Name the modules of a chain of coroutines, each of which awaits the next."""
    while frame := getattr(coroutine, "cr_frame", None):
        yield frame.f_globals["__name__"]
        coroutine = coroutine.cr_await
