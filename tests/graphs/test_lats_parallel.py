"""Several leaves in flight: how long it takes, what comes of it, and what is left when it is broken off."""

import asyncio
import random
import re
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.exceptions import ModelRateLimitError
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from tenacity import wait_none

from reflective_agents.environments.base import State, Task, Transition
from reflective_agents.graphs.lats import builder, graph
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request
from tests.contract import test_contract as contract
from tests.contract import test_limits as limits
from tests.graphs.lats_scripts import QUESTION, Timeline, assert_consistent, depth, judged, kind, run, unsolvable
from tests.strategies import STRATEGIES, Strategy, thread

LATS = next(strategy for strategy in STRATEGIES if strategy.name == "lats")
EIGHT = replace(LATS, settings={**LATS.settings, "parallel": 8}, fan_out={"n": 7})


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())


# How long it takes


@pytest.mark.matrix
@pytest.mark.parametrize(("grading", "calls"), [("each", 62), ("together", 22)])
@pytest.mark.parametrize(("parallel", "waves"), [(1, 22), (2, 14), (4, 10), (8, 8)])
def test_the_clock_follows_the_longest_chain_of_calls(parallel: int, waves: int, grading: str, calls: int) -> None:
    model = FakeChatModel(reply=unsolvable, latency=1.0)
    state, seconds = virtually(run(model, parallel=parallel, grading=grading))
    assert len(model.calls) == calls
    assert seconds == pytest.approx(waves)
    assert len(state["tree"]) == 51
    assert_consistent(state)


def test_while_the_slowest_candidate_of_a_leaf_is_judged_the_next_leaves_are_sampled_and_judged() -> None:
    waiting = [20.0]

    def slow(request: Request) -> float:
        of_first = request.schema and "answer 2 at 2" in request.text
        return waiting.pop() if of_first and waiting else 1.0

    timeline = Timeline(slow)
    model = FakeChatModel(reply=unsolvable, latency=timeline)
    state, _ = virtually(run(model, parallel=2, n=3, max_expansions=6))
    begun, ended = next((begun, ended) for begun, ended, _ in timeline.calls if ended - begun == 20)
    meanwhile = [kind(request) for at, until, request in timeline.calls if begun < at and until < ended]
    assert (meanwhile.count("sample"), meanwhile.count("judge")) == (3, 3 * 3)
    assert [entry["node"] for entry in state["log"]][-1] == "0.0", "the leaf that took longest is told last"
    assert_consistent(state)


def test_each_candidate_is_judged_as_soon_as_it_was_sampled() -> None:
    def reply(request: Request) -> Reply:
        return judged(0.5) if request.schema else f"answer {request.seed or request.attempt} at {depth(request)}"

    timeline = Timeline(lambda request: 1.0 + (2 * request.attempt if kind(request) == "sample" else 0))
    state, seconds = virtually(run(FakeChatModelWithoutN(reply=reply, latency=timeline), n=4, max_expansions=1))
    samples = [until for _, until, request in timeline.calls if kind(request) == "sample" and depth(request) == 1]
    judges = [at for at, _, request in timeline.calls if kind(request) == "judge"][1:]
    assert samples == judges == [3, 5, 7, 9]
    assert seconds == 10
    assert len(state["tree"]) == 5


# What comes of it


def moody(seed: int) -> Callable[[Request], float]:
    """Latencies that differ from call to call and from seed to seed."""
    return lambda request: random.Random(f"{seed} {request.key} {request.index} {request.attempt}").random()


STEPS = ["Search[tide]", "Search[moon]", "Finish[sand]", "Finish[rock]", "Finish[mud]"]


def opinion(request: Request) -> Reply:
    """Scores that differ, in steps that are often the same."""
    if request.schema:
        return judged(random.Random(request.text).random())
    if kind(request) == "reflect":
        return f"a lesson on {len(request.text)}"
    chance = random.Random(f"{request.text} {request.seed} {request.index}")
    return f"Thought: {chance.random()}\nAction: {chance.choice(STEPS)}"


QUESTIONS = {"environment": "questions", "seed": 1, "max_rollouts": 5, "max_depth": 4}


@pytest.mark.thorough
@pytest.mark.parametrize("model_type", [FakeChatModel, FakeChatModelWithoutN])
def test_one_leaf_at_a_time_and_a_seed_give_the_same_tree_whatever_comes_first(
    model_type: type[FakeChatModelWithoutN],
) -> None:
    states = []
    for seed in range(4):
        model = model_type(reply=opinion, latency=moody(seed))
        states.append(virtually(run(model, parallel=1, **QUESTIONS | {"seed": 5}))[0])
    kept = ("tree", "stats", "log", "lessons", "outcome", "answer", "expansions")
    first, *others = [{name: state[name] for name in kept} for state in states]
    assert len(first["tree"]) > 15
    assert first["lessons"]
    assert others == [first] * 3


