"""The settings of every strategy: pydantic models whose fields are the options of the command and the form in the
studio.

What is not given is read from the environment, typed and checked: `MODEL`, `JUDGE_MODEL`, `CRITIC_MODEL` under these
names, every other setting as `REFLECT_<NAME>`, for example `REFLECT_MAX_MODEL_CALLS=50`. What is given is never
overridden.
"""

import json
import os
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AliasChoices, BeforeValidator, Field, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

Check = Callable[[str, str], str | Awaitable[str | None] | None]
"""A critic that is a plain function: `(request, draft) -> problem`, with None or "" when the draft passes."""


def _is_model(value: Any) -> Any:
    if value is None or isinstance(value, str) or hasattr(value, "ainvoke"):
        return value or None
    raise ValueError("a model is a string such as 'openai:gpt-4.1' or 'offline', or a chat model object")


Model = Annotated[
    Any,
    BeforeValidator(_is_model),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}),
]
"""A model string, or in Python a ready-made chat model object."""


def from_json(value: Any) -> Any:
    """A setting that is no single value, as JSON: so the command and the environment's variables give it."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise ValueError(f"this is no JSON: {error}") from error


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, str) for item in value)
    return isinstance(value, (str, int, float, bool))


class Context(BaseSettings):
    """What every strategy can be told."""

    model_config = SettingsConfigDict(
        env_prefix="REFLECT_", env_ignore_empty=True, extra="forbid", populate_by_name=True
    )

    model: Model = Field(
        default=None,
        validation_alias=AliasChoices("model", "MODEL"),
        description="Chat model: 'openai:<model>', another provider's '<provider>:<model>', or 'offline'. "
        "Default: MODEL, else OpenAI if OPENAI_API_KEY is set, else offline.",
    )
    max_model_calls: int = Field(
        default=150, ge=1, le=100_000, description="Most requests to models in one run, retries included."
    )
    max_total_tokens: int = Field(
        default=1_000_000, ge=1, le=1_000_000_000, description="Most tokens, prompts and answers together, in one run."
    )
    max_seconds: float = Field(
        default=900, gt=0, le=604_800, description="Longest working time of one run, in seconds."
    )
    max_answer_tokens: int = Field(
        default=2048, ge=16, le=200_000, description="Most tokens one answer of a model may have."
    )
    call_timeout: float = Field(default=120, gt=0, le=3600, description="Longest time one call may take, in seconds.")
    experience: str | None = Field(
        default=None,
        min_length=1,
        description="Name under which lessons are kept for later runs, and looked up at the start of this one. "
        "Default: nothing is kept.",
    )
    memory_size: int = Field(
        default=3, ge=1, le=100, description="Most lessons that a run is shown at once (Omega of Reflexion's trials)."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What is given, then the environment, and no files: each source is asked for every field of every run."""
        return init_settings, env_settings

    @property
    def remembers(self) -> bool:
        """Whether a run keeps something beyond its thread, in the graph's store."""
        return self.experience is not None

    def given(self) -> dict[str, Any]:
        """The settings that the caller gave, as plain data: neither defaults nor what the environment says.

        Objects and functions, which only Python can give, are left out.
        """
        given = {name: getattr(self, name) for name in sorted(self._given())}
        return {name: value for name, value in given.items() if _is_plain(value)}

    def resumed(self, earlier: dict[str, Any]) -> Self:
        """These settings for a run that is resumed: what was given at its beginning holds unless it is given anew."""
        if all(getattr(self, name) == value for name, value in earlier.items()):
            return self
        return type(self).model_validate({**earlier, **{name: getattr(self, name) for name in self._given()}})

    @classmethod
    def ambient(cls) -> Self:
        """The settings where nothing is given: what the environment says, and the defaults."""
        read: Self = _ambient(cls, hash(frozenset(os.environ.items())))
        return read

    def _given(self) -> set[str]:
        ambient = self.ambient()
        return {
            name
            for name in self.model_fields_set
            if name not in ambient.model_fields_set or getattr(self, name) != getattr(ambient, name)
        }


@lru_cache(maxsize=32)
def _ambient(schema: type[Context], environment: int) -> Any:
    """To read the environment takes as long as a step of a graph: it is done once while it stays the same.

    It is known by its hash, since it holds keys, and what a function was given stands in reports of errors.
    """
    return schema()


class SearchContext(Context):
    """Settings of strategies that search for evidence."""

    search: Literal["tavily", "local", "none"] | None = Field(
        default=None,
        description="Search engine: 'tavily' (needs TAVILY_API_KEY), 'local' (the corpus), 'none'. "
        "Default: tavily if TAVILY_API_KEY is set, else local.",
    )
    corpus: str | None = Field(
        default=None,
        description="Folder of text, Markdown, HTML or PDF for the local search. Default: the shipped articles.",
    )


