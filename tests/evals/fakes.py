"""What the tests of evaluations share: results, and strategies whose answers are known."""

from collections.abc import Callable
from typing import Any

from langgraph.graph import END, START, StateGraph

from reflective_agents.environments.base import Task
from reflective_agents.evals.datasets import Dataset
from reflective_agents.evals.results import About, Attempt, Result
from reflective_agents.state.run import NOTHING_SPENT, Input, RunState

Answer = Callable[[dict[str, Any]], Any]
"""From the input of a strategy to its answer, or to an update of the state."""


class TaskInput(Input):
    task: dict[str, Any]


class TaskState(RunState, TaskInput):
    trials: list[dict[str, Any]]


def strategy(answer: Answer, *, knows_tasks: bool = False) -> Any:
    """A strategy of one step."""

    async def only(state: Any) -> dict[str, Any]:
        given = answer(state)
        update = given if isinstance(given, dict) else {"answer": given}
        outcome = {"status": "solved", "reason": "it is over"}
        usage = {**NOTHING_SPENT, "model_calls": 2, "total_tokens": 30}
        return {"outcome": outcome, "usage": usage, **update}

    state_schema = TaskState if knows_tasks else RunState
    builder: Any = StateGraph(state_schema, input_schema=TaskInput if knows_tasks else Input)
    builder.add_node("only", only)
    builder.add_edge(START, "only")
    builder.add_edge("only", END)
    return builder.compile(name="fake")


def dataset(n: int, *, environment: str = "plain") -> Dataset:
    """Questions "Question 1?" to "Question n?", whose answers are their numbers."""
    numbers = map(str, range(1, n + 1))
    tasks = [Task(id=number, question=f"Question {number}?", gold=number) for number in numbers]
    return Dataset("numbers", environment, tasks)


def make_result(name: str, correct: bool | None = True, *, calls: int = 2, **changes: Any) -> Result:
    """A result as a run would have it."""
    base: Result = {
        "id": name,
        "question": f"Question {name}?",
        "gold": None if correct is None else name,
        "answer": name if correct else "wrong",
        "correct": correct,
        "scores": {} if correct is None else {"em": float(correct)},
        "outcome": {"status": "solved", "reason": "it is over"},
        "usage": {**NOTHING_SPENT, "model_calls": calls, "total_tokens": 10 * calls},
        "trials": [],
        "seconds": 0.5,
        "error": None,
    }
    return {**base, **changes}  # type: ignore[typeddict-item]


def attempts(*correct: bool) -> list[Attempt]:
    """Trials of a task, of which the last is always the best."""
    return [{"answer": "x", "solved": good, "correct": good, "best_correct": good} for good in correct]


def make_about(**changes: Any) -> About:
    """What was run."""
    base: About = {
        "strategy": "fake",
        "settings": {"model": "offline", "n": 5},
        "dataset": "numbers",
        "environment": "plain",
        "fingerprint": "0123456789abcdef",
        "tasks": 4,
        "versions": {"python": "3.11"},
        "started": "2026-11-20T16:00:00+00:00",
    }
    return {**base, **changes}  # type: ignore[typeddict-item]
