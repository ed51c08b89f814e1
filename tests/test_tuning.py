"""Prompts tuned with GEPA: a scripted model follows its prompt, and a scripted author writes better ones."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.environments.base import Task
from reflective_agents.evals.datasets import Dataset
from reflective_agents.graphs.chain_of_thought import graph
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request

pytest.importorskip("gepa")
from bench.tuning import Adapter, shipped, tune, write

NAME = "chain_of_thought.SOLVE"
BETTER = "{task}Convert hours to minutes first. Then solve the task step by step. {form}{lessons}"
WITHOUT = "Convert hours to minutes first."
TASKS: list[Task] = [
    {"id": str(hours), "question": f"How many minutes are {hours} hours?", "gold": str(60 * hours)}
    for hours in range(1, 9)
]
DATASET = Dataset("hours", "plain", TASKS)


def solver(request: Request) -> Reply:
    """Right, if the prompt says what to do."""
    hours = int(request.last.split()[-2])
    return f"Answer: {60 * hours if 'hours to minutes' in request.messages[0].text else hours}"


def author(request: Request) -> Reply:
    """A prompt with the placeholders that it is told to keep."""
    keeps = "Keep these placeholders as they are: {task} {form} {lessons}" in request.text
    return f"Here it is:\n```\n{BETTER if keeps else WITHOUT}\n```"


def settings() -> dict[str, Any]:
    return {"model": FakeChatModel(reply=solver), "search": "none", "examples": False}


async def correct(prompts: str) -> list[bool]:
    context: Any = {**settings(), "prompts": prompts}
    said = [await graph.ainvoke({"messages": [("user", task["question"])]}, context=context) for task in TASKS]
    return [out["answer"] == task["gold"] for out, task in zip(said, TASKS, strict=True)]


def test_what_went_wrong_leads_to_a_prompt_that_solves_the_tasks(tmp_path: Path) -> None:
    reflecting = FakeChatModel(reply=author)
    best = tune("chain_of_thought", DATASET, [NAME], settings=settings(), reflecting=reflecting, runs=40)
    assert best == {NAME: BETTER}
    told = reflecting.calls[0].text
    assert shipped(NAME) in told
    assert "The right answer is: " in told
    write(best, tmp_path)
    assert (tmp_path / f"{NAME}.txt").read_text() == f"{BETTER}\n"


@pytest.mark.parametrize("tuned", [False, True])
async def test_a_written_prompt_is_what_the_setting_prompts_takes(tmp_path: Path, tuned: bool) -> None:
    write({NAME: BETTER if tuned else shipped(NAME)}, tmp_path)
    assert await correct(str(tmp_path)) == [tuned] * len(TASKS)


def test_a_prompt_that_cannot_be_used_scores_nothing_and_says_why() -> None:
    with asyncio.Runner() as runner:
        adapter = Adapter("chain_of_thought", DATASET, settings(), runner)
        batch = adapter.evaluate(TASKS[:2], {NAME: WITHOUT}, capture_traces=True)
        told = adapter.make_reflective_dataset({NAME: WITHOUT}, batch, [NAME])
    assert batch.scores == [0, 0]
    assert "lacks {form}" in told[NAME][0]["Feedback"]
