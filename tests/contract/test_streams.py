"""What reaches the `messages` stream: the answer alone, token by token where it is what a model writes last."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage

from reflective_agents.graphs import graph_of
from reflective_agents.models import capabilities
from reflective_agents.state.settings import settings_of
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, Script, ToolUse
from tests.strategies import ASK

LONG = "Reflection finds mistakes, and so the next draft is better than the last one. " * 5 + "That helps."
THOUGHT = "I do not know that yet, so I look it up."


def agent(request: Request) -> Reply:
    """Search once, with a thought beside the call; then answer at length."""
    if request.tool_choice == "none" or any(message.type == "tool" for message in request.messages):
        return f"Final Answer: {LONG}" if "Final Answer" in request.last else LONG
    return AIMessage(THOUGHT, tool_calls=[{"name": "search", "args": {"query": "reflection"}, "id": "1"}])


def written(request: Request) -> Reply:
    """Write the steps as text."""
    if "Observation 1" in request.text:
        return f"Thought: That is it.\n**Final Answer:** {LONG}"
    return "Thought: I look it up.\nAction: search[reflection]"


def thinker(_: Request) -> Reply:
    return "First I think of this.\nThen of that.\nAnswer: it finds mistakes, as a rule"


def planner(request: Request) -> Reply:
    if request.schema == "Plan":
        return {"subgoals": [{"id": "1", "goal": "Find it out", "needs": []}]}
    return LONG if "The results:" in request.last else "Answer: found"


def rememberer(request: Request) -> Reply:
    return {"facts": []} if request.schema else f"It helps [m7], I think. [m1, m9] {LONG}"


def never_done(request: Request) -> Reply:
    """Gather material until nothing more may be done."""
    judgement = {"reasoning": "Only material.", "score": 0.4, "solved": False}
    if request.schema == "Judgements":
        return {"judgements": [judgement] * request.last.count("<candidate ")}
    if request.schema == "Judgement":
        return judgement
    return agent(request) if request.tool_choice == "none" else ToolUse("search", {"query": f"{request.key}"})


STREAMING: dict[str, tuple[str, Script, dict[str, Any]]] = {
    "react with tools": ("react", agent, {}),
    "react in text": ("react", written, {"acting": "paper"}),
    "react at its limit": ("react", agent, {"max_actions": 1}),
    "chain_of_thought": ("chain_of_thought", thinker, {}),
    "reflection with one draft": ("reflection", lambda request: LONG, {"max_rounds": 1, "critic": "checks"}),
    "plan": ("plan", planner, {"worker": "chain_of_thought"}),
    "memory": ("memory", rememberer, {"user": "streams", "retrieved": 0, "embeddings": "lexical"}),
    "lats at its limit": ("lats", never_done, {"max_expansions": 1, "n": 2}),
}
"""Runs whose answer is what a model writes last: the strategy, the model, and settings."""


@pytest.fixture(autouse=True)
def _nothing_learned() -> Iterator[None]:
    capabilities.forget_capabilities()
    yield
    capabilities.forget_capabilities()


async def streamed(strategy: str, model: FakeChatModel, settings: dict[str, Any], **config: Any) -> AsyncIterator[Any]:
    """Everything that a run streams as messages and as events, and last its result."""
    schema = settings_of(strategy)
    local = {"search": "local"} if getattr(schema(), "searches", False) else {}
    modes = ["messages", "custom", "values"]
    graph: Any = graph_of(strategy)
    run = graph.astream(ASK, config, context={"model": model, **local, **settings}, stream_mode=modes)
    result: Any = {}
    async for mode, part in run:
        if mode == "values":
            result = part
        else:
            yield part
    yield result


async def test_nothing_but_the_answer(subtests: Any) -> None:
    for name, (strategy, script, settings) in STREAMING.items():
        with subtests.test(name):
            *parts, result = [part async for part in streamed(strategy, FakeChatModel(reply=script), settings)]
            chunks = [part[0] for part in parts if isinstance(part, tuple)]
            assert "".join(chunk.text for chunk in chunks) == result["answer"]
            assert {chunk.id for chunk in chunks} == {result["messages"][-1].id}
            assert len(chunks) > 3


def talker(request: Request) -> Reply:
    """Write at great length beside a call, and then answer."""
    if any(message.type == "tool" for message in request.messages):
        return LONG
    return AIMessage("I wonder. " * 40, tool_calls=[{"name": "search", "args": {"query": "reflection"}, "id": "1"}])


async def test_what_turns_out_to_be_no_answer_is_withdrawn_and_the_model_not_trusted_again() -> None:
    model = FakeChatModel(reply=talker)
    *parts, result = [part async for part in streamed("react", model, {})]
    [withdrawn] = [part["message"] for part in parts if isinstance(part, dict) and part["event"] == "withdrawn"]
    chunks = [part[0] for part in parts if isinstance(part, tuple)]
    kept = [chunk.text for chunk in chunks if chunk.id != withdrawn]
    assert kept == [result["answer"]] == [LONG]
    *parts, _ = [part async for part in streamed("react", model, {})]
    assert [part[0].text for part in parts if isinstance(part, tuple)] == [LONG]


class Count(AsyncCallbackHandler):
    """Counts calls to models, as tracers do."""

    calls = 0

    async def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        """Count a call."""
        self.calls += 1


async def test_an_answer_in_the_stream_is_no_further_call_to_those_that_trace() -> None:
    model, count = FakeChatModel(reply=agent), Count()
    *_, result = [part async for part in streamed("react", model, {"verify_sources": False}, callbacks=[count])]
    assert count.calls == len(model.calls) == result["usage"]["model_calls"] == 2


async def test_where_nobody_listens_replies_come_in_one_piece() -> None:
    class Pieces(AsyncCallbackHandler):
        tokens = 0

        async def on_llm_new_token(self, *_: Any, **__: Any) -> None:
            self.tokens += 1

    pieces = Pieces()
    await graph_of("plan").ainvoke(
        ASK,
        {"callbacks": [pieces]},
        context={"model": FakeChatModel(reply=planner), "search": "none", "worker": "chain_of_thought"},
    )
    assert pieces.tokens == 0
