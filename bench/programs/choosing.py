"""Which of several programs is chosen: by our strategies, and by the agreement of CodeT."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

from bench.programs.recorded import Problem
from bench.programs.world import Remembering
from reflective_agents.environments.base import Task
from reflective_agents.graphs import auto, best_of_n, chain_of_thought
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from reflective_agents.tree_search.agreement import MOST_TESTS, Group, group

PLAIN: dict[str, Any] = {"search": "none", "examples": False, "max_total_tokens": 10**9}


class Way(NamedTuple):
    """A strategy with its settings for so many programs, and whether it rests on tests that the model wrote."""

    graph: Any
    settings: Callable[[int], Mapping[str, Any]]
    tested: bool


WAYS: Mapping[str, Way] = {
    "chain_of_thought: most programs are alike": Way(chain_of_thought.graph, lambda k: {"samples": k}, False),
    "best_of_n: passes most of the model's tests": Way(
        best_of_n.graph, lambda k: {"n": k, "max_depth": 1, "parallel": 1}, True
    ),
    "best_of_n: choose=agreement, on ten of them": Way(
        best_of_n.graph, lambda k: {"n": k, "max_depth": 1, "parallel": 1, "choose": "agreement"}, False
    ),
    "auto, with the model's tests": Way(
        auto.graph, lambda k: {"max_model_calls": k, "max_expansions": 0, "max_trials": 0}, True
    ),
}


class Author:
    """The model: it writes one recorded program after the other, at last the first again, or a text of tests."""

    def __init__(self, programs: Sequence[str], tests: Sequence[str]) -> None:
        self._programs: Iterator[str] = cycle(programs)
        self._tests = "\n".join(tests)

    def __call__(self, request: Request) -> Reply:
        """Write the next program, as a whole answer or as an action; or the tests, if they are asked for."""
        if "assert statements" in request.text:
            return self._tests or "None."
        program = next(self._programs)
        return (
            f"Thought 1: I write it.\nAction 1: {program}" if "Action 1:" in request.text or request.tools else program
        )


async def chosen(way: Way, problem: Problem, task: Task, world: Remembering, programs: int) -> str:
    """Let a strategy choose among the first programs of a problem; the first, where it is to go by tests, but the model
    has written none: a judge was not recorded."""
    if way.tested and not task["data"]["tests"]:
        return problem.programs[0]
    written = list(dict.fromkeys(test for text in problem.tests for test in text))
    model = FakeChatModel(reply=Author(problem.programs, written[:MOST_TESTS]))
    run_input = {"messages": [("user", task["question"])], "task": task}
    context = {**PLAIN, "environment": world, "model": model, **way.settings(programs)}
    return (await way.graph.ainvoke(run_input, context=context))["answer"] or ""


async def agreed(
    problem: Problem, task: Task, world: Remembering, programs: int, worth: Callable[[Group], float]
) -> str:
    """Choose by dual execution agreement (CodeT, Chen et al. 2022, arXiv 2207.10397) on all of the model's tests.

    A test, too, counts as often as it was written.

    Args:
        problem: The programs.
        task: The task with the model's tests.
        world: Runs them.
        programs: Among how many programs is chosen.
        worth: What a group of programs is worth.
    """
    first = problem.programs[:programs]
    passed = [await world.passed(task, program, task["data"]["tests"]) for program in first]
    best = max(group(passed, [1] * len(first)), key=worth)
    return first[best.programs[0]]
