"""Reflexion (Shinn et al. 2023, arXiv 2303.11366), for questions: answer, criticise yourself, search for what is
missing, revise.

    begin -> draft -> execute_tools -> revise -> execute_tools -> ... -> finish

`draft` answers from what the model knows, with a critique of the answer and search queries; `execute_tools` runs the
queries that are new; `revise` answers again with citations, which are checked against what the searches of this run
have returned.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from nodes.chat import ask
from nodes.citations import check_citations, nothing, plain_urls, render, uncited
from nodes.research import find
from nodes.step import Step, Update, node, stop
from nodes.turn import begin, end
from prompts import reflexion as prompts
from state.context import ReflexionContext
from state.run import Input, Output, RunState
from state.schemas import AnswerQuestion, ReviseAnswer
from state.sources import SearchResult


class Answer(TypedDict):
    """One round: the answer, the responder's critique of it, and what it wants to search. Round 0 is the draft."""

    round: int
    answer: str
    missing: str
    superfluous: str
    queries: list[str]
    references: list[str]


class ReflexionState(RunState):
    """State of a run. `scratch` holds the responder's work, `asked` the queries run, `sources` what they returned."""

    answers: list[Answer]
    scratch: list[AnyMessage]
    asked: list[str]
    sources: list[SearchResult]


class ReflexionOutput(Output):
    """What a run returns; the answers of all rounds are its artefact."""

    answers: list[Answer]
    sources: list[SearchResult]


@node(ReflexionContext)
async def draft(state: ReflexionState, step: Step[ReflexionContext]) -> Update:
    """Answer from what the model knows, criticise the answer, and say what to search for."""
    prompt = prompts.DRAFT.format_messages(conversation=state["messages"])
    value = await ask(step, step.context.model, prompt, AnswerQuestion)
    step.emit("draft", round=0, missing=value.reflection.missing, queries=value.search_queries)
    # A draft has no references, so nothing that it may cite can be checked.
    return respond(state, value, uncited(value.answer), references=[])


@node(ReflexionContext)
async def execute_tools(state: ReflexionState, step: Step[ReflexionContext]) -> Update:
    """Run the queries that are new, at once, and hand their results to the responder."""
    queries = new_queries(state["answers"][-1]["queries"], state["asked"], step.context)
    found = await find(step, state["run_id"], queries)
    text = json.dumps(found, ensure_ascii=False) if found else "The searches found nothing."
    call = state["scratch"][-1].tool_calls[0]["id"]  # type: ignore[union-attr]
    return {
        "asked": state["asked"] + [normal(query) for query in queries],
        "sources": state["sources"] + [result for result in found if result not in state["sources"]],
        "scratch": [*state["scratch"], ToolMessage(text, tool_call_id=call)],
    }


@node(ReflexionContext)
async def revise(state: ReflexionState, step: Step[ReflexionContext]) -> Update:
    """Answer again with citations, and end the run if nothing is missing, nothing new can be searched, or the rounds
    are over."""
    known = {source["url"] for source in state["sources"]}
    prompt = prompts.REVISE.format_messages(conversation=state["messages"], scratch=state["scratch"])
    value = await ask(
        step,
        step.context.model,
        prompt,
        ReviseAnswer,
        lambda v: check_citations(v.answer, plain_urls(v.references), known),
    )
    update = respond(state, value, value.answer, plain_urls(value.references))
    done, missing = len(state["answers"]), value.reflection.missing
    step.emit("revision", round=done, missing=missing, references=len(value.references))
    if nothing(missing):
        return update | stop("solved", f"nothing is missing after round {done}")
    if not new_queries(value.search_queries, state["asked"], step.context):
        return update | stop("exhausted", f"no new query is left after round {done}; still missing: {missing}")
    if done >= step.context.max_rounds:
        return update | stop("limit_reached", f"max_rounds={step.context.max_rounds} reached; still missing: {missing}")
    return update


@node(ReflexionContext)
async def finish(state: ReflexionState, step: Step[ReflexionContext]) -> Update:
    """Answer with the last revision and its references, as text."""
    if not state["answers"]:
        return end(state, step, None)
    last = state["answers"][-1]
    return end(state, step, AIMessage(render(last["answer"], last["references"])))


def respond(state: ReflexionState, value: AnswerQuestion | ReviseAnswer, answer: str, references: list[str]) -> Update:
    """The update that records an answer, and keeps it in the scratch work as a call that the search results will
    answer."""
    done = len(state["answers"])
    record = Answer(
        round=done,
        answer=answer,
        missing=value.reflection.missing,
        superfluous=value.reflection.superfluous,
        queries=value.search_queries,
        references=references,
    )
    call = {"name": type(value).__name__, "args": value.model_dump(), "id": f"round_{done}"}
    return {"answers": [*state["answers"], record], "scratch": [*state["scratch"], AIMessage("", tool_calls=[call])]}


def new_queries(queries: Sequence[str], asked: Sequence[str], context: ReflexionContext) -> list[str]:
    """The queries that have not been asked, each once, as many as a round may run; none without a search engine."""
    if context.search == "none":
        return []
    fresh = {normal(query): query for query in queries if normal(query)}
    return [query for key, query in fresh.items() if key not in asked][: context.max_queries]


def normal(query: str) -> str:
    """A query but for case and white space."""
    return " ".join(query.casefold().split())


def after_draft(state: ReflexionState) -> Literal["execute_tools", "finish"]:
    """Search, unless something has ended the run."""
    return "finish" if state["outcome"] else "execute_tools"


def after_tools(state: ReflexionState) -> Literal["revise", "finish"]:
    """Revise, unless something has ended the run."""
    return "finish" if state["outcome"] else "revise"


builder: StateGraph[Any, ReflexionContext, Any, Any] = StateGraph(
    ReflexionState, context_schema=ReflexionContext, input_schema=Input, output_schema=ReflexionOutput
)
builder.add_node("begin", begin("reflexion", ReflexionContext, answers=[], scratch=[], asked=[], sources=[]))
builder.add_node("draft", draft)
builder.add_node("execute_tools", execute_tools)
builder.add_node("revise", revise)
builder.add_node("finish", finish)
builder.add_edge(START, "begin")
builder.add_edge("begin", "draft")
builder.add_conditional_edges("draft", after_draft)
builder.add_conditional_edges("execute_tools", after_tools)
builder.add_conditional_edges("revise", after_draft)
builder.add_edge("finish", END)

graph = builder.compile(name="reflexion")
