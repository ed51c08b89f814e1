"""The settings of `graphs.best_of_n`."""

from typing import ClassVar, Literal

from pydantic import Field

from reflective_agents.state.families import AgentContext, Preset, StepsContext, ToolsContext, TreeContext


class BestOfNContext(AgentContext, ToolsContext, StepsContext, TreeContext):
    """Settings of `graphs.best_of_n`."""

    does: ClassVar[str] = "Samples several trajectories, each to its end; a judge takes the best."
    use_when: ClassVar[str] = "a plain baseline is wanted that every search has to beat"

    task_presets: ClassVar[Preset] = {"max_depth": 7}

    n: int = Field(default=5, ge=1, le=100, description="How many trajectories are sampled (N).")
    grading: Literal["each", "together"] = Field(
        default="each",
        description="Judge each answer in a call of its own, or those that come of the same step in one call.",
    )
    parallel: int = Field(default=8, ge=1, le=64, description="Steps in flight at once.")
    max_expansions: int = Field(default=1000, ge=0, le=10_000, description="Most expansions in one run.")
