"""Prompts tuned with GEPA: a scripted model follows its prompt, and a scripted author writes better ones."""

import asyncio
import re
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.environments.base import Task
from reflective_agents.evals.budget import Budget
from reflective_agents.evals.datasets import Dataset
from reflective_agents.graphs.chain_of_thought import graph
from reflective_agents.state.errors import LimitReached, Misuse, ModelFailed
from reflective_agents.state.settings import settings_of
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request

pytest.importorskip("gepa")
from gepa.core.adapter import EvaluationBatch

from reflective_agents.evals.gepa_adapter import Adapter, Loop
from reflective_agents.evals.runner import Runner
from reflective_agents.evals.tuned_prompts import shipped, without_ends, write_prompts
from reflective_agents.evals.tuning import split, tune

NAME = "chain_of_thought.SOLVE"
TEXT = "Convert hours to minutes first. Then solve the task step by step."
BETTER = f"{{task}}{TEXT} {{form}}{{lessons}}"
WITHOUT = "Convert hours to minutes first."
TASKS: list[Task] = [
    {"id": str(hours), "question": f"How many minutes are {hours} hours?", "gold": str(60 * hours)}
    for hours in range(1, 13)
]
DATASET = Dataset("hours", "plain", TASKS)
PARTS = split(DATASET)


def solver(request: Request) -> Reply:
    """Right, if the prompt says what to do."""
    hours = int(request.last.split()[-2])
    return f"Answer: {60 * hours if 'hours to minutes' in request.messages[0].text else hours}"


def author(request: Request) -> Reply:
    """The text of a better prompt."""
    return f"Here it is:\n```\n{TEXT}\n```"


def settings() -> dict[str, Any]:
    return {"model": FakeChatModel(reply=solver), "search": "none", "examples": False}


def runner() -> Runner:
    return Runner(graph, PARTS.held_out, settings_of("chain_of_thought").model_validate(settings()))


async def correct(prompts: str) -> list[bool]:
    context: Any = {**settings(), "prompts": prompts}
    outputs = [await graph.ainvoke({"messages": [("user", task["question"])]}, context=context) for task in TASKS]
    return [output["answer"] == task["gold"] for output, task in zip(outputs, TASKS, strict=True)]


async def test_what_went_wrong_leads_to_a_prompt_that_solves_the_tasks(tmp_path: Path) -> None:
    writes, counts = FakeChatModel(reply=author), []
    best = await tune(
        runner(), PARTS, [NAME], author=writes, runs=40, on_progress=lambda runs, best: counts.append((runs, best))
    )
    assert best == {NAME: BETTER}
    prompt = writes.calls[0].text
    assert "```\nSolve the task by thinking step by step.\n```" in prompt
    assert "{" not in prompt
    assert "The right answer is: " in prompt
    assert counts[-1][1] == 1
    assert [runs for runs, _ in counts] == sorted(runs for runs, _ in counts)
    write_prompts(best, tmp_path)
    assert (tmp_path / f"{NAME}.txt").read_text() == f"{BETTER}\n"


async def test_the_author_never_sees_a_task_that_is_held_out() -> None:
    writes = FakeChatModel(reply=author)
    await tune(runner(), PARTS, [NAME], author=writes, runs=60)
    prompts = "".join(request.text for request in writes.calls)
    assert any(task["question"] in prompts for task in PARTS.learn)
    assert not any(task["question"] in prompts for task in [*PARTS.choose, *PARTS.held_out.tasks])


async def test_a_search_that_is_cancelled_ends_with_its_thread() -> None:
    begun = asyncio.Event()

    def forever(request: Request) -> float:
        begun.set()
        return 60

    slow = FakeChatModel(reply=solver, latency=forever)
    context = settings_of("chain_of_thought").model_validate(settings() | {"model": slow})
    searching = asyncio.create_task(tune(Runner(graph, PARTS.held_out, context), PARTS, [NAME], author=slow, runs=40))
    await begun.wait()
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    await asyncio.wait_for(asyncio.get_running_loop().shutdown_default_executor(), 10)


@pytest.mark.thorough
async def test_an_author_who_is_slow_has_the_time_of_a_call() -> None:
    writes = FakeChatModel(reply=author, latency=60)
    context = settings_of("chain_of_thought").model_validate(settings() | {"call_timeout": 0.2})
    with pytest.raises(ModelFailed, match=r"0\.2 s"):
        await tune(Runner(graph, PARTS.held_out, context), PARTS, [NAME], author=writes, runs=40)


async def test_a_spent_budget_ends_the_search(tmp_path: Path) -> None:
    runs = runner()
    runs.budget = Budget(tokens=600)
    with runs.budget.held(tmp_path, []), pytest.raises(LimitReached):
        await tune(runs, PARTS, [NAME], author=FakeChatModel(reply=author), runs=40)
    assert runs.budget.total()["budget_tokens"] <= 600


