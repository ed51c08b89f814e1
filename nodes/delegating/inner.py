"""A strategy inside another one: within what the run may still spend, and told in the run's own numbers."""

from typing import TypeVar

from reflective_agents.nodes.delegating.state import Allowance
from reflective_agents.nodes.delegating.workers import settings_for
from reflective_agents.nodes.step import Step
from reflective_agents.state.context import Context
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.state.limits import NANO
from reflective_agents.state.outcome import Outcome, limited

C = TypeVar("C", bound=Context)
SHARED = ("max_model_calls", "max_total_tokens", "max_seconds", "max_cost")
"""Limits of the run that hold for all that it starts together."""


def inner_settings(schema: type[C], step: Step[Context]) -> C:
    """Return the settings of a strategy that works inside a run: those of the run that it has too, within what the run
    may still spend. What earlier runs have learned and the form of the answer are the run's own affair.

    Args:
        schema: The settings of the inner strategy.
        step: The node that runs it.
    """
    context = step.context
    spent = step.meter.usage["total_tokens"]
    left = Allowance(
        max_model_calls=max(step.meter.calls_left, 1),
        max_total_tokens=max(context.max_total_tokens - spent, 1),
        max_seconds=max(step.meter.seconds_left, 0.001),
    )
    if step.meter.nano_left is not None:
        left["max_cost"] = max(step.meter.nano_left, 1) / NANO
    own: JsonMapping = {"experience": None, "answer_schema": None}
    return settings_for(schema, context, own, left, inherited=type(context).model_fields)


def outcome_in_run(outcome: Outcome, step: Step[Context]) -> Outcome:
    """Return how an inner strategy ended; a limit that it shares with the run is reported with the run's numbers.

    Args:
        outcome: The inner outcome.
        step: The node that ran it; what it has spent is charged already.
    """
    limit = outcome.get("limit")
    if limit is None or limit["name"] not in SHARED:
        return outcome
    return limited(step.meter.limit(limit["name"], limit.get("needed", 0)))
