"""Whole answers in `graphs.auto`: drawing them, checking them, electing one, and learning from a failure."""

from collections import Counter
from collections.abc import Sequence
from typing import cast

from langchain_core.messages import AIMessage

from reflective_agents.environments.actions import has_answer
from reflective_agents.environments.base import Environment
from reflective_agents.environments.plain import PLAIN
from reflective_agents.graphs._auto.ladder import rung_of
from reflective_agents.graphs._auto.state import Attempt, AutoState
from reflective_agents.graphs.chain_of_thought import Sample, read, voting
from reflective_agents.graphs.chain_of_thought import read_open as read_text
from reflective_agents.nodes.acting.agent import environment_of, give_answer
from reflective_agents.nodes.asking import sampling
from reflective_agents.nodes.asking.chat import complete, model_of
from reflective_agents.nodes.asking.task_prompt import articles_text, short_task_prompt, task_prompt
from reflective_agents.nodes.asking.transcript import around, quoted
from reflective_agents.nodes.memo import at_once
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers.verdict import verify_answer
from reflective_agents.prompts import chain_of_thought as prompts
from reflective_agents.prompts import lats as reflecting
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.settings.auto import AutoContext
from reflective_agents.state.tree import Lesson
from reflective_agents.text.joined import joined
from reflective_agents.tree_search.candidates import trajectory_text
from reflective_agents.tree_search.tree_paths import best_node, path


async def draw(
    state: AutoState, step: Step[AutoContext], count: int, lessons: Sequence[Lesson]
) -> tuple[list[Attempt], LimitReached | ModelFailed | None]:
    """Sample whole answers at once, and have the environment check them.

    Args:
        state: The state of the run.
        step: The node that samples.
        count: How many at most; none beyond a safe vote.
        lessons: What was learned so far.

    Returns:
        The samples, and what has stopped some of them.

    Raises:
        LimitReached, ModelFailed: if there is none.
    """
    environment = await environment_of(step.context)
    world = environment or PLAIN
    learned = "\n".join(quoted("lesson", lesson["text"]) for lesson in lessons)
    prompt = prompts.SOLVE.format_messages(
        task=short_task_prompt(world, examples=step.context.few_shot),
        form=world.answer_form if environment else prompts.OPEN_FORM,
        lessons=reflecting.LESSONS.format(lessons=learned) if learned else "",
        conversation=state["messages"][:-1],
        material=articles_text(state["world"]),
        request=environment.public(state["world"]) if environment else f"Question: {state['messages'][-1].text}",
    )
    model = model_of(step, step.context.model)
    replies, stopped = await sampling.sample_texts(step, model, prompt, count, first=len(state["samples"]))
    attempts = [await rewarded(state, environment, reply) for reply in replies]
    if attempts:
        attempts = await at_once([verified(state, step, attempt) for attempt in attempts])
    for attempt in attempts:
        step.emit("sample", answer=attempt["answer"], reward=attempt["reward"])
    return attempts, stopped


async def rewarded(state: AutoState, environment: Environment | None, reply: AIMessage) -> Attempt:
    """Read a reply as a sample, with what the environment says of it, if there is one."""
    question = state["messages"][-1].text
    sample = read(reply, environment, question) if environment else read_open(reply, PLAIN, question)
    attempt = cast(Attempt, {**sample, "reward": None, "observation": ""})
    if sample["answer"] and (done := await give_answer(environment, state["world"], sample["answer"])):
        attempt["reward"] = done.reward
        attempt["observation"] = done.observation
    if rung := rung_of(state):
        attempt["rung"] = rung
    return attempt


