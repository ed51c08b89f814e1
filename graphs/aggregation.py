"""Recursive Self-Aggregation (RSA, arXiv 2509.26626): groups of answers are merged into better ones, round after round.

    begin -> look_up -> propose -> aggregate -> aggregate -> ... -> finish

`propose` samples a population of N answers. `aggregate` draws N groups of K answers of the last round, at random and
without replacement, and has a better answer made of each: the next population. T rounds, of which `propose` is the
first, take N * T calls. `finish` returns the most frequent answer of the last round; but where something verifies
answers the best of any round, and the first that is accepted ends the run.

With several models as `proposers` this is Mixture-of-Agents (Wang et al. 2024, arXiv 2406.04692): K = N, the proposers
write the answers of a round in turns, and the last round is a single answer, which `model` makes of all of theirs.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import Overwrite
from pydantic import BaseModel, Field

from reflective_agents.environments.base import without_gold
from reflective_agents.environments.plain import PLAIN
from reflective_agents.graphs._aggregation.candidates import (
    AggregationOutput,
    AggregationState,
    Candidate,
    evidence_of,
    found_text,
    last_round,
    read_candidate,
    round_of,
    shown,
)
from reflective_agents.graphs._aggregation.choosing import choose
from reflective_agents.nodes.acting.agent import appraise, enter, environment_of
from reflective_agents.nodes.asking.chat import ask, model_of
from reflective_agents.nodes.asking.sampling import sample_texts
from reflective_agents.nodes.asking.task_prompt import articles_text, short_task_prompt
from reflective_agents.nodes.evidence.citations import resolve
from reflective_agents.nodes.evidence.long_questions import words_of
from reflective_agents.nodes.evidence.research import engine, find, today
from reflective_agents.nodes.memo import at_once, each_to_its_end
from reflective_agents.nodes.step import Step, Update, node, stop, stop_because, stop_solved
from reflective_agents.nodes.turn import begin, end, strategy_graph, unless_ended
from reflective_agents.prompts import aggregation as prompts
from reflective_agents.prompts import chain_of_thought as solving
from reflective_agents.prompts.search import TODAY
from reflective_agents.state.context import Model
from reflective_agents.state.errors import InvalidOutput, LimitReached, ModelFailed
from reflective_agents.state.outcome import Outcome
from reflective_agents.state.settings.aggregation import AggregationContext
from reflective_agents.state.trial import ActingInput

UNREADABLE: Outcome = {
    "status": "exhausted",
    "reason": "no answer can be read, all were cut off (max_answer_tokens), or the environment refuses them",
}


class Queries(BaseModel):
    """What has to be looked up."""

    queries: list[str] = Field(description="Search queries; none if nothing has to be looked up.")


class Part(NamedTuple):
    """Answers that are asked for with the same prompt: from which model (its index among the proposers), how many, and
    which answers of the last round they are made of."""

    prompt: list[BaseMessage]
    model: int | None = None
    answers: int = 1
    group: tuple[int, ...] = ()


async def prepare(state: AggregationState, step: Step[AggregationContext]) -> Update:
    """Begin the task without its right answer, unless the environment needs that."""
    if task := state.get("task"):
        state = {**state, "task": without_gold(task, await environment_of(step.context))}
    return await enter(state, step)


@node(AggregationContext)
async def look_up(state: AggregationState, step: Step[AggregationContext]) -> Update:
    """Ask what has to be looked up for an open question, and look it up, so that all answers may cite it. Where the
    model cannot say it in the form asked for, the question is looked up as it stands."""
    if not step.context.looks_up or engine(step, state["run_id"]) is None:
        return {}
    most = step.context.max_queries
    prompt = prompts.LOOK_UP.format_messages(today=today(), most=most, conversation=state["messages"])
    try:
        queries = (await ask(step, step.context.model, prompt, Queries)).queries
    except InvalidOutput:
        queries = [words_of(state["messages"][-1])]
    sources, problems = await find(step, state["run_id"], queries[:most])
    return {"sources": sources, "problems": problems}


@node(AggregationContext)
async def propose(state: AggregationState, step: Step[AggregationContext]) -> Update:
    """Sample the first population: N answers, at once."""
    writers = writers_of(step, step.context.population)
    prompt = await prompt_for(state, step)
    parts = [Part(prompt, model, answers) for model, answers in Counter(writers).items()]
    return await take_round(state, step, parts)


@node(AggregationContext)
async def aggregate(state: AggregationState, step: Step[AggregationContext]) -> Update:
    """Draw groups of K answers, and have a better answer made of each, at once: the next population."""
    population = last_round(state)
    is_last = round_of(state) + 1 == step.context.rounds and step.context.last == "single"
    writers = [None] if is_last else writers_of(step, step.context.population)
    draw = Random(f"{step.context.seed} {state['request']} {round_of(state)}")
    size = len(population) if is_last else min(step.context.group, len(population))
    groups = [draw.sample(range(len(population)), size) for _ in writers]
    parts = []
    for model, group in zip(writers, groups, strict=True):
        prompt = await prompt_for(state, step, [population[index] for index in group])
        parts.append(Part(prompt, model, group=(*group,)))
    return await take_round(state, step, parts)


@node(AggregationContext)
async def finish(state: AggregationState, step: Step[AggregationContext]) -> Update:
    """Return the accepted answer, else the best verified of any round, else that which the last round agrees on."""
    choice = await choose(state, step)
    if choice is None:
        return await end(state, step, None)
    best = choice.candidate
    appraisal = appraise(await environment_of(step.context), best["answer"], best["reward"])
    if appraisal.accepted is None and best["score"] is None:
        appraisal = appraisal._replace(reason=choice.why)
    ended: AggregationState = {**state}
    reached = state["outcome"]
    if reached and reached["status"] == "answered":
        is_readable = bool(best["normal"]) or best["score"] is not None
        ended["outcome"] = {**reached, "reason": choice.why} if is_readable else {**reached, **UNREADABLE}
    evidence = evidence_of(state)
    answer = AIMessage(resolve(best["answer"], evidence.sources, "").text)
    model = model_of(step, writer_of(step, best.get("model")))
    update = await end(ended, step, answer, model=model, appraisal=appraisal, evidence=evidence)
    return {"reward": best["reward"]} | update


async def prompt_for(
    state: AggregationState, step: Step[AggregationContext], group: Sequence[Candidate] = ()
) -> list[BaseMessage]:
    """Return the prompt for an answer: from scratch, or made of a group of earlier ones."""
    environment = await environment_of(step.context)
    sources = prompts.WITH_SOURCES if evidence_of(state).passages else prompts.WITHOUT_SOURCES
    template = prompts.AGGREGATE if group else prompts.PROPOSE
    candidates = [shown(candidate, number, is_open=environment is None) for number, candidate in enumerate(group, 1)]
    return template.format_messages(
        task=short_task_prompt(environment or PLAIN, examples=step.context.few_shot, request=state["request"]),
        today="" if environment else f"{TODAY.format(today=today())} ",
        sources="" if environment else sources,
        form=environment.answer_form if environment else solving.OPEN_FORM,
        lessons=state["hints"],
        conversation=state["messages"][:-1],
        material=articles_text(state["world"]) + found_text(state),
        request=state["request"],
        candidates="\n".join(candidates),
    )


def writers_of(step: Step[AggregationContext], count: int) -> list[int | None]:
    """Return who writes so many answers: the proposers in turns, by index; None where there are none."""
    proposers = step.context.proposers
    if not proposers:
        return [None] * count
    return [index % len(proposers) for index in range(count)]


def writer_of(step: Step[AggregationContext], index: int | None) -> Model:
    """Return a proposer by its index, in turns if a run is resumed with fewer; the run's model where there is none."""
    proposers = step.context.proposers
    if index is None or not proposers:
        return step.context.model
    return proposers[index % len(proposers)]


