"""Reflexion (Shinn et al. 2023, arXiv 2303.11366), for questions: answer, criticise yourself, search for what is
missing, revise.

    begin -> draft -> execute_tools -> revise -> execute_tools -> ... -> finish

`draft` answers from what the model knows, with a critique of the answer and search queries; `execute_tools` runs the
queries that are new; `revise` answers again with citations, which are checked against what the searches of this run
have returned.
"""

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from nodes.chat import ask
from nodes.citations import check_citations, nothing, plain_urls, render, uncited
from nodes.lessons import Learned
from nodes.research import find
from nodes.step import Step, Update, node, stop
from nodes.turn import begin, end, unless_ended
from prompts import experience
from prompts import reflexion as prompts
from state.context import ReflexionContext
from state.run import Input, Output, RunState
from state.schemas import AnswerQuestion, ReviseAnswer
from state.sources import SearchResult


class Answer(TypedDict):
    """One round: the answer, the responder's critique of it, what was searched then, and what was found.

    Round 0 is the draft. `searched` holds those of the `queries` that were new and were run, `problems` what went
    wrong with them.
    """

    round: int
    answer: str
    missing: str
    superfluous: str
    queries: list[str]
    references: list[str]
    searched: list[str]
    found: list[SearchResult]
    problems: list[str]


class ReflexionState(RunState):
    """State of a run; the answers of all rounds are its artefact, `sources` is all that was found."""

    answers: list[Answer]
    sources: list[SearchResult]


class ReflexionOutput(Output):
    """What a run returns."""

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
    *earlier, last = state["answers"]
    queries = new_queries(last["queries"], state["answers"], step.context)
    found, problems = await find(step, state["run_id"], queries)
    return {
        "answers": [*earlier, {**last, "searched": queries, "found": found, "problems": problems}],
        "sources": state["sources"] + [result for result in found if result not in state["sources"]],
    }


@node(ReflexionContext)
async def revise(state: ReflexionState, step: Step[ReflexionContext]) -> Update:
    """Answer again with citations, and end the run if nothing is missing, nothing new can be searched, or the rounds
    are over."""
    known = {source["url"] for source in state["sources"]}
    prompt = prompts.REVISE.format_messages(conversation=state["messages"], scratch=earlier_rounds(state["answers"]))
    value = await ask(
        step,
        step.context.model,
        prompt,
        ReviseAnswer,
        lambda v: check_citations(v.answer, plain_urls(v.references), known),
    )
    update = respond(state, value, value.answer, plain_urls(value.references))
    done, missing = len(state["answers"]), value.reflection.missing
    step.emit("revision", round=done, missing=missing, queries=value.search_queries, references=len(value.references))
    if nothing(missing):
        return update | stop("solved", f"nothing is missing after round {done}")
    if not new_queries(value.search_queries, state["answers"], step.context):
        return update | stop("exhausted", f"no new query is left after round {done}; still missing: {missing}")
    if done >= step.context.max_rounds:
        return update | stop("limit_reached", f"max_rounds={step.context.max_rounds} reached; still missing: {missing}")
    return update


@node(ReflexionContext)
async def finish(state: ReflexionState, step: Step[ReflexionContext]) -> Update:
    """Answer with the last revision and its references, as text."""
    if not state["answers"]:
        return await end(state, step, None)
    last = state["answers"][-1]
    return await end(state, step, AIMessage(render(last["answer"], last["references"])), lessons(state["answers"]))


def lessons(answers: Sequence[Answer]) -> list[Learned]:
    """The critiques of the revisions; the draft's, which knows of no search yet, says nothing of how to search."""
    return [Learned(lesson, revised["answer"]) for revised in answers[1:] if (lesson := critique(revised))]


def critique(answer: Answer) -> str:
    """What an answer lacked and had too much of, as a lesson; empty if nothing was missing."""
    if nothing(answer["missing"]):
        return ""
    lesson = experience.MISSING.format(missing=answer["missing"])
    if nothing(answer["superfluous"]):
        return lesson
    return f"{lesson} {experience.SUPERFLUOUS.format(superfluous=answer['superfluous'])}"


def respond(state: ReflexionState, value: AnswerQuestion | ReviseAnswer, answer: str, references: list[str]) -> Update:
    """The update that records an answer."""
    record = Answer(
        round=len(state["answers"]),
        answer=answer,
        missing=value.reflection.missing,
        superfluous=value.reflection.superfluous,
        queries=value.search_queries,
        references=references,
        searched=[],
        found=[],
        problems=[],
    )
    return {"answers": [*state["answers"], record]}


def earlier_rounds(answers: Sequence[Answer]) -> list[AnyMessage]:
    """The rounds as the responder sees them: each answer as its own call, replied to with what the searches found."""
    messages: list[AnyMessage] = []
    for answer in answers:
        reflection = {"missing": answer["missing"], "superfluous": answer["superfluous"]}
        given = {"answer": answer["answer"], "reflection": reflection, "search_queries": answer["queries"]}
        name = ReviseAnswer.__name__ if answer["round"] else AnswerQuestion.__name__
        args = {**given, "references": answer["references"]} if answer["round"] else given
        call = {"name": name, "args": args, "id": f"round_{answer['round']}"}
        found = {"results": answer["found"], "problems": answer["problems"]}
        messages.append(AIMessage("", tool_calls=[call]))
        messages.append(ToolMessage(json.dumps(found, ensure_ascii=False), tool_call_id=call["id"]))
    return messages


def new_queries(queries: Sequence[str], answers: Sequence[Answer], context: ReflexionContext) -> list[str]:
    """The queries that were not run yet, each once, as many as a round may run; none without a search engine."""
    if context.search == "none":
        return []
    asked = {normal(query) for answer in answers for query in answer["searched"]}
    fresh = {normal(query): query for query in queries if normal(query)}
    return [query for key, query in fresh.items() if key not in asked][: context.max_queries]


def normal(query: str) -> str:
    """A query but for case and white space."""
    return " ".join(query.casefold().split())


builder: StateGraph[Any, ReflexionContext, Any, Any] = StateGraph(
    ReflexionState, context_schema=ReflexionContext, input_schema=Input, output_schema=ReflexionOutput
)
builder.add_node("begin", begin("reflexion", ReflexionContext, answers=[], sources=[]))
builder.add_node("draft", draft)
builder.add_node("execute_tools", execute_tools)
builder.add_node("revise", revise)
builder.add_node("finish", finish)
builder.add_edge(START, "begin")
builder.add_edge("begin", "draft")
builder.add_conditional_edges("draft", unless_ended("execute_tools"), ["execute_tools", "finish"])
builder.add_conditional_edges("execute_tools", unless_ended("revise"), ["revise", "finish"])
builder.add_conditional_edges("revise", unless_ended("execute_tools"), ["execute_tools", "finish"])
builder.add_edge("finish", END)

graph = builder.compile(name="reflexion")
