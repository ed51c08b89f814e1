"""Running any strategy as a worker of another, within an allowance.

A wave of workers is planned against what the run may still spend, each worker is sent its share with `Send`, and what
it has spent is charged when its report is taken in. So the limits of the run hold with any number of workers at once,
and each of them is a branch with checkpoints of its own: a run that was killed goes on in the midst of each.

The node that hands over says who goes on in the `Command` that it returns. Tools that return a `Command`, LangGraph's
other way to hand over, would do so one at a time and leave their calls in the messages; and a worker that is named in
the settings has no node of its own to go to, so it is a `Send` to the one node in which all workers work.
"""

import textwrap
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, TypeVar

from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.runnables import Runnable
from langgraph.runtime import get_runtime
from langgraph.types import Command, Send
from typing_extensions import TypedDict

from reflective_agents.models.costs import estimate_tokens
from reflective_agents.models.images import show_images
from reflective_agents.models.language import language_of
from reflective_agents.models.meter import Meter
from reflective_agents.nodes.acting.own_agent import Agent, ask_agent, name_of
from reflective_agents.nodes.asking.chat import price_of_call
from reflective_agents.nodes.asking.transcript import request_text
from reflective_agents.nodes.asking.wording import use_prompts
from reflective_agents.nodes.bridge import SyncAdapter
from reflective_agents.nodes.checks import check_settings
from reflective_agents.nodes.delegating.state import Allowance, Assignment, Report
from reflective_agents.nodes.evidence.citations import CheckedAnswer
from reflective_agents.nodes.evidence.long_questions import holds_text, parts_of
from reflective_agents.nodes.evidence.references import with_own_references, without_citations
from reflective_agents.nodes.evidence.sources import observations_of_result, passages
from reflective_agents.nodes.remembering.lessons import lessons_in
from reflective_agents.nodes.step import C, Step, Update, node, stop_because
from reflective_agents.nodes.strategy import own_settings
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.families import SearchContext, SourcedContext
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.limits import NANO
from reflective_agents.state.outcome import Outcome, decide, stopped
from reflective_agents.state.policy import check_caller
from reflective_agents.state.run import NOTHING_SPENT, RunState, S, Usage
from reflective_agents.state.settings import settings_of

W = TypeVar("W", bound=Context)
LEAST_CALLS = 3
"""Calls that each of several workers needs at least: to act, to answer, one to spare. Alone it makes do with less."""
BRIEF = 100
"""Characters that an event tells of one of several texts."""
SEEDS = 10_000
"""Seeds that each part of a run has to itself, for its samples."""
INHERITED = {*SearchContext.model_fields, "tools", "client_tools", "call_client_tool"} - {"experience", "answer_schema"}
"""Settings that a worker takes over from the run, unless it has its own. What earlier runs have learned, the run itself
looks up."""


class Task(TypedDict):
    """Work to be handed over: its number in the run, the worker's name, what it is told, and that as messages; and the
    addresses of the sources that these name."""

    number: int
    name: str
    task: str
    messages: list[AnyMessage]
    sources: list[str]


def aim_text(conversation: Sequence[BaseMessage]) -> str:
    """Tell workers what their work is for: the request, after the lessons of earlier runs that the run was shown."""
    return lessons_in(conversation) + request_text(without_citations(conversation))


def hands_over(
    schema: type[C],
) -> Callable[[Callable[[S, Step[C]], Awaitable[Update]]], Runnable[S, Command[str]]]:
    """Make `async (state, step) -> update` a node whose update says in `goto` where the run goes on.

    Without a `goto`, as when a limit has ended the run, that is `finish`.
    """

    async def to_command(update: Update) -> Command[str]:
        goto = update.pop("goto", "finish")
        return Command(update=update, goto=goto)

    def decorate(function: Callable[[S, Step[C]], Awaitable[Update]]) -> Runnable[S, Command[str]]:
        return node(schema)(function) | SyncAdapter(to_command)

    return decorate


def branch(
    schema: type[C],
) -> Callable[[Callable[[Assignment, C], Awaitable[Report]]], SyncAdapter[Assignment, Update]]:
    """Make `async (assignment, context) -> report` the node to which the work is sent.

    Several of it run at once, so it writes nothing but its report: events and costs are told when that is taken in.
    """

    def decorate(function: Callable[[Assignment, C], Awaitable[Report]]) -> SyncAdapter[Assignment, Update]:
        async def work(sent: Assignment) -> Update:
            given = own_settings(get_runtime(schema).context, schema) or schema.ambient()
            context = given.resumed(sent["settings"]).handed_on()
            check_caller(context, context.defaults)
            with use_prompts(context.prompts):
                return {"reports": [await function(sent, context)]}

        work.__name__, work.__doc__ = function.__name__, function.__doc__
        return SyncAdapter(work)

    return decorate


