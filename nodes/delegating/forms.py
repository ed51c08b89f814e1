"""What those who lead others are asked to fill in: plans, delegations and verdicts."""

from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator
from pydantic.fields import FieldInfo
from pydantic.json_schema import SkipJsonSchema

from reflective_agents.state.schemas import Score, Truth, one_of


class PlannedGoal(BaseModel):
    """A sub-goal: one question or task that one worker can solve on its own."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    id: str = Field(pattern=r"^[\w-]{1,20}$", description="A short name of its own, such as 1 or 2.")
    goal: str = Field(min_length=1, description="What to find out or do, in words that can be understood alone.")
    needs: list[str] = Field(
        default_factory=list, description="The ids of the sub-goals whose results it needs. Empty if it needs none."
    )


class Plan(BaseModel):
    """Your plan: the sub-goals that lead to the answer."""

    subgoals: list[PlannedGoal] = Field(min_length=1)

    @model_validator(mode="after")
    def _spell_needs_like_ids(self) -> "Plan":
        ids = {goal.id.casefold(): goal.id for goal in self.subgoals}
        for goal in self.subgoals:
            goal.needs = [ids.get(need.strip().casefold(), need) for need in goal.needs]
        return self


class TaskFor(BaseModel):
    """A task for one member of the team."""

    to: str = Field(description="The name of the member.")
    task: str = Field(
        min_length=1,
        description="What it is to do, and in what form to report it, in words that can be understood alone.",
    )


class Delegation(BaseModel):
    """Your decision: what the work so far is worth, and who is to do what next."""

    critique: str = Field(description="What the latest reports achieve, lack or get wrong. Empty if there are none.")
    best: int = Field(ge=0, description="The number of the report that answers the request best; 0 if none does.")
    score: Score = Field(description="How well the best report answers the request, from 0 to 1; 0 if none does.")
    done: Truth = Field(description="Whether that report can be handed to the user as it is, which ends the work.")
    tasks: list[TaskFor] = Field(
        default_factory=list, description="Who is to do what next, all at once. Empty if the work is done."
    )


class Verdict(BaseModel):
    """Your verdict on the answers of a debate."""

    reasoning: str = Field(description="Where the answers differ, and what speaks for and against each.")
    agree: Truth = Field(description="Whether no answer contradicts another in what the request asks about.")
    best: int = Field(ge=1, description="The number of the best answer.")
    score: Score = Field(description="How sure it is to be correct and complete, from 0 to 1.")
    solved: Truth = Field(description="Whether it fully solves the request.")


_hidden: Any = SkipJsonSchema
_UNASKED = {
    "critique": (_hidden[str], ""),
    "best": (_hidden[one_of((0,))], 0),
    "score": (_hidden[float], 0.0),
    "done": (_hidden[Truth], False),
}
"""What is not asked of a supervisor before there is a report."""


@lru_cache(maxsize=64)
def delegation_of(members: tuple[str, ...], reports: tuple[int, ...]) -> type[Delegation]:
    """Build the form of a decision on these members and the reports of these numbers. Where there are none, nothing is
    asked of them."""
    task = create_model("TaskFor", __base__=TaskFor, __doc__=TaskFor.__doc__, to=_field(TaskFor, "to", members))
    purpose, what = Delegation.__doc__, Delegation.model_fields["tasks"].description
    judged: dict[str, Any] = {"best": _field(Delegation, "best", (0, *reports))} if reports else _UNASKED
    if not reports:
        purpose, what = "Your decision: who is to do what first.", "Who is to do what first, all at once."
    tasks: Any = (list[task], Field(default_factory=list, description=what))
    return create_model("Delegation", __base__=Delegation, __doc__=purpose, tasks=tasks, **judged)


@lru_cache(maxsize=64)
def verdict_of(answers: tuple[int, ...]) -> type[Verdict]:
    """Build the form of a verdict on the answers of these numbers."""
    return create_model("Verdict", __base__=Verdict, __doc__=Verdict.__doc__, best=_field(Verdict, "best", answers))


def _field(
    form: type[BaseModel], name: str, options: tuple[str, ...] | tuple[int, ...]
) -> tuple[type[str | int], FieldInfo]:
    return (one_of(options), Field(description=form.model_fields[name].description))
