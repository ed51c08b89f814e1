"""What the settings of a run say of its requests to models."""

from collections.abc import Mapping, Sequence

from reflective_agents.state.context import Acting, Context, Model, Thinking
from reflective_agents.state.families import StepsContext
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.prices import Price, table_of


class RequestSettings:
    """The settings of a run, as far as requests go by them."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def parameters(self, judging: bool) -> JsonObject:
        """Return the parameters of a request; a judge or critic may have a temperature of its own."""
        context = self._context
        heat = context.temperature
        if judging and context.judge_temperature is not None:
            heat = context.judge_temperature
        parameters = {**context.request_parameters}
        if heat is not None:
            parameters["temperature"] = heat
        return parameters

    @property
    def seed(self) -> int | None:
        """The seed of the run, which goes with each request that has none of its own; None without."""
        return self._context.seed

    @property
    def prices(self) -> Mapping[str, Price]:
        """The table of prices."""
        return table_of(self._context.prices)

    @property
    def call_timeout(self) -> float:
        """Seconds that one call may take."""
        return self._context.call_timeout

    @property
    def fallback_models(self) -> Sequence[Model]:
        """What to ask where a model fails, in turn."""
        return self._context.fallback_models or ()

    @property
    def context_window(self) -> int | None:
        """Most tokens of a model's context that are used; None if that is not set."""
        return self._context.context_window

    @property
    def compacts(self) -> bool:
        """Whether a conversation that is too long is compacted."""
        return self._context.compact == "auto"

    @property
    def thinking(self) -> Thinking | None:
        """How much models are to think."""
        return self._context.thinking

    @property
    def acting(self) -> Acting:
        """How models are to write steps."""
        return self._context.acting if isinstance(self._context, StepsContext) else "auto"

    @property
    def language(self) -> str | None:
        """The language that models are to write."""
        return self._context.language

    @property
    def max_answer_tokens(self) -> int:
        """The largest answer a call may bring."""
        return self._context.max_answer_tokens
