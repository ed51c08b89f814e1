"""Running any strategy as a worker of another, within an allowance.

A wave of workers is planned against what the run may still spend, each worker is sent its share with `Send`, and what
it has spent is charged when its report is taken in. So the limits of the run hold with any number of workers at once,
and each of them is a branch with checkpoints of its own: a run that was killed goes on in the midst of each.

The node that hands over says who goes on in the `Command` that it returns. Tools that return a `Command`, LangGraph's
other way to hand over, would do so one at a time and leave their calls in the messages; and a worker that is named in
the settings has no node of its own to go to, so it is a `Send` to the one node in which all workers work.
"""

import asyncio
import textwrap
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.runtime import get_runtime
from langgraph.types import Command, Send
from typing_extensions import TypedDict

from models.calls import estimate_tokens
from models.meter import Meter
from nodes.bridge import wait_for
from nodes.chat import check_model
from nodes.step import C, Step, Update, node, stop
from state.context import Context, SearchContext
from state.cooperation import SETTINGS, Allowance, Assignment, Report
from state.errors import LimitReached
from tools.corpus import open_corpus
from tools.search import choose_search

LEAST_CALLS = 3
"""Calls that each of several workers needs at least: to act, to answer, one to spare. Alone it makes do with less."""
BRIEF = 100
"""Characters that an event tells of one of several texts."""
TRAVELLING = {*SearchContext.model_fields, "tools"} - {"experience"}
"""Settings that a worker takes over from the run, unless it has its own. What earlier runs have learned, the run itself
looks up."""


class Task(TypedDict):
    """Work to be handed over: its number in the run, the worker's name, what it is told, and that as messages."""

    number: int
    name: str
    task: str
    messages: list[AnyMessage]


def hands_over(
    schema: type[C],
) -> Callable[[Callable[[Any, Step[C]], Awaitable[Update]]], Runnable[Any, Command[str]]]:
    """Make `async (state, step) -> update` a node whose update says in `goto` where the run goes on.

    Without a `goto`, as when a limit has ended the run, that is `finish`.
    """

    def to_command(update: Update) -> Command[str]:
        goto = update.pop("goto", "finish")
        return Command(update=update, goto=goto)

    def decorate(function: Callable[[Any, Step[C]], Awaitable[Update]]) -> Runnable[Any, Command[str]]:
        return node(schema)(function) | RunnableLambda(to_command)

    return decorate


def branch(
    schema: type[C],
) -> Callable[[Callable[[Assignment, C], Awaitable[Report]]], RunnableLambda[Assignment, Update]]:
    """Make `async (assignment, context) -> report` the node to which the work is sent.

    Several of it run at once, so it writes nothing but its report: events and costs are told when that is taken in.
    """

    def decorate(function: Callable[[Assignment, C], Awaitable[Report]]) -> RunnableLambda[Assignment, Update]:
        async def work(sent: Assignment) -> Update:
            context = (get_runtime(schema).context or schema.ambient()).resumed(sent["settings"])
            return {"reports": [await function(sent, context)]}

        return RunnableLambda(lambda sent: wait_for(work(sent)), afunc=work, name=function.__name__)

    return decorate


def hand_over(
    state: Mapping[str, Any], step: Step[Any], to: str, tasks: Sequence[Task], *, keep: int, answered: bool
) -> Update:
    """The update that sends tasks to workers, as many at once as the limits leave room for, in their order.

    Args:
        state: The state of the run.
        step: The node that hands over.
        to: The node in which the workers work.
        tasks: What could be worked on now, at least one.
        keep: Tokens of the call that follows the work; they and the call are kept back for it.
        answered: Whether there is an answer already. If there is none, the last call goes to a worker instead.

    Returns:
        `goto` with what is sent; the outcome, if there is no room for even one worker.
    """
    least = [estimate_tokens(task["messages"], {}) + step.context.max_answer_tokens for task in tasks]
    ended: Update = {}
    for calls_kept, tokens_kept in ((1, keep),) if answered else ((1, keep), (0, 0)):
        try:
            allowances = _shares(step, least, calls_kept, tokens_kept)
        except LimitReached as reason:
            ended = stop("limit_reached", reason)
        else:
            shared = zip(tasks, allowances, strict=False)
            return {
                "goto": [Send(to, Assignment(**task, allowance=a, settings=state["settings"])) for task, a in shared]
            }
    return ended