def hand_over(
    state: RunState, step: Step[Context], to: str, tasks: Sequence[Task], *, keep: int, answered: bool
) -> Update:
    """Return the update that sends tasks to workers, in order, as many at once as the limits allow.

    Args:
        state: The state of the run.
        step: The node that hands over.
        to: The node in which the workers work.
        tasks: What could be worked on now, at least one.
        keep: Tokens of the call that follows the work; they and the call are kept back for it.
        answered: Whether there is an answer already. If there is none, the last call goes to a worker instead.

    Returns:
        `goto` with what is sent; the outcome, if the limits do not allow even one worker.
    """
    tasks = [Task(**{**task, "messages": show_images(task["messages"], state["messages"])}) for task in tasks]
    settings = {**state["settings"]}
    if language := step.context.language or language_of(step.meter.question):
        settings["language"] = language  # a worker's task may be put in another one
    least = [estimate_tokens(task["messages"], {}) + step.context.max_answer_tokens for task in tasks]
    ended: Update = {}
    reserves = [(1, keep)] if answered else [(1, keep), (0, 0)]
    for calls_kept, tokens_kept in reserves:
        try:
            allowances = _shares(step, least, calls_kept, tokens_kept)
        except LimitReached as reached:
            ended = stop_because(reached)
        else:
            return {"goto": [_send(to, step, *shared, settings) for shared in zip(tasks, allowances, strict=False)]}
    return ended


def _send(to: str, step: Step[Context], task: Task, allowance: Allowance, settings: JsonObject) -> Send:
    """Send a task to a worker, with whole texts of the user's: it shows them in part itself."""
    whole = Task(**{**task, "messages": step.whole(task["messages"])})
    return Send(to, Assignment(**whole, allowance=allowance, settings=settings))


