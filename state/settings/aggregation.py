"""The settings of `graphs.aggregation`."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from reflective_agents.state.context import Models
from reflective_agents.state.effect import Applies
from reflective_agents.state.families import ChoosingContext, SourcedContext, TaskContext


class AggregationContext(ChoosingContext, SourcedContext, TaskContext):
    """Settings of `graphs.aggregation`."""

    does: ClassVar[str] = "Samples several answers, and merges groups of them into better ones, round after round."
    use_when: ClassVar[str] = "partly right answers can be merged, also from several models"

    population: int = Field(default=4, ge=1, le=100, description="Answers of a round (N).")
    group: Annotated[int, Applies("with rounds above 1", lambda settings: settings.rounds > 1)] = Field(
        default=2,
        ge=1,
        le=100,
        description="Answers that are merged into one (K), at most N. Default: 2; all, where there are proposers.",
    )
    rounds: int = Field(
        default=3, ge=1, le=100, description="Generations of answers (T): the first is sampled, and counts."
    )
    last: Annotated[
        Literal["population", "single"], Applies("with rounds above 1", lambda settings: settings.rounds > 1)
    ] = Field(
        default="population",
        description="The last round: as many answers as before, of which the most frequent is chosen, or a single one. "
        "Default: population; single, where there are proposers.",
    )
    proposers: Models = Field(
        default=None,
        min_length=1,
        max_length=20,
        description="Several models that write the answers in turns, which model merges in the end: "
        '["openai:<model>", '
        '"<provider>:<model>"] (Mixture-of-Agents). Default: model alone.',
    )
    max_queries: Annotated[int, Applies("where something is looked up", lambda settings: settings.looks_up)] = Field(
        default=3, ge=1, le=10, description="Most search queries, run before the first answers are written."
    )

    @property
    def acts(self) -> bool:
        """Never: it answers at once."""
        return False

    @property
    def looks_up(self) -> bool:
        """Whether there may be something to look up: on open questions, unless the search is turned off."""
        return self.environment is None and self.search != "none"

    @model_validator(mode="after")
    def _take_presets(self) -> Self:
        """Mix the agents where there are proposers, unless the settings are given: K = N, and one answer at the end."""
        count = len(self.proposers or ())
        if count:
            self._preset({"population": count, "last": "single"})
        self._preset({"group": self.population if count else min(2, self.population)})
        if self.group > self.population:
            raise ValueError(f"a group of {self.group} is more than the population of {self.population}")
        return self
