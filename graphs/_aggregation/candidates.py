"""The answers of a run of `graphs.aggregation`: how they are read, checked and shown."""

import json
from typing import Annotated, NotRequired, cast

from langchain_core.messages import AIMessage
from langgraph.channels import DeltaChannel

from reflective_agents.environments.base import State
from reflective_agents.environments.plain import PLAIN
from reflective_agents.graphs.chain_of_thought import Sample, read, read_open
from reflective_agents.nodes.acting.agent import environment_of, give_answer
from reflective_agents.nodes.asking.transcript import around, quoted
from reflective_agents.nodes.evidence.citations import resolve_citations
from reflective_agents.nodes.evidence.marks import replace_citations
from reflective_agents.nodes.evidence.reference_list import length_text
from reflective_agents.nodes.evidence.sources import numbers_of, sources_of, thread_sources, with_number
from reflective_agents.nodes.evidence.verifying import Evidence
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers.verdict import verify_answer
from reflective_agents.state.lists import append
from reflective_agents.state.run import Output
from reflective_agents.state.settings.aggregation import AggregationContext
from reflective_agents.state.trial import ActingState
from reflective_agents.text.joined import joined
from reflective_agents.web_search.results import SearchResult


class Candidate(Sample):
    """An answer of a round, the first of which is 1, and what is known of it.

    `group` lists the answers of the round before that it was made of, from 0 on; none in the first round. `model` is
    the index of its writer among the proposers; missing where that is the run's model. `reward` (0..1) is the
    environment's, and what it refuses has no `normal`; `score` the lower of that and what the verifiers give it. Both
    are None where there is neither. `accepted` tells whether all that check answers accept it, and `feedback` holds
    their words.
    """

    round: int
    group: list[int]
    model: NotRequired[int]
    reward: float | None
    score: float | None
    accepted: bool
    feedback: str


class AggregationOutput(Output):
    """What a run returns: the answers of all rounds in order, what was looked up for them, and the environment's reward
    for the answer."""

    candidates: Annotated[list[Candidate], DeltaChannel(append, snapshot_frequency=1000)]
    sources: list[SearchResult]
    reward: float | None


class AggregationState(ActingState, AggregationOutput):
    """State of a run; `world`, `request` and `hints` are the task as it begins, and `problems` what could not be looked
    up, in words for the writers."""

    problems: list[str]
    world: State
    request: str
    hints: str


def evidence_of(state: AggregationState) -> Evidence:
    """Return what answers may cite: what was looked up, and the sources of the thread."""
    return Evidence(sources_of([json.dumps(state["sources"])], thread_sources(state["messages"])))


def found_text(state: AggregationState) -> str:
    """Return what was looked up as quoted text, each result with the number that cites it, and what could not be found;
    empty if nothing was looked up."""
    found: list[str] = []
    if state["sources"]:
        numbers = numbers_of(state["sources"], thread_sources(state["messages"]))
        results = [with_number(result, numbers) for result in state["sources"]]
        found.append(json.dumps(results, ensure_ascii=False))
    found += state["problems"]
    return "".join(f"{quoted('observation', text)}\n" for text in found)


async def read_candidate(
    state: AggregationState, step: Step[AggregationContext], reply: AIMessage, group: list[int], model: int | None
) -> Candidate:
    """Read a reply, take out the citations of what was never found, and have its answer checked."""
    environment = await environment_of(step.context)
    question = state["messages"][-1].text
    sample = read(reply, environment, question) if environment else read_open(reply, PLAIN, question)
    answer = sample["answer"]
    if evidence := evidence_of(state).passages:
        answer = resolve_citations(answer, [json.dumps(state["sources"])], state["messages"]).body
        if sample["normal"]:
            plain = replace_citations(answer, evidence, lambda _: ())
            sample["normal"] = (environment or PLAIN).vote(plain, question)
    known = {
        **sample,
        "answer": answer,
        "round": round_of(state) + 1,
        "group": group,
        "reward": None,
        "score": None,
        "accepted": False,
        "feedback": "",
    }
    candidate = cast(Candidate, known)
    if model is not None:
        candidate["model"] = model
    return await checked(state, step, candidate) if answer else candidate


async def checked(state: AggregationState, step: Step[AggregationContext], candidate: Candidate) -> Candidate:
    """Return an answer with what the environment and the verifiers say of it, where there are any."""
    answer = candidate["answer"]
    found: Candidate = {**candidate}
    scores: list[float] = []
    feedback: list[str] = []
    is_right: bool | None = None
    done = await give_answer(await environment_of(step.context), state["world"], answer)
    if done:
        found["reward"] = done.reward
        feedback.append(done.observation)
        if not done.valid:
            found["normal"] = ""
        if done.reward is not None:
            scores.append(done.reward)
            is_right = done.reward >= 1
    passages = evidence_of(state).passages
    verdict = await verify_answer(step, state["run_id"], state["messages"], answer, passages)
    if verdict:
        feedback.append(verdict.feedback)
        if verdict.score is not None:
            scores.append(verdict.score)
    found["score"] = min(scores, default=None)
    found["accepted"] = verdict.solves(is_right) if verdict else bool(is_right)
    found["feedback"] = joined(feedback)
    step.emit("candidate", round=found["round"], answer=answer, score=found["score"])
    return found


def round_of(state: AggregationState) -> int:
    """Return how many rounds have brought answers."""
    return state["candidates"][-1]["round"] if state["candidates"] else 0


def last_round(state: AggregationState) -> list[Candidate]:
    """Return the population: the answers of the last round."""
    return [candidate for candidate in state["candidates"] if candidate["round"] == round_of(state)]


def answer_text(candidate: Candidate, *, is_open: bool) -> str:
    """Return an answer as quoted text; one to an open question with its length, which the request may limit."""
    answer = quoted("answer", candidate["text"])
    return f"{answer}\n{quoted('checked', length_text(candidate['text']))}" if is_open else answer


def shown(candidate: Candidate, number: int, *, is_open: bool) -> str:
    """Return a candidate as quoted text: the whole solution, and what is known of it."""
    parts = [answer_text(candidate, is_open=is_open)]
    verdict = candidate["feedback"]
    if candidate["score"] is not None:
        verdict = f"It scores {candidate['score']:.2f} of 1.\n{verdict}"
    if verdict:
        parts.append(quoted("verdict", verdict))
    return around("attempt", "\n".join(parts), number=number)
