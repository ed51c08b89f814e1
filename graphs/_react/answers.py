"""How the answers of `graphs.react` are heard, checked against their sources, and sent back."""

from functools import partial

from langchain_core.messages import HumanMessage

from reflective_agents.graphs._react.state import ReactState
from reflective_agents.nodes.acting.actions import ActionStep
from reflective_agents.nodes.acting.react_text import ParsedStep
from reflective_agents.nodes.answer_stream import BESIDE_CALLS, AnswerStream, final_answer
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.evidence.citation_reader import CitationReader
from reflective_agents.nodes.evidence.citations import resolve_citations
from reflective_agents.nodes.evidence.sources import Sources, observations_of_steps, sources_of, thread_sources
from reflective_agents.nodes.evidence.verifying import Evidence
from reflective_agents.nodes.step import Step, Update, stop
from reflective_agents.nodes.verifiers.verdict import Verdict, verify_answer
from reflective_agents.prompts import react as prompts
from reflective_agents.state.outcome import pluralize
from reflective_agents.state.settings.react import ReactContext


async def take_answer(state: ReactState, step: Step[ReactContext], move: ParsedStep) -> Update:
    """End with an answer, unless verifiers refuse it: then the agent is told why, and goes on. The best is kept."""
    answer = move["answer"] or ""
    verdict = await verdict_of(state, step, answer)
    if verdict is None or verdict.accepted is not False:
        return {"answer": answer, **finished(len(state["steps"]), answer)}
    before = await verdict_of(state, step, state["answer"]) if state["answer"] else None
    is_better = before is None or (verdict.score or 0) >= (before.score or 0)
    refused = refusal(move, prompts.REFUSED.format(verdict=quoted("verdict", verdict.feedback)))
    update = record(state, step, refused)
    return {**update, "answer": answer} if is_better else update


async def verdict_of(state: ReactState, step: Step[ReactContext], answer: str) -> Verdict | None:
    """Ask the verifiers what they say of an answer."""
    return await verify_answer(step, state["run_id"], state["messages"], answer, Evidence(shown(state)).passages)


def answer_stream_of(state: ReactState, step: Step[ReactContext]) -> AnswerStream:
    """Return the voice by which an answer is heard while it is written."""
    if step.context.acting == "paper":
        return AnswerStream(step, partial(citation_reader, state))
    return AnswerStream(step, partial(CitationReader, shown(state)), beside_calls=BESIDE_CALLS)


def citation_reader(state: ReactState) -> CitationReader:
    """Make a reader of answers after a label, which shows what cites sources that the agent has been shown."""
    return CitationReader(shown(state), final_answer())


def shown(state: ReactState) -> Sources:
    """Return the sources that the agent has been shown."""
    return sources_of(observations_of_steps(state["steps"]), thread_sources(state["messages"]))


def record(state: ReactState, step: Step[ReactContext], done: ActionStep) -> Update:
    """Return the update that records a step."""
    number = len(state["steps"]) + 1
    step.emit("action", number=number, action=done["action"], observation=done["observation"], valid=done["valid"])
    return {"steps": [done], "move": None}


def with_references(
    answer: str | None, state: ReactState, step: Step[ReactContext], listener: AnswerStream | None
) -> str | None:
    """Return an answer that cites results only, and ends with the list of them; an answer in an environment as it is.
    What the listener has heard stands."""
    if not answer or step.context.environment is not None:
        return answer
    streamed = listener is not None and listener.has_begun
    checked = resolve_citations(answer, observations_of_steps(state["steps"]), state["messages"], streamed=streamed)
    if checked.wrong:
        step.emit("not_found", sources=checked.wrong)
    return checked.text


def send_back(move: ParsedStep, state: ReactState, step: Step[ReactContext], listener: AnswerStream | None) -> Update:
    """Return the update that sends an answer back which refers to what was never found, once; else an empty one. What
    is left of it is kept, should no other follow. What somebody has heard stands."""
    if not move["answer"] or state.get("sent_back") or (listener and listener.has_begun):
        return {}
    checked = resolve_citations(move["answer"], observations_of_steps(state["steps"]), state["messages"])
    if not (checked.sources and checked.wrong):
        return {}
    refused = refusal(move, prompts.WRONG_SOURCES.format(names=", ".join(checked.wrong)))
    return record(state, step, refused) | {"guess": checked.text, "sent_back": True}


def refusal(move: ParsedStep, why: str) -> ActionStep:
    """Return the step that an answer becomes which is not accepted, with what the agent is told of it."""
    messages = [*move["messages"], HumanMessage(why)] if move["messages"] else []
    action = f"Answer: {move['answer']}"
    return ActionStep(thought=move["thought"], action=action, observation=why, valid=False, messages=messages)


def finished(actions: int, answer: str | None) -> Update:
    """Return the outcome of an agent that has answered, or whose task is over without an answer."""
    ended = "done" if answer else "the task was over"
    return stop("answered", f"{ended} after {pluralize(actions, 'action')}")
