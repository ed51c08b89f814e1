"""Replays of HotpotQA and FEVER: ReAct, chain of thought, and Reflexion's trials around both."""

from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from langchain_core.exceptions import ModelInvalidRequestError

from bench.replays.keyed import Key, Model, Recorded, RecordedWorld, Seen, listed, replaced, step
from bench.replays.measured import UNEXPLAINED, Differences, Measured, together
from bench.replays.records import Attempt, Record, Turn, attempts, gold_paragraphs, load, question_task, turns
from reflective_agents.environments import registry
from reflective_agents.environments.base import Environment, Task
from reflective_agents.environments.fever import FactChecking
from reflective_agents.environments.questions import Questions
from reflective_agents.graphs import react, trials
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.state.settings.trials import TrialsContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply

Actor = Literal["react", "chain_of_thought"]

UNLOGGED = "(The log holds no reflection made here.)"

NO_LESSON = "the log has no reflection from before this trial: the model says so"
SEVERAL = "the log has several reflections from before this trial, or of one that it lacks: they come as one"
TOO_LONG = "the prompt of the time became too long in this trial: the model refuses it, as a provider does"
NO_LESSONS = "the reflections are not in the log: the trials run without them"
_UNBOUNDED: dict[str, Any] = {"search": "none", "max_model_calls": 1000}
_STEPS: dict[str, Any] = {"acting": "paper", "max_repeats": 1000, "answer_at_limit": False}
"""What holds where an agent acts."""


async def hotpot(folder: Path, name: str, *, actor: Actor, gold: bool = False) -> Measured:
    """Replay a log of HotpotQA with its trials.

    Args:
        folder: where the records lie.
        name: the data set.
        actor: the strategy that makes an attempt.
        gold: whether a task brings its gold paragraphs.
    """
    records = load(folder, name)
    articles = {row["id"]: gold_paragraphs(row) for row in load(folder, "bench_hotpot100_distractor")} if gold else {}
    tasks = [question_task(record, articles.get(record["id"])) for record in records]
    logged = [attempts(record) for record in records]
    reflects = any(attempt.lessons for tried in logged for attempt in tried)
    model, seen, differences = Model(), Recorded[Seen, str](), Differences()
    for task, tried in zip(tasks, logged, strict=True):
        _record_attempts(model, seen, task, tried, actor, reflects=reflects, limit=_limit(logged))
        _note(differences, task, tried, reflects=reflects, limit=_limit(logged))
        if name.startswith("reflexion") and not reflects and len(tried) > 1:
            differences.add(NO_LESSONS, task["id"])
    settings = TrialsContext(
        model=FakeChatModel(reply=model),
        actor=actor,
        environment="questions",
        reflection="reflexion" if reflects else "none",
        memory_size=100,
        **({**_STEPS, "max_actions": _limit(logged)} if actor == "react" else {}),
        **_UNBOUNDED,
    )

    async def run(record: Record, task: Task) -> dict[str, Any]:
        present = sum(verdict["status"] != "absent" for verdict in record["verdict"])
        context = settings.model_copy(update={"max_trials": present})
        return await trials.graph.ainvoke({"messages": [("user", task["question"])], "task": task}, context=context)

    with patch.object(registry, "get_environment", replaced(RecordedWorld(Questions(), seen))):
        results = await together(run(record, task) for record, task in zip(records, tasks, strict=True))
    for record, tried, result in zip(records, logged, results, strict=True):
        _compare(differences, record["id"], tried, result)
    return Measured(_curves(records, logged, results), differences, [model, seen])


def _limit(logged: list[list[Attempt]]) -> int:
    """Return the most actions of any attempt: those that were halted took as many."""
    return max(len(attempt.turns) for tried in logged for attempt in tried)


def _record_attempts(
    model: Model,
    seen: Recorded[Seen, str],
    task: Task,
    tried: list[Attempt],
    actor: Actor,
    *,
    reflects: bool,
    limit: int,
) -> None:
    """Record what a model said in all attempts at a task, and what it was shown."""
    shown = _shown(Questions(), task)
    lessons: list[str] = []
    before: tuple[str, ...] = ()
    for attempt in tried:
        if reflects and before:
            lessons.append("\n".join(attempt.lessons) or UNLOGGED)
            model.add(Key("reflect", shown, steps=before, verdict=True), lessons[-1])
        begun = Key("act", _material(task) + shown, listed(lessons))
        if actor == "react":
            _record_steps(model, seen, begun, task, attempt.turns)
            before = tuple(part for turn in attempt.turns for part in step(*turn))
            if attempt.status == "halted" and len(attempt.turns) < limit:
                model.add(begun._replace(steps=before), ModelInvalidRequestError("refused, as it was then"))
        else:
            (turn,) = attempt.turns
            before = (f"Thought: {turn.thought}\nAction: {turn.act}",)
            model.add(begun, before[0])


