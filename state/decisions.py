"""What those who lead others are asked to fill in: plans, delegations and verdicts."""

from pydantic import BaseModel, ConfigDict, Field

from state.schemas import Score


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


class TaskFor(BaseModel):
    """A task for one member of the team."""

    to: str = Field(description="The name of the member.")
    task: str = Field(min_length=1, description="What it is to do, in words that can be understood alone.")


class Delegation(BaseModel):
    """Your decision: what the work so far is worth, and who is to do what next."""

    critique: str = Field(description="What the latest reports achieve, lack or get wrong. Empty if there are none.")
    best: int = Field(ge=0, description="The number of the report that answers the request best; 0 if none does.")
    score: Score = Field(description="How well that report answers the request, from 0 to 1.")
    done: bool = Field(description="Whether that report can be handed to the user as it is, which ends the work.")
    tasks: list[TaskFor] = Field(
        default_factory=list, description="Who is to do what next, all at once. Empty if the work is done."
    )


class Verdict(BaseModel):
    """Your verdict on the answers of a debate."""

    reasoning: str = Field(description="What speaks for and against the answers.")
    best: int = Field(ge=1, description="The number of the best answer.")
    score: Score = Field(description="How sure it is to be correct and complete, from 0 to 1.")
    solved: bool = Field(description="Whether it fully solves the request.")
