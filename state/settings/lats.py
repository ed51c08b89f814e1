"""The settings of `graphs.lats`."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from reflective_agents.state.effect import IN_ENVIRONMENT, ON_OPEN_QUESTIONS, Replication, only_with
from reflective_agents.state.families import BranchingContext, Preset, StepsContext, ToolsContext


class LatsContext(ToolsContext, StepsContext, BranchingContext):
    """Settings of `graphs.lats`. Without an environment it is the search for open questions with tools; in one it has
    the paper's defaults."""

    does: ClassVar[str] = "Searches a tree of steps for the best answer."
    use_when: ClassVar[str] = "a question is hard, first tries tend to fail, and more calls are worth it"

    task_presets: ClassVar[Preset] = {
        "max_depth": 7,
        "max_expansions": 1000,
        "max_rollouts": 50,
        "simulate": True,
        "judge_weight": 0.5,
        "max_lessons": 4,
        "grading": "each",
    }

    exploration_weight: float = Field(
        default=1.0,
        ge=0,
        le=100,
        description="w of UCT: 0 only exploits, larger values explore more (scores are in 0..1).",
    )
    selection: Literal["uct", "gumbel"] = Field(
        default="uct",
        description="Select by UCT, or by Gumbel sampling with sequential halving, which needs the number of rollouts "
        "(max_rollouts, else max_expansions).",
    )
    judge_weight: Annotated[float, Replication("LATS")] = Field(
        default=1.0,
        ge=0,
        le=1,
        description="The paper's lambda: the judge's share of a score; the rest is self-consistency.",
    )
    grading: Literal["each", "together"] = Field(
        default="together",
        description="Judge each candidate in a call of its own, or all siblings in one call. "
        "Default: each in an environment, else together.",
    )
    simulate: bool = Field(
        default=False, description="Whether each expansion is followed by a simulation from its best child to an end."
    )
    max_rollouts: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="Most rollouts in one run (K): an expansion and its simulation. "
        "Default: 50 in an environment, else unlimited.",
    )
    expand_from: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Lowest score of a node that is expanded. Default: all are, as in the paper; 0.1 leaves out "
        "what was judged worthless.",
    )
    max_lessons: int = Field(
        default=0, ge=0, le=100, description="Most reflections on failed trajectories that are made and shown."
    )
    proposals: Literal["samples", "list"] = Field(
        default="samples", description="Sample each candidate on its own, or ask for a list of next steps in one call."
    )
    lists: Annotated[int, only_with("proposals", "list"), Replication("LATS")] = Field(
        default=1, ge=1, le=100, description="How many lists of next steps are asked for at once."
    )
    grades: Annotated[Literal["judge", "labels"], IN_ENVIRONMENT, Replication("LATS")] = Field(
        default="judge", description="Have states judged with a critique, or called sure, likely or impossible."
    )
    grade_samples: Annotated[int, only_with("grades", "labels"), Replication("LATS")] = Field(
        default=3, ge=1, le=100, description="How often a label is sampled."
    )
    revise_answers: Annotated[bool, ON_OPEN_QUESTIONS] = Field(
        default=True, description="Whether an answer that the judge did not accept may be expanded into better ones."
    )
