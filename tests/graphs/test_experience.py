"""What experience is worth, measured: lessons of one run over tasks, used by another strategy on similar tasks."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from bench.learners import answering, playing
from reflective_agents.environments.base import Task
from reflective_agents.evals.datasets import load_dataset
from reflective_agents.graphs import chain_of_thought, trials
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.nodes.remembering.experience import experience_of
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.state.settings.trials import TrialsContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request

SIZES = (1, 3, 10)
PAGE = Path(__file__).parent.parent.parent / "docs" / "memory.md"


async def learn(model: Any, tasks: Sequence[Task], environment: str, store: InMemoryStore) -> None:
    """Two trials at each task, one task after another; what was learned is kept."""
    graph = trials.builder.compile(store=store)
    context = TrialsContext.model_validate(
        {"model": model, "actor": "chain_of_thought", "environment": environment, "search": "none", "max_trials": 2}
    ).model_copy(update={"experience": "tasks"})
    for task in tasks:
        await graph.ainvoke({"messages": [("user", task["question"])], "task": task}, context=context)


async def solved(model: Any, tasks: Sequence[Task], environment: str, store: InMemoryStore, size: int) -> int:
    """How many tasks another strategy solves at its only attempt; shown that many lessons, or none."""
    graph = chain_of_thought.builder.compile(store=store)
    experience = {"experience": "tasks", "memory_size": size} if size else {}
    context = ChainOfThoughtContext.model_validate(
        {"model": model, "environment": environment, "search": "none", **experience}
    )
    results = [
        await graph.ainvoke({"messages": [("user", task["question"])], "task": task}, context=context) for task in tasks
    ]
    return sum(result["reward"] == 1 for result in results)


async def figures(script: Callable[[Request], Reply], tasks: Sequence[Task], environment: str) -> list[int]:
    """Tasks, lessons, and the tasks solved: without lessons, shown 1, 3 and 10 of them, and on the same tasks again.

    Every second task is learned from, the others are solved.
    """
    seen, new, store, model = tasks[::2], tasks[1::2], InMemoryStore(), FakeChatModel(reply=script)
    await learn(model, seen, environment, store)
    stream = await MemoryStream.open(store, experience_of("tasks"))
    lessons = len(await stream.latest(1000))
    counts = [await solved(model, new, environment, store, size) for size in (0, *SIZES)]
    return [len(new), lessons, *counts]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "file", "environment"),
    [
        ("HotpotQA", "bench_hotpot100_distractor.dev.jsonl.gz", "questions"),
        ("Game of 24", "bench_game24.dev.jsonl.gz", "game24"),
    ],
)
async def test_a_second_run_over_similar_tasks_solves_more(
    name: str, file: str, environment: str, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")
    tasks = load_dataset(recorded / file, limit=60).tasks
    script = answering(tasks) if environment == "questions" else playing()
    measured = await figures(script, tasks, environment)
    without, *with_lessons = measured[2:]
    assert without < with_lessons[0] <= with_lessons[1] <= with_lessons[2]
    shown = re.search(rf"^\| {name} \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    assert shown is not None
    assert [int(cell) for cell in shown[1].split("|")] == measured
