"""An agent of the user's own as the actor: its calls keep the limits, its errors and interrupts are the user's."""

import asyncio
import math
import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_core.exceptions import ModelConnectionError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from pydantic import ValidationError

from reflective_agents.graphs import builder_of, graph_of, react, with_settings
from reflective_agents.models.account import Settle, charge_to
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached, Misuse, UnknownPrice
from reflective_agents.state.limits import Limit
from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse

pytestmark = pytest.mark.matrix(over="strategy", keep=3)
ACTORS = ("best_of_n", "trials", "reflection", "plan")
every_actor = pytest.mark.parametrize("strategy", ACTORS)
ASK: dict[str, Any] = {"messages": [("user", "How many people live in Paris?")]}
SETTINGS: dict[str, dict[str, Any]] = {"best_of_n": {"n": 3, "grading": "each"}, "trials": {"max_trials": 2}}
PRICES = {"Fake*": {"input": 1, "output": 4}}


def population(city: str) -> str:
    """Return the number of people in a city."""
    return f"{city}: 2,102,650"


def working(request: Request) -> Reply:
    """An agent that looks the number up, and says it."""
    return "2,102,650 people." if request.messages[-1].type == "tool" else ToolUse("population", {"city": "Paris"})


def restless(_: Request) -> Reply:
    """An agent that never answers."""
    return ToolUse("population", {"city": "Paris"})


def boss(request: Request) -> Reply:
    """What the strategy itself asks for: plans, judgements, lessons; nothing is good enough."""
    found = "2,102,650" in request.text
    forms: dict[str | None, Reply] = {
        "Plan": {"subgoals": [{"id": "1", "goal": "Count the people", "needs": []}]},
        "Critique": {"critique": "Good.", "score": 0.9, "accept": found},
        "Judgement": {"reasoning": "Good.", "score": 0.9, "solved": found},
    }
    return forms.get(request.schema, "There are 2,102,650 people in Paris.")


def agent_of(model: BaseChatModel) -> Any:
    return create_agent(model, [population], name="counter")


def settings(strategy: str, agent: Any, model: Any, **more: Any) -> dict[str, Any]:
    return {"model": model, "agent": agent, **SETTINGS.get(strategy, {}), **more}


async def run(strategy: str, agent: Any, model: Any, **more: Any) -> dict[str, Any]:
    result: dict[str, Any] = await graph_of(strategy).ainvoke(ASK, context=settings(strategy, agent, model, **more))
    return result


@every_actor
async def test_an_agent_does_the_work(strategy: str) -> None:
    worker, judge = FakeChatModel(reply=working), FakeChatModel(reply=boss)
    result = await run(strategy, agent_of(worker), judge)
    assert "2,102,650" in result["answer"]
    assert result["outcome"]["status"] == ("answered" if strategy == "plan" else "solved")
    assert result["usage"]["model_calls"] == len(worker.calls) + len(judge.calls)
    assert result["usage"]["tool_calls"] == len(worker.calls) // 2 > 0
    assert [message.type for message in result["messages"]] == ["human", "ai"]
    wrote = {"model_name": "FakeChatModel"} if strategy == "plan" else {"agent": "counter"}
    assert result["messages"][-1].response_metadata == {**wrote, "strategy": strategy}


