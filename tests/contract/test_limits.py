"""Limits that hold, whatever happens: counted where the calls arrive, with 50 of them in flight."""

import asyncio
import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.exceptions import ModelConnectionError, ModelRateLimitError
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.faults import Fault
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request, Script, ToolUse, ask, first_error, to_choice, usage
from tests.strategies import (
    ASK,
    ENDLESS,
    STRATEGIES,
    Result,
    Strategy,
    every_case,
    every_endless,
    every_strategy,
    name_of,
    thread,
)

pytestmark = [pytest.mark.matrix(over="strategy", keep=2), pytest.mark.usefixtures("provider")]

ModelType = type[FakeChatModelWithoutN]
MODELS: list[ModelType] = [FakeChatModel, FakeChatModelWithoutN]
with_models = pytest.mark.parametrize(
    ("strategy", "model_type"),
    [
        pytest.param(strategy, model_type, id=f"{strategy.name}-{model_type.__name__}")
        for strategy in ENDLESS
        for model_type in (MODELS if strategy.fan_out else MODELS[1:])
    ],
)
"""Each strategy with the model that refuses `n`, and with the other one if it may ask for several candidates."""
ANSWER_TOKENS = 128
"""Most tokens of an answer in these tests, so that limits bite early."""
LARGE = (60, 110, 20_000, 30_000)
"""Limits that 50 calls in flight at once meet after a while."""


def dice(seed: int, request: Request, what: str) -> float:
    """A random number from 0 to 1 that depends on what is asked and how often it was asked before."""
    return random.Random(f"{seed} {what} {request.key} {request.attempt}").random()


def faulty(script: Script, seed: int) -> Script:
    """A script whose calls fail one time in three, each in its own way."""

    def reply(request: Request) -> Any:
        number = dice(seed, request, "fault")
        faults: list[Reply] = [
            ModelRateLimitError("too busy"),
            ModelConnectionError("reset"),
            OSError("broken pipe"),
            ValueError("no JSON"),
            "",
            "I would rather say it in plain words.",
            ToolUse("no_such_tool", {}),
            ToolUse((*request.tools, "none")[0], '{"broken": '),
        ]
        return faults[int(number * 24)] if number < 1 / 3 else script(request)

    return reply


def moody(strategy: Strategy, seed: int, model_type: ModelType) -> FakeChatModelWithoutN:
    """A model with random faults and latencies; one call in twenty hangs until it is given up."""

    def latency(request: Request) -> float:
        return 300 if dice(seed, request, "hang") < 0.05 else 3 * dice(seed, request, "latency")

    return model_type(reply=faulty(in_words(strategy.endless), seed), latency=latency, max_tokens=ANSWER_TOKENS)


def in_words(script: Script) -> Script:
    """Write the fields of a form as JSON where nothing forces it: after refusals a model is asked for them in words."""

    def reply(request: Request) -> Any:
        fields = script(request)
        return json.dumps(fields) if isinstance(fields, dict) and request.schema is None else fields

    return reply


def moody_models(strategy: Strategy, limit: int) -> Iterator[FakeChatModelWithoutN]:
    """Such models: one is enough where the limit leaves many calls to be moody in."""
    for model_type in MODELS if strategy.fan_out else MODELS[1:]:
        for seed in range(1 if limit in LARGE else 2):
            yield moody(strategy, seed, model_type)


def bound(strategy: Strategy, limit: int) -> int:
    """The limit, but less than a large one where calls come one after another."""
    return limit // 3 if limit in LARGE and not strategy.fan_out else limit


def spent(model: FakeChatModelWithoutN) -> int:
    """Tokens of all calls by the provider's rule: those that were given up count as if they had been answered, and
    those that were refused cost nothing."""
    return sum(_tokens(model, request) for request in model.calls)


def _tokens(model: FakeChatModelWithoutN, request: Request) -> int:
    replies = ask(model.reply, request)
    error = first_error(replies)
    if isinstance(error, ModelRateLimitError):
        return 0
    choices = [] if error else [to_choice(reply, request, i) for i, reply in enumerate(replies)]
    return sum(usage(request, choices))


async def run(strategy: Strategy, model: Any, **settings: Any) -> Result:
    common = {"max_answer_tokens": ANSWER_TOKENS, **strategy.longest, **strategy.fan_out}
    context = strategy.make(**{**common, "model": model, **settings})
    result: Result = await strategy.graph.ainvoke(ASK, context=context)
    return result


