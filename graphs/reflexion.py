"""Reflexion (Shinn et al. 2023, arXiv 2303.11366), for questions: answer, criticise yourself, search for what is
missing, revise.

    begin -> draft -> execute_tools -> revise -> execute_tools -> ... -> finish

`draft` answers from what the model knows, with a critique of the answer and search queries; `execute_tools` runs the
queries that are new, and tools that were given; `revise` answers again with citations, which are checked against what
the searches and tools of this run have returned.
"""

import json
from collections.abc import Sequence
from typing import Annotated, NotRequired

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from reflective_agents.nodes.asking.chat import ask, call_tools
from reflective_agents.nodes.evidence.citations import CheckedAnswer, resolve_citations, says_nothing
from reflective_agents.nodes.evidence.marks import without_unknown
from reflective_agents.nodes.evidence.research import act, as_tools, find, today
from reflective_agents.nodes.evidence.sources import (
    Sources,
    numbers_of,
    results_in,
    sources_of,
    thread_sources,
    with_number,
)
from reflective_agents.nodes.evidence.verifying import Evidence
from reflective_agents.nodes.memo import at_once
from reflective_agents.nodes.step import Step, Update, node, stop, stop_at, stop_solved
from reflective_agents.nodes.turn import begin, end, strategy_graph, unless_ended
from reflective_agents.nodes.verifiers.verdict import verify_answer
from reflective_agents.prompts import reflexion as prompts
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.lists import append, replaced_by
from reflective_agents.state.run import Input, Output, RunState
from reflective_agents.state.schemas import AnswerQuestion, ReviseAnswer
from reflective_agents.state.settings.reflexion import ReflexionContext
from reflective_agents.text.normal import folded
from reflective_agents.web_search.results import SearchResult


class Answer(TypedDict):
    """One round: the answer, the responder's critique of it, what was searched then, and what was found.

    Round 0 is the draft. `references` are the addresses of the results that it cites by their numbers, `searched` holds
    those of the `queries` that were new and were run, and `problems` what went wrong, in words for the responder. What
    an earlier release has stored does not say whether it is `complete`.
    """

    round: int
    answer: str
    missing: str
    superfluous: str
    complete: NotRequired[bool]
    queries: list[str]
    references: list[str]
    searched: list[str]
    found: list[SearchResult]
    problems: list[str]


class ReflexionState(RunState):
    """State of a run; the answers of all rounds are its artefact, `sources` is all that was found."""

    answers: Annotated[list[Answer], DeltaChannel(replaced_by("round"), snapshot_frequency=1000)]
    sources: Annotated[list[SearchResult], DeltaChannel(append, snapshot_frequency=1000)]


class ReflexionOutput(Output):
    """What a run returns."""

    answers: list[Answer]
    sources: list[SearchResult]


@node(ReflexionContext)
async def draft(state: ReflexionState, step: Step[ReflexionContext]) -> Update:
    """Answer from what the model knows, criticise the answer, and say what to search for. A draft that lacks
    nothing and calls for no search is the answer."""
    text = prompts.DRAFT_ALONE if alone(step) else prompts.DRAFT_TO_SEARCH
    prompt = prompts.DRAFT.format_messages(instructions=text.format(today=today()), conversation=state["messages"])
    value = await ask(step, step.context.model, prompt, AnswerQuestion)
    step.emit("draft", round=0, missing=value.reflection.missing, queries=value.search_queries)
    answer = value.answer
    if not alone(step):  # what is found later has numbers that the draft cannot mean
        answer = without_unknown(answer, thread_sources(state["messages"]))
    update = respond(state, value, answer)
    is_complete = value.reflection.complete and says_nothing(value.reflection.missing)
    if not is_complete or new_queries(value.search_queries, [], step):
        return update
    verdict = await verify_answer(step, state["run_id"], state["messages"], answer)
    if verdict and verdict.accepted is False:
        return with_problem(update, verdict.feedback)
    return update | stop("answered", "the draft is complete, and nothing is to be searched")


@node(ReflexionContext)
async def execute_tools(state: ReflexionState, step: Step[ReflexionContext]) -> Update:
    """Run the queries that are new, and what tools there are, at once, and hand the results to the responder."""
    last = state["answers"][-1]
    queries = new_queries(last["queries"], state["answers"], step)
    (results, problems), (called, refused) = await at_once(
        [find(step, state["run_id"], queries), use_tools(step, state["messages"], last, queries)]
    )
    new = [result for result in results + called if result not in state["sources"]]
    problems = [*last["problems"], *problems, *refused]
    searched: Answer = {**last, "searched": queries, "found": new, "problems": problems}
    return {"answers": [searched], "sources": new}