def _shares(step: Step[Context], least: Sequence[int], calls_kept: int, tokens_kept: int) -> list[Allowance]:
    """Share out what is left among as many workers as possible.

    The shares are equal, and at least `LEAST_CALLS` calls and `least` tokens each.

    Raises:
        LimitReached: if they do not suffice for even one.
    """
    step.meter.check()
    calls = step.meter.calls_left - calls_kept
    tokens = step.context.max_total_tokens - step.meter.usage["total_tokens"] - tokens_kept
    if calls < 1:
        raise LimitReached(step.meter.limit("max_model_calls", next_cost=1 + calls_kept))
    if tokens < least[0]:
        raise LimitReached(step.meter.limit("max_total_tokens", least[0] + tokens_kept))
    # Fewer workers with enough rather than all with too little.
    width = min(len(least), max(calls // LEAST_CALLS, 1))
    while width > 1 and tokens // width < max(least[:width]):
        width -= 1
    money = _money(step, least[0], tokens_kept)
    while width > 1 and money is not None and money // width < price_of_call(step, max(least[:width])):
        width -= 1
    shared: Allowance = {
        "max_model_calls": calls // width,
        "max_total_tokens": tokens // width,
        "max_seconds": max(step.meter.seconds_left, 0.001),  # a setting has to be more than 0
    }
    if money is not None:
        shared["max_cost"] = money // width / NANO
    allowances: list[Allowance] = []
    for number in range(width):
        spare = 1 if number < calls % width else 0
        allowances.append({**shared, "max_model_calls": calls // width + spare})
    return allowances


def _money(step: Step[Context], least: int, tokens_kept: int) -> int | None:
    """Return the nano-dollars that workers may share, which leave enough for a call of `tokens_kept`; None if any.

    Raises:
        LimitReached: if they are not enough for a call of `least` tokens.
    """
    left = step.meter.nano_left
    if left is None:
        return None
    reserve = price_of_call(step, tokens_kept)
    needed = price_of_call(step, least)
    if left - reserve < max(needed, 1):
        raise LimitReached(step.meter.limit("max_cost", (needed + reserve) / NANO))
    return left - reserve


async def run_strategy(
    graph: Any, strategy: str, sent: Assignment, context: Context, overrides: JsonMapping | None = None
) -> Report:
    """Let a strategy work on what was sent, within its allowance.

    Args:
        graph: The compiled strategy.
        strategy: Its name.
        sent: The work.
        context: The settings of the run.
        overrides: Settings of the worker, which take the place of those of the run.
    """
    # The answer of the run is held against its sources at the end: the passages of all reports are at hand there.
    schema = settings_of(strategy)
    own: JsonObject = {"verify_sources": False} if issubclass(schema, SourcedContext) else {}
    own["seed"] = seed_of_part(context, sent["number"])
    settings = settings_for(schema, context, own | dict(overrides or {}), sent["allowance"])
    result = await graph.ainvoke({"messages": sent["messages"]}, context=settings)
    outcome = result["outcome"]
    answer = result["answer"]
    if answer is None:
        return _report(sent, strategy, None, outcome, result["usage"])
    searched = result["usage"]["tool_calls"] > 0 or holds_text(sent["messages"])
    checked = _with_sources(answer, sent, searched)
    report = _report(sent, strategy, checked.text, outcome, result["usage"])
    if checked.text == answer:
        report["said"] = result["messages"][-1].id
    if checked.wrong:
        report["unfounded"] = checked.wrong
    cited = passages(observations_of_result(result), checked.references, checked.body)
    cited |= parts_of(sent["messages"], checked.references)
    if cited:
        report["passages"] = cited
    return report


def _with_sources(answer: str, sent: Assignment, searched: bool) -> CheckedAnswer:
    prompt_text = "\n".join(message.text for message in sent["messages"])
    return with_own_references(answer, sent.get("sources", ()), searched=searched, prompt_text=prompt_text)


async def run_agent(agent: Agent, sent: Assignment, context: Context) -> Report:
    """Let an agent of the user's own work on what was sent, within its allowance.

    Args:
        agent: The agent.
        sent: The work.
        context: The settings of the run.
    """
    allowed = context.model_copy(update={**sent["allowance"], "answer_schema": None})
    meter = Meter(allowed, NOTHING_SPENT, conversation=sent["messages"])
    answer, ended = None, Outcome(status="answered", reason="the agent has answered")
    try:
        reply = await ask_agent(agent, sent["messages"], meter)
        answer = _with_sources(reply.answer, sent, searched=True).text
    except (LimitReached, ModelFailed) as error:
        ended = stopped(error)
    return _report(sent, name_of(agent), answer, decide(ended, answer), meter.usage)


def _report(sent: Assignment, strategy: str, answer: str | None, outcome: Outcome, usage: Usage) -> Report:
    report = Report(
        number=sent["number"],
        name=sent["name"],
        strategy=strategy,
        task=sent["task"],
        answer=answer,
        said=None,
        status=outcome["status"],
        reason=outcome["reason"],
        usage=usage,
    )
    if "limit" in outcome:
        report["limit"] = outcome["limit"]
    if "answered" in outcome:
        report["answered"] = outcome["answered"]
    return report


def seed_of_part(context: Context, number: int) -> int | None:
    """Return the seed of a part of a run; None if the run has none. With that of the run, parts that are asked the
    same would answer the same.

    Args:
        context: The settings of the run.
        number: Which part; 0 has the seed of the run.
    """
    return None if context.seed is None else context.seed + number * SEEDS


def settings_for(
    schema: type[W],
    context: Context,
    overrides: JsonMapping | None = None,
    allowance: Allowance | None = None,
    inherited: Collection[str] = INHERITED,
) -> W:
    """Return the settings of a worker: those inherited from the run, those it overrides, and its allowance as limits.

    A limit among the overrides holds if it is the lower one.
    """
    shared = schema.model_fields.keys() & type(context).model_fields.keys() & set(inherited)
    settings = {name: getattr(context, name) for name in shared}
    settings |= overrides or {}
    allowed: JsonObject = {**(allowance or {})}
    for name, most in allowed.items():
        settings[name] = min(settings.get(name) or most, most)
    return schema.model_validate(settings).handed_on()


async def check_worker(step: Step[Context], strategy: str, overrides: JsonMapping | None = None) -> None:
    """Refuse at the beginning of a run what a worker could not work with.

    Raises:
        Misuse: as `check_settings`.
    """
    context = settings_for(settings_of(strategy), step.context, overrides)
    context.check_effect(overrides or ())
    check_caller(context, context.defaults)
    await check_settings(step, context)


def charge(step: Step[Context], reports: Sequence[Report]) -> None:
    """Charge the run with what workers have spent; as they worked at once, the time of the slowest has passed."""
    for report in reports:
        step.meter.add(report["usage"])
    step.meter.pass_time(max((report["usage"]["seconds"] for report in reports), default=0.0))


def failure(report: Report) -> str:
    """Return why a worker has failed; a limit that it names is one of its share."""
    share = "its share of the limits was too small: " if "limit" in report else ""
    return share + report["reason"]


def brief(text: str) -> str:
    """Shorten a text for an event that reports it beside others."""
    return textwrap.shorten(text, BRIEF, placeholder=" ...")
