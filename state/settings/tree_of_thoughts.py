"""The settings of `graphs.tree_of_thoughts`."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from reflective_agents.state.effect import IN_ENVIRONMENT, Replication, only_with
from reflective_agents.state.families import BranchingContext, Preset, StepsContext, ToolsContext


class TreeOfThoughtsContext(ToolsContext, StepsContext, BranchingContext):
    """Settings of `graphs.tree_of_thoughts`. The games of the paper have the paper's settings."""

    does: ClassVar[str] = "Plans, compares the plans, and goes on from the best, level by level or depth first."
    use_when: ClassVar[str] = "an answer needs a plan, or few of a puzzle's many possible steps are right"

    task_presets: ClassVar[Preset] = {
        "n": 3,
        "beam": 3,
        "max_depth": 7,
        "max_expansions": 1000,
        "grading": "each",
    }

    method: Literal["breadth_first", "depth_first"] = Field(
        default="breadth_first", description="Expand the best of each level together, or follow the most promising one."
    )
    beam: Annotated[int, only_with("method", "breadth_first")] = Field(
        default=1, ge=1, le=64, description="Breadth first: nodes of each level that are expanded (b)."
    )
    prune_below: Annotated[float, only_with("method", "depth_first"), Replication("Tree of Thoughts")] = Field(
        default=0.01, ge=0, le=1, description="Depth first: lowest score of a state from which the search goes on."
    )
    max_states: Annotated[int, only_with("method", "depth_first"), Replication("Tree of Thoughts")] = Field(
        default=100, ge=1, le=100_000, description="Depth first: most states that are visited."
    )
    max_depth: int = Field(
        default=2,
        ge=1,
        le=100,
        description="Greatest depth of a node; for open questions plans are at 1, and answers below.",
    )
    parallel: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Expansions in flight at once. Default: as many as the beam; depth first 1.",
    )
    proposals: Annotated[Literal["samples", "list"], IN_ENVIRONMENT] = Field(
        default="samples", description="In an environment: sample each step on its own, or ask for a list in one call."
    )
    lists: Annotated[int, only_with("proposals", "list"), Replication("Tree of Thoughts")] = Field(
        default=1, ge=1, le=100, description="How many lists of next steps are asked for at once."
    )
    grades: Annotated[Literal["judge", "labels", "vote"], Replication("Tree of Thoughts")] = Field(
        default="judge",
        description="Have thoughts judged, called sure, likely or impossible, or (breadth first) voted on.",
    )
    grading: Annotated[Literal["each", "together"], only_with("grades", "judge", "labels")] = Field(
        default="together", description="Judge each thought in a call of its own, or (breadth first) a level in one."
    )
    grade_samples: Annotated[int, only_with("grades", "labels", "vote"), Replication("Tree of Thoughts")] = Field(
        default=5, ge=1, le=100, description="How often a label is sampled, or a vote held."
    )

    @property
    def compares(self) -> bool:
        """Whether the thoughts of a level are graded together."""
        together = self.grades == "vote" or (self.grades == "judge" and self.grading == "together")
        return self.method == "breadth_first" and together

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.grades == "vote" and self.method == "depth_first":
            raise ValueError(
                "depth first there is no level to vote on: choose grades=judge, grades=labels, or breadth_first"
            )
        if self.method == "breadth_first":
            self._preset({"parallel": self.beam})
        return self
