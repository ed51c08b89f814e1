"""How every run begins and ends: one question in, one answer with its outcome out."""

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START
from langgraph.types import Overwrite
from langgraph.typing import InputT, OutputT, StateT
from typing_extensions import TypedDict

from reflective_agents.models.fallbacks import in_turn
from reflective_agents.models.images import check_content
from reflective_agents.models.providers import describe_model
from reflective_agents.nodes.acting.own_agent import name_of
from reflective_agents.nodes.asking.answer_form import in_form
from reflective_agents.nodes.asking.chat import model_of
from reflective_agents.nodes.asking.compaction import with_summary
from reflective_agents.nodes.asking.thread import (
    GRAPH,
    STRATEGY,
    graph_name,
    position_of_question,
    unanswered,
    with_question_last,
)
from reflective_agents.nodes.bridge import SyncAdapter
from reflective_agents.nodes.checks import check_settings
from reflective_agents.nodes.evidence.long_questions import words_of
from reflective_agents.nodes.evidence.references import numbered_in_thread
from reflective_agents.nodes.evidence.verifying import (
    NO_EVIDENCE,
    Evidence,
    is_open,
    verify,
    with_cited_parts,
    with_support,
)
from reflective_agents.nodes.remembering.learning import keep
from reflective_agents.nodes.remembering.recalling import recall
from reflective_agents.nodes.step import C, Step, Update, node
from reflective_agents.nodes.strategy import Employed, StrategyBuilder
from reflective_agents.nodes.verifiers.verdict import verify_answer, with_verdict
from reflective_agents.state.context import Context
from reflective_agents.state.errors import EmptyQuestion, WrongThread
from reflective_agents.state.experience import Experience
from reflective_agents.state.families import AgentContext
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.state.outcome import UNCHECKED, Appraisal, Outcome, decide
from reflective_agents.state.run import RunState, S
from reflective_agents.state.secrets import redacted
from reflective_agents.state.versions import VERSION

GOES_ON, ENDED = "goes on", "ended"
"""What routers say, as drawings show it."""


async def nothing_more(_: RunState, __: Step[Context]) -> Update:
    """Prepare nothing at the beginning of a turn, as most strategies do."""
    return {}


def strategy_graph(
    state: type[StateT],
    *,
    context_schema: type[C],
    input_schema: type[InputT],
    output_schema: type[OutputT],
    employs: Callable[[C], Employed] | None = None,
) -> StrategyBuilder[StateT, C | Mapping[str, Any], Any, OutputT]:  # type: ignore[type-var]
    """Begin a strategy's graph, which runs from its node `begin` to its node `finish`.

    Its runs take the strategy's own settings or a plain dict, for type checkers too: LangGraph itself takes both, but
    its types know of the first alone.

    Args:
        state: The state of a run.
        context_schema: The strategy's settings.
        input_schema: What a run is given.
        output_schema: What it returns.
        employs: What other graphs its nodes let work, by the settings, for drawings.
    """
    builder = StrategyBuilder(
        state, context_schema=context_schema, input_schema=input_schema, output_schema=output_schema
    )
    builder.employs = employs
    builder.add_edge(START, "begin")
    builder.add_edge("finish", END)
    return builder  # type: ignore[return-value]


def begin(
    strategy: str,
    schema: type[C],
    prepare: Callable[[S, Step[C]], Awaitable[Update]] = nothing_more,
    **reset: Any,
) -> SyncAdapter[S, Update]:
    """Make the node that begins a turn: it refuses misuse, and clears what an earlier question has left on the thread.

    Args:
        strategy: Name of the graph; a thread belongs to the first one that ran on it.
        schema: The settings of the graph.
        prepare: What else the strategy does at the beginning: `(state, step) -> update`. The lessons of earlier runs
            are in `recalled`; one that shows them in a place of its own clears it, else they stand in front of the
            conversation that its nodes are shown.
        reset: The strategy's own channels with their first values.
    """

    @node(schema, begins=True)
    async def begin(state: S, step: Step[C]) -> Update:
        before: RunState = state  # what `get` returns, mypy knows of this only
        check_question(before.get("messages") or [], graph_name(strategy), before.get("answer"))
        check_content(before["messages"])
        _check_owner(before, strategy)
        chosen = await check_settings(step, step.context)
        step.emit("begin", strategy=strategy, **chosen)
        own = state.copy()
        own["strategy"] = strategy
        shown = (await step.show_texts(with_question_last(own), begins=True)).copy()
        recalled, items = await recall(step, words_of(shown["messages"][-1]))
        update: Update = {
            "version": VERSION,
            "strategy": strategy,
            "settings": step.context.explicit_settings(),
            "answer": None,
            "outcome": None,
            "recalled": recalled,
            **reset,
        }
        if items or before.get("experience"):
            update["experience"] = Experience(shown=items, used=[], drawn=[])
        if before.get("structured_response"):
            update["structured_response"] = None
        if before.get("support"):
            update["support"] = None
        shown["recalled"] = recalled
        update |= await prepare(with_summary(shown), step)
        if not update["recalled"] and "recalled" not in state:
            del update["recalled"]
        return {name: value for name, value in update.items() if not _is_unchanged(name, value, state)}

    return begin


