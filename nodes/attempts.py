"""One attempt of another strategy, and whether it has solved the task."""

import ast
import re
from collections.abc import Mapping
from typing import Any

from nodes.chat import ask, complete
from nodes.step import Step
from nodes.transcript import quoted
from prompts import trials as prompts
from state.context import ActingContext, TrialsContext
from state.errors import LimitReached, ModelFailed
from state.run import Usage
from state.schemas import Judgement

_LIMIT = re.compile(r"(?P<name>max_(?P<counter>model_calls|total_tokens|seconds))=[\w.+-]+")

MOST_TESTS = 5
"""Tests of its own that a model may write for one task."""


def settings_for(schema: type[ActingContext], step: Step[TrialsContext]) -> ActingContext:
    """The settings of an actor: those of the run that it knows, within what the run may still spend."""
    context, usage = step.context, step.meter.usage
    shared = {name: getattr(context, name) for name in schema.model_fields if name in type(context).model_fields}
    shared["experience"] = None
    limits = {
        "max_model_calls": max(step.meter.calls_left, 1),
        "max_total_tokens": max(context.max_total_tokens - usage["total_tokens"], 1),
        "max_seconds": max(step.meter.seconds_left, 0.001),
    }
    return schema.model_validate(shared | limits)


def of_this_run(reason: str, step: Step[Any], before: Usage) -> tuple[str, bool]:
    """Why an actor ended, with the limits and the counts of this run in place of its share of them.

    Args:
        reason: The reason of the actor's outcome.
        step: The node that ran it.
        before: What the run had spent before.

    Returns:
        The reason, and whether it is a limit of the run.
    """
    limit = _LIMIT.match(reason)
    if limit is None:
        return reason, False
    counter = limit["counter"]
    reason = f"max_{counter}={getattr(step.context, limit['name']):.10g}{reason[limit.end() :]}"
    return re.sub(rf"\b(?<!max_){counter}=([\d.]*\d)", lambda found: _sum(counter, found[1], before), reason), True


def _sum(counter: str, spent: str, before: Usage) -> str:
    total = before[counter] + float(spent)  # type: ignore[literal-required]
    return f"{counter}={total:.1f}" if counter == "seconds" else f"{counter}={total:.0f}"


def attempt_text(result: Mapping[str, Any]) -> str:
    """What an actor did, as quoted text: its steps or its first sample, its answer, and what came of that."""
    parts: list[str] = []
    for taken in result.get("steps") or []:
        parts += [quoted(tag, taken[tag]) for tag in ("thought", "action", "observation") if taken[tag]]
    parts += [quoted("thought", drawn["text"]) for drawn in (result.get("samples") or [])[:1]]
    parts.append(quoted("answer", result["answer"] or "(none)"))
    return "\n".join([*parts, *([quoted("observation", result["observation"])] if result.get("observation") else [])])


async def with_tests(step: Step[TrialsContext], task: dict[str, Any]) -> dict[str, Any]:
    """A programming task with tests that the model wrote itself, if it shows none of its own.

    What is no assertion that can be parsed is left out. Without an answer there are no tests: what went wrong will
    end the run at its first attempt, if it comes again.
    """
    data = task.get("data") or {}
    if data.get("tests"):
        return task
    try:
        prompt = prompts.WRITE_TESTS.format_messages(request=quoted("request", task["question"]))
        written = await complete(step, step.context.model, prompt)
    except (LimitReached, ModelFailed):
        return task
    tests = [line.strip() for line in written.splitlines() if _is_test(line.strip(), data.get("entry_point", ""))]
    step.emit("tests", tests=tests)
    return {**task, "data": {**data, "tests": tests[:MOST_TESTS]}}


def _is_test(line: str, entry_point: str) -> bool:
    try:
        body = ast.parse(line).body
    except (SyntaxError, ValueError):
        return False
    return len(body) == 1 and isinstance(body[0], ast.Assert) and entry_point in line


async def judge(step: Step[TrialsContext], request: str, attempt: str) -> Judgement:
    """A judge's opinion of an attempt. It never sees the right answer. `request` is quoted already."""
    prompt = prompts.JUDGE.format_messages(request=request, attempt=quoted("trajectory", attempt))
    return await ask(step, step.context.judge_model or step.context.model, prompt, Judgement)


async def reflect_on(step: Step[TrialsContext], request: str, attempt: str, verdict: str) -> str:
    """A lesson drawn from a failed attempt, never empty. `request` is quoted already.

    Raises:
        LimitReached, ModelFailed: if there is none to be had.
    """
    prompt = prompts.REFLECT.format_messages(
        request=request, attempt=quoted("trajectory", attempt), verdict=quoted("verdict", verdict)
    )
    lesson = (await complete(step, step.context.model, prompt)).strip()
    if not lesson:
        raise ModelFailed("the reflection is empty")
    return lesson
