"""Settings that several strategies share: to search the web, to act in environments, to grow a tree."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, NotRequired, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
    with_config,
)
from typing_extensions import TypedDict

from reflective_agents.state.callers_schemas import Bounds, check_forms
from reflective_agents.state.context import Acting, Context, Model, from_json
from reflective_agents.state.effect import (
    IN_ENVIRONMENT,
    ON_OPEN_QUESTIONS,
    WITHOUT_OWN_AGENT,
    Applies,
    InRuns,
    Replication,
    only_with,
)
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.named import Agent, Engine, World, kind_of
from reflective_agents.state.own_tools import Tools
from reflective_agents.state.policy import OPERATOR, TEXT, Operator
from reflective_agents.state.verifiers import VerifiedContext


@with_config(ConfigDict(extra="forbid"))
class OwnExample(TypedDict):
    """A task, and how it is solved: by `acts`, each a thought, an action and its observation, for agents that act; by a
    `reasoning` that ends in the answer, for those that answer at once."""

    task: Annotated[str, Field(min_length=1)]
    acts: NotRequired[list[tuple[str, str, str]]]
    reasoning: NotRequired[str]


_SEARCHED = Applies("in strategies that search", lambda settings: settings.searches or settings.search == "none")
_LOCAL = Applies("with search=local", lambda settings: settings.search in (None, "local"))


class SearchContext(Context):
    """Settings of strategies that search for evidence."""

    searches: ClassVar[bool] = True
    """Whether a run does so, or only hands the settings on."""

    search: Annotated[Engine, _SEARCHED] = Field(
        default=None,
        description="Search engine: 'tavily' (needs TAVILY_API_KEY), 'local' (the corpus), 'none', "
        "'searxng' (needs SEARXNG_URL), 'pubmed', 'wikipedia', with the extra community 'duckduckgo', 'arxiv'; in "
        "Python also a retriever of LangChain's, or a function. Default: tavily if TAVILY_API_KEY is set, else local.",
    )
    corpus: Annotated[str | None, OPERATOR, _SEARCHED, _LOCAL, ON_OPEN_QUESTIONS] = Field(
        default=None,
        description="Folder of text, Markdown, HTML or PDF for the local search. Default: the shipped articles.",
    )


_VERIFIED = Applies("in strategies that hold their answer against its sources", lambda settings: settings.cites)


class SourcedContext(Context):
    """Settings of strategies whose answers rest on sources."""

    judges: ClassVar[bool] = True
    cites: ClassVar[bool] = True
    """Whether the answer itself is held against its sources, and not something else."""

    verify_sources: Annotated[bool, _VERIFIED, ON_OPEN_QUESTIONS] = Field(
        default=True,
        description="Whether a model checks, with one more call, that the cited sources support each fact of the "
        "answer; a sentence that they do not support is revised once. Skipped where something else verifies the "
        "answer.",
    )
    judge_model: Model = Field(
        default=None,
        validation_alias=AliasChoices("judge_model", "JUDGE_MODEL"),
        description="Model that checks the answer against its sources. Default: the same as model.",
    )


class TaskContext(SearchContext, VerifiedContext):
    """Settings of strategies that may be given a task of an environment."""

    environment: World = Field(
        default=None, description="Kind of tasks, with its actions and its reward. Default: open questions, with tools."
    )
    docstore: Annotated[
        str | None,
        Operator(lambda value: value == "wikipedia"),
        IN_ENVIRONMENT,
        Applies("in strategies that act step by step", lambda settings: getattr(settings, "acts", True)),
    ] = Field(
        default=None,
        description="Articles of the environments questions and fever: 'wikipedia', a folder or a JSONL file. "
        "Default: those that the task brings.",
    )
    unsafe_code: Annotated[bool, OPERATOR, IN_ENVIRONMENT] = Field(
        default=False, description="Whether programs may run as plain processes where bubblewrap is missing."
    )
    examples: bool = Field(default=True, description="Whether the prompt shows worked examples (few-shot).")
    own_examples: Annotated[list[OwnExample], BeforeValidator(from_json), TEXT] = Field(
        default=[],
        max_length=50,
        description='Worked examples in place of the environment\'s: [{"task": ..., "reasoning": ..., "acts": '
        "[[thought, action, observation], ...]}].",
    )

    @property
    def few_shot(self) -> "bool | list[OwnExample]":
        """The worked examples that are shown: one's own, or whether those of the environment are."""
        return self.own_examples if self.examples and self.own_examples else self.examples

    @property
    def environment_name(self) -> str:
        """The name of the environment; empty for open questions."""
        return getattr(self.environment, "name", None) or self.environment or ""

    @property
    def runs_tests(self) -> bool:
        """Whether answers are programs, of which the environment runs tests that the model writes."""
        return bool(getattr(kind_of(self.environment), "runs_tests", False))


