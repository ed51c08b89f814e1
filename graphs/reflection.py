"""Reflection: a writer and a critic take turns until the critic accepts.

    begin -> generate <-> reflect -> finish

The basic loop of self-criticism (compare Self-Refine, Madaan et al. 2023, arXiv 2303.17651): `generate` writes a
draft, `reflect` criticises and scores it, and the best-scored draft is the answer.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from nodes.chat import write
from nodes.critics import criticise
from nodes.lessons import Learned
from nodes.step import Step, Update, node, stop
from nodes.turn import begin, end, unless_ended
from prompts import reflection as prompts
from state.context import ReflectionContext
from state.run import Input, Output, RunState


class Draft(TypedDict):
    """One round: the text, and what the critic said of it. `score` is None until it has been judged."""

    round: int
    id: str
    text: str
    critique: str
    score: float | None
    accepted: bool


class ReflectionState(RunState):
    """State of a run; the drafts are its artefact."""

    drafts: list[Draft]


class ReflectionOutput(Output):
    """What a run returns."""

    drafts: list[Draft]


@node(ReflectionContext)
async def generate(state: ReflectionState, step: Step[ReflectionContext]) -> Update:
    """Write the next draft, knowing the earlier ones and their critiques."""
    drafts = state["drafts"]
    prompt = prompts.WRITE.format_messages(
        instructions=step.context.generate_prompt or prompts.GENERATE,
        conversation=state["messages"],
        rounds=earlier_rounds(drafts),
    )
    reply = await write(step, step.context.model, prompt)
    draft = Draft(round=len(drafts) + 1, id=reply.id or "", text=reply.text, critique="", score=None, accepted=False)
    step.emit("draft", round=draft["round"], words=len(draft["text"].split()))
    return {"drafts": [*drafts, draft]}


@node(ReflectionContext)
async def reflect(state: ReflectionState, step: Step[ReflectionContext]) -> Update:
    """Criticise the last draft, and end the run if it is accepted or was the last one allowed."""
    *earlier, draft = state["drafts"]
    critique = await criticise(step, state["messages"], draft["text"])
    judged: Draft = {**draft, "critique": critique.critique, "score": critique.score, "accepted": critique.accept}
    step.emit("critique", round=draft["round"], score=critique.score, accepted=critique.accept)
    update: Update = {"drafts": [*earlier, judged]}
    if critique.accept:
        return update | stop("solved", f"accepted in round {draft['round']} with a score of {critique.score:.2f}")
    if draft["round"] >= step.context.max_rounds:
        return update | stop("limit_reached", f"max_rounds={step.context.max_rounds} reached (rounds={draft['round']})")
    return update


@node(ReflectionContext)
async def finish(state: ReflectionState, step: Step[ReflectionContext]) -> Update:
    """Answer with the best-scored draft, not with the last."""
    best = best_draft(state["drafts"])
    answer = AIMessage(best["text"], id=best["id"] or None) if best else None
    learned = [Learned(draft["critique"], draft["text"]) for draft in state["drafts"] if not draft["accepted"]]
    return await end(state, step, answer, learned)


def earlier_rounds(drafts: Sequence[Draft]) -> list[AnyMessage]:
    """The drafts as the writer's own messages, each followed by the critique of it."""
    rounds: list[AnyMessage] = []
    for draft in drafts:
        rounds += [AIMessage(draft["text"]), HumanMessage(prompts.REVISE.format(critique=draft["critique"]))]
    return rounds


def best_draft(drafts: Sequence[Draft]) -> Draft | None:
    """The draft with the best score; of equals an accepted one, then the latest. Unjudged drafts come last."""

    def rank(draft: Draft) -> tuple[float, bool, int]:
        return (-1.0 if draft["score"] is None else draft["score"], draft["accepted"], draft["round"])

    return max(drafts, key=rank, default=None)


builder: StateGraph[Any, ReflectionContext, Any, Any] = StateGraph(
    ReflectionState, context_schema=ReflectionContext, input_schema=Input, output_schema=ReflectionOutput
)
builder.add_node("begin", begin("reflection", ReflectionContext, drafts=[]))
builder.add_node("generate", generate)
builder.add_node("reflect", reflect)
builder.add_node("finish", finish)
builder.add_edge(START, "begin")
builder.add_edge("begin", "generate")
builder.add_conditional_edges("generate", unless_ended("reflect"), ["reflect", "finish"])
builder.add_conditional_edges("reflect", unless_ended("generate"), ["generate", "finish"])
builder.add_edge("finish", END)

graph = builder.compile(name="reflection")
