"""The settings of `graphs.best_of_n`."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from reflective_agents.state.effect import Applies, only_with
from reflective_agents.state.families import (
    AgentContext,
    ChoosingContext,
    Preset,
    StepsContext,
    ToolsContext,
    TreeContext,
)


class BestOfNContext(ChoosingContext, AgentContext, ToolsContext, StepsContext, TreeContext):
    """Settings of `graphs.best_of_n`."""

    does: ClassVar[str] = "Samples several trajectories, each to its end; a judge takes the best."
    use_when: ClassVar[str] = "you want a plain baseline that every search has to beat"

    task_presets: ClassVar[Preset] = {"max_depth": 7}

    choose: Annotated[  # pyright: ignore[reportIncompatibleVariableOverride]
        Literal["score", "pairs", "agreement"],
        Applies(
            "as score or pairs, unless the environment runs tests of programs, such as programming",
            lambda settings: settings.choose != "agreement" or settings.runs_tests,
        ),
    ] = Field(  # type: ignore[assignment]
        default="score",
        description="How the answer is chosen: by its score (a reward, a verifier, a judge), the most frequent of "
        "equals; by pairs: a judge compares answers that nothing has verified, two at a time, in both orders; or "
        "by agreement, for programs: the model writes tests, and the group of programs that pass the same ones is "
        "best that has most programs times most tests.",
    )
    n: int = Field(default=5, ge=1, le=100, description="How many trajectories are sampled (N).")
    grading: Annotated[Literal["each", "together"], only_with("choose", "score")] = Field(
        default="each",
        description="Judge each answer in a call of its own, or those that come of the same step in one call.",
    )
    min_score: Annotated[float, only_with("choose", "score")] = Field(
        default=0.7,
        ge=0,
        le=1,
        description="Lowest score at which an answer that the judge calls solved ends the run.",
    )
    parallel: int = Field(default=8, ge=1, le=64, description="Steps in flight at once.")
    max_expansions: int = Field(default=1000, ge=0, le=10_000, description="Most expansions in one run.")
