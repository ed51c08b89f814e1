"""How a function becomes a node, and how nodes end a run. What a node is given beside the state is `execution.Step`."""

from collections.abc import Awaitable, Callable
from typing import Literal
from uuid import uuid4

from langgraph.config import get_config
from langgraph.runtime import get_runtime

from reflective_agents import telemetry
from reflective_agents.nodes.asking.wording import use_prompts
from reflective_agents.nodes.bridge import SyncAdapter
from reflective_agents.nodes.execution import COST, C, StateBefore, Step, Update
from reflective_agents.nodes.showing import (
    beside_loop,
    in_order,
    shortened,
    shown_within_context,
    without_needless_summary,
)
from reflective_agents.nodes.strategy import own_settings
from reflective_agents.nodes.unfinished import keep_for_resumption
from reflective_agents.state.errors import ConversationTooLong, LimitReached, ModelFailed
from reflective_agents.state.limits import Limit
from reflective_agents.state.outcome import Outcome, VerifiedBy, limited, stopped
from reflective_agents.state.policy import check_caller
from reflective_agents.state.run import RunState, S
from reflective_agents.state.versions import upgraded

__all__ = ["COST", "C", "StateBefore", "Step", "Update", "node", "stop", "stop_at", "stop_because", "stop_solved"]

telemetry.configure()  # before the first run begins, and not in an event loop

MOST_COMPACTIONS = 4
"""How often a conversation is compacted for one node, each time to less."""


def stop(status: Literal["answered", "exhausted", "failed"], reason: str) -> Update:
    """Return the update that ends a run: there is an answer, nothing is left to try, or there can be no answer."""
    return {"outcome": Outcome(status=status, reason=reason)}


def stop_solved(by: VerifiedBy, reason: str) -> Update:
    """Return the update that ends a run whose answer is verified."""
    return {"outcome": Outcome(status="solved", reason=reason, verified_by=by)}


def stop_at(limit: Limit, detail: str = "") -> Update:
    """Return the update that ends a run at a limit; `detail` is added to the reason."""
    return {"outcome": limited(limit, detail)}


def stop_because(error: LimitReached | ModelFailed) -> Update:
    """Return the update that ends a run after a limit or a failing model has stopped it."""
    return {"outcome": stopped(error)}


def _before_run(thread: RunState) -> StateBefore:
    """Return what a run that begins takes from its thread; what earlier runs have spent is not charged to it."""
    return {"messages": thread.get("messages") or [], "texts": thread.get("texts") or {}}


def node(
    schema: type[C], *, begins: bool = False
) -> Callable[[Callable[[S, Step[C]], Awaitable[Update]]], SyncAdapter[S, Update]]:
    """Make `async (state, step) -> update` a node of a graph whose settings are `schema`.

    A limit or a model that cannot be brought to answer ends the run with an outcome instead of an exception. What
    was spent is written to the state with the update. Settings given at the beginning of the run hold when it is
    resumed without them; a node that `begins` a run takes its own.
    """

    def decorate(function: Callable[[S, Step[C]], Awaitable[Update]]) -> SyncAdapter[S, Update]:
        async def run(state: S) -> Update:
            state = upgraded(state)
            stored: RunState = state  # what `get` returns, mypy knows of this only
            runtime = get_runtime(schema)
            context = own_settings(runtime.context, schema) or schema.ambient()
            if not begins:
                context = context.resumed(stored.get("settings") or {}).raised(stored.get("raised") or {})
            before = _before_run(stored) if begins else state
            step = Step(context, before, runtime.stream_writer, stored.get("compaction"))
            check_caller(step.context, step.context.defaults)
            run_id = uuid4().hex if begins else stored.get("run_id")
            with telemetry.step(function.__name__, run_id, stored.get("strategy"), get_config()):
                state = await beside_loop(without_needless_summary, state, step)
                thread = await beside_loop(in_order, state)
                shown = await step.show_texts(thread)
                whole = state if begins else None
                left = MOST_COMPACTIONS if step.context.compact == "auto" else 0
                update: Update | None = None
                try:
                    with use_prompts(step.context.prompts):
                        while update is None:
                            try:
                                within = await beside_loop(shown_within_context, shown, step, left, whole)
                                update = await function(within, step)
                            except ConversationTooLong as error:
                                shown, left = await shortened(shown, step, error.most, left, thread)
                except (LimitReached, ModelFailed) as error:
                    update = stop_because(error)
                # All else goes on: an interrupt, a cancellation, an error in the user's code. What the node has cost so
                # far is kept for when the run is resumed.
                except BaseException:
                    spent = {} if begins else {"usage": step.cost()["usage"]}
                    await keep_for_resumption({**spent, **step.compacted()}, runtime.execution_info)
                    raise
            kept = {"texts": step.texts.new} if step.texts.new else {}
            begun = {"run_id": run_id} if begins else {}
            return {**step.cost(), **kept, **step.compacted(), **update, **begun}

        run.__name__, run.__doc__ = function.__name__, function.__doc__
        return SyncAdapter(run)

    return decorate