def _record_steps(model: Model, seen: Recorded[Seen, str], begun: Key, task: Task, taken: tuple[Turn, ...]) -> None:
    """Record the steps of one attempt: its thoughts and acts, joined as one reply, and its observations."""
    acts: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    for number, turn in enumerate(taken, 1):
        reply: Reply = f"Thought {number}: {turn.thought}\nAction {number}: {turn.act}"
        model.add(begun._replace(steps=steps), reply)
        acts, steps = (*acts, turn.act), (*steps, *step(*turn))
        if turn.act.startswith(("Search", "Lookup")):
            seen.add(Seen(task["question"], acts), turn.observation)


def _shown(environment: Environment, task: Task) -> str:
    """Return a task as a prompt shows it."""
    return environment.public(environment.start(task)).strip()


def _material(task: Task) -> str:
    """Return the articles that a task brings, as a prompt shows them before it."""
    articles: list[Any] = task.get("data", {}).get("supporting", [])
    return "".join(f"{title}: {''.join(sentences)}\n\n" for title, sentences in articles)


def _note(differences: Differences, task: Task, tried: list[Attempt], *, reflects: bool, limit: int) -> None:
    """Note where the log cannot be followed word by word."""
    for earlier, attempt in zip([None, *tried], tried, strict=False):
        if reflects and earlier and not attempt.lessons:
            differences.add(NO_LESSON, task["id"], attempt.trial)
        if len(attempt.lessons) > 1:
            differences.add(SEVERAL, task["id"], attempt.trial)
        if attempt.status == "halted" and len(attempt.turns) < limit:
            differences.add(TOO_LONG, task["id"], attempt.trial)


def _compare(differences: Differences, id: str, tried: list[Attempt], result: dict[str, Any]) -> None:
    """Note where an attempt came to another end than in the log."""
    ours = [_status(trial) for trial in result["trials"]]
    logged = [attempt.status for attempt in tried]
    for index, attempt in enumerate(tried):
        if ours[index : index + 1] != [attempt.status]:
            differences.add(UNEXPLAINED, id, attempt.trial)
    if len(ours) != len(logged):
        differences.add(UNEXPLAINED, id)


def _status(trial: dict[str, Any]) -> str:
    if trial["solved"]:
        return "correct"
    return "incorrect" if trial["outcome"].startswith("exhausted") else "halted"


def _curves(records: list[Record], logged: list[list[Attempt]], results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many tasks are solved after each trial of the log, and how many attempts were halted in it."""
    length = len(records[0]["verdict"])
    solved, halted = [0] * length, [0] * length
    for tried, result in zip(logged, results, strict=True):
        for attempt, trial in zip(tried, result["trials"], strict=False):
            halted[attempt.trial - 1] += _status(trial) == "halted"
            for later in range(attempt.trial - 1, length):
                solved[later] += _status(trial) == "correct"
    return {"n": len(records), "em_after_trial": solved, "halted_per_trial": halted}


async def fever(folder: Path, name: str) -> Measured:
    """Replay the ReAct log of FEVER."""
    records = load(folder, name)
    model, seen, differences = Model(), Recorded[Seen, str](), Differences()
    logged = [tuple(turns(record["outputs"])) for record in records]
    tasks = [question_task(record) for record in records]
    for task, taken in zip(tasks, logged, strict=True):
        _record_steps(model, seen, Key("act", _shown(FactChecking(), task)), task, taken)
    context = ReactContext(
        model=FakeChatModel(reply=model),
        environment="fever",
        max_actions=max(map(len, logged)),
        **_STEPS,
        **_UNBOUNDED,
    )

    async def run(task: Task) -> dict[str, Any]:
        return await react.graph.ainvoke({"messages": [("user", task["question"])], "task": task}, context=context)

    with patch.object(registry, "get_environment", replaced(RecordedWorld(FactChecking(), seen))):
        results = await together(run(task) for task in tasks)
    for record, result in zip(records, results, strict=True):
        ended = (result["reward"] or 0, result["answer"] or "")
        if ended != (record["verdict"]["em"], record["verdict"]["answer"]):
            differences.add(UNEXPLAINED, record["id"])
    solved = sum(result["reward"] == 1 for result in results)
    figures = {
        "n": len(results),
        "em": solved,
        "acc": round(solved / len(results), 4),
        "unfinished_7_steps": sum(result["answer"] is None for result in results),
        "thoughts": sum(result["usage"]["model_calls"] for result in results),
    }
    return Measured(figures, differences, [model, seen])
