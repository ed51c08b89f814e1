"""The settings of every strategy: pydantic models whose fields are the options of the command and the form in the
studio.

What is not given is read from the environment, typed and checked: `MODEL`, `JUDGE_MODEL`, `CRITIC_MODEL` under these
names, every other setting as `REFLECT_<NAME>`, for example `REFLECT_MAX_MODEL_CALLS=50`. What is given is never
overridden.
"""

import copy
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from reflective_agents.state.answer_schema import AnswerSchema
from reflective_agents.state.effect import Applies, InRuns, only_with
from reflective_agents.state.errors import Misuse, WrongThread
from reflective_agents.state.groups import sort_form
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.limits import Limit
from reflective_agents.state.parameters import SAMPLING, check_parameters
from reflective_agents.state.policy import MODEL, OPERATOR, TEXT, Operator, serves
from reflective_agents.state.prices import Prices
from reflective_agents.state.suggestions import few_unknown, with_suggestions
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
        raise ValueError(f"not valid JSON: {error}") from error


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


def _is_plain(value: Any) -> bool:
    if isinstance(value, list) and not any(isinstance(item, dict) for item in value):
        return bool(value) and all(isinstance(item, str) for item in value)
    if not isinstance(value, dict | list):
        return isinstance(value, (str, int, float, bool))
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


Structured = Literal["json_schema", "tool", "text"]
"""A way of structured output: the server's own JSON schema, a tool that is forced, or JSON as text."""
Acting = Literal["auto", "tools", "schema", "text", "paper"]
"""A way of writing a step: as a call of a tool, as a JSON object, as text in turns, or the papers' one long text."""
Thinking = Literal["off", "low", "medium", "high"]
"""How much a model thinks before it answers."""