async def verified(state: AutoState, step: Step[AutoContext], attempt: Attempt) -> Attempt:
    """Return a sample with what the verifiers say of it, if there are any."""
    if not attempt["answer"]:
        return attempt
    verdict = await verify_answer(step, state["run_id"], state["messages"], attempt["answer"])
    if verdict is None:
        return attempt
    if verdict.score is None:
        return attempt if verdict.only_ranks else {**attempt, "accepted": False}
    reward = attempt["reward"]
    observation = joined([attempt["observation"], verdict.feedback])
    accepted = verdict.solves(None if reward is None else reward >= 1)
    found: Attempt = {**attempt, "observation": observation, "accepted": accepted}
    if reward is None:
        return {**found, "reward": verdict.score, "rewarded": False}
    return {**found, "reward": min(reward, verdict.score)}


def read_open(reply: AIMessage, world: Environment, question: str) -> Sample:
    """Read a reply to an open question as a sample; on an answer that is a text there is no vote."""
    sample = read_text(reply, world, question)
    is_text = "\n" in sample["answer"] and not has_answer(reply.text)
    return {**sample, "normal": ""} if is_text else sample


def is_right(attempt: Attempt) -> bool:
    """Tell whether the environment or the verifiers accept a sample, both where there are both."""
    return attempt.get("accepted", attempt["reward"] is not None and attempt["reward"] >= 1)


def elected(samples: Sequence[Attempt]) -> Attempt | None:
    """Return the sample whose answer counts: that of the highest reward, of equals that of the strongest model, of
    those the most frequent, the first."""
    votes = Counter(sample["normal"] for sample in voting(samples))

    def counts(sample: Attempt) -> bool:
        return bool(sample["answer"]) and (sample["reward"] is not None or votes[sample["normal"]] > 0)

    def rank(sample: Attempt) -> tuple[float, int, int]:
        reward = -1.0 if sample["reward"] is None else sample["reward"]
        return reward, sample.get("rung", 0), votes[sample["normal"]]

    return max(filter(counts, samples), key=rank, default=None)


def by_votes(samples: Sequence[Attempt]) -> list[Attempt]:
    """Return the samples with an answer, those of the strongest model first, of these the most frequent."""
    votes = Counter(sample["normal"] for sample in voting(samples) if sample["normal"])
    answered = [sample for sample in samples if sample["answer"]]
    return sorted(answered, key=lambda sample: (-sample.get("rung", 0), -votes[sample["normal"]]))


def distinct(samples: Sequence[Attempt]) -> list[str]:
    """Return the answers of samples, each once; those that ask for no more than an answer in a text, as that text."""
    # Turned round twice: of equal answers the first is kept, where the last of them stands.
    answers: dict[str, str] = {}
    for sample in reversed(samples):
        if sample["answer"]:
            answers[sample["normal"] or sample["answer"]] = sample["answer"]
    return list(reversed(answers.values()))


async def reflect(state: AutoState, step: Step[AutoContext]) -> Lesson:
    """Draw a lesson from the best that has failed: the best trajectory of the tree, else the best sample.

    Raises:
        LimitReached, ModelFailed: if it is not to be had.
    """
    environment = await environment_of(step.context)
    best = best_node(state["tree"])
    if best is not None and best["depth"]:
        answer = best["id"]
        trajectory = trajectory_text(path(state["tree"], best["id"]))
        verdict = f"It has a score of {best['score'] or 0:.2f}, where 1 is the best.\n{best['critique']}".strip()
    else:
        nothing = Attempt(text="(none)", answer="", normal="", reward=None, observation="")
        sample = elected(state["samples"]) or nothing
        answer = sample["answer"]
        trajectory = quoted("thought", sample["text"])
        verdict = sample["observation"] or "This answer was not accepted."
    prompt = reflecting.REFLECT.format_messages(
        task=task_prompt(environment, examples=step.context.few_shot) if environment else "",
        request=state["request"],
        trajectory=around("trajectory", trajectory),
        verdict=quoted("verdict", verdict),
    )
    text = (await complete(step, step.context.model, prompt)).strip()
    step.emit("reflection", trial=state["trials"] + 1, reflection=text)
    return Lesson(node="", answer=answer, text=text)