def assert_kept(result: Result, model: FakeChatModelWithoutN) -> None:
    """What holds for every run, however it ended."""
    counted = result["usage"]
    assert model.in_flight == 0
    assert counted["model_calls"] == len(model.calls)
    assert counted["total_tokens"] == counted["input_tokens"] + counted["output_tokens"] >= spent(model)
    assert (result["answer"] is None) == (result["outcome"]["status"] == "failed")
    assert result["answer"] is None or result["answer"].strip()


# Calls


@every_case("limit", range(1, 13), ENDLESS)
async def test_every_small_number_of_calls_gives_the_best_answer_so_far(strategy: Strategy, limit: int) -> None:
    for model_type in MODELS if strategy.fan_out else MODELS[1:]:
        model = model_type(reply=strategy.endless)
        result = await run(strategy, model, max_model_calls=limit)
        assert_kept(result, model)
        assert len(model.calls) <= limit
        assert (result["outcome"]["limit"]["name"], result["outcome"]["limit"]["most"]) == ("max_model_calls", limit)
        if limit >= strategy.answered:
            assert result["outcome"]["status"] == "limit_reached"


@pytest.mark.matrix
@every_case("limit", [1, 2, 7, 110])
def test_calls_stay_within_their_limit_under_faults_and_timeouts(strategy: Strategy, limit: int) -> None:
    most = bound(strategy, limit)
    for model in moody_models(strategy, limit):
        result, _ = virtually(run(strategy, model, max_model_calls=most))
        assert_kept(result, model)
        assert len(model.calls) <= most


@pytest.mark.parametrize("strategy", [strategy for strategy in STRATEGIES if strategy.fan_out], ids=name_of)
def test_fifty_calls_are_in_flight(strategy: Strategy) -> None:
    """What the tests of this module rest on."""
    model = FakeChatModelWithoutN(reply=strategy.endless, latency=1.0)
    virtually(run(strategy, model, max_model_calls=120))
    assert model.max_in_flight == 50


# Tokens


@pytest.mark.matrix
@every_case("limit", [1, 600, 4_000, 30_000])
def test_tokens_stay_within_their_limit_under_faults_and_timeouts(strategy: Strategy, limit: int) -> None:
    most = bound(strategy, limit)
    for model in moody_models(strategy, limit):
        result, _ = virtually(run(strategy, model, max_total_tokens=most))
        assert_kept(result, model)
        assert spent(model) <= result["usage"]["total_tokens"] <= most


@pytest.mark.matrix
@with_models
async def test_the_outcome_quotes_the_tokens(strategy: Strategy, model_type: ModelType) -> None:
    model = model_type(reply=strategy.endless, max_tokens=ANSWER_TOKENS)
    most = bound(strategy, 20_000)
    result = await run(strategy, model, max_total_tokens=most)
    assert_kept(result, model)
    assert result["outcome"]["status"] == "limit_reached"
    limit = result["outcome"]["limit"]
    assert (limit["name"], limit["most"]) == ("max_total_tokens", most)
    spent_then, needed = limit["spent"], limit["needed"]
    assert spent_then + needed > most >= result["usage"]["total_tokens"] == spent(model) >= spent_then


@every_strategy
async def test_a_ready_made_model_without_a_bound_keeps_the_limit_of_tokens(strategy: Strategy) -> None:
    def verbose(request: Request) -> Any:
        reply = strategy.endless(request)
        if isinstance(reply, dict):
            return {key: value + " word" * 4_000 if isinstance(value, str) else value for key, value in reply.items()}
        return reply + " word" * 4_000 if isinstance(reply, str) else reply

    model = FakeChatModel(reply=verbose)
    few = dict.fromkeys(strategy.fan_out, 5)
    result = await run(strategy, model, max_total_tokens=4_000, max_answer_tokens=64, **few)
    assert spent(model) <= result["usage"]["total_tokens"] <= 4_000


@every_strategy
async def test_a_prompt_beyond_the_limit_is_never_sent(strategy: Strategy) -> None:
    model = FakeChatModel(reply=strategy.endless)
    context = strategy.make(model=model, max_total_tokens=5_000)
    result = await strategy.graph.ainvoke({"messages": [("user", "漢字 [alpha] " * 3_000)]}, context=context)
    assert (result["outcome"]["status"], model.calls) == ("failed", [])
    assert result["outcome"]["limit"]["name"] == "max_total_tokens"


