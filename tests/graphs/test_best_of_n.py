"""Best of N: trajectories that know nothing of each other, and a judge that reads whole answers only."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from tenacity import wait_none

from reflective_agents.graphs.best_of_n import builder, graph
from reflective_agents.models.providers import close_models
from reflective_agents.state.settings.best_of_n import BestOfNContext
from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request, ToolUse
from reflective_agents.tree_search.tree_paths import ROOT, depth_of
from tests.graphs.lats_scripts import QUESTION, judged, kind

GAME: dict[str, Any] = {"messages": [("user", "1 2 3 4")]}


@pytest.fixture(autouse=True)
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Retries that do not wait, and no connection left open."""
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    yield
    await close_models()


async def run(model: Any, given: Any = QUESTION, **settings: Any) -> Any:
    made = model if isinstance(model, FakeChatModelWithoutN) else FakeChatModel(reply=model)
    context = BestOfNContext.model_validate({"search": "local", **settings, "model": made})
    return await graph.ainvoke(given, context=context)


def taken(request: Request) -> int:
    return sum(message.type == "tool" for message in request.messages)


def searching(
    times: int, score: Callable[[str], float] = lambda _: 0.5, solved: float = 2.0
) -> Callable[[Request], Reply]:
    """A model that searches so many times before it answers, differently in each trajectory."""

    def reply(request: Request) -> Reply:
        if request.schema:
            answer = request.text.rpartition("<answer>\n")[2].partition("\n")[0]
            return judged(score(answer), score(answer) >= solved)
        name = f"{request.index} {request.attempt} {request.key[:6]}"
        if taken(request) < times and request.tool_choice != "none":
            return ToolUse("search", {"query": f"reflection {name}"})
        return f"answer {name}"

    return reply


def kinds(model: FakeChatModelWithoutN) -> Counter[str]:
    return Counter(kind(request) for request in model.calls)


# What it costs


@pytest.mark.matrix
@pytest.mark.parametrize(("model_type", "calls"), [(FakeChatModel, 26), (FakeChatModelWithoutN, 30)])
async def test_a_question_that_is_never_solved_costs_a_call_a_step_and_one_an_answer(
    model_type: type[FakeChatModelWithoutN], calls: int
) -> None:
    """At the defaults: 5 trajectories of 5 steps; where the provider takes n, one request for the first step of all."""

    model = model_type(reply=searching(100))
    state = await graph.ainvoke(QUESTION, context=BestOfNContext(model=model))
    assert state["usage"]["model_calls"] == len(model.calls) == calls
    assert kinds(model)["judge"] == 5
    assert (state["outcome"]["status"], state["tree"]["0.0.0.0.0.0"]["score"]) == ("exhausted", 0.5)
    assert Counter(depth_of(key) for key in state["tree"]) == {0: 1, **dict.fromkeys(range(1, 6), 5)}
    assert {node["kind"] for key, node in state["tree"].items() if depth_of(key) == 5} == {"answer"}


@pytest.mark.parametrize(("parallel", "seconds"), [(1, 1 + 5 * 2), (5, 1 + 2), (8, 1 + 2)])
def test_trajectories_run_at_once(parallel: int, seconds: int) -> None:
    model = FakeChatModel(reply=searching(1), latency=1.0)
    state, passed = virtually(run(model, parallel=parallel, search="none"))
    assert passed == seconds
    assert len(state["tree"]) == 1 + 5 + 5


async def test_only_answers_are_judged_and_each_once() -> None:
    model = FakeChatModel(reply=searching(2))
    state = await run(model)
    judges = [request.last.count("<answer>") for request in model.calls if request.schema]
    assert judges == [1] * 5
    scored = {node["kind"] for node in state["tree"].values() if node["score"] is not None}
    assert scored == {"answer"}
    assert state["stats"][ROOT]["visits"] == 5


# Independence


