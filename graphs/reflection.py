"""Reflection: a writer and a critic take turns until the critic accepts.

    begin -> generate <-> reflect -> finish

The basic loop of self-criticism (compare Self-Refine, Madaan et al. 2023, arXiv 2303.17651): `generate` writes a
draft, `reflect` criticises and scores it, and the best-scored draft is the answer.
"""

from collections.abc import Sequence
from typing import Annotated

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.types import Overwrite

from reflective_agents.nodes.acting.own_agent import ask_agent
from reflective_agents.nodes.answer_stream import AnswerStream
from reflective_agents.nodes.asking.chat import write
from reflective_agents.nodes.asking.critics import NO_CHECK, Draft, criticise, has_critic, judgement_of
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.evidence.research import today
from reflective_agents.nodes.step import Step, Update, node, stop, stop_at, stop_solved
from reflective_agents.nodes.turn import begin, end, strategy_graph, unless_ended
from reflective_agents.prompts import reflection as prompts
from reflective_agents.prompts.search import TODAY
from reflective_agents.state.lists import replaced_by
from reflective_agents.state.outcome import UNCHECKED, Appraisal, VerifiedBy, accepts
from reflective_agents.state.run import Input, Output, RunState
from reflective_agents.state.schemas import Critique
from reflective_agents.state.settings.reflection import ReflectionContext


class ReflectionState(RunState):
    """State of a run; the drafts are its artefact."""

    drafts: Annotated[list[Draft], DeltaChannel(replaced_by("round"), snapshot_frequency=1000)]


class ReflectionOutput(Output):
    """What a run returns."""

    drafts: list[Draft]


VERIFIERS: dict[str, VerifiedBy] = {"model": "judge", "human": "person", "checks": "verifiers"}
"""Who verifies what a critic accepts."""


@node(ReflectionContext)
async def generate(state: ReflectionState, step: Step[ReflectionContext]) -> Update:
    """Write the next draft, knowing the earlier ones and their critiques. An only draft is the answer."""
    drafts = state["drafts"]
    if step.context.agent is not None:
        agent_reply = await ask_agent(step.context.agent, [*state["messages"], *earlier_rounds(drafts)], step.meter)
        return add_draft(step, drafts, agent_reply.answer)
    prompt = prompts.WRITE.format_messages(
        instructions=step.context.generate_prompt or f"{TODAY.format(today=today())} {prompts.GENERATE}",
        conversation=state["messages"],
        rounds=earlier_rounds(drafts),
    )
    listener = AnswerStream(step) if step.context.max_rounds == 1 else None
    reply = await write(step, step.context.model, prompt, listener)
    return add_draft(step, drafts, reply.text, await listener.end(reply.text) if listener else None)


@node(ReflectionContext)
async def reflect(state: ReflectionState, step: Step[ReflectionContext]) -> Update:
    """Criticise the last draft, and end the run if it is accepted or was the last one allowed."""
    *earlier, draft = state["drafts"]
    if not has_critic(step.context):
        return stop("answered", NO_CHECK)
    before = judgement_of(earlier[-1] if earlier else None)
    critique = await criticise(step, state["messages"], draft["text"], before, state["run_id"])
    judged, ended = verdict(step, draft, critique)
    return {"drafts": [judged]} | ended


@node(ReflectionContext)
async def finish(state: ReflectionState, step: Step[ReflectionContext]) -> Update:
    """Answer with the accepted draft, else with the best-scored one, which need not be the last."""
    best = best_draft(state["drafts"])
    answer = AIMessage(best["text"], id=best["id"] or None) if best else None
    refused = best is not None and not best["accepted"]
    return await end(state, step, answer, appraisal=appraise(best), refused=refused)


def verdict(step: Step[ReflectionContext], draft: Draft, critique: Critique) -> tuple[Draft, Update]:
    """Return a draft with its critique, and the update that ends the run if it is accepted or the last one allowed."""
    number = draft["round"]
    accepted = accepts(critique.accept, critique.score)
    judged: Draft = {**draft, "critique": critique.critique, "score": critique.score, "accepted": accepted}
    step.emit("critique", round=number, score=critique.score, accepted=accepted, critique=critique.critique)
    if accepted:  # also by the verifiers, where there are any that decide
        by = "verifiers" if step.context.is_decided else VERIFIERS[step.context.critic]
        return judged, stop_solved(by, f"accepted in round {number} with a score of {critique.score:.2f}")
    if number >= step.context.max_rounds:
        return judged, stop_at(step.context.limit("max_rounds", number))
    return judged, {}


def add_draft(
    step: Step[ReflectionContext], drafts: Sequence[Draft], text: str, message_id: str | None = None
) -> Update:
    """Return the update that adds a draft; `message_id` is the id under which it was streamed, if it was."""
    draft = Draft(round=len(drafts) + 1, id=message_id or "", text=text, critique="", score=None, accepted=False)
    step.emit("draft", round=draft["round"], words=len(text.split()))
    return {"drafts": [draft]}


def appraise(best: Draft | None) -> Appraisal:
    """Return what the critic has left of the best draft, unless the run ended with its acceptance."""
    if best is None or best["score"] is None or best["accepted"]:
        return UNCHECKED
    return Appraisal(reason=f"the best draft, of round {best['round']}, has a score of {best['score']:.2f}")


def earlier_rounds(drafts: Sequence[Draft]) -> list[AnyMessage]:
    """Return the drafts as the writer's own messages, each followed by its critique."""
    rounds: list[AnyMessage] = []
    for draft in drafts:
        critique = quoted("critique", draft["critique"])
        rounds += [AIMessage(draft["text"]), HumanMessage(prompts.REVISE.format(critique=critique))]
    return rounds


def best_draft(drafts: Sequence[Draft]) -> Draft | None:
    """Return an accepted draft, else the one with the best score, of equals the latest. Unjudged drafts come last."""

    def rank(draft: Draft) -> tuple[bool, float, int]:
        score = -1.0 if draft["score"] is None else draft["score"]
        return draft["accepted"], score, draft["round"]

    return max(drafts, key=rank, default=None)


builder = strategy_graph(
    ReflectionState, context_schema=ReflectionContext, input_schema=Input, output_schema=ReflectionOutput
)
builder.add_node("begin", begin("reflection", ReflectionContext, drafts=Overwrite([])))
builder.add_node("generate", generate)
builder.add_node("reflect", reflect)
builder.add_node("finish", finish)
builder.add_edge("begin", "generate")
builder.add_conditional_edges("generate", *unless_ended("reflect"))
builder.add_conditional_edges("reflect", *unless_ended("generate"))

graph = builder.compile(name="reflection")
