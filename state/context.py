"""The settings of every strategy: pydantic models whose fields are the options of the command and the form in the
studio."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    JsonValue,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_settings import NoDecode

from reflective_agents.state.answer_schema import AnswerSchema
from reflective_agents.state.base_context import BaseContext
from reflective_agents.state.effect import Applies, InRuns, only_with
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.limits import Limit
from reflective_agents.state.parameters import SAMPLING, check_parameters
from reflective_agents.state.policy import MODEL, OPERATOR, TEXT, Operator, serves
from reflective_agents.state.prices import Prices
from reflective_agents.state.wrapped_models import unwrap
from reflective_agents.text.validation import in_plain_words

T = TypeVar("T")


def _is_model(value: Any) -> Any:
    model, fallbacks = unwrap(value)
    if fallbacks:
        raise ValueError(
            "give the model alone, and its fallbacks as fallback_models: they hold for all models of a run"
        )
    return model


Model = Annotated[
    Any,
    BeforeValidator(_is_model),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}),
    MODEL,
]
"""A model string, or in Python a ready-made chat model object."""


def from_json(value: T) -> T | JsonValue:
    """Read a setting that is more than a single value from JSON, as the command and the environment give it."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError) as error:
        raise ValueError(f'not valid JSON ({error}): write a list as ["a", "b"], an object as {{"a": 1}}') from error


