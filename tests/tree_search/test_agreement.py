"""Choosing among programs by how they agree on tests that the model writes."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from langchain_core.exceptions import ModelAuthenticationError

from reflective_agents.environments.base import Environment, Task
from reflective_agents.environments.programming import Programming
from reflective_agents.graphs import best_of_n
from reflective_agents.state.errors import Misuse
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from reflective_agents.tree_search.agreement import group

TASK: Task = {"id": "1", "question": "Write f(x).", "data": {"entry_point": "f", "hidden": ""}}
TESTS = ["assert f(1) == 2", "assert f(2) == 3", "assert f(2) == 4"]
PASSED = {"x + 1": TESTS[:2], "1 + x": TESTS[:2], "2 * x": [TESTS[0], TESTS[2]], "x": []}


class Known(Programming):
    """Knows what each program passes, and runs nothing."""

    def __init__(self, seconds: Mapping[str, float] | None = None) -> None:
        super().__init__()
        self.seconds, self.ran = seconds or {}, list[str]()

    ready = Environment.ready

    async def passed(self, task: Task, answer: str, tests: Sequence[str]) -> list[bool]:
        """Look the program up."""
        text = answer.rpartition("return ")[2].partition("\n")[0]
        self.ran.append(text)
        await asyncio.sleep(self.seconds.get(text, 0))
        return [test in PASSED[text] for test in tests]


def writing(programs: Sequence[str], tests: Reply = "") -> FakeChatModel:
    """Make a model that writes these programs, and tests."""

    def reply(request: Request) -> Reply:
        if "assert statements" in request.text:
            return tests or "\n".join(TESTS)
        return f"Thought 1: So.\nAction 1: ```python\ndef f(x):\n    return {programs[request.index]}\n```"

    return FakeChatModel(reply=reply)


async def run(model: Any, world: Environment, **settings: Any) -> tuple[Any, list[dict[str, Any]]]:
    context = {"model": model, "environment": world, "choose": "agreement", "search": "none", **settings}
    events, out = list[Any](), None
    question = {"messages": [("user", "Write f(x).")], "task": TASK}
    async for kind, data in best_of_n.graph.astream(question, context=context, stream_mode=["custom", "values"]):
        if kind == "custom":
            events.append(data)
        else:
            out = data
    return out, events


def test_a_group_is_worth_its_programs_times_their_tests() -> None:
    passed = [[True, True, False], [False, False, True], [True, True, False], [False, False, False]]
    best, *others = group(passed, [1, 5, 2, 9])
    assert (best.programs, best.samples, best.tests, best.score) == ([0, 2], 3, 2, 6)
    assert [each.score for each in others] == [5, 0]


async def test_the_program_on_which_most_agree_is_chosen() -> None:
    world, model = Known(), writing(["x", "2 * x", "x + 1", "1 + x", "x"])
    out, events = await run(model, world, n=5)
    assert out["answer"].endswith("return x + 1")
    assert (out["outcome"]["status"], len(model.calls)) == ("answered", 2)
    assert sorted(world.ran) == sorted(PASSED), "equal programs run once"
    scores = {node["state"]["answer"]: node["terms"]["agreement"] for node in out["tree"].values() if "terms" in node}
    assert sorted(scores.values()) == pytest.approx([0, 2 / 15, 4 / 15, 4 / 15])
    [event] = [event for event in events if event["event"] == "agreement"]
    assert [(each["samples"], each["tests"], each["score"]) for each in event["groups"]] == [
        (2, 2, 4),
        (1, 2, 2),
        (2, 0, 0),
    ]


async def test_a_program_counts_as_often_as_it_was_written() -> None:
    out, _ = await run(writing(["x + 1", "1 + x", "2 * x", "2 * x", "2 * x"]), Known(), n=5)
    assert out["answer"].endswith("return 2 * x")


@pytest.mark.parametrize("tests", ["I write none.", "assert g(1) == 2"])
async def test_without_tests_the_most_frequent_program_is_chosen(tests: str) -> None:
    out, events = await run(writing(["x + 1", "x", "x"], tests), Known(), n=3)
    assert (out["answer"].endswith("return x"), out["outcome"]["status"]) == (True, "answered")
    [event] = [event for event in events if event["event"] == "agreement"]
    assert (event["groups"], bool(event["stopped"])) == ([], True)


async def test_an_answer_without_a_rival_is_an_answer() -> None:
    model = writing(["x", "x"])
    out, _ = await run(model, Known(), n=2)
    assert (out["answer"].endswith("return x"), out["outcome"]["status"], len(model.calls)) == (True, "answered", 1)


async def test_a_model_that_fails_leaves_the_choice_to_the_score() -> None:
    failing = writing(["x + 1", "x", "x"], ModelAuthenticationError("no such key"))
    out, _ = await run(failing, Known(), n=3)
    assert (out["answer"].endswith("return x"), out["outcome"]["status"]) == (True, "answered")


@pytest.mark.thorough
async def test_programs_run_no_longer_than_the_run() -> None:
    slow = Known({"x + 1": 30})
    out, _ = await run(writing(["x + 1", "x", "x"]), slow, n=3, max_seconds=1)
    assert out["answer"].endswith("return x")


async def test_programs_that_pass_nothing_are_chosen_by_their_score() -> None:
    out, _ = await run(writing(["x + 1", "x", "x"], "assert f(1) == 7"), Known(), n=3)
    assert out["answer"].endswith("return x")
    assert all("agreement" not in node.get("terms", {}) for node in out["tree"].values())


@pytest.mark.parametrize("settings", [{}, {"environment": "game24"}])
async def test_what_is_no_program_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(Misuse, match="choose"):
        await best_of_n.graph.ainvoke(
            {"messages": [("user", "Why?")], "task": {"id": "1", "question": "1 2 3 4"}},
            context={"model": "offline", "choose": "agreement", **settings},
        )


async def test_from_the_environment_it_holds_only_where_there_are_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_CHOOSE", "agreement")
    settings = {"model": "offline", "search": "none", "n": 2}
    out = await best_of_n.graph.ainvoke({"messages": [("user", "Why?")]}, context=settings)
    assert out["outcome"]["status"] == "exhausted", "a judge has read the answers"
    model = writing(["x", "2 * x", "x + 1", "1 + x"])
    task = {"messages": [("user", "Write f(x).")], "task": TASK}
    out = await best_of_n.graph.ainvoke(task, context={**settings, "model": model, "environment": Known(), "n": 4})
    assert out["answer"].endswith("return x + 1")
