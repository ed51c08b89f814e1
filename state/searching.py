"""The settings of the tree searches."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, field_validator, model_validator

from state.context import Model, TaskContext, from_json
from state.schemas import Score


class TreeContext(TaskContext):
    """Settings of every tree search."""

    presets: ClassVar[dict[str, dict[str, Any]]] = {}
    """Defaults for tasks of an environment, by its name; "*" for all others."""

    judge_model: Model = Field(
        default=None,
        validation_alias=AliasChoices("judge_model", "JUDGE_MODEL"),
        description="Model of the judge. Default: the same as model.",
    )
    max_expansions: int = Field(default=10, ge=0, le=10_000, description="Most expansions in one run.")
    max_depth: int = Field(
        default=5, ge=1, le=100, description="Deepest a node may lie below the root of the tree; its children are at 1."
    )
    parallel: int = Field(
        default=1, ge=1, le=64, description="Expansions in flight at once; with 1 and a seed the tree is the same."
    )
    min_score: float = Field(
        default=0.7,
        ge=0,
        le=1,
        description="Lowest score at which an answer that the judge calls solved ends the search.",
    )
    gold_reward: bool = Field(
        default=False,
        description="Whether the environment may reward answers by the task's right answer within the search.",
    )
    seed: int | None = Field(
        default=None, description="Seed for models that take one; the same seed gives the same tree."
    )

    @model_validator(mode="after")
    def _take_presets(self) -> Self:
        name = self.environment_name
        for field, preset in self.presets.get(name, self.presets.get("*", {}) if name else {}).items():
            if field not in self.model_fields_set:
                self.__dict__[field] = preset
        return self


class BranchingContext(TreeContext):
    """Settings of the searches that sample the children of a node together."""

    n: int = Field(default=5, ge=1, le=100, description="Candidates sampled at each expansion.")
    grading: Literal["each", "together"] = Field(
        default="each", description="Judge each candidate in a call of its own, or all siblings in one call."
    )
    min_gain: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Ends the search when no open leaf has a score above that of the best answer by more than this. "
        "Default: the search goes on.",
    )


class LatsContext(BranchingContext):
    """Settings of `graphs.lats`. Without an environment it is the search for open questions with tools; in one it has
    the paper's defaults."""

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "*": {
            "max_depth": 7,
            "max_expansions": 1000,
            "max_rollouts": 50,
            "simulate": True,
            "judge_weight": 0.5,
            "max_lessons": 4,
        },
        "programming": {"max_depth": 7, "max_expansions": 50, "max_lessons": 4},
        "game24": {
            "max_depth": 4,
            "max_expansions": 1000,
            "max_rollouts": 50,
            "simulate": True,
            "judge_weight": 0.5,
            "proposals": "list",
            "lists": 3,
            "grades": "labels",
        },
    }

    exploration_weight: float = Field(
        default=1.0,
        ge=0,
        le=100,
        description="w of UCT: 0 only exploits, larger values explore more (scores are in 0..1).",
    )
    judge_weight: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="The paper's lambda: the judge's share of a score; the rest is self-consistency.",
    )
    simulate: bool = Field(
        default=False, description="Whether each expansion is followed by a simulation from its best child to an end."
    )
    max_rollouts: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="Most rollouts in one run (K): an expansion and its simulation. "
        "Default: 50 in an environment, else any number.",
    )
    max_lessons: int = Field(
        default=0, ge=0, le=100, description="Most reflections on failed trajectories that are made and shown."
    )
    proposals: Literal["samples", "list"] = Field(
        default="samples", description="Sample each candidate on its own, or ask for a list of next steps in one call."
    )
    lists: int = Field(default=1, ge=1, le=100, description="How many lists of next steps are asked for at once.")
    grades: Literal["judge", "labels"] = Field(
        default="judge", description="Have states judged with a critique, or called sure, likely or impossible."
    )
    grade_samples: int = Field(default=3, ge=1, le=100, description="How often a label is sampled.")
    revise_answers: bool = Field(
        default=True, description="Whether an answer that the judge did not accept may be expanded into better ones."
    )


class BestOfNContext(TreeContext):
    """Settings of `graphs.best_of_n`."""

    presets: ClassVar[dict[str, dict[str, Any]]] = {"*": {"max_depth": 7}}

    n: int = Field(default=5, ge=1, le=100, description="How many trajectories are sampled (N).")
    grading: Literal["each", "together"] = Field(
        default="each",
        description="Judge each answer in a call of its own, or those that come of the same step in one call.",
    )
    parallel: int = Field(default=8, ge=1, le=64, description="Steps in flight at once.")
    max_expansions: int = Field(default=1000, ge=0, le=10_000, description="Most expansions in one run.")