class AgentContext(Context):
    """Settings of strategies whose actor may be an agent of one's own."""

    agent: Annotated[Agent, InRuns("the middleware is part of an agent")] = Field(
        default=None,
        exclude=True,
        description="In Python: a LangGraph or LangChain agent that does the work, with a model and tools of its own.",
    )


class ToolsContext(SearchContext):
    """Settings of strategies that act with tools."""

    tools: Annotated[Tools, ON_OPEN_QUESTIONS, WITHOUT_OWN_AGENT] = Field(
        default_factory=list,
        exclude=True,
        description="In Python: tools beside the search; yours replace built-in ones of the same name.",
    )


class ActingContext(TaskContext):
    """Settings of strategies that act one step after another: in an environment, or with tools."""

    @property
    def acts(self) -> bool:
        """Whether a run takes steps, each on top of those before it."""
        return True

    max_context_tokens: Annotated[
        int, Applies("in strategies that act step by step", lambda settings: settings.acts)
    ] = Field(
        default=100_000, ge=500, le=10_000_000, description="Longest prompt, in estimated tokens; older steps are cut."
    )


_NOT_ON_PAPER = Applies(
    "as paper in react, in trials, and in an environment",
    lambda settings: (
        settings.acting != "paper" or settings.environment is not None or not isinstance(settings, TreeContext)
    ),
)


class StepsContext(Context):
    """Settings of strategies whose model writes steps, each after what the last one has brought."""

    acting: Annotated[Acting, WITHOUT_OWN_AGENT, _NOT_ON_PAPER] = Field(
        default="auto",
        description="How steps are asked for: 'tools' (native calls), 'schema' (a JSON object that the server holds "
        "the model to), 'text' (text, in turns) or 'paper' (one long text, as in the papers). Default: whatever the "
        "model can do, which is found out.",
    )


_NAME = re.compile(r"[\w-]{1,64}", re.ASCII)


TOOLS = Bounds(characters=200_000, values=10_000)
"""How much the parameters of a caller's tools may hold together."""


def parameters_of(tool: JsonMapping) -> JsonObject:
    """Return the schema of what a caller's tool takes, an object."""
    return {"type": "object", "properties": {}} | (tool["function"].get("parameters") or {})


def _check_tools(tools: list[JsonObject]) -> list[JsonObject]:
    for tool in tools:
        function = tool.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError('a tool is {"type": "function", "function": {"name": ..., "parameters": ...}}')
        assert isinstance(function, dict)
        if not isinstance(function.get("parameters") or {}, dict):
            raise ValueError(f"the parameters of {name} are not a JSON schema")
    check_forms([parameters_of(tool) for tool in tools], TOOLS)
    return tools


_DEMANDED = Applies(
    "with client_tools that every worker is shown as tools, so without acting=paper",
    lambda settings: settings.can_demand_calls,
)