class Context(BaseSettings):
    """What every strategy can be told."""

    model_config = SettingsConfigDict(
        env_prefix="REFLECT_",
        env_ignore_empty=True,
        extra="forbid",
        populate_by_name=True,
        defer_build=True,  # of a family of settings only the strategy that runs is needed
        hide_input_in_errors=True,  # it may be a key in the wrong setting, or take a while to print
        json_schema_extra=sort_form,
    )

    does: ClassVar[str]
    """What the strategy does, in a sentence."""
    use_when: ClassVar[str]
    """When to use it, after "use when"."""
    judges: ClassVar[bool] = False
    """Whether the strategy, or one that it employs, has a judge or a critic."""
    asks_in_one_step: ClassVar[bool] = False
    """Whether all that a run pays for is in one step of it."""
    renamed: ClassVar[dict[str, str]] = {}
    """Old names of settings with their new ones. An old name is taken for one release, with a warning."""
    renamed_values: ClassVar[Mapping[str, Mapping[Any, Any]]] = {}
    """What the values of settings with an old name are called now, where that has changed."""
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

    _handed_on: bool = PrivateAttr(default=False)
    _own: "Context | None" = PrivateAttr(default=None)
    """What holds where nothing is given, if the graph has settings of its own."""

    @model_validator(mode="before")
    @classmethod
    def _take_old_names(cls, values: JsonObject) -> JsonObject:
        taken = dict(values)
        for old, new in cls.renamed.items():
            variable = f"REFLECT_{old.upper()}"
            for name, value in ((old, taken.pop(old, None)), (variable, os.environ.get(variable))):
                if value is not None:
                    warnings.warn(f"{name} is now called {new}: the next release takes no other name", FutureWarning, 4)
                    taken.setdefault(new, cls._in_new_words(old, value))
        return taken

    @classmethod
    def in_new_names(cls, settings: JsonObject) -> JsonObject:
        """Return settings of an earlier release with the names and values of this one."""
        renamed: JsonObject = {}
        for name, value in settings.items():
            renamed[cls.renamed.get(name, name)] = cls._in_new_words(name, value)
        return renamed

    @classmethod
    def _in_new_words(cls, name: str, value: Any) -> Any:
        """Return what the value of a setting with an old name is called now."""
        if not isinstance(value, str):
            return value
        return cls.renamed_values.get(name, {}).get(value, value)

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

    @model_validator(mode="wrap")
    @classmethod
    def _suggest_names(cls, values: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(values, dict):
            values = few_unknown(values, cls.model_fields)
        try:
            return read(values)
        except ValidationError as error:
            raise with_suggestions(error, cls.model_fields) from None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read settings from the caller, then the environment, and no files: every source costs time in every run."""
        assert isinstance(env_settings, EnvSettingsSource)
        if _variables(settings_cls).isdisjoint(env_settings.env_vars):
            return (init_settings,)
        return init_settings, _Environment(settings_cls)

    def check_effect(self, names: Iterable[str] | None = None) -> None:
        """Refuse settings that were given and have no effect beside the others.

        Args:
            names: The settings. Default: those that the caller gave or the graph has of its own, other than as they are
                by default.

        Raises:
            Misuse: if one has none; the text says where it would have one.
        """
        if names is None:
            own = self._own._explicit_names() if self._own else set()
            names = {*self._explicit_names(), *own}
        for name in sorted(names):
            field = type(self).model_fields[name]
            where = self.applies_only(name)
            if where and getattr(self, name) != field.get_default(call_default_factory=True):
                raise Misuse(f"{name} has an effect only {where}: leave it out")

    def applies_only(self, name: str) -> str:
        """Return where a setting has an effect, if it has none beside the others; else an empty text."""
        for mark in type(self).model_fields[name].metadata:
            if isinstance(mark, Applies) and not mark.when(self):
                return mark.where
        return ""

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

    def explicit_settings(self) -> JsonObject:
        """Return the settings that the caller gave, as plain data: neither defaults nor those from the environment.

        Objects and functions, which only Python can give, are left out.
        """
        settings: JsonObject = {}
        for name, value in sorted(self.chosen().items()):
            if _is_plain(value):
                settings[name] = dict(value) if isinstance(value, dict) else value
        if "model_parameters" in settings:
            settings["model_parameters"] = dict(self.own_parameters)
        return settings

    def resumed(self, earlier: JsonObject) -> Self:
        """Return these settings for a run that is resumed: what was given at its beginning holds unless it is given
        anew.

        Raises:
            WrongThread: if an earlier release has begun the run with settings that do not exist any more.
        """
        removed = earlier.keys() - type(self).model_fields - self.renamed.keys()
        if removed:
            names = ", ".join(sorted(removed))
            raise WrongThread(
                f"this run was begun with settings that no longer exist ({names}): ask the question again"
            )
        before = self.in_new_names(earlier)
        if all(getattr(self, name) == value for name, value in before.items()):
            return self
        return self._again({**before, **self.chosen()})

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

    def _preset(self, values: Mapping[str, object]) -> None:
        """Set what the caller has not given. Not by assignment: pydantic would count it as given."""
        for name, value in values.items():
            if name not in self.model_fields_set:
                vars(self)[name] = value

    def handed_on(self) -> Self:
        """Return these settings as those that a strategy hands on to another one, which no caller has chosen."""
        handed = self.model_copy()
        handed._handed_on = True
        return handed

    @property
    def is_handed_on(self) -> bool:
        """Whether a strategy has made these settings for another one."""
        return self._handed_on

    def _again(self, settings: JsonObject) -> Self:
        own = self._own.chosen() if self._own else {}
        changed = type(self).model_validate({**own, **settings})
        changed._handed_on = self._handed_on
        changed._own = self._own
        return changed

    @classmethod
    def merged(cls, own: Mapping[str, Any], chosen: Mapping[str, Any]) -> Self:
        """Return the settings of a run of a graph with settings of its `own`; what the caller has `chosen` wins."""
        merged = cls.model_validate({**own, **chosen})
        merged._own = cls.model_validate(dict(own))
        return merged

    def defaults(self) -> "Context":
        """Return what holds where the caller chooses nothing: the graph's own settings, else `ambient`."""
        return self._own or self.ambient()

    def chosen(self) -> dict[str, Any]:
        """Return the settings that the caller gave, objects too: neither defaults nor those from the environment."""
        return {name: getattr(self, name) for name in self._explicit_names()}

    @classmethod
    def ambient(cls) -> Self:
        """Return the settings where nothing is given: those from the environment, and the defaults."""
        read: Self = _ambient(cls, _environment())
        return read

    def _explicit_names(self) -> set[str]:
        defaults = self.defaults()
        names = set[str]()
        for name in self.model_fields_set:
            if name not in defaults.model_fields_set or getattr(self, name) != getattr(defaults, name):
                names.add(name)
        return names


class _Environment(PydanticBaseSettingsSource):
    """The settings in the environment, which are read once while it stays the same: that takes as long as the rest."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the value of one setting, which pydantic does not ask for."""
        return self().get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return what the environment says."""
        return copy.deepcopy(_in_environment(self.settings_cls, _environment()))


def _environment() -> int:
    """Return what tells one environment from another: a hash, for it holds keys, which reports of errors would show."""
    return hash(frozenset(os.environ.items()))


@lru_cache(maxsize=32)
def _in_environment(schema: type[BaseSettings], environment: int) -> dict[str, Any]:
    return EnvSettingsSource(schema)()


@lru_cache(maxsize=32)
def _variables(schema: type[BaseSettings]) -> frozenset[str]:
    """Return the environment variables that hold settings, in lower case."""
    prefix = schema.model_config.get("env_prefix", "")
    names = [prefix + name for name in schema.model_fields]
    for field in schema.model_fields.values():
        if isinstance(field.validation_alias, AliasChoices):
            names += [choice for choice in field.validation_alias.choices if isinstance(choice, str)]
    return frozenset(map(str.lower, names))


@lru_cache(maxsize=32)
def _ambient(schema: type[Context], environment: int) -> Any:
    """Make the settings once while the environment stays the same: that takes as long as a step of a graph."""
    return schema()
