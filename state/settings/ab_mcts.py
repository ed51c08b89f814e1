"""The settings of `graphs.ab_mcts`."""

from typing import Annotated, ClassVar

from pydantic import Field

from reflective_agents.state.context import Models
from reflective_agents.state.effect import Replication
from reflective_agents.state.families import ChoosingContext, Preset, StepsContext, ToolsContext, TreeContext


class AbMctsContext(ChoosingContext, ToolsContext, StepsContext, TreeContext):
    """Settings of `graphs.ab_mcts`."""

    does: ClassVar[str] = "Searches whole answers, wider or deeper as it pays; among several models too."
    use_when: ClassVar[str] = "it is unclear whether new answers or better versions of old ones help more"

    task_presets: ClassVar[Preset] = {"max_depth": 7}

    max_expansions: int = Field(default=20, ge=0, le=10_000, description="Most answers tried in one run.")
    prior: Annotated[float, Replication("AB-MCTS")] = Field(
        default=0.5, gt=0, le=100, description="Successes and failures that each choice begins with (Beta prior)."
    )
    arms: Models = Field(
        default=None,
        min_length=1,
        max_length=20,
        description='Several models, among which the search chooses: ["openai:<model>", "<provider>:<model>"]. '
        "Default: model alone.",
    )
