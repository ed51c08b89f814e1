"""What experience is worth, measured: a stream of tasks of two kinds, in an order that mixes them."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore

from bench.learners import mixed
from reflective_agents.environments.base import Task
from reflective_agents.evals.datasets import load_dataset
from reflective_agents.graphs import trials
from reflective_agents.state.settings.trials import TrialsContext
from reflective_agents.testing.fake import FakeChatModel
from tests.nodes.remembering.learners import all_items

PAGE = Path(__file__).parent.parent.parent / "docs" / "memory.md"


async def solved_at_once(
    model: FakeChatModel, tasks: Sequence[tuple[str, Task]], store: InMemoryStore, *, experience: bool
) -> list[bool]:
    """Whether each task is solved at the first trial; two at most."""
    graph, solved = trials.builder.compile(store=store), list[bool]()
    for environment, task in tasks:
        learning = {"experience": "e", "memory_size": 10} if experience else {}
        context = {
            "model": model,
            "actor": "chain_of_thought",
            "environment": environment,
            "search": "none",
            **learning,
        }
        settings = TrialsContext.model_validate({**context, "max_trials": 2})
        out = await graph.ainvoke({"messages": [("user", task["question"])], "task": task}, context=settings)
        solved.append(out["trials"][0]["solved"])
    return solved


def halves(solved: Sequence[bool]) -> list[int]:
    middle = len(solved) // 2
    return [sum(solved[:middle]), sum(solved[middle:])]


@pytest.mark.thorough
async def test_a_stream_of_mixed_tasks_is_solved_better_in_its_second_half(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")
    questions = load_dataset(recorded / "bench_hotpot100_distractor.dev.jsonl.gz", limit=60).tasks
    games = load_dataset(recorded / "bench_game24.dev.jsonl.gz", limit=60).tasks
    stream = [
        pair for two in zip(questions, games, strict=True) for pair in zip(("questions", "game24"), two, strict=True)
    ]
    model, store = FakeChatModel(reply=mixed(questions)), InMemoryStore()
    without = await solved_at_once(model, stream, store, experience=False)
    with_items = await solved_at_once(model, stream, store, experience=True)
    measured = {
        name: [*halves(without[start::2]), *halves(with_items[start::2])]
        for start, name in enumerate(("HotpotQA", "Game of 24"))
    }
    page = PAGE.read_text()
    for name, row in measured.items():
        assert row[3] >= row[2] > row[0]
        assert row[3] > row[1]
        shown = re.search(rf"^\| {name} \|(.*)\|$", page, re.MULTILINE)
        assert shown is not None
        assert [int(cell) for cell in shown[1].split("|")] == row, measured
    kept = await all_items(store)
    count = re.search(r"(\d+) items were kept", page)
    assert count is not None
    assert int(count[1]) == len(kept), len(kept)
