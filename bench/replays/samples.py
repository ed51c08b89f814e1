"""Replays of the game of 24: a hundred sampled answers a task, and the one that most of them give."""

from pathlib import Path
from typing import Any

from bench.replays.keyed import Key, Model
from bench.replays.measured import UNEXPLAINED, Differences, Measured, together
from bench.replays.records import load
from reflective_agents.environments.base import Task
from reflective_agents.environments.game24 import Game24
from reflective_agents.graphs import chain_of_thought
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.testing.fake import FakeChatModel

GAME = Game24()


async def game24(folder: Path, name: str) -> Measured:
    """Replay the samples of a log, with its vote (self-consistency)."""
    records = load(folder, name)
    tasks: list[Task] = [{"id": record["id"], "question": record["task"]["input"]} for record in records]
    model, differences = Model(), Differences()
    for record, task in zip(records, tasks, strict=True):
        for output in record["outputs"]:
            model.add(Key("act", GAME.public(GAME.start(task))), output["text"])
    context = ChainOfThoughtContext(
        model=FakeChatModel(reply=model), environment="game24", samples=len(records[0]["outputs"]), search="none"
    )

    async def run(task: Task) -> dict[str, Any]:
        return await chain_of_thought.graph.ainvoke(
            {"messages": [("user", task["question"])], "task": task}, context=context
        )

    results = await together(map(run, tasks))
    won = [
        [_solved(task, drawn["answer"]) for drawn in result["samples"]]
        for task, result in zip(tasks, results, strict=True)
    ]
    for record, row in zip(records, won, strict=True):
        if "".join(str(int(number)) for number in row) != record["verdict"]["r"]:
            differences.add(UNEXPLAINED, record["id"])
    figures = {
        "n": len(won),
        "mean_success": round(sum(map(sum, won)) / sum(map(len, won)), 4),
        "best_of_100": sum(map(any, won)),
        "self_consistency_100": sum(result["reward"] == 1 for result in results),
        "first_sample": sum(row[0] for row in won),
    }
    return Measured(figures, differences, [model])


def _solved(task: Task, answer: str) -> bool:
    return GAME.score(task, answer)["solved"] == 1