@pytest.mark.parametrize("seed", [None, 1])
def test_a_sample_that_is_not_to_be_had_leaves_its_siblings_alone(seed: int | None) -> None:
    """The third of five requests fails three times, long before the others are answered."""

    def failing(request: Request) -> bool:
        third = request.attempt in (2, 5, 6) if seed is None else request.seed == seed + 2
        return kind(request) == "sample" and depth(request) == 1 and third

    def reply(request: Request) -> Any:
        if failing(request):
            return ModelRateLimitError("too busy")
        return judged(0.5) if request.schema else f"answer {request.seed} {request.attempt} {request.key}"

    model = FakeChatModelWithoutN(reply=reply, latency=lambda request: 1.0 if failing(request) else 10.0)
    state, _ = virtually(run(model, seed=seed, max_expansions=1))
    assert [node["score"] for node in state["tree"].values()] == [0.5] * 5
    assert state["outcome"]["limit"] == {"name": "max_expansions", "most": 1, "spent": 1}
    assert state["usage"]["failed_calls"] == 3


@pytest.mark.thorough
@pytest.mark.parametrize("parallel", [2, 8])
@pytest.mark.parametrize("seed", range(3))
def test_with_several_leaves_in_flight_nothing_is_lost_or_counted_twice(parallel: int, seed: int) -> None:
    def reply(request: Request) -> Reply:
        chance = random.Random(f"{request.text} {request.index}")
        if request.schema:
            return judged(chance.random())
        return f"answer {chance.randrange(4)} at {depth(request)} of {request.key}"  # equal to siblings at most

    model = FakeChatModel(reply=reply, latency=moody(seed))
    state, _ = virtually(run(model, parallel=parallel, max_expansions=40, max_model_calls=1000, max_depth=6))
    assert_consistent(state)
    assert len([entry for entry in state["log"] if entry["kind"] == "expand"]) == state["expansions"] == 40
    assert len({entry["node"] for entry in state["log"]}) == 41
    assert sum(entry["calls"] for entry in state["log"]) == len(model.calls) == state["usage"]["model_calls"]


def test_a_limit_takes_in_what_was_paid_for() -> None:
    """One leaf has children that are too long to be judged, while the children of the other are being judged."""

    def reply(request: Request) -> Reply:
        long = not request.schema and "answer 1 at 1" in request.text
        return "word " * 12_000 + f"{request.index}" if long else unsolvable(request)

    def slow(request: Request) -> float:
        return 5.0 if request.schema and "at 2" in request.text else 1.0

    settings = {"parallel": 2, "n": 2, "max_answer_tokens": 16_000, "max_total_tokens": 60_000}
    state, _ = virtually(run(FakeChatModel(reply=reply, latency=slow), **settings))
    assert state["outcome"]["status"] == "limit_reached"
    assert state["outcome"]["limit"]["name"] == "max_total_tokens"
    scores = {node_id: node["score"] for node_id, node in state["tree"].items() if node["depth"] == 2}
    assert scores == {"0.0.0": 0.5, "0.0.1": 0.5, "0.1.0": None, "0.1.1": None}
    assert_consistent(state)


def test_a_solution_gives_up_what_is_in_flight() -> None:
    def reply(request: Request) -> Reply:
        good = "answer 1 at 2" in request.text
        return judged(0.9 if good else 0.3, good) if request.schema else f"answer {request.index} at {depth(request)}"

    def slow(request: Request) -> float:
        return 100.0 if request.schema and re.search("answer 2 at 1[^0]*at 2", request.text) else 1.0

    model = FakeChatModel(reply=reply, latency=slow)
    state, seconds = virtually(run(model, parallel=4, n=3))
    assert (state["outcome"]["status"], state["answer"]) == ("solved", "answer 1 at 2")
    assert seconds < 100
    assert model.in_flight == 0
    assert_consistent(state)


# What is left when it is broken off


@pytest.mark.matrix
@pytest.mark.parametrize("seed", range(4))
def test_after_faults_nothing_is_in_flight(seed: int) -> None:
    def reply(request: Request) -> Any:
        broken = random.Random(f"{seed} {request.key} {request.attempt}").random() < 0.3
        return ModelRateLimitError("too busy") if broken else unsolvable(request)

    model = FakeChatModel(reply=reply, latency=moody(seed))
    state, _ = virtually(run(model, parallel=8, max_expansions=20, max_model_calls=120))
    assert model.in_flight == 0
    assert state["usage"]["failed_calls"] >= 3
    assert_consistent(state)