def settings_over(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return valid settings with others over them. Of further parameters each name is a setting of its own."""
    settings = {**earlier, **later}
    if "model_parameters" in earlier and "model_parameters" in later:
        parameters: list[Any] = [from_json(each["model_parameters"]) for each in (earlier, later)]
        settings["model_parameters"] = {**parameters[0], **parameters[1]}
    return settings


def _are_named(models: list[Any] | None) -> list[Any] | None:
    """Refuse a list in which a model has no name: that would be the default one."""
    if models and any(model is None for model in models):
        raise ValueError("each of the models needs a name")
    return models


Models = Annotated[list[Model] | None, BeforeValidator(from_json), AfterValidator(_are_named)]
"""Several models, each of which is named."""


def _is_prompts(value: T) -> T | JsonValue:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return from_json(value)
    return value or None


def _no_path(value: JsonValue) -> bool:
    """Tell whether a setting names no file."""
    return not isinstance(value, str)


Structured = Literal["json_schema", "tool", "text"]
"""A way of structured output: the server's own JSON schema, a tool that is forced, or JSON as text."""
Acting = Literal["auto", "tools", "schema", "text", "paper"]
"""A way of writing a step: as a call of a tool, as a JSON object, as text in turns, or the papers' one long text."""
Thinking = Literal["off", "low", "medium", "high"]
"""How much a model thinks before it answers."""


class Context(BaseContext):
    """What every strategy can be told."""

    judges: ClassVar[bool] = False
    """Whether the strategy, or one that it employs, has a judge or a critic."""
    asks_in_one_step: ClassVar[bool] = False
    """Whether all that a run pays for is in one step of it."""
    level: ClassVar[int | None] = 0
    """A strategy may employ those of a lower level; one without a level cannot be employed."""

    model: Model = Field(
        default=None,
        validation_alias=AliasChoices("model", "MODEL"),
        description="Chat model: 'openai:<model>', another provider's '<provider>:<model>', or 'offline'. "
        "Default: MODEL, else OpenAI if OPENAI_API_KEY is set, else offline.",
    )
    fallback_models: Models = Field(
        default=None,
        max_length=10,
        description='Models to try in turn when one fails: ["openai:<model>", "<provider>:<model>"]. A model that '
        "failed is tried again after a minute.",
    )
    max_model_calls: int = Field(
        default=150, ge=1, le=100_000, description="Most requests to models in one run, retries included."
    )
    max_total_tokens: int = Field(
        default=1_000_000, ge=1, le=1_000_000_000, description="Most tokens, prompts and answers together, in one run."
    )
    max_cost: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="Most dollars that one run may cost. Default: unlimited.",
    )
    prices: Annotated[Prices, OPERATOR] = Field(
        default=None,
        description='Prices of models, in dollars for a million tokens: {"gpt-4.1-mini": {"input": 0.4, "output": 1.6, '
        '"cached_input": 0.1}}, or a JSON file. Default: the list prices of genai-prices.',
    )
    context_window: int | None = Field(
        default=None,
        ge=512,
        le=10_000_000,
        description="Most tokens of a model's context that are used, prompt and answer together. Default: what its "
        "profile or an error of its server says; with Ollama set it to num_ctx, beyond which prompts are cut "
        "silently.",
    )
    compact: Annotated[Literal["auto", "off"], InRuns("give create_agent LangChain's SummarizationMiddleware")] = Field(
        default="auto",
        description="What happens to a conversation that does not fit into the context: its oldest turns are "
        "summarised ('auto'), or it is sent as it is ('off').",
    )
    compact_model: Annotated[Model, only_with("compact", "auto"), InRuns("a middleware compacts nothing")] = Field(
        default=None, description="Model that summarises the oldest turns. Default: the same as model."
    )
    compact_share: Annotated[float, only_with("compact", "auto"), InRuns("a middleware compacts nothing")] = Field(
        default=0.2,
        gt=0,
        le=1,
        description="Share of the calls, tokens and money left to a run that one compaction may spend; if the thread "
        "takes more to read, its long messages are shortened.",
    )
    max_seconds: float = Field(
        default=900, gt=0, le=604_800, description="Longest working time of one run, in seconds."
    )
    max_answer_tokens: int = Field(
        default=2048, ge=16, le=200_000, description="Most tokens one answer of a model may have."
    )
    call_timeout: float = Field(default=120, gt=0, le=3600, description="Longest time one call may take, in seconds.")
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="Temperature of the models. Default: what their servers do."
    )
    judge_temperature: Annotated[
        float | None, Applies("in strategies with a judge or a critic", lambda settings: settings.judges)
    ] = Field(
        default=None, ge=0, le=2, description="Temperature of judges and critics. Default: the same as temperature."
    )
    seed: int | None = Field(
        default=None,
        description="Seed of every request, of judges too, for models that take one, and of all draws: with such a "
        "model the same seed gives the same run. Default: chance.",
    )
    model_parameters: Annotated[JsonObject, BeforeValidator(from_json), AfterValidator(check_parameters), SAMPLING] = (
        Field(
            default={},
            description='Further parameters of every request to a chat model, such as {"top_p": 0.9}.',
        )
    )
    prompts: Annotated[JsonObject | str | None, NoDecode, BeforeValidator(_is_prompts), Operator(_no_path)] = Field(
        default=None,
        description='Your own wording of prompts, by their names in prompts/: {"react.TOOLS": "..."}; or a folder with '
        "a file <name>.txt for each. A text replaces the system message.",
    )
    structured: Structured | None = Field(
        default=None,
        description="How structured output is asked for: 'json_schema' (the server's own), 'tool' (a forced tool) or "
        "'text'. Default: whatever the model can do, which is found out.",
    )
    thinking: Thinking | None = Field(
        default=None,
        description="How much a reasoning model thinks before it answers. Default: what its server does.",
    )
    language: Annotated[str | None, TEXT] = Field(
        default=None,
        min_length=1,
        max_length=120,
        description="Language of answers, critiques and lessons, such as 'German'. Default: that of the question.",
    )
    answer_schema: Annotated[
        AnswerSchema, BeforeValidator(from_json), TEXT, InRuns("give create_agent a response_format")
    ] = Field(
        default=None,
        description="Form into which the answer is put in structured_response, with one more call, and checked: the "
        "JSON schema of an object, in Python also a pydantic class, a TypedDict or a dataclass.",
    )
    experience: Annotated[str | None, TEXT, InRuns("a middleware keeps no lessons")] = Field(
        default=None,
        min_length=1,
        description="Name under which lessons are kept for later runs, and looked up at the start of this one. "
        "Default: nothing is kept.",
    )
    experience_model: Annotated[Model, only_with("experience"), InRuns("a middleware keeps no lessons")] = Field(
        default=None,
        description="Model that says which lessons apply, and draws new ones; a cheap one will do. Default: the same "
        "as model.",
    )
    experience_from: Annotated[
        Literal["verified", "judged"], only_with("experience"), InRuns("a middleware keeps no lessons")
    ] = Field(
        default="verified",
        description="Which runs to learn from: only those whose answer something verified or refused ('verified'), "
        "or also those whose success the model judges for itself ('judged').",
    )
    memory_size: Annotated[
        int,
        Applies("with experience", lambda settings: settings.shows_lessons),
        InRuns("a middleware keeps no lessons"),
    ] = Field(
        default=3, ge=1, le=100, description="Most lessons that a run is shown at once (Omega of Reflexion's trials)."
    )

    @model_validator(mode="before")
    @classmethod
    def _take_fallbacks(cls, values: Any) -> Any:
        try:
            unwrapped = unwrap(values.get("model") if isinstance(values, dict) else None)
        except ValueError:
            return values  # what is wrong with a model is reported with the setting
        if not unwrapped.fallbacks:
            return values
        fallbacks = [*unwrapped.fallbacks, *(values.get("fallback_models") or [])]
        return {**values, "model": unwrapped.model, "fallback_models": fallbacks}

    def limit(self, name: str, spent: float, next_cost: float = 0) -> Limit:
        """Return one of these limits as data.

        Args:
            name: The setting, such as `max_model_calls`.
            spent: How much of it is spent.
            next_cost: What the next step might cost, where something is left but not enough.
        """
        limit = Limit(name=name, most=getattr(self, name), spent=spent)
        return {**limit, "needed": next_cost} if next_cost else limit

    @property
    def summariser(self) -> Model:
        """The model that summarises a conversation that is too long."""
        return self.model if self.compact_model is None else self.compact_model

    @property
    def own_parameters(self) -> JsonObject:
        """The further parameters without those of the environment, which pydantic adds, and only the operator reads."""
        ambient = self.ambient().model_parameters.items()
        return dict(item for item in self.model_parameters.items() if item not in ambient)

    @property
    def request_parameters(self) -> JsonObject:
        """The further parameters of every request: on a server those of the operator too, which win."""
        return {**self.model_parameters, **self.ambient().model_parameters} if serves() else self.model_parameters

    @property
    def remembers(self) -> bool:
        """Whether a run keeps something beyond its thread, in the graph's store."""
        return self.experience is not None

    @property
    def tries_several(self) -> bool:
        """Whether one prompt may be sent several times, for replies of which each is to be another."""
        return False

    @property
    def shows_lessons(self) -> bool:
        """Whether a run is shown what was learned before: from earlier runs, if they were kept."""
        return self.experience is not None

    def chosen(self) -> dict[str, Any]:
        """Return what `BaseContext.chosen` does, without the parameters of the environment."""
        chosen = super().chosen()
        if "model_parameters" in chosen:
            chosen["model_parameters"] = self.own_parameters
        return chosen

    def defaults(self) -> "Context":
        """Return what holds where the caller chooses nothing: the graph's own settings, else `ambient`."""
        defaults = super().defaults()
        assert isinstance(defaults, Context)
        return defaults

    def _over(self, earlier: JsonObject) -> JsonObject:
        settings = super()._over(earlier)
        if "model_parameters" in earlier:  # of which each name is a choice of its own
            usual = self.defaults().model_parameters.items()
            given = dict(item for item in self.model_parameters.items() if item not in usual)
            settings["model_parameters"] = {**self.own_parameters, **earlier["model_parameters"], **given}
        return settings

    def raised(self, by: Mapping[str, float]) -> Self:
        """Return these settings with limits that are higher by so much, each by its name.

        Raises:
            Misuse: if there is no such limit, or it would be higher than is possible.
        """
        limits: JsonObject = {}
        for name, more in sorted(by.items()):
            if not name.startswith("max_") or name not in type(self).model_fields:
                raise Misuse(f"{name} is not a limit of this strategy")
            most = getattr(self, name)
            if most is not None:
                limits[name] = most + more
        if not limits:
            return self
        try:
            return self._again({**self.chosen(), **limits})
        except ValidationError as error:
            problem = error.errors()[0]
            raise Misuse(f"{problem['loc'][0]}: {in_plain_words(problem['msg'])} (got {problem['input']})") from error

    @classmethod
    def merged(cls, own: Mapping[str, Any], chosen: Mapping[str, Any]) -> Self:
        """Return the settings of a run of a graph with settings of its `own`; what the caller has `chosen` wins.

        Of further parameters of requests each name is a choice of its own.
        """
        merged = super().merged(own, chosen)
        if "model_parameters" in own and "model_parameters" in chosen:
            # Not those of `merged`: beside the caller's it has the environment's, before which the graph's own go.
            given: Any = from_json(chosen["model_parameters"])
            parameters = {**merged.defaults().model_parameters, **given}
            merged = merged.model_copy(update={"model_parameters": parameters})
        return merged