@pytest.mark.parametrize("parallel", [1, 8])
async def test_trajectories_that_begin_alike_share_that_step_and_part_where_they_differ(parallel: int) -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return judged(0.5)
        if taken(request) == 0:
            return ToolUse("search", {"query": "the same"})
        if taken(request) == 1:
            return ToolUse("search", {"query": f"reflection {request.index % 2}"})
        return f"answer {request.index}"

    model = FakeChatModel(reply=reply)
    state = await run(model, parallel=parallel)
    counts = {key: node.get("samples", 1) for key, node in state["tree"].items() if key != ROOT}
    assert counts == {"0.0": 5, "0.0.0": 3, "0.0.1": 2} | {f"0.0.0.{i}": 1 for i in range(3)} | {
        f"0.0.1.{i}": 1 for i in range(2)
    }
    assert [request.n for request in model.calls if kind(request) == "sample"] == [5, 5, 3, 2]
    assert kinds(model)["judge"] == 5


async def test_no_trajectory_sees_anything_of_another() -> None:
    model = FakeChatModel(reply=searching(2))
    state = await run(model)
    for request in model.calls:
        queries = re.findall(
            r'"query": "reflection (\d) ', str([getattr(m, "tool_calls", None) for m in request.messages])
        )
        assert len(set(queries)) <= 1
    assert all("<critique>" not in request.text for request in model.calls)
    assert state["lessons"] == []


async def test_the_best_answer_wins_and_an_accepted_one_ends_the_run() -> None:
    best = await run(searching(0, lambda answer: int(answer.split()[1]) / 10))
    assert best["answer"].startswith("answer 4")
    assert best["outcome"]["status"] == "exhausted"
    model = FakeChatModel(reply=searching(1, lambda _: 0.9, solved=0.9))
    first = await run(model, parallel=1)
    assert (first["outcome"]["status"], len(model.calls)) == ("solved", 3), "one trajectory has come to its end"


async def test_answers_of_the_same_step_may_be_judged_together() -> None:
    model = FakeChatModel(
        reply=lambda request: (
            {"judgements": [judged(i / 10) for i in range(5)]} if request.schema else f"answer {request.index}"
        )
    )
    state = await run(model, grading="together")
    assert len(model.calls) == 2
    assert state["answer"] == "answer 4"


# Environments


PLAYED = ["1 + 2 = 3 (left: 3 3 4)", "3 + 3 = 6 (left: 4 6)", "4 * 6 = 24 (left: 24)"]


def player(winner: int) -> Callable[[Request], Reply]:
    """Plays well in the trajectory of this number, and else such that no other trajectory meets it."""

    def reply(request: Request) -> Reply:
        done = sum(message.type == "tool" for message in request.messages)
        if done == 0:
            return f"Action: {PLAYED[0] if request.index == winner else f'{request.index} * 2'}"
        return f"Action: {PLAYED[min(done, 2)]}"

    return reply


async def test_an_environment_rewards_and_no_judge_is_asked() -> None:
    model = FakeChatModel(reply=player(winner=3))
    state = await run(model, GAME, environment="game24")
    assert (state["outcome"]["status"], state["reward"]) == ("solved", 1)
    assert kinds(model)["judge"] == 0


async def test_what_is_wrong_with_the_steps_is_told_where_no_trajectory_has_come_to_an_answer() -> None:
    state = await run(player(winner=-1), GAME, environment="game24")
    reason = state["outcome"]["reason"]
    assert "; steps refused: 10, the last one because " in reason
    assert "Legal actions" not in reason
    assert "\n" not in reason


EGGS: dict[str, Any] = {"messages": [("user", "3 hens lay 16 eggs each; 8 break. How many are left?")]}