# Seconds


@pytest.mark.usefixtures("virtual_seconds")
@with_models
def test_time_that_is_up_ends_the_run_with_the_best_answer(strategy: Strategy, model_type: ModelType) -> None:
    answers = 1 if model_type is FakeChatModel else 5
    enough = strategy.answered + (answers if strategy.fan_out else 0)
    model: FakeChatModelWithoutN = model_type(
        reply=strategy.endless, latency=lambda _: 60 if len(model.calls) > enough else 0
    )
    result, seconds = virtually(run(strategy, model, max_seconds=20, **dict.fromkeys(strategy.fan_out, 5)))
    assert_kept(result, model)
    assert result["outcome"]["status"] == ("failed" if strategy.answers_last else "limit_reached")
    assert result["outcome"]["limit"] == {"name": "max_seconds", "most": 20, "spent": pytest.approx(20, abs=0.05)}
    assert result["usage"]["seconds"] == pytest.approx(seconds) == pytest.approx(20)


@pytest.mark.usefixtures("virtual_seconds")
@every_strategy
def test_time_that_is_up_before_the_first_reply_fails_the_run(strategy: Strategy) -> None:
    model = FakeChatModelWithoutN(reply=strategy.endless, latency=60)
    result, seconds = virtually(run(strategy, model, max_seconds=20))
    assert_kept(result, model)
    assert result["outcome"]["status"] == "failed"
    assert result["outcome"]["limit"]["name"] == "max_seconds"
    assert result["usage"]["seconds"] == pytest.approx(seconds) == pytest.approx(20)


@with_models
def test_a_run_that_is_cancelled_leaves_no_call_behind(strategy: Strategy, model_type: ModelType) -> None:
    model: FakeChatModelWithoutN = model_type(
        reply=strategy.endless, latency=lambda _: 60 if len(model.calls) > strategy.answered else 0
    )

    async def cancelled() -> None:
        before = asyncio.all_tasks()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(20):
                await run(strategy, model)
        assert len(model.calls) > strategy.answered
        assert model.in_flight == 0
        assert asyncio.all_tasks() == before

    virtually(cancelled())


# Runs that go on


@pytest.mark.matrix(keep=2)
@every_case("limit", [1, 2, 3, 5, 8, 12])
async def test_a_run_that_is_paused_again_and_again_keeps_its_limit(strategy: Strategy, limit: int) -> None:
    graph = strategy.with_memory()
    model = FakeChatModel(reply=strategy.endless)
    settings = {"model": model, "max_model_calls": limit, **strategy.longest, **strategy.fan_out}
    context = strategy.make(**settings)
    result = await graph.ainvoke(ASK, thread(), context=context, interrupt_after="*")
    while (await graph.aget_state(thread())).next:
        result = await graph.ainvoke(None, thread(), context=context, interrupt_after="*")
    assert_kept(result, model)
    assert len(model.calls) <= limit
    straight = await run(strategy, FakeChatModel(reply=strategy.endless), max_model_calls=limit, max_answer_tokens=2048)
    assert (result["outcome"], result["answer"]) == (straight["outcome"], straight["answer"])


class Crash(RuntimeError):
    """What no graph catches."""


@every_endless
async def test_a_run_that_crashed_in_a_call_goes_on_counting(strategy: Strategy) -> None:
    graph = strategy.with_memory()
    crashed: list[Request] = []

    def reply(request: Request) -> Any:
        if len(model.calls) > strategy.answered + 1 and not crashed:
            crashed.append(request)
            return Crash("power cut")
        return strategy.endless(request)

    model = FakeChatModel(reply=reply)
    context = strategy.make(model=model, max_model_calls=strategy.answered + 12, **strategy.longest)
    with pytest.raises((Crash, ExceptionGroup)):
        await graph.ainvoke(ASK, thread(), context=context)
    result = await graph.ainvoke(None, thread(), context=context)
    assert result["usage"]["model_calls"] == len(model.calls) <= strategy.answered + 12
    assert result["outcome"]["status"] == "limit_reached"