async def test_cancellation_leaves_neither_calls_nor_tasks_nor_virtual_losses() -> None:
    full = asyncio.Event()

    def latency(request: Request) -> float:
        if model.in_flight == 8:
            full.set()
        return 60.0 if depth(request) > 1 else 0.0

    model = FakeChatModel(reply=unsolvable, latency=latency)
    thread_graph = builder.compile(checkpointer=InMemorySaver())
    context = LatsContext(model=model, search="none", grading="each", parallel=8, n=8)
    before = asyncio.all_tasks()
    task = asyncio.create_task(thread_graph.ainvoke(QUESTION, thread(), context=context))
    await full.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.in_flight == 0
    assert asyncio.all_tasks() == before
    state = (await thread_graph.aget_state(thread())).values
    assert_consistent(state)
    model.latency = 0.0
    result = await thread_graph.ainvoke(None, thread(), context=context)
    assert result["outcome"]["status"] == "limit_reached"
    assert_consistent(result)


class Careful:
    """An environment that asks before it does what is dangerous."""

    name = "careful"
    actions = "any word"

    def start(self, task: Task) -> State:
        return {"task": task, "done": [], "answer": ""}

    def public(self, state: State) -> str:
        return f"Said: {state['done']}"

    def answer(self, state: State) -> str:
        return str(state["answer"])

    def key(self, state: State) -> str:
        return ""

    async def step(self, state: State, action: str) -> Transition:
        if action == "danger":
            allowed = interrupt({"may I": action})
            return Transition({**state, "answer": allowed}, f"{allowed}.", 1.0, True)
        return Transition({**state, "done": [*state["done"], action]}, "Said.")

    def canonical(self, action: str) -> str:
        return action

    def score(self, task: Task, answer: str) -> dict[str, float]:
        return {}


@pytest.mark.parametrize("parallel", [1, 4])
async def test_an_interrupt_inside_an_action_pauses_the_graph_and_the_answer_goes_on(parallel: int) -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return judged(0.3)
        second = sum(message.type == "tool" for message in request.messages) == 1
        danger = second and request.index == 1 and "'word 2'" in str(request.messages)
        return f"Thought: so\nAction: {'danger' if danger else f'word {request.index}'}"

    model = FakeChatModel(reply=reply)
    stored = builder.compile(checkpointer=InMemorySaver())
    context = LatsContext(model=model, environment=Careful(), parallel=parallel, n=3, simulate=False)
    paused = await stored.ainvoke(QUESTION, thread(), context=context)
    assert [interrupt.value for interrupt in paused["__interrupt__"]] == [{"may I": "danger"}]
    assert model.in_flight == 0
    state = await stored.aget_state(thread())
    assert state.next == ("expand",)
    assert not any(stat.get("virtual") for stat in state.values["stats"].values())
    result = await stored.ainvoke(Command(resume="yes"), thread(), context=context)
    assert (result["answer"], result["outcome"]["status"]) == ("yes", "solved")
    assert "danger" in [node.get("action") for node in result["tree"].values() if node["parent_id"] == "0.2"]


# What every strategy promises

Promise = Callable[[Strategy], Coroutine[Any, Any, None] | None]


def bounded(promise: Any, *args: Any) -> Promise:
    return lambda strategy: promise(strategy, *args)


PROMISES: dict[str, Promise] = {
    f"{name} {limit}": bounded(promise, limit)
    for name, promise, most in [
        ("few calls", limits.test_every_small_number_of_calls_gives_the_best_answer_so_far, [1, 2, 3, 5, 8, 12]),
        ("calls", limits.test_calls_stay_within_their_limit_under_faults_and_timeouts, [7, 110]),
        ("tokens", limits.test_tokens_stay_within_their_limit_under_faults_and_timeouts, [600, 30_000]),
    ]
    for limit in most
} | {
    "tokens quoted": bounded(limits.test_the_outcome_quotes_the_tokens, FakeChatModel),
    "time": bounded(limits.test_time_that_is_up_ends_the_run_with_the_best_answer, FakeChatModelWithoutN),
    "cancelled": bounded(limits.test_a_run_that_is_cancelled_leaves_no_call_behind, FakeChatModel),
    "crash": limits.test_a_run_that_crashed_in_a_call_goes_on_counting,
    "database away": bounded(limits.test_a_run_whose_checkpoint_failed_can_be_taken_up, 4),
    "result": contract.test_the_result_has_answer_outcome_usage_and_artefact_and_nothing_else,
    "second turn": contract.test_a_second_question_on_a_thread_is_a_turn_of_its_own,
    "serializer": contract.test_everything_in_the_state_survives_the_serializer,
    "runs at once": contract.test_runs_at_once_do_not_mix,
    "values": contract.test_values_end_with_the_contract_and_earlier_ones_do_not_change_under_the_readers_hands,
    "messages": contract.test_the_messages_stream_brings_the_answer_once_under_its_id_and_no_scratch_work,
}


@pytest.mark.matrix(keep=2)
@pytest.mark.usefixtures("virtual_seconds")
@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_what_every_strategy_promises_holds_with_eight_leaves_in_flight(promise: Promise) -> None:
    kept = promise(EIGHT)
    if kept is not None:
        virtually(kept)


def test_the_graph_that_is_served_takes_the_setting() -> None:
    assert graph.name == "lats"
    assert LatsContext(parallel=64).parallel == 64