def counting(closing: str) -> Callable[[Request], Reply]:
    """A small model that calculates, never answers by itself, and writes `closing` when it has to."""

    def reply(request: Request) -> Reply:
        done = sum(message.type == "tool" for message in request.messages)
        if kind(request) == "conclude":
            return closing
        return ["calculate: 3 hens * 16 eggs (a day) = 48 eggs", "Thought 2: calculate: 48 - 8", "calculate: 40 - 0"][
            min(done, 2)
        ]

    return reply


async def test_the_last_call_sees_the_trajectory_that_has_come_furthest() -> None:
    model = FakeChatModel(reply=counting("Thought 3: So.\nAction 3: Final Answer: 40 eggs"))
    state = await run(model, EGGS, environment="arithmetic", n=2, max_model_calls=5)
    (closing,) = [request for request in model.calls if kind(request) == "conclude"]
    shown = [message.text for message in closing.messages if message.type == "tool"]
    assert shown[:2] == ["3 * 16 = 48", "48 - 8 = 40"]
    assert (state["answer"], len(model.calls) <= 5) == ("40 eggs", True)


GUESS = "Action: calculate: 6 * 7\n Observation: 42\nAnswer: 42"
HELD = "Thought: I have it. Final Answer: 42\nAction: calculate: 6 * 7"


@pytest.mark.matrix(keep=5)
@pytest.mark.parametrize("proposal", [GUESS, f"Action: divide: 6\n{GUESS}", HELD])
@pytest.mark.parametrize("acting", ["text", "paper"])
@pytest.mark.parametrize("closing", ["Action: calculate: 6 * Ben", ""])
async def test_an_answer_on_the_way_is_returned_for_want_of_a_better(proposal: str, acting: str, closing: str) -> None:
    def reply(request: Request) -> Reply:
        return closing if "The run ends here" in request.text else proposal

    model = FakeChatModel(reply=reply)
    out = await run(model, environment="arithmetic", acting=acting, n=2, max_depth=1, max_model_calls=4)
    assert (out["answer"], out["outcome"]["status"]) == ("42", "exhausted")


async def test_an_answer_of_an_earlier_turn_is_none_of_this_one() -> None:
    def reply(request: Request) -> Reply:
        return GUESS if "first" in request.messages[-1].text and "The run ends here" not in request.text else ""

    context: Any = {"model": FakeChatModel(reply=reply), "environment": "arithmetic", "acting": "text", "n": 1}
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    thread = builder.compile(checkpointer=InMemorySaver())
    answers = [
        (await thread.ainvoke({"messages": [("user", question)]}, config, context={**context, "max_depth": 1}))[
            "answer"
        ]
        for question in ("The first one?", "Another one?")
    ]
    assert answers == ["42", None]


@pytest.mark.parametrize(("depth", "kinds"), [(1, {"answer"}), (2, {"action"})])
async def test_an_answer_behind_a_call_is_returned_for_want_of_a_better(depth: int, kinds: set[str]) -> None:
    """Where no call is allowed it is the answer, for what stands before it is invented."""

    def reply(request: Request) -> Reply:
        ends = "No tool can be called" in request.text
        return "" if ends and depth == 2 else "Action: search[tides]\nFinal Answer: They move."

    out = await run(FakeChatModel(reply=reply), acting="text", n=2, max_depth=depth, max_model_calls=4)
    assert (out["answer"], {node["kind"] for node in out["tree"].values()} - {"root"}) == ("They move.", kinds)


async def test_a_labelled_answer_ends_a_trajectory_of_an_environment() -> None:
    model = FakeChatModel(reply=lambda request: judged(0.5) if request.schema else "Thought: so\n<Final Answer: 40>")
    state = await run(model, EGGS, environment="arithmetic", acting="paper", n=2)
    assert {node["action"] for node in state["tree"].values() if node["kind"] == "answer"} == {"Answer: 40"}
    assert (state["answer"], kinds(model)["conclude"]) == ("40", 0)