@pytest.mark.parametrize("tuned", [False, True])
async def test_a_written_prompt_is_what_the_setting_prompts_takes(tmp_path: Path, tuned: bool) -> None:
    write_prompts({NAME: BETTER if tuned else shipped(NAME)}, tmp_path)
    assert await correct(str(tmp_path)) == [tuned] * len(TASKS)


async def test_a_prompt_that_cannot_be_used_scores_nothing_and_says_why() -> None:
    adapter = Adapter(runner(), Loop())
    batch = await asyncio.to_thread(adapter.evaluate, TASKS[:2], {NAME: WITHOUT}, capture_traces=True)
    reports = adapter.make_reflective_dataset({NAME: WITHOUT}, batch, [NAME])
    assert batch.scores == [0, 0]
    assert "lacks {form}" in reports[NAME][0]["Feedback"]


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        (shipped(NAME), "Solve the task by thinking step by step."),
        ("{task}{today} Look at {what} first.\n{lessons}\n", "Look at {what} first."),
        ("Look.", "Look."),
        ("{instructions}", "{instructions}"),
    ],
)
async def test_an_author_sees_the_placeholders_within_a_text_alone(prompt: str, text: str) -> None:
    before, own, after = without_ends(prompt)
    assert (own, before + own + after) == (text, prompt)
    adapter = Adapter(runner(), Loop())
    rules = adapter.make_reflective_dataset({NAME: own}, EvaluationBatch(outputs=[], scores=[]), [NAME])[NAME]
    assert bool(rules) == ("{" in text)
    assert all(placeholder in str(rules) for placeholder in re.findall(r"{\w+}", text))


async def test_without_a_right_answer_none_is_told() -> None:
    adapter = Adapter(runner(), Loop())
    task: Task = {"id": "0", "question": "How many minutes are 2 hours?"}
    batch = await asyncio.to_thread(adapter.evaluate, [task], {NAME: shipped(NAME)}, capture_traces=True)
    [report] = adapter.make_reflective_dataset({NAME: "Solve the task."}, batch, [NAME])[NAME]
    assert report["Generated Outputs"] == "2"
    assert "right answer" not in report["Feedback"]
    assert "None" not in report["Feedback"]


async def test_the_author_is_told_the_rules_of_a_task() -> None:
    games = Dataset("games", "game24", [{"id": "1", "question": "1 2 3 4"}])
    adapter = Adapter(replace(runner(), dataset=games), Loop())
    batch = await asyncio.to_thread(adapter.evaluate, games.tasks, {NAME: WITHOUT}, capture_traces=True)
    [report] = adapter.make_reflective_dataset({NAME: WITHOUT}, batch, [NAME])[NAME]
    assert "to get 24" in report["Inputs"]


async def test_a_task_that_fills_up_a_batch_runs_once() -> None:
    model = FakeChatModel(reply=solver)
    context = settings_of("chain_of_thought").model_validate(settings() | {"model": model})
    adapter = Adapter(Runner(graph, PARTS.held_out, context), Loop())
    batch = await asyncio.to_thread(adapter.evaluate, [*TASKS[:2], TASKS[0]], {NAME: BETTER})
    assert [result["id"] for result in batch.outputs] == ["1", "2", "1"]
    assert len(model.calls) == 2


async def test_a_prompt_that_no_run_uses_is_refused() -> None:
    writes = FakeChatModel(reply=author)
    with pytest.raises(Misuse, match=rf"lats\.JUDGE: name some of .*{NAME}"):
        await tune(runner(), PARTS, [NAME, "lats.JUDGE"], author=writes, runs=40)
    assert not writes.calls


async def test_nothing_is_waited_for_after_a_stop() -> None:
    loop = Loop()
    loop.stop()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.to_thread(loop.wait, lambda: asyncio.sleep(60))


def test_parts_share_no_task() -> None:
    ids = [[task["id"] for task in part] for part in (PARTS.learn, PARTS.choose, PARTS.held_out.tasks)]
    assert sorted(chain(*ids), key=int) == [task["id"] for task in TASKS]
    assert PARTS.held_out.fingerprint != DATASET.fingerprint


def test_too_few_tasks_and_unknown_prompts_are_refused() -> None:
    with pytest.raises(Misuse):
        split(Dataset("few", "plain", TASKS[:5]))
    with pytest.raises(Misuse, match="1 of the 13 tasks"):
        split(Dataset("partly", "plain", [*TASKS, {"id": "13", "question": "How many minutes are 13 hours?"}]))
    assert split(Dataset("games", "game24", [{"id": str(n), "question": "1 2 3 4"} for n in range(6)])).learn
    with pytest.raises(Misuse, match=r"chain_of_thought\.SOLVE"):
        shipped("chain_of_thought.SOLV")