def _shares(step: Step[Any], least: Sequence[int], calls_kept: int, tokens_kept: int) -> list[Allowance]:
    """What each of as many workers as possible may spend: equal parts of what is left, but at least `LEAST_CALLS` calls
    and `least` tokens each.

    Raises:
        LimitReached: if there is no room for even one.
    """
    step.meter.check()
    context, spent = step.context, step.meter.usage["total_tokens"]
    calls, tokens = step.meter.calls_left - calls_kept, context.max_total_tokens - spent - tokens_kept
    if calls < 1:
        raise LimitReached(
            f"max_model_calls={context.max_model_calls} reached, but for the call that is kept for what follows"
        )
    if tokens < least[0]:
        raise LimitReached(
            f"max_total_tokens={context.max_total_tokens} reached "
            f"(total_tokens={spent}, the next call may need {least[0] + tokens_kept} together with what follows it)"
        )
    width = min(len(least), max(calls // LEAST_CALLS, 1))
    while width > 1 and tokens // width < max(least[:width]):
        width -= 1
    seconds = max(step.meter.seconds_left, 0.001)
    return [
        Allowance(
            max_model_calls=calls // width + (place < calls % width),
            max_total_tokens=tokens // width,
            max_seconds=seconds,
        )
        for place in range(width)
    ]


async def employ(
    graph: Any, strategy: str, sent: Assignment, context: Context, own: Mapping[str, Any] | None = None
) -> Report:
    """Let a strategy work on what was sent, within its allowance.

    Args:
        graph: The compiled strategy.
        strategy: Its name.
        sent: The work.
        context: The settings of the run.
        own: Settings of the worker, which take the place of those of the run.
    """
    result = await graph.ainvoke(
        {"messages": sent["messages"]}, context=settings_for(strategy, context, own, sent["allowance"])
    )
    return Report(
        number=sent["number"],
        name=sent["name"],
        strategy=strategy,
        task=sent["task"],
        answer=result["answer"],
        said=result["messages"][-1].id if result["answer"] is not None else None,
        status=result["outcome"]["status"],
        reason=result["outcome"]["reason"],
        usage=result["usage"],
    )


def settings_for(
    strategy: str, context: Context, own: Mapping[str, Any] | None = None, allowance: Allowance | None = None
) -> Context:
    """The settings of a worker: those of the run that travel, its own, and its allowance as the limits.

    A limit among its own holds if it is the lower one.
    """
    schema = SETTINGS[strategy]
    travelling = TRAVELLING & schema.model_fields.keys() & type(context).model_fields.keys()
    settings = {name: getattr(context, name) for name in travelling} | dict(own or {})
    limits = {name: min(settings[name], most) for name, most in (allowance or {}).items()}
    return schema.model_validate(settings | limits)


async def check_worker(step: Step[Any], strategy: str, own: Mapping[str, Any] | None = None) -> None:
    """Refuse at the beginning of a run what a worker could not work with.

    Raises:
        Misuse: if a model of its settings does not exist, or its corpus.
    """
    context = settings_for(strategy, step.context, own)
    for name in ("model", "judge_model", "critic_model"):
        if (model := getattr(context, name, None)) is not None:
            await check_model(step, model)
    if isinstance(context, SearchContext) and choose_search(context.search)[0] == "local":
        await asyncio.to_thread(open_corpus, context.corpus)


def charge(step: Step[Any], reports: Sequence[Report]) -> None:
    """Charge the run with what workers have spent; as they worked at once, the time of the slowest has passed."""
    for report in reports:
        step.meter.add(report["usage"])
    spent = step.meter.usage
    seconds = spent["seconds"] + max((report["usage"]["seconds"] for report in reports), default=0.0)
    step.meter = Meter(step.context, {**spent, "seconds": seconds})


def failure(report: Report) -> str:
    """Why a worker has failed; a limit that it quotes is one of its share."""
    share = "its share of the limits was too small: " if report["reason"].startswith("max_") else ""
    return share + report["reason"]


def brief(text: str) -> str:
    """The beginning of a text that an event tells beside others."""
    return textwrap.shorten(text, BRIEF, placeholder=" ...")