async def test_the_outcome_names_the_best_of_several_that_are_accepted_at_once() -> None:
    scores = iter([0.75, 1.0, 0.8, 0.9])

    def reply(request: Request) -> Reply:
        if request.schema:
            return judged(next(scores), True)
        return ToolUse("search", {"query": f"{request.index}"}) if not taken(request) else f"answer {request.key[:6]}"

    state = await run(reply, n=4, parallel=4)
    solved = [node for node in state["tree"].values() if node["solved"]]
    best = max(solved, key=lambda node: node["score"] or 0)
    assert (len(solved), best["score"], best["messages"][0].text) == (4, 1.0, state["answer"])
    assert state["outcome"]["reason"].endswith(f"a score of 1.00 (node {best['id']})")


# Limits and faults


@pytest.mark.matrix(keep=6)
@pytest.mark.parametrize("limit", range(1, 11))
@pytest.mark.parametrize("model_type", [FakeChatModel, FakeChatModelWithoutN])
async def test_where_the_calls_do_not_suffice_for_all_trajectories_the_limit_is_the_reason(
    model_type: type[FakeChatModelWithoutN], limit: int
) -> None:
    model = model_type(reply=searching(0))
    state = await run(model, max_model_calls=limit, n=10)
    assert len(model.calls) <= limit
    assert (state["outcome"]["limit"]["name"], state["outcome"]["limit"]["most"]) == ("max_model_calls", limit)
    assert (state["outcome"]["status"], bool(state["answer"])) == ("limit_reached", True)


async def test_a_call_that_always_fails_is_tried_three_times_and_is_the_reason() -> None:
    def reply(request: Request) -> Reply:
        if request.tool_choice == "none":
            return "as well as I can"
        return judged(0.5) if request.schema else ToolUse("search", '{"broken')

    state = await run(reply)
    assert state["usage"]["tool_errors"] == 3
    assert sum(entry.get("refused", 0) for entry in state["log"]) == 5
    assert (state["outcome"]["status"], state["answer"]) == ("exhausted", "as well as I can")


async def test_an_attempt_at_an_answer_that_fails_too_is_named() -> None:
    state = await run(lambda request: ToolUse("no_such_tool", {}))
    assert (state["outcome"]["status"], state["answer"]) == ("failed", None)
    assert ", and no answer could be had: " in state["outcome"]["reason"]


async def test_a_depth_at_which_nobody_has_answered_is_named() -> None:
    state = await run(
        lambda request: (
            judged(0.5) if request.schema else [ToolUse("search", {"query": f"{request.key} {request.index}"})]
        ),
        n=3,
        max_depth=2,
    )
    assert "nodes without an answer at max_depth=2: 3" in state["outcome"]["reason"]


async def test_a_judge_that_always_fails_is_named_and_costs_no_answer() -> None:
    state = await run(lambda request: "no form" if request.schema else f"answer {request.index}")
    assert (state["outcome"]["status"], state["usage"]["parse_failures"] % 3) == ("exhausted", 0)
    assert state["answer"] == "answer 0"


@pytest.mark.thorough
async def test_the_same_seed_gives_the_same_tree() -> None:
    first, again = [await run(searching(1), seed=3, parallel=1) for _ in range(2)]
    assert (first["stats"], first["log"], first["answer"]) == (again["stats"], again["log"], again["answer"])


@pytest.mark.parametrize("acting", ["tools", "paper"])
async def test_an_answer_in_prose_is_read_in_an_environment(acting: str) -> None:
    def writing(request: Request) -> Reply:
        return judged(0.5) if request.schema else "France has a capital.\n\nFinal Answer: Paris"

    given = {**GAME, "task": {"id": "1", "question": "What is the capital of France?", "gold": "Paris"}}
    settings = {"environment": "questions", "n": 1, "gold_reward": True, "acting": acting}
    out = await graph.ainvoke(given, context={"model": FakeChatModel(reply=writing), **settings})
    assert (out["answer"], out["reward"]) == ("Paris", 1.0)
