"""One attempt of another strategy, and whether it has solved the task."""

from collections.abc import Sequence
from typing import NotRequired

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from typing_extensions import TypedDict

from reflective_agents.environments.base import Environment, Task
from reflective_agents.graphs.chain_of_thought import Sample
from reflective_agents.nodes.acting.actions import ActionStep
from reflective_agents.nodes.acting.agent import environment_of, give_answer
from reflective_agents.nodes.acting.own_agent import ask_agent
from reflective_agents.nodes.acting.react_text import parse_answer
from reflective_agents.nodes.asking.chat import ask, complete
from reflective_agents.nodes.asking.task_prompt import short_task_prompt, task_prompt
from reflective_agents.nodes.asking.transcript import around, quoted
from reflective_agents.nodes.evidence.reference_list import length_text, split_references
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import trials as prompts
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.outcome import Outcome
from reflective_agents.state.run import Usage
from reflective_agents.state.schemas import Judgement
from reflective_agents.state.settings.trials import TrialsContext
from reflective_agents.state.trial import Trial
from reflective_agents.text.joined import joined
from reflective_agents.text.normal import numbers
from reflective_agents.text.words import count_words

MOST_WORDS = 5
"""Words of an answer that is a number, with its label and unit."""
MOST_TESTS = 5
"""Tests of its own that a model may write for one task."""


class Attempt(TypedDict):
    """What came of an attempt: what an actor returns, or what the user's own agent has done, as text."""

    messages: list[AnyMessage]
    answer: str | None
    outcome: Outcome
    reward: float | None
    steps: NotRequired[list[ActionStep]]
    samples: NotRequired[list[Sample]]
    observation: NotRequired[str]
    usage: NotRequired[Usage]
    attempt: NotRequired[str]
    refused: NotRequired[bool]


async def agents_attempt(
    step: Step[TrialsContext], messages: Sequence[AnyMessage], task: Task | None, advice: str
) -> Attempt:
    """Let the user's own agent try, as an actor would: its answer, and what the environment says of it."""
    *earlier, last = messages
    environment = await environment_of(step.context)
    hints = [HumanMessage(advice.strip())] if advice.strip() else []
    world = environment.start(task) if environment and task else {}
    if environment:
        last = HumanMessage(await task_text(step) + environment.public(world))
    reply = await ask_agent(step.context.agent, [*earlier, *hints, last], step.meter)
    answer = (parse_answer(reply.answer, environment) if environment else None) or reply.answer
    done = await give_answer(environment, world, answer)
    attempt = [quoted("thought", reply.steps)] if reply.steps else []
    attempt.append(quoted("answer", reply.answer))
    if done and done.observation:
        attempt.append(quoted("observation", done.observation))
    return {
        "answer": answer,
        "reward": done.reward if done else None,
        "refused": done is not None and not done.valid,
        "attempt": "\n".join(attempt),
        "outcome": Outcome(status="answered", reason="the agent has answered"),
        "messages": [AIMessage(answer)],
    }


def attempt_text(result: Attempt) -> str:
    """Describe an actor's attempt as quoted text: its steps or its first sample, its answer, and the result."""
    parts: list[str] = []
    for taken in result.get("steps") or []:
        parts += [quoted(tag, taken[tag]) for tag in ("thought", "action", "observation") if taken[tag]]
    samples = result.get("samples")
    if samples and samples[0]["text"].strip() != result["answer"]:
        parts.append(quoted("thought", samples[0]["text"]))
    parts.append(quoted("answer", result["answer"] or "(none)"))
    if observation := result.get("observation"):
        parts.append(quoted("observation", observation))
    return "\n".join(parts)


def is_refused(result: Attempt, environment: Environment | None) -> bool:
    """Tell whether an attempt's answer was cut off, cannot be read, or is refused by the environment."""
    answer = result["answer"]
    unreadable = environment is not None and answer is not None and not environment.normal(answer)
    return result.get("refused", False) or unreadable


