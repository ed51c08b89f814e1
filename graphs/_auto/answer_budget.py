"""How many tokens the answers of a stage of `graphs.auto` need, so that a run can spend all that it may."""

from collections.abc import Callable, Mapping

from reflective_agents.graphs._auto.ladder import StageFunction, climbed, ladder_node, rungs_left
from reflective_agents.graphs._auto.state import AutoState, Stage
from reflective_agents.nodes.bridge import SyncAdapter
from reflective_agents.nodes.step import Step, Update
from reflective_agents.state.errors import ModelFailed
from reflective_agents.state.settings.auto import AutoContext

GROWTH = 2.0
"""How many times as long as the longest answer so far the next one may be."""
FIRST_BUDGET = 256
"""Tokens that an answer may have at least, before any was seen."""


def stage_node(stage: Stage) -> Callable[[StageFunction], SyncAdapter[AutoState, Update]]:
    """Make a function the node of a stage. Near the limit of tokens its calls reserve for their answers twice what such
    answers have taken so far, instead of the most that an answer may have."""

    def decorate(function: StageFunction) -> SyncAdapter[AutoState, Update]:
        async def run(state: AutoState, step: Step[AutoContext]) -> Update:
            longest = state.get("longest") or {}
            step.meter.least_answer_tokens = answer_budget(stage, longest)
            try:
                update = await function(state, step)
            except ModelFailed as error:  # the next model of a ladder may do better
                if not rungs_left(state, step):
                    raise
                step.emit("climbs", why=str(error))
                update = climbed(state, step)
            most = max(longest.get(stage, 0), step.meter.longest_answer)
            return {"longest": {**longest, stage: most}} | update

        run.__name__, run.__doc__ = function.__name__, function.__doc__
        return ladder_node(run)

    return decorate


def answer_budget(stage: Stage, longest: Mapping[Stage, int]) -> int:
    """Return the tokens that an answer has at least, by the longest of this stage; by the longest of all before its
    first."""
    tokens = longest.get(stage) or max(longest.values(), default=0)
    return int(GROWTH * tokens) or FIRST_BUDGET