async def use_tools(
    step: Step[ReflexionContext], conversation: Sequence[AnyMessage], answer: Answer, queries: Sequence[str]
) -> tuple[list[SearchResult], list[str]]:
    """Let the model call the tools that it was given for what is missing; their results are sources like others."""
    if not step.context.tools or not queries:
        return [], []
    prompt = prompts.GATHER.format_messages(
        conversation=conversation, answer=answer["answer"], missing=answer["missing"], queries="\n".join(queries)
    )
    own = [step.texts.tool()] if step.texts else []
    tools = [*own, *as_tools(step.context.tools)]
    try:
        called = await call_tools(step, step.context.model, prompt, tools)
        replies = await act(step, called, tools)
    except (LimitReached, ModelFailed) as error:
        # What the searches beside it find is still worth a revision.
        return [], [str(error)]
    args_by_call = {call["id"]: call["args"] for call in called.tool_calls}
    results: list[SearchResult] = []
    problems: list[str] = []
    for number, reply in enumerate(replies, 1):
        if not isinstance(reply, ToolMessage) or reply.status == "error":
            problems.append(reply.text)
        else:
            results += as_sources(reply, args_by_call[reply.tool_call_id], f"{answer['round']}.{number}")
    return results, problems


def as_sources(reply: ToolMessage, args: JsonObject, number: str) -> list[SearchResult]:
    """Return what a tool has brought as sources; `number` tells the call from all others of the run."""
    # Parts of a long text are sources already, each with an address of its own.
    parts = [part for part in results_in(reply.text) if "#char=" in part["url"]]
    if parts:
        return [SearchResult(**part) for part in parts]  # type: ignore[typeddict-item]
    title = f"{reply.name}({json.dumps(args, ensure_ascii=False)})"
    return [SearchResult(title=title, url=f"tool:{reply.name}/{number}", content=reply.text)]


@node(ReflexionContext)
async def revise(state: ReflexionState, step: Step[ReflexionContext]) -> Update:
    """Answer again with citations, and end the run if the answer is complete or the rounds are over. What is not
    complete and needs no new search is revised once more."""
    text = prompts.REVISE_ALONE if alone(step) else prompts.REVISE_BY_RESULTS
    prompt = prompts.REVISE.format_messages(
        instructions=text.format(today=today()),
        conversation=state["messages"],
        scratch=earlier_rounds(state["answers"], thread_sources(state["messages"])),
        todo=todo(state["answers"], step),
    )
    observations = [json.dumps(state["sources"])]
    checked: list[CheckedAnswer] = []

    def cites_what_was_found(value: ReviseAnswer) -> str | None:
        """Tell the responder once what it cites wrongly; the second time that is removed."""
        found = resolve_citations(value.answer, observations, state["messages"])
        checked.append(found)
        if found.wrong and len(checked) == 1:
            return prompts.WRONG_SOURCES.format(names=", ".join(found.wrong))
        return None

    value = await ask(step, step.context.model, prompt, ReviseAnswer, cites_what_was_found)
    last = checked[-1]
    update = respond(state, value, last.body, last)
    number, missing = len(state["answers"]), value.reflection.missing
    if last.wrong:
        missing = prompts.REMOVED.format(names=", ".join(last.wrong))
    step.emit("revision", round=number, missing=missing, queries=value.search_queries, references=len(last.numbers))
    verdict = await verify_answer(step, state["run_id"], state["messages"], last.text, passages_of(state))
    if verdict and verdict.accepted:
        return update | stop_solved(verdict.by, f"the answer of round {number} is accepted")
    if verdict and verdict.accepted is False:
        update = with_problem(update, verdict.feedback)
        return update | ended_by(state, step, value, last, verdict.feedback, refused=True)
    return update | ended_by(state, step, value, last, missing, refused=False)


@node(ReflexionContext)
async def finish(state: ReflexionState, step: Step[ReflexionContext]) -> Update:
    """Answer with the last revision and its references, as text."""
    if not state["answers"]:
        return await end(state, step, None)
    last = state["answers"][-1]
    shown = observations_for(state)
    answer = resolve_citations(last["answer"], shown, state["messages"]).text
    sources = sources_of(shown, thread_sources(state["messages"]))
    evidence = Evidence(sources, revisable=last["round"] < step.context.max_rounds)
    return await end(state, step, AIMessage(answer), evidence=evidence)


def ended_by(
    state: ReflexionState,
    step: Step[ReflexionContext],
    value: ReviseAnswer,
    checked: CheckedAnswer,
    missing: str,
    *,
    refused: bool,
) -> Update:
    """Return the update that ends the run after a revision; empty if it goes on.

    Args:
        state: The state before the revision.
        step: The node.
        value: What the responder has filled in.
        checked: Its answer, with what it cites wrongly.
        missing: What is still missing, in words.
        refused: Whether verifiers refuse the answer.
    """
    number = len(state["answers"])
    before = state["answers"][-1]
    if value.reflection.complete and not checked.wrong and not refused:
        return stop("answered", f"the answer is complete after round {number}")
    is_new = checked.body != before["answer"]
    # The same answer once more would only be given again.
    may_mend = number < step.context.max_rounds and is_new and (refused or not is_mended(before))
    if not may_mend and not new_queries(value.search_queries, state["answers"], step):
        return stop("exhausted", f"no new query is left after round {number}; still missing: {missing}")
    if number >= step.context.max_rounds:
        return stop_at(step.context.limit("max_rounds", number), f"still missing: {missing}")
    return {}