class AskingContext(Context):
    """Settings of strategies that may ask their caller to carry out tools."""

    client_tools: Annotated[list[JsonObject], BeforeValidator(from_json), AfterValidator(_check_tools), TEXT] = Field(
        default=[],
        max_length=128,
        description="Tools that the caller carries out, declared as OpenAI's clients do. A call of one pauses the run, "
        "which is resumed with its result.",
    )
    call_client_tool: Annotated[bool, _DEMANDED, WITHOUT_OWN_AGENT] = Field(
        default=False,
        description="Whether the next step has to call one of the client_tools; of workers, the next step of each.",
    )

    @property
    def can_demand_calls(self) -> bool:
        """Whether the next step of a run, and of each of its workers, can be made a call of the caller's tools."""
        return bool(self.client_tools)

    @model_validator(mode="after")
    def _act_in_one_place(self) -> Self:
        if self.client_tools and getattr(self, "environment", None) is not None:
            raise ValueError(
                "an environment has actions of its own: leave it out, or client_tools, the client's own tools"
            )
        return self


class ChoosingContext(Context):
    """Settings of strategies that choose among several answers."""

    choose: Literal["score", "pairs"] = Field(
        default="score",
        description="How the answer is chosen: by its score (a reward, a verifier, a judge), the most frequent of "
        "equals; or by pairs: a judge compares answers that nothing has verified, two at a time, in both orders.",
    )
    comparisons: Annotated[int, only_with("choose", "pairs")] = Field(
        default=10, ge=1, le=200, description="Most comparisons, of two calls each, as far as the limits allow them."
    )

    @property
    def tries_several(self) -> bool:
        """Always: it chooses among them."""
        return True

    @property
    def way_to_choose(self) -> str:
        """What `choose` comes to: by score, where the way that is set has no effect; one that the caller gives is
        refused there."""
        return "score" if self.applies_only("choose") else self.choose


Preset = Mapping[str, str | float | bool | None]
"""Defaults of settings by name."""


class TreeContext(TaskContext):
    """Settings of every tree search."""

    judges: ClassVar[bool] = True
    task_presets: ClassVar[Preset] = {}
    """Defaults in an environment that has no presets of its own for the strategy."""

    judge_model: Model = Field(
        default=None,
        validation_alias=AliasChoices("judge_model", "JUDGE_MODEL"),
        description="Model of the judge. Default: the same as model.",
    )
    max_expansions: int = Field(default=10, ge=0, le=10_000, description="Most expansions in one run.")
    max_depth: int = Field(
        default=5, ge=1, le=100, description="Greatest depth of a node of the tree; the root's children are at 1."
    )
    parallel: int = Field(
        default=1, ge=1, le=64, description="Expansions in flight at once; with 1 and a seed, runs grow the same tree."
    )
    min_score: float = Field(
        default=0.7,
        ge=0,
        le=1,
        description="Lowest score at which an answer that the judge calls solved ends the search.",
    )
    gold_reward: Annotated[bool, IN_ENVIRONMENT, Replication("LATS")] = Field(
        default=False,
        description="Whether the environment may reward answers by the task's right answer within the search.",
    )

    @property
    def tries_several(self) -> bool:
        """Always: a tree grows by what differs."""
        return True

    @model_validator(mode="after")
    def _take_presets(self) -> Self:
        presets = {} if self.environment is None else presets_of(self.environment, type(self))
        if unknown := presets.keys() - type(self).model_fields:
            raise ValueError(f"the environment has presets for settings that do not exist: {', '.join(unknown)}")
        self._preset(presets)
        return self


def presets_of(environment: Any, schema: type[TreeContext]) -> Preset:
    """Return the settings that an environment presets for a strategy, else those that the strategy has for tasks.

    Args:
        environment: A name or an object.
        schema: The settings of the strategy, whose module has its name.
    """
    presets: Mapping[str, Preset] = getattr(kind_of(environment), "presets", {})
    # A search that builds upon another's settings, as auto does on those of LATS, takes its presets too.
    names = [part.__module__.rpartition(".")[2] for part in schema.__mro__]
    for name in names:
        if name in presets:
            return presets[name]
    return schema.task_presets


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
