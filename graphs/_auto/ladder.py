"""The ladder of models of `graphs.auto`: a cheap one begins, and the next takes over where it does not suffice.

Compare FrugalGPT (Chen et al. 2023, arXiv 2305.05176). Whether it suffices is decided in `policy.py`.
"""

from collections.abc import Awaitable, Callable

from reflective_agents.graphs._auto.state import Attempt, AutoState
from reflective_agents.models.providers import describe_model
from reflective_agents.nodes.asking.chat import model_of
from reflective_agents.nodes.bridge import SyncAdapter
from reflective_agents.nodes.step import Step, Update, node
from reflective_agents.state.context import Model
from reflective_agents.state.outcome import Rung
from reflective_agents.state.settings.auto import AutoContext

StageFunction = Callable[[AutoState, Step[AutoContext]], Awaitable[Update]]
"""A function that carries a stage out."""


def given_up(state: AutoState) -> list[Rung]:
    """Return the models of the ladder that were given up; none in a run of an earlier release."""
    return state.get("rungs") or []


def rung_of(state: AutoState) -> int:
    """Return the rung of the model that works now; 0 is the lowest, and the only one where there is no ladder."""
    return len(given_up(state))


def rungs_left(state: AutoState, step: Step[AutoContext]) -> int:
    """Return how many models of the ladder were not tried yet."""
    return max(len(step.context.ladder or [""]) - rung_of(state) - 1, 0)


def model_on(step: Step[AutoContext], rung: int) -> Model:
    """Return the model of a rung. A run may be resumed with a shorter ladder: its last model then has the rungs above,
    and without a ladder the run's model has all."""
    ladder = step.context.ladder or [step.context.model]
    return ladder[min(rung, len(ladder) - 1)]


def on_rung(step: Step[AutoContext], rung: int) -> None:
    """Let the model of a rung do what a node asks models for."""
    if step.context.ladder:
        step.context = step.context.model_copy(update={"model": model_on(step, rung)})


def ladder_node(function: StageFunction) -> SyncAdapter[AutoState, Update]:
    """Make a function a node in which the model of the present rung works."""

    async def run(state: AutoState, step: Step[AutoContext]) -> Update:
        on_rung(step, rung_of(state))
        return await function(state, step)

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    return node(AutoContext)(run)


def climbed(state: AutoState, step: Step[AutoContext]) -> Update:
    """Return the update that gives the model of this rung up for the next one."""
    return {"rungs": [*given_up(state), bill_of(state, step)]}


def bill_of(state: AutoState, step: Step[AutoContext]) -> Rung:
    """Return the model of this rung with what it has cost: all that the run has spent since it took over."""
    usage = step.meter.usage
    before = given_up(state)
    return Rung(
        model=describe_model(model_of(step, model_on(step, len(before))))["model_name"],
        model_calls=usage["model_calls"] - sum(rung["model_calls"] for rung in before),
        total_tokens=usage["total_tokens"] - sum(rung["total_tokens"] for rung in before),
        cost=usage["cost"] - sum(rung["cost"] for rung in before),
    )


def of_this_rung(state: AutoState) -> list[Attempt]:
    """Return the samples of the model that works now."""
    return [sample for sample in state["samples"] if sample.get("rung", 0) == rung_of(state)]


def with_bills(state: AutoState, step: Step[AutoContext], update: Update) -> Update:
    """Return the update that ends a run, whose outcome says what each model has cost, and which has answered."""
    if not step.context.ladder:
        return update
    rungs = [*given_up(state), bill_of(state, step)]
    outcome = {**update["outcome"], "rungs": rungs}
    if messages := update.get("messages"):
        outcome["model"] = messages[-1].response_metadata["model_name"]
    step.emit("ladder", rungs=[rung["model"] for rung in rungs], model=outcome.get("model", ""))
    return update | {"outcome": outcome}
