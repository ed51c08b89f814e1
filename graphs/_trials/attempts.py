"""One attempt of another strategy, and whether it has solved the task."""

from collections.abc import Sequence
from typing import NotRequired

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from typing_extensions import TypedDict

from reflective_agents.environments.base import Environment, Task
from reflective_agents.graphs.chain_of_thought import Sample
from reflective_agents.nodes.acting.actions import ActionStep
from reflective_agents.nodes.acting.agent import answered, environment_of
from reflective_agents.nodes.acting.own_agent import ask_agent
from reflective_agents.nodes.acting.react_text import read_answer
from reflective_agents.nodes.asking.chat import ask, complete
from reflective_agents.nodes.asking.task_prompt import briefing, short_briefing
from reflective_agents.nodes.asking.transcript import around, quoted
from reflective_agents.nodes.evidence.citations import split_list
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import search as search_prompts
from reflective_agents.prompts import trials as prompts
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.outcome import Outcome
from reflective_agents.state.run import Usage
from reflective_agents.state.schemas import Judgement
from reflective_agents.state.settings.trials import TrialsContext
from reflective_agents.state.trial import Trial

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


async def agents_attempt(
    step: Step[TrialsContext], messages: Sequence[AnyMessage], task: Task | None, advice: str
) -> Attempt:
    """Let the user's own agent try, as an actor would: its answer, and what the environment says of it."""
    *earlier, last = messages
    environment, context = await environment_of(step.context), step.context
    told = [HumanMessage(advice.strip())] if advice.strip() else []
    world = environment.start(task) if environment and task else {}
    if environment:
        last = HumanMessage(await task_text(step) + environment.public(world))
    said = await ask_agent(context.agent, [*earlier, *told, last], step.meter)
    answer = (read_answer(said.answer, environment) if environment else None) or said.answer
    done = await answered(environment, world, answer)
    observation = quoted("observation", done.observation) if done and done.observation else ""
    attempt = [quoted("thought", said.steps) if said.steps else "", quoted("answer", said.answer), observation]
    return {
        "answer": answer,
        "reward": done.reward if done else None,
        "attempt": "\n".join(filter(None, attempt)),
        "outcome": Outcome(status="answered", reason="the agent has answered"),
        "messages": [AIMessage(answer)],
    }


def attempt_text(result: Attempt) -> str:
    """Describe an actor's attempt as quoted text: its steps or its first sample, its answer, and the result."""
    parts: list[str] = []
    for taken in result.get("steps") or []:
        parts += [quoted(tag, taken[tag]) for tag in ("thought", "action", "observation") if taken[tag]]
    parts += [quoted("thought", drawn["text"]) for drawn in (result.get("samples") or [])[:1]]
    parts.append(quoted("answer", result["answer"] or "(none)"))
    return "\n".join([*parts, *([quoted("observation", said)] if (said := result.get("observation")) else [])])


def verdict_on(trial: Trial) -> str:
    """Say in plain words what was found wrong with a trial."""
    status, _, reason = trial["outcome"].partition(": ")
    said = ["This did not solve the task."]
    ended = "It gave no answer" if trial["answer"] is None else "It was broken off"
    said += [f"{ended}: {reason}."] if status in ("limit_reached", "failed") else []
    said += [] if trial["reward"] is None else [f"Its reward is {trial['reward']:g}, where 1 is the best."]
    said += [] if trial["score"] is None else [f"A judge gave it a score of {trial['score']:.2f}, where 1 is the best."]
    return "\n".join([" ".join(said), *([critique] if (critique := trial.get("critique")) else [])])


def not_refuted(trials: Sequence[Trial], memory_size: int) -> list[Trial]:
    """Return the trials whose lessons may be kept: a later trial that was shown it has solved the task, or nobody has
    evaluated one yet."""

    def refuted(trial: Trial) -> bool:
        shown = trials[trial["trial"] :][:memory_size]
        evaluated = any(one["reward"] is not None or one["score"] is not None for one in shown)
        return evaluated and not any(one["solved"] for one in shown)

    return [trial for trial in trials if not refuted(trial)]


async def task_text(step: Step[TrialsContext]) -> str:
    """Return what all prompts say first of the task, as its actor is told it; empty for open questions."""
    environment, context = await environment_of(step.context), step.context
    if environment is None:
        return ""
    acts = context.actor == "react" and context.agent is None
    return (briefing if acts else short_briefing)(environment, examples=context.few_shot)


async def with_tests(step: Step[TrialsContext], environment: Environment, task: Task) -> Task:
    """Add tests that the model wrote itself to a task, if its environment wants any.

    Without a reply there are no tests: what went wrong will end the run at its first attempt, if it comes again.
    """
    if not environment.wants_tests(task):
        return task
    try:
        goal = await task_text(step)
        prompt = prompts.WRITE_TESTS.format_messages(task=goal, request=quoted("request", task["question"]))
        written = await complete(step, step.context.model, prompt)
    except (LimitReached, ModelFailed):
        return task
    task = environment.with_own_tests(task, written, MOST_TESTS)
    step.emit("tests", tests=task.get("data", {}).get("tests", []))
    return task


async def judge(step: Step[TrialsContext], request: str, attempt: str, answer: str) -> Judgement:
    """Ask a judge for its opinion of an attempt. It never sees the right answer. `request` is quoted already."""
    told = await task_text(step)
    length = search_prompts.LENGTH.format(words=len(split_list(answer)[0].split()))
    prompt = prompts.JUDGE.format_messages(
        task=told,
        request=request,
        attempt=around("trajectory", attempt),
        checked="" if told else f"\n{quoted('checked', length)}",
    )
    return await ask(step, step.context.judge_model or step.context.model, prompt, Judgement, judging=True)


async def reflect_on(step: Step[TrialsContext], request: str, attempt: str, verdict: str) -> str:
    """Draw a lesson from a failed attempt, never an empty one. `request` is quoted already.

    Raises:
        LimitReached, ModelFailed: if there is none to be had.
    """
    prompt = prompts.REFLECT.format_messages(
        task=await task_text(step),
        request=request,
        attempt=around("trajectory", attempt),
        verdict=quoted("verdict", verdict),
    )
    lesson = (await complete(step, step.context.model, prompt)).strip()
    if not lesson:
        raise ModelFailed("the reflection is empty")
    return lesson