def contradicts_itself(verdict: Judgement, answer: str, least: float) -> bool:
    """Tell whether a judge's verdict contradicts itself: it calls an answer solved with a score below the `least`
    (0..1) at which that counts, or not solved with the best score; or it accepts a number, and its reasons name others
    only. A text in which a number stands is no number."""
    if verdict.solved and verdict.score < least:
        return True
    if not verdict.solved:
        return verdict.score >= 1
    body, _ = split_references(answer)
    stated = numbers(body)
    is_number = len(stated) == 1 and count_words(body) <= MOST_WORDS
    named = numbers(verdict.reasoning)
    return is_number and bool(named) and stated[0] not in named


def verdict_on(trial: Trial) -> str:
    """Say in plain words what was found wrong with a trial. What a judge says is told as the judge's own opinion."""
    if trial.get("unsure"):
        return f"{prompts.UNSURE}\n{_opinion(trial)}"
    status, _, reason = trial["outcome"].partition(": ")
    sentences = ["This did not solve the task."]
    if trial.get("refused"):
        sentences.append(f"Its answer cannot be accepted: {reason}.")
    elif status in ("limit_reached", "failed"):
        ended = "It gave no answer" if trial["answer"] is None else "It was broken off"
        sentences.append(f"{ended}: {reason}.")
    if trial["reward"] is not None:
        sentences.append(f"Its reward is {trial['reward']:g}, where 1 is the best.")
    if trial["score"] is not None:
        judge = "The verifiers" if trial.get("verified") else "A judge"
        sentences.append(f"{judge} gave it a score of {trial['score']:.2f}, where 1 is the best.")
    return joined([" ".join(sentences), _opinion(trial)])


def _opinion(trial: Trial) -> str:
    critique = trial.get("critique")
    if trial.get("verified"):
        return critique or ""
    return prompts.OPINION.format(critique=critique) if critique else ""


async def task_text(step: Step[TrialsContext]) -> str:
    """Return what all prompts say first of the task, as its actor is told it; empty for open questions."""
    environment = await environment_of(step.context)
    if environment is None:
        return ""
    context = step.context
    if context.actor == "react" and context.agent is None:
        return task_prompt(environment, examples=context.few_shot)
    return short_task_prompt(environment, examples=context.few_shot)


async def with_tests(step: Step[TrialsContext], environment: Environment, task: Task) -> Task:
    """Add tests that the model wrote itself to a task, if its environment wants any.

    Without a reply there are no tests: what went wrong will end the run at its first attempt, if it comes again.
    """
    if not environment.wants_tests(task):
        return task
    try:
        request = quoted("request", task["question"])
        prompt = prompts.WRITE_TESTS.format_messages(task=await task_text(step), request=request)
        tests = await complete(step, step.context.model, prompt)
    except (LimitReached, ModelFailed):
        return task
    task = environment.with_own_tests(task, tests, MOST_TESTS)
    step.emit("tests", tests=task.get("data", {}).get("tests", []))
    return task


async def judge(step: Step[TrialsContext], request: str, attempt: str, answer: str) -> Judgement:
    """Ask a judge for its opinion of an attempt. It never sees the right answer. `request` is quoted already."""
    task = await task_text(step)
    length = length_text(answer)
    prompt = prompts.JUDGE.format_messages(
        task=task,
        request=request,
        attempt=around("trajectory", attempt),
        checked="" if task else f"\n{quoted('checked', length)}",
    )
    return await ask(step, step.context.judge_model or step.context.model, prompt, Judgement, judging=True)


async def reflect_on(step: Step[TrialsContext], request: str, trial: Trial) -> str:
    """Draw a lesson from an attempt, never an empty one; a neutral one if nobody knows whether it has failed. `request`
    is quoted already.

    Raises:
        LimitReached, ModelFailed: if there is none to be had.
    """
    shown_too = step.context.reflection == "last_attempt_and_reflexion"
    prompt = prompts.REFLECT.format_messages(
        task=await task_text(step),
        lesson=prompts.NEUTRAL_LESSON if trial.get("unsure") else prompts.LESSON,
        next="" if shown_too else f"{prompts.ONLY_THIS} ",
        request=request,
        attempt=around("trajectory", trial["attempt"]),
        verdict=quoted("verdict", verdict_on(trial)),
    )
    lesson = (await complete(step, step.context.model, prompt)).strip()
    if not lesson:
        raise ModelFailed("the reflection is empty")
    return lesson
