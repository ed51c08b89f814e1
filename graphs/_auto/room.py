"""How much room the answers of a stage of `graphs.auto` need, so that a run can spend the tokens that it may."""

from collections.abc import Awaitable, Callable, Mapping

from langchain_core.runnables import RunnableLambda

from reflective_agents.graphs._auto.state import AutoState, Stage
from reflective_agents.nodes.step import Step, Update, node
from reflective_agents.state.settings.auto import AutoContext

ROOMIER = 2.0
"""How many times as long as the longest answer so far the next one may be."""
Carry = Callable[[AutoState, Step[AutoContext]], Awaitable[Update]]
"""A function that carries a stage out."""
UNSEEN = 256
"""Tokens that an answer may have at least, before any was seen."""


def stage_node(stage: Stage) -> Callable[[Carry], RunnableLambda[AutoState, Update]]:
    """Make a function the node of a stage. Near the limit of tokens its calls leave their answers twice the room that
    such answers have taken so far, instead of the most that an answer may have."""

    def decorate(function: Carry) -> RunnableLambda[AutoState, Update]:
        async def run(state: AutoState, step: Step[AutoContext]) -> Update:
            longest = state.get("longest") or {}
            step.meter.least_answer_tokens = room_for(stage, longest)
            update = await function(state, step)
            most = max(longest.get(stage, 0), step.meter.longest_answer)
            return {"longest": {**longest, stage: most}} | update

        run.__name__, run.__doc__ = function.__name__, function.__doc__
        return node(AutoContext)(run)

    return decorate


def room_for(stage: Stage, longest: Mapping[Stage, int]) -> int:
    """Return the room that an answer has at least, by the longest answers to this stage; to all, before its first."""
    seen = longest.get(stage) or max(longest.values(), default=0)
    return int(ROOMIER * seen) or UNSEEN