async def take_round(state: AggregationState, step: Step[AggregationContext], parts: Sequence[Part]) -> Update:
    """Have the answers of a round written at once, and checked. The run ends with one that is accepted, at a limit, and
    after the last round. Where some cannot be had, the others are the population.

    Raises:
        LimitReached, ModelFailed: if there is none.
    """
    replies: dict[int, list[AIMessage]] = {}
    stops: list[LimitReached | ModelFailed] = []

    async def write(number: int, part: Part, first: int) -> None:
        model = model_of(step, writer_of(step, part.model))
        replies[number], stopped = await sample_texts(step, model, part.prompt, part.answers, first=first)
        if stopped:
            stops.append(stopped)

    writing = []
    first = step.context.population * round_of(state)
    for number, part in enumerate(parts):
        writing.append(write(number, part, first))
        first += part.answers
    try:
        await each_to_its_end(writing)
    except (LimitReached, ModelFailed) as stopped:
        if not replies:
            raise
        stops.append(stopped)
    reading = []
    for number, part in enumerate(parts):
        for reply in replies.get(number, ()):
            reading.append(read_candidate(state, step, reply, [*part.group], part.model))
    new = await at_once(reading)
    return {"candidates": new} | await ended_by(state, step, new, stops)


async def ended_by(
    state: AggregationState,
    step: Step[AggregationContext],
    new: Sequence[Candidate],
    stops: Sequence[LimitReached | ModelFailed],
) -> Update:
    """Return the update that ends the run after a round; empty if it goes on."""
    environment = await environment_of(step.context)
    number = round_of(state) + 1
    for candidate in new:
        if candidate["accepted"]:
            by = environment.verifier if environment and candidate["reward"] is not None else "verifiers"
            return stop_solved(by, f"an answer of round {number} is accepted")
    for stopped in stops:
        if isinstance(stopped, LimitReached):
            return stop_because(stopped)
    if number < step.context.rounds:
        return {}
    answered = any(candidate["answer"] for candidate in [*state["candidates"], *new])
    return stop("answered", "the rounds are over") if answered else stop("failed", "no reply ends with an answer")


builder = strategy_graph(
    AggregationState,
    context_schema=AggregationContext,
    input_schema=ActingInput,
    output_schema=AggregationOutput,
)
builder.add_node(
    "begin",
    begin("aggregation", AggregationContext, prepare, candidates=Overwrite([]), sources=[], problems=[], reward=None),
)
builder.add_node("look_up", look_up)
builder.add_node("propose", propose)
builder.add_node("aggregate", aggregate)
builder.add_node("finish", finish)
builder.add_edge("begin", "look_up")
builder.add_conditional_edges("look_up", *unless_ended("propose"))
builder.add_conditional_edges("propose", *unless_ended("aggregate"))
builder.add_conditional_edges("aggregate", *unless_ended("aggregate"))

graph = builder.compile(name="aggregation")