def _check_owner(thread: RunState, strategy: str) -> None:
    owner = thread.get("strategy") or strategy
    if owner != strategy:
        raise WrongThread(f"this thread belongs to {owner}, not to {strategy}: choose another thread, or run {owner}")


def _is_unchanged(name: str, value: Any, state: JsonMapping) -> bool:
    """Tell whether a channel holds a value already. One that was never written costs nothing in a checkpoint."""
    if isinstance(value, Overwrite):
        value = value.value
    return name in state and state[name] == value


def check_question(messages: Sequence[AnyMessage], graph: str | None, answer: str | None = None) -> None:
    """Refuse a thread without a question, which is the last message of a person, whatever others have done since.

    Args:
        messages: The thread.
        graph: The name of the graph that is asked.
        answer: What it has answered last.

    Raises:
        EmptyQuestion: if there is none, or nothing follows it but this graph's own answer.
    """
    last = position_of_question(messages)
    if last is None or not messages[last].text.strip():
        raise EmptyQuestion('the question is empty: give {"messages": [("user", "your question")]}')
    if len(unanswered(messages, graph, answer)) < len(messages):
        raise EmptyQuestion('the question is answered already: give {"messages": [("user", "your next question")]}')


async def end(
    state: RunState,
    step: Step[Context],
    answer: AIMessage | None,
    model: BaseChatModel | None = None,
    appraisal: Appraisal = UNCHECKED,
    evidence: Evidence = NO_EVIDENCE,
    refused: bool = False,
) -> Update:
    """Return the update that ends a turn: the answer as the one new message, and the outcome that fits it.

    Without an answer the outcome is `failed` with the cause, and no message is added.

    Args:
        state: The state of the run; its outcome is what has ended it.
        step: The node that ends the turn.
        answer: The answer; None if there is none.
        model: What has written the answer, if it was not the run's model.
        appraisal: What is known of the answer; `decide` makes the status of it.
        evidence: What the answer rests on. It is held against that, unless somebody has verified it already.
        refused: Whether the strategy has not accepted the answer, with the verifiers' part in that.
    """
    reached = state["outcome"]
    support = None
    if answer is not None:
        answer, evidence = with_cited_parts(answer, evidence, state["messages"])
        verdict = await verify_answer(step, state["run_id"], state["messages"], answer.text, evidence.passages)
        if refused and verdict and not verdict.missing:
            verdict = None
        if verdict:
            reached, appraisal = with_verdict(reached, appraisal, verdict)
        is_verified = verdict is not None and not verdict.only_ranks
        if not is_verified and is_open(step, answer, reached, appraisal, evidence):
            answer, support = await verify(state, step, answer, evidence)
            reached, appraisal = with_support(reached, appraisal, support)
    outcome = decide(reached, None if answer is None else answer.text, appraisal)
    outcome["reason"] = redacted(outcome["reason"])
    data: JsonMapping | None = None if step.context.answer_schema else outcome  # which parents read without an answer
    if answer is not None:
        answer = numbered_in_thread(answer, state["messages"])
        data, outcome = await in_form(state, step, answer.text, outcome)
    experience = await keep(step, state, "" if answer is None else answer.text, outcome, appraisal)
    step.emit("end", **outcome)
    update: Update = {"answer": None if answer is None else answer.text, "outcome": outcome}
    if data or step.context.answer_schema:
        update["structured_response"] = data
    if experience:
        update["experience"] = experience
    if answer is None:
        return update
    _sign(answer, state.get("strategy"), _written_by(step, model))
    update = {"messages": [answer], **update}
    # A tree search that was steered has ended before, maybe with an answer that was checked.
    if support or state.get("support"):
        update["support"] = support
    return update


def _sign(answer: AIMessage, strategy: str | None, writer: dict[str, str]) -> None:
    """Note in an answer who has written it, and for which strategy and graph."""
    answer.response_metadata = {**writer, STRATEGY: strategy}
    name = graph_name(strategy)
    if name != strategy:
        answer.name = answer.response_metadata[GRAPH] = name


def _written_by(step: Step[Context], model: BaseChatModel | None) -> dict[str, str]:
    """Describe who has written the answer: the model that is named, else the user's own agent, else the run's model."""
    if model is None and isinstance(step.context, AgentContext) and step.context.agent:
        return {"agent": name_of(step.context.agent)}
    first, *_ = in_turn(model or model_of(step, step.context.model), step.meter)
    return describe_model(first)


class Ended(TypedDict):
    """What a router has to know. It would be given a copy of the whole state otherwise."""

    outcome: Outcome | None


async def _is_ended(state: Ended) -> str:  # a plain function would be sent to another thread and back
    return ENDED if state["outcome"] else GOES_ON


def unless_ended(then: str) -> tuple[SyncAdapter[Ended, str], dict[Hashable, str]]:
    """Return a router to the next node, which goes to `finish` instead once something has ended the run, and where its
    replies lead: `builder.add_conditional_edges("draft", *unless_ended("revise"))`."""
    return SyncAdapter(_is_ended), {GOES_ON: then, ENDED: "finish"}