class FailingSaver(InMemorySaver):
    """A checkpointer whose database is away for one write."""

    def __init__(self, fails_at: int) -> None:
        super().__init__()
        self.fails_at = fails_at
        self.count = itertools.count(1)  # which the copies made for graphs inside graphs share

    async def aput(self, *args: Any, **kwargs: Any) -> RunnableConfig:
        if next(self.count) == self.fails_at:
            raise Crash("the database is away")
        return await super().aput(*args, **kwargs)


@every_case("fails_at", [3, 4, 5])
async def test_a_run_whose_checkpoint_failed_can_be_taken_up(strategy: Strategy, fails_at: int) -> None:
    graph = strategy.with_memory(FailingSaver(fails_at))
    model = FakeChatModel(reply=strategy.solving)
    context = strategy.make(model=model)
    with pytest.raises(Crash):
        await graph.ainvoke(ASK, thread(), context=context, durability="sync")
    stored = (await graph.aget_state(thread())).values["usage"]["model_calls"]
    before = len(model.calls)
    result = await graph.ainvoke(None, thread(), context=context, durability="sync")
    assert result["outcome"]["status"] == strategy.status
    assert [message.type for message in result["messages"]] == ["human", "ai"]
    assert result["usage"]["model_calls"] in (stored + len(model.calls) - before, len(model.calls))


# Money


PRICES = {"Fake*": {"input": 1, "output": 4}}
"""Dollars for a million tokens."""


def dollars(model: FakeChatModelWithoutN) -> float:
    """What all calls have cost by the provider's rule, as `spent`."""
    cost = 0
    for request in model.calls:
        replies = ask(model.reply, request)
        error = first_error(replies)
        choices = [] if error else [to_choice(reply, request, i) for i, reply in enumerate(replies)]
        read, answered = usage(request, choices)
        cost += 0 if isinstance(error, ModelRateLimitError) else read + 4 * answered
    return cost / 1_000_000


@pytest.mark.thorough
@every_case("limit", [0.001, 0.003, 0.02, 0.06])
def test_money_stays_within_its_limit_under_faults_and_timeouts(strategy: Strategy, limit: float) -> None:
    most = limit / 3 if limit > 0.01 and not strategy.fan_out else limit
    model = moody(strategy, 0, FakeChatModelWithoutN)
    result, _ = virtually(run(strategy, model, max_cost=most, prices=PRICES))
    assert_kept(result, model)
    assert dollars(model) <= result["usage"]["cost"] + 1e-9 <= most + 2e-9
    assert result["usage"]["unpriced_calls"] == 0


@every_strategy
async def test_a_run_that_money_ends_says_so(strategy: Strategy) -> None:
    model = FakeChatModelWithoutN(reply=strategy.endless)
    result = await run(strategy, model, max_cost=0.015, prices=PRICES)
    if strategy.endless_calls:
        limit = result["outcome"]["limit"]
        assert (limit["name"], limit["most"]) == ("max_cost", 0.015)
        assert 0 < limit["spent"] <= 0.015 < limit["spent"] + limit["needed"]
    assert dollars(model) == pytest.approx(result["usage"]["cost"])


# Over the wire


@pytest.mark.matrix
@pytest.mark.wire
@every_case(
    "given",
    [("max_model_calls", 1), ("max_model_calls", 60), ("max_total_tokens", 500), ("max_total_tokens", 30_000)],
    ids=lambda given: f"{given[0]}-{given[1]}",
)
async def test_limits_hold_where_the_provider_counts(
    strategy: Strategy, given: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, limit = given[0], bound(strategy, given[1])
    shown: list[Fault] = ["429", "500", "reset", "truncated_json", "null_content", "bad_arguments_json", "length"]
    luck = random.Random(limit)

    def faults(*_: object) -> Fault | None:
        return luck.choice(shown) if luck.random() < 0.2 else "n_ignored"

    async with OpenAIServer(strategy.endless, faults=faults, latency=lambda _: 0.01 * luck.random()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        result = await run(strategy, "openai:test", **{name: limit})
    counted = result["usage"]
    assert counted["model_calls"] == len(server.requests)
    assert counted["total_tokens"] >= server.total_tokens
    assert counted[name.removeprefix("max_")] <= limit
    assert (result["answer"] is None) == (result["outcome"]["status"] == "failed")