class AbMctsContext(TreeContext):
    """Settings of `graphs.ab_mcts`."""

    presets: ClassVar[dict[str, dict[str, Any]]] = {"*": {"max_depth": 7}}

    max_expansions: int = Field(default=20, ge=0, le=10_000, description="Most answers tried in one run.")
    prior: float = Field(
        default=0.5, gt=0, le=100, description="Successes and failures that each choice begins with (Beta prior)."
    )
    arms: Annotated[list[Model] | None, BeforeValidator(from_json)] = Field(
        default=None,
        min_length=1,
        max_length=20,
        description='Several models, among which the search chooses: ["openai:<model>", "<provider>:<model>"]. '
        "Default: model alone.",
    )

    @field_validator("arms")
    @classmethod
    def _are_models(cls, arms: list[Model] | None) -> list[Model] | None:
        if arms and any(arm is None for arm in arms):
            raise ValueError("each of the models needs a name")
        return arms


class TreeOfThoughtsContext(BranchingContext):
    """Settings of `graphs.tree_of_thoughts`. The games of the paper have the paper's settings."""

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "*": {"n": 3, "beam": 3, "max_depth": 7, "max_expansions": 1000, "grading": "each"},
        "game24": {
            "n": 12,
            "beam": 5,
            "max_depth": 4,
            "max_expansions": 1000,
            "proposals": "list",
            "grades": "labels",
            "grade_samples": 3,
        },
        "crosswords": {
            "method": "depth_first",
            "n": 3,
            "max_depth": 10,
            "max_expansions": 1000,
            "proposals": "list",
            "lists": 5,
            "grades": "labels",
            "grade_samples": 1,
        },
    }

    method: Literal["breadth_first", "depth_first"] = Field(
        default="breadth_first", description="Expand the best of each level together, or follow the most promising one."
    )
    beam: int = Field(default=1, ge=1, le=64, description="Breadth first: nodes of each level that are expanded (b).")
    prune_below: float = Field(
        default=0.01, ge=0, le=1, description="Depth first: lowest score at which a state is gone on with."
    )
    max_states: int = Field(default=100, ge=1, le=100_000, description="Depth first: most states that are visited.")
    max_depth: int = Field(
        default=2,
        ge=1,
        le=100,
        description="Deepest a node may lie; for open questions plans lie at 1, and answers below.",
    )
    parallel: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Expansions in flight at once. Default: as many as the beam; depth first 1.",
    )
    proposals: Literal["samples", "list"] = Field(
        default="samples", description="In an environment: sample each step on its own, or ask for a list in one call."
    )
    lists: int = Field(default=1, ge=1, le=100, description="How many lists of next steps are asked for at once.")
    grades: Literal["judge", "labels", "vote"] = Field(
        default="judge",
        description="Have thoughts judged, called sure, likely or impossible, or (breadth first) voted on.",
    )
    grading: Literal["each", "together"] = Field(
        default="together", description="Judge each thought in a call of its own, or (breadth first) a level in one."
    )
    grade_samples: int = Field(default=5, ge=1, le=100, description="How often a label is sampled, or a vote held.")

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
        if "parallel" not in self.model_fields_set and self.method == "breadth_first":
            self.__dict__["parallel"] = self.beam
        return self


class RapContext(BranchingContext):
    """Settings of `graphs.rap`."""

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "*": {"max_depth": 7, "proposals": "list"},
        "arithmetic": {},
    }

    n: int = Field(default=4, ge=1, le=100, description="Next steps that are considered in each state.")
    max_expansions: int = Field(default=1000, ge=0, le=10_000, description="Most states that are predicted in one run.")
    max_rollouts: int = Field(default=10, ge=1, le=10_000, description="Most rollouts in one run.")
    exploration_weight: float = Field(
        default=1.0, ge=0, le=100, description="w of UCT: 0 only exploits, larger values explore more."
    )
    alpha: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="What the reward of a step, r0 ** alpha * r1 ** (1 - alpha), makes of the likelihood of the action "
        "(r0); the rest is the confidence in the predicted state (r1).",
    )
    action_reward: Literal["likelihood", "judge"] | None = Field(
        default=None,
        description="r0: the likelihood of the action, from log probabilities or else its share of the samples; or how "
        "useful a judge holds it to be. Default: log probabilities where the provider gives them, else the judge.",
    )
    grading: Literal["each", "together"] = Field(
        default="together", description="Judge each action in a call of its own, or all actions in one call."
    )
    confidence_samples: int = Field(
        default=3, ge=1, le=100, description="How often the next state is predicted; r1 is the share that agrees."
    )
    aggregate: Literal["mean", "max"] = Field(
        default="max", description="What a step is worth: the mean or the maximum of the paths through it."
    )
    proposals: Literal["samples", "list"] = Field(
        default="samples", description="Sample each next step on its own, or ask for a list of them in one call."
    )
    min_paths: int = Field(
        default=3, ge=1, le=10_000, description="Fewest paths with an answer whose agreement ends the search."
    )
    min_score: float = Field(
        default=0.7,
        ge=0,
        le=1,
        description="Share of the weight of all paths that one answer needs to end the search.",
    )


class Usefulness(BaseModel):
    """How useful each candidate is."""

    scores: list[Score] = Field(min_length=1, description="One score from 0 to 1 for each candidate, in their order.")