@every_actor
async def test_tokens_are_counted_where_they_are_spent(strategy: str) -> None:
    worker, judge = FakeChatModel(reply=working), FakeChatModel(reply=boss)
    result = await run(strategy, agent_of(worker), judge)
    prompts = sum(len(request.text) // 4 + 1 for request in [*worker.calls, *judge.calls])
    assert result["usage"]["input_tokens"] == prompts


@every_actor
@pytest.mark.parametrize("most", [1, 2, 7])
async def test_calls_of_an_agent_are_not_sent_beyond_the_limit(strategy: str, most: int) -> None:
    worker, judge = FakeChatModel(reply=restless), FakeChatModel(reply=boss)
    result = await run(strategy, agent_of(worker), judge, max_model_calls=most)
    assert result["usage"]["model_calls"] == len(worker.calls) + len(judge.calls) <= most
    assert (result["outcome"]["status"], result["outcome"]["limit"]["name"]) == ("failed", "max_model_calls")


@pytest.mark.matrix
@every_actor
@pytest.mark.parametrize("limit", [{"max_total_tokens": 4_000}, {"max_cost": 0.01, "prices": PRICES}])
async def test_tokens_and_money_of_an_agent_stay_within_the_limit(strategy: str, limit: dict[str, Any]) -> None:
    worker = FakeChatModel(reply=restless, max_tokens=100)
    judge = FakeChatModel(reply=boss, max_tokens=100)
    result = await run(strategy, agent_of(worker), judge, max_answer_tokens=100, **limit)
    [name, most] = next(iter(limit.items()))
    assert len(worker.calls) > 1
    assert 0 < result["usage"][name.removeprefix("max_")] <= most
    assert strategy == "plan" or result["outcome"]["limit"]["name"] == name


async def test_a_limit_of_money_needs_the_price_of_the_agents_model() -> None:
    worker = FakeChatModel(reply=working)
    with pytest.raises(UnknownPrice, match="what FakeChatModel costs"):
        await run("reflection", agent_of(worker), "offline", max_cost=1)
    assert worker.calls == []


@pytest.mark.usefixtures("virtual_seconds")
@every_actor
def test_an_agent_that_hangs_ends_with_the_time_of_the_run(strategy: str) -> None:
    worker, judge = FakeChatModel(reply=working, latency=1_000), FakeChatModel(reply=boss)
    result, seconds = virtually(run(strategy, agent_of(worker), judge, max_seconds=20))
    assert result["outcome"]["limit"]["name"] == "max_seconds"
    assert seconds == pytest.approx(20, abs=1)
    assert worker.in_flight == 0


def timed_out(_: Request) -> Reply:
    return TimeoutError("my own")


@every_actor
@pytest.mark.parametrize("reply", [lambda _: RuntimeError("my own"), timed_out])
async def test_errors_of_an_agent_pass(strategy: str, reply: Any) -> None:
    worker, judge = FakeChatModel(reply=reply), FakeChatModel(reply=boss)
    with pytest.raises((RuntimeError, TimeoutError), match="my own"):
        await run(strategy, agent_of(worker), judge)


async def approved(state: MessagesState) -> dict[str, Any]:
    """Answer when a person agrees."""
    return {"messages": [AIMessage(interrupt("May I say 2,102,650?"))]}


@every_actor
async def test_an_agent_may_ask_a_person(strategy: str) -> None:
    asking: Any = StateGraph(MessagesState).add_node("ask", approved).add_edge(START, "ask").compile(name="asking")
    graph: Any = builder_of(strategy).compile(checkpointer=InMemorySaver())
    config, judge = {"configurable": {"thread_id": "1"}}, FakeChatModel(reply=boss)
    context = settings(strategy, asking, judge)
    result, questions = await graph.ainvoke(ASK, config, context=context), 0
    while paused := result.get("__interrupt__"):
        assert paused[0].value == "May I say 2,102,650?"
        questions += 1
        result = await graph.ainvoke(Command(resume=f"{questions}: 2,102,650"), config, context=context)
    assert "2,102,650" in result["answer"]
    assert questions == (3 if strategy == "best_of_n" else 1)


@every_actor
async def test_calls_that_were_sent_elsewhere_are_counted_by_their_messages(strategy: str) -> None:
    usage = {"input_tokens": 30, "output_tokens": 12, "total_tokens": 42}

    async def far(given: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [*given["messages"], AIMessage("2,102,650", usage_metadata=usage)]}

    judge = FakeChatModel(reply=boss)
    result = await run(strategy, RunnableLambda(far), judge)
    far_calls = result["usage"]["model_calls"] - len(judge.calls)
    assert far_calls == (3 if strategy == "best_of_n" else 1)
    assert result["usage"]["unpriced_calls"] == far_calls + len(judge.calls)


@every_actor
async def test_nothing_of_an_agents_work_is_taken_for_the_answer_in_the_stream(strategy: str) -> None:
    worker, judge = FakeChatModel(reply=working), FakeChatModel(reply=boss)
    context = settings(strategy, agent_of(worker), judge)
    graph: Any = graph_of(strategy)
    stream = graph.astream(ASK, context=context, stream_mode="messages")
    texts = [(message.id, message.text) async for message, _ in stream if message.type in ("ai", "AIMessageChunk")]
    result = await run(strategy, agent_of(worker), judge)
    assert "".join(text for _, text in texts) == result["answer"]
    assert len({name for name, _ in texts}) == 1


@pytest.mark.parametrize("strategy", ["trials", "best_of_n"])
async def test_an_agent_in_an_environment_is_rewarded_by_it(strategy: str) -> None:
    worker = FakeChatModel(reply=lambda _: "The cards make it.\nAnswer: 4 * 5 + 10 - 6 = 24")
    task = {"id": "1", "question": "4 5 6 10"}
    context = settings(strategy, agent_of(worker), FakeChatModel(reply=boss), environment="game24")
    inputs = {"messages": [("user", task["question"])], "task": task}
    result = await graph_of(strategy).ainvoke(inputs, context=context)
    assert (result["outcome"]["status"], result["outcome"]["verified_by"]) == ("solved", "environment")
    assert "24" in worker.calls[0].text
    assert "4 * 5 + 10 - 6" in result["answer"]


async def test_lessons_reach_the_agent() -> None:
    worker, judge = FakeChatModel(reply=lambda _: "Nobody knows."), FakeChatModel(reply=boss)
    result = await run("trials", agent_of(worker), judge)
    assert len(result["trials"]) == 2
    assert result["trials"][0]["reflection"] in worker.calls[1].text


async def test_a_critique_reaches_the_agent() -> None:
    worker, judge = FakeChatModel(reply=lambda _: "Nobody knows."), FakeChatModel(reply=boss)
    result = await run("reflection", agent_of(worker), judge, max_rounds=2)
    assert len(result["drafts"]) == 2
    assert "<critique>" in worker.calls[1].text


async def test_a_strategy_is_an_agent_with_settings_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_MAX_ACTIONS", "1")
    monkeypatch.setenv("MODEL", "offline")
    result = await run("reflection", graph_of("react"), FakeChatModel(reply=boss), max_rounds=1)
    assert result["drafts"]
    assert result["usage"]["model_calls"] > 1


@pytest.mark.parametrize("agent", ["react", 7, FakeChatModel(reply=boss)])
@every_actor
async def test_what_is_no_agent_is_refused(strategy: str, agent: object) -> None:
    with pytest.raises(ValidationError, match="an agent is a graph of LangGraph's"):
        await run(strategy, agent, FakeChatModel(reply=boss))


async def test_an_agent_without_messages_is_misuse() -> None:
    silent: Any = RunnableLambda(lambda _: {"output": "2,102,650"})
    with pytest.raises(Misuse, match="returns them with its answer"):
        await run("reflection", silent, FakeChatModel(reply=boss))


async def test_an_agent_without_an_answer_fails_the_run() -> None:
    silent: Any = RunnableLambda(lambda _: {"messages": [HumanMessage("Well?"), AIMessage("")]})
    result = await run("reflection", silent, FakeChatModel(reply=boss))
    assert (result["answer"], result["outcome"]["status"]) == (None, "failed")
    assert "gave no answer" in result["outcome"]["reason"]


def test_an_agent_is_no_plain_setting() -> None:
    context: Context = graph_of("reflection").context_schema(agent=agent_of(FakeChatModel(reply=working)))  # type: ignore[misc]
    assert "agent" not in context.explicit_settings()


# Agents of all kinds


async def blocking(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
    """Call a model as synchronous code does, though the loop waits for it."""
    return {"messages": [config["configurable"]["model"].invoke(state["messages"])]}


def threaded(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
    """Call a model in a thread of its own."""
    return {"messages": [config["configurable"]["model"].invoke(state["messages"])]}


@pytest.mark.parametrize("work", [blocking, threaded])
async def test_synchronous_agents_are_held_to_the_limits_too(work: Any) -> None:
    worker, judge = FakeChatModel(reply=lambda _: "2,102,650"), FakeChatModel(reply=boss)
    plain: Any = StateGraph(MessagesState).add_node("work", work).add_edge(START, "work").compile()
    agent = plain.with_config(configurable={"model": worker})
    result = await run("best_of_n", agent, judge, n=4)
    assert result["usage"]["model_calls"] == len(worker.calls) + len(judge.calls)
    assert len(worker.calls) == 4
    before = len(worker.calls) + len(judge.calls)
    result = await run("best_of_n", agent, judge, n=4, max_model_calls=1)
    assert result["usage"]["model_calls"] == len(worker.calls) + len(judge.calls) - before == 1


# The account of whoever runs an agent


class CountingAccount:
    """An account of calls, which has to wait for its database."""

    def __init__(self, most: float = math.inf) -> None:
        self.most, self.calls, self.tokens, self.held = most, 0, 0, 0

    async def hold(self, tokens: int, nano: int | None) -> Settle:
        await asyncio.sleep(0.001)
        if self.calls >= self.most:
            raise LimitReached(Limit(name="max_model_calls_a_day", most=self.most, spent=self.calls))
        self.calls += 1
        self.held += 1
        return self._settle

    async def _settle(self, calls: int, tokens: int, nano: int) -> None:
        await asyncio.sleep(0.001)
        self.held -= 1
        self.calls += calls - 1
        self.tokens += tokens


@pytest.fixture
def account() -> Iterator[CountingAccount]:
    account = CountingAccount()
    charge_to(account)
    yield account
    charge_to(None)


def agents() -> dict[str, Any]:
    graphs = {
        work.__name__: StateGraph(MessagesState).add_node("work", work).add_edge(START, "work").compile()
        for work in (blocking, threaded)
    }
    return {"agent": agent_of, **{name: partial(_configured, graph) for name, graph in graphs.items()}}


def _configured(graph: Any, model: BaseChatModel) -> Any:
    return graph.with_config(configurable={"model": model})


@pytest.mark.parametrize("kind", ["agent", "threaded"])
async def test_every_call_of_an_agent_is_charged_once(kind: str, account: CountingAccount) -> None:
    worker, judge = FakeChatModel(reply=working if kind == "agent" else boss), FakeChatModel(reply=boss)
    result = await run("best_of_n", agents()[kind](worker), judge, n=4)
    assert account.calls == len(worker.calls) + len(judge.calls) == result["usage"]["model_calls"]
    assert (account.tokens, account.held) == (result["usage"]["total_tokens"], 0)


@pytest.mark.parametrize("kind", ["agent", "threaded"])
async def test_no_call_of_an_agent_exceeds_the_account(kind: str, account: CountingAccount) -> None:
    account.most = 3
    worker, judge = FakeChatModel(reply=restless), FakeChatModel(reply=boss)
    result = await run("best_of_n", agents()[kind](worker), judge, n=8)
    assert len(worker.calls) + len(judge.calls) == 3 == result["usage"]["model_calls"]
    assert account.held == 0
    assert kind == "threaded" or result["outcome"]["limit"]["name"] == "max_model_calls_a_day"


@pytest.mark.usefixtures("account")
async def test_an_agent_that_blocks_the_loop_cannot_be_charged() -> None:
    worker = FakeChatModel(reply=boss)
    with pytest.raises(Misuse, match="blocks the event loop"):
        await run("reflection", agents()["blocking"](worker), FakeChatModel(reply=boss))
    assert len(worker.calls) == 1


async def test_a_strategy_as_an_agent_is_charged_once(
    account: CountingAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL", "offline")
    result = await run("reflection", graph_of("react"), FakeChatModel(reply=boss), max_rounds=1)
    assert account.calls == result["usage"]["model_calls"]
    assert account.tokens == result["usage"]["total_tokens"]


@pytest.mark.matrix
@pytest.mark.usefixtures("virtual_seconds")
@pytest.mark.parametrize(("name", "most"), [("max_total_tokens", 9_000), ("max_cost", 0.02), ("max_model_calls", 60)])
def test_fifty_agents_at_once_overshoot_nothing_with_faults(name: str, most: float) -> None:
    def faulty(request: Request) -> Reply:
        luck = random.Random(f"{request.key} {request.attempt}").random()
        return ModelConnectionError("reset") if luck < 1 / 3 else working(request)

    worker = FakeChatModel(reply=faulty, latency=lambda _: 1.0, max_tokens=100)
    retry = ModelRetryMiddleware(max_retries=3, initial_delay=0, jitter=False, on_failure="continue")
    agent = create_agent(worker, [population], middleware=[retry])
    judge = FakeChatModel(reply=boss, max_tokens=100)
    result, _ = virtually(
        run("best_of_n", agent, judge, **{"n": 50, "max_answer_tokens": 100, "prices": PRICES, name: most})
    )
    assert worker.max_in_flight > 20
    calls = [*worker.calls, *judge.calls]
    assert result["usage"]["model_calls"] == len(calls)
    read = sum(len(request.text) // 4 + 1 for request in calls)
    assert read <= result["usage"]["input_tokens"]
    assert result["usage"][name.removeprefix("max_")] <= most


@every_actor
async def test_a_strategy_that_meets_its_own_limit_says_so(strategy: str) -> None:
    """One of our graphs is the agent, and has no room for a single call."""
    agent = with_settings(react.graph, model=FakeChatModel(reply=working), search="none", max_total_tokens=1)
    result = await run(strategy, agent, FakeChatModel(reply=boss))
    reasons = [goal["reason"] for goal in result.get("subgoals", [result["outcome"]])]
    assert result["answer"] is None
    assert "max_total_tokens" in reasons[0]


@every_actor
async def test_a_strategy_is_an_agent_like_others(strategy: str) -> None:
    model = FakeChatModel(reply=working)
    agent = with_settings(react.graph, name="counter", model=model, search="none", tools=[population])
    result = await run(strategy, agent, FakeChatModel(reply=boss))
    assert "2,102,650" in result["answer"]