class ReflectionContext(Context):
    """Settings of `graphs.reflection`."""

    critic_model: Model = Field(
        default=None,
        validation_alias=AliasChoices("critic_model", "CRITIC_MODEL"),
        description="Model of the critic. Default: the same as model.",
    )
    critic: Literal["model", "human", "checks"] = Field(
        default="model",
        description="Who criticises: a model, a person (the run pauses), or only the checks (min_words, max_words).",
    )
    max_rounds: int = Field(default=3, ge=1, le=100, description="Most drafts written for one request.")
    min_words: int | None = Field(
        default=None, ge=1, le=100_000, description="Check: the draft has at least so many words."
    )
    max_words: int | None = Field(
        default=None, ge=1, le=100_000, description="Check: the draft has at most so many words."
    )
    checks: SkipJsonSchema[list[Check]] = Field(
        default_factory=list,
        exclude=True,
        description="In Python: functions (request, draft) -> problem, or None if it passes.",
    )
    generate_prompt: str | None = Field(
        default=None,
        min_length=1,
        description="System prompt of the writer. Default: GENERATE in prompts/reflection.py.",
    )
    reflect_prompt: str | None = Field(
        default=None,
        min_length=1,
        description="System prompt of the critic. Default: REFLECT in prompts/reflection.py.",
    )


class ReflexionContext(SearchContext):
    """Settings of `graphs.reflexion`."""

    max_rounds: int = Field(default=3, ge=1, le=100, description="Most revisions of the first answer.")
    max_queries: int = Field(default=3, ge=1, le=10, description="Most new search queries run in one round.")


def _is_environment(value: Any) -> Any:
    if value is None or value in get_args(EnvironmentName) or hasattr(value, "step"):
        return value or None
    raise ValueError(f"an environment is one of {', '.join(get_args(EnvironmentName))}, or in Python an Environment")


EnvironmentName = Literal["questions", "fever", "game24", "crosswords", "programming", "blocksworld", "arithmetic"]
World = Annotated[
    Any,
    BeforeValidator(_is_environment),
    WithJsonSchema({"anyOf": [{"enum": list(get_args(EnvironmentName)), "type": "string"}, {"type": "null"}]}),
]
"""The name of an environment, or in Python one of your own: see `environments.base`."""


class TaskContext(SearchContext):
    """Settings of strategies that may be given a task of an environment."""

    environment: World = Field(
        default=None, description="Kind of tasks, with its actions and its reward. Default: open questions, with tools."
    )
    docstore: str | None = Field(
        default=None,
        description="Articles of the environments questions and fever: 'wikipedia', a folder or a JSONL file. "
        "Default: those that the task brings.",
    )
    unsafe_code: bool = Field(
        default=False, description="Whether programs may run as plain processes where bubblewrap is missing."
    )
    examples: bool = Field(default=True, description="Whether the prompt shows worked examples (few-shot).")

    @property
    def environment_name(self) -> str:
        """The name of the environment; empty for open questions."""
        return getattr(self.environment, "name", None) or self.environment or ""


class ActingContext(TaskContext):
    """Settings of strategies that act one step after another: in an environment, or with tools."""

    max_context_tokens: int = Field(
        default=100_000, ge=500, le=10_000_000, description="Longest prompt, in estimated tokens; older steps are cut."
    )


class ReactContext(ActingContext):
    """Settings of `graphs.react`."""

    mode: Literal["tools", "text"] = Field(
        default="tools", description="Native tool calls, or Thought / Action / Observation as text."
    )
    max_actions: int = Field(default=8, ge=1, le=1000, description="Most actions in one run.")
    max_repeats: int = Field(
        default=3, ge=1, le=1000, description="Most times in a row that one action may bring the same observation."
    )
    answer_at_limit: bool = Field(
        default=True,
        description="Whether a stopped agent is asked for its best answer; a call and tokens are kept for it.",
    )
    tools: SkipJsonSchema[list[Any]] = Field(
        default_factory=list,
        exclude=True,
        description="In Python: tools beside the search and the calculator.",
    )


class ChainOfThoughtContext(ActingContext):
    """Settings of `graphs.chain_of_thought`."""

    samples: int = Field(default=1, ge=1, le=1000, description="Answers sampled at once; the most frequent one wins.")
    seed: int | None = Field(default=None, description="Seed for models that take one.")


class TrialsContext(ReactContext, ChainOfThoughtContext):
    """Settings of `graphs.trials`."""

    actor: Literal["react", "chain_of_thought"] = Field(default="react", description="The strategy that makes a trial.")
    max_trials: int = Field(default=3, ge=1, le=100, description="Most trials of one task.")
    reflection: Literal["none", "last_attempt", "reflexion", "last_attempt_and_reflexion"] = Field(
        default="reflexion", description="What the next trial is told of the earlier ones."
    )
    evaluator: Literal["environment", "exact_match", "judge"] | None = Field(
        default=None,
        description="Who says whether a trial has solved the task: the environment's reward, exact match with the "
        "task's right answer, or a judge that never sees it. Default: the environment if there is one, else the judge.",
    )
    judge_model: Model = Field(
        default=None,
        validation_alias=AliasChoices("judge_model", "JUDGE_MODEL"),
        description="Model of the judge. Default: the same as model.",
    )
    min_score: float = Field(default=0.7, ge=0, le=1, description="Lowest score at which the judge's word counts.")