def observations_for(state: ReflexionState) -> list[str]:
    """Return what the last answer may cite. A draft was written before anything was found."""
    return [json.dumps(state["sources"])] if len(state["answers"]) > 1 else []


def passages_of(state: ReflexionState) -> dict[str, str]:
    """Return what was found, by the marks that cite it."""
    return Evidence(sources_of([json.dumps(state["sources"])], thread_sources(state["messages"]))).passages


def with_problem(update: Update, feedback: str) -> Update:
    """Return the update that records an answer, with what the responder is told is wrong with it."""
    [last] = update["answers"]
    return {**update, "answers": [{**last, "complete": False, "problems": [*last["problems"], feedback]}]}


def respond(
    state: ReflexionState, value: AnswerQuestion | ReviseAnswer, answer: str, checked: CheckedAnswer | None = None
) -> Update:
    """Return the update that records an answer."""
    wrong = ", ".join(checked.wrong) if checked else ""
    record = Answer(
        round=len(state["answers"]),
        answer=answer,
        missing=value.reflection.missing,
        superfluous=value.reflection.superfluous,
        complete=value.reflection.complete,
        queries=value.search_queries,
        references=checked.references if checked else [],
        searched=[],
        found=[],
        problems=[prompts.REMOVED.format(names=wrong)] if wrong else [],
    )
    return {"answers": [record]}


def earlier_rounds(answers: Sequence[Answer], earlier: Sources) -> list[AnyMessage]:
    """Rebuild the rounds for the responder: each answer as its own call, and the search results as the reply.

    Args:
        answers: The rounds.
        earlier: The sources of the thread before the question.
    """
    messages: list[AnyMessage] = []
    found: list[SearchResult] = []
    for answer in answers:
        found += answer["found"]
    numbers = numbers_of(found, earlier)
    for answer in answers:
        reflection = {
            "missing": answer["missing"],
            "superfluous": answer["superfluous"],
            "complete": answer.get("complete", False),
        }
        args = {"answer": answer["answer"], "reflection": reflection, "search_queries": answer["queries"]}
        name = ReviseAnswer.__name__ if answer["round"] else AnswerQuestion.__name__
        call = {"name": name, "args": args, "id": f"round_{answer['round']}"}
        results = [with_number(result, numbers) for result in answer["found"]]
        reply = json.dumps({"results": results, "problems": answer["problems"]}, ensure_ascii=False)
        messages += [AIMessage("", tool_calls=[call]), ToolMessage(reply, tool_call_id=call["id"])]
    return messages


def todo(answers: Sequence[Answer], step: Step[ReflexionContext]) -> str:
    """Return what the responder is told to do now, after what the last searches have brought."""
    if is_mended(answers[-1]):
        return prompts.TODO_MEND
    if not answers[-1]["searched"]:
        return prompts.TODO_ALONE
    text = prompts.TODO if answers[-1]["found"] else prompts.TODO_NOTHING_NEW
    is_last = len(answers) >= step.context.max_rounds
    return text + prompts.LAST_TODO if is_last else text


def is_mended(answer: Answer) -> bool:
    """Return whether an answer is revised for its own faults: it is a revision itself, and called for no new search."""
    return answer["round"] > 0 and not answer["searched"]


def alone(step: Step[ReflexionContext]) -> bool:
    """Return whether the responder has nothing to look things up with."""
    return step.context.search == "none" and not step.context.tools and not step.texts


def new_queries(queries: Sequence[str], answers: Sequence[Answer], step: Step[ReflexionContext]) -> list[str]:
    """Return at most `max_queries` distinct queries that were not run yet; none without a search engine and tools."""
    if alone(step):
        return []
    queries_by_form = {folded(query): query for query in queries}
    queries_by_form.pop("", None)
    for answer in answers:
        for searched in answer["searched"]:
            queries_by_form.pop(folded(searched), None)
    return [*queries_by_form.values()][: step.context.max_queries]


builder = strategy_graph(
    ReflexionState, context_schema=ReflexionContext, input_schema=Input, output_schema=ReflexionOutput
)
builder.add_node("begin", begin("reflexion", ReflexionContext, answers=Overwrite([]), sources=Overwrite([])))
builder.add_node("draft", draft)
builder.add_node("execute_tools", execute_tools)
builder.add_node("revise", revise)
builder.add_node("finish", finish)
builder.add_edge("begin", "draft")
builder.add_conditional_edges("draft", *unless_ended("execute_tools"))
builder.add_conditional_edges("execute_tools", *unless_ended("revise"))
builder.add_conditional_edges("revise", *unless_ended("execute_tools"))

graph = builder.compile(name="reflexion")
