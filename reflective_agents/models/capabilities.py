"""What has been learned about each model at its address: the ways in which it can be asked.

A refusal teaches only if it says that the server does not have something, and if the request then succeeds in another
way. What was learned is told by the event `learned` and kept for an hour; `forget_capabilities` clears it.
"""

import re
import time
import weakref
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from reflective_agents.models.providers import describe_model
from reflective_agents.offline import OfflineChatModel
from reflective_agents.state.context import Acting, Structured
from reflective_agents.state.errors import UnknownModel
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.parameters import BEYOND_OPENAI

ChatModel = Runnable[LanguageModelInput, AIMessage]
"""A chat model, with or without tools bound to it."""

Way = Literal["tools", "schema", "text"]
"""A way of calling tools: the server's own, a JSON object that the server holds the model to, or text in turns."""
Tool = JsonObject | BaseTool
"""A tool, or its description in any provider's form."""

SMALLEST_ASSUMED = 2_048
"""Tokens of a context that are assumed at least, where a server refuses prompts and names no size."""
SAMPLING = ("temperature", "top_p", "presence_penalty", "frequency_penalty", *BEYOND_OPENAI)
"""Options by which words are sampled; models that think by themselves take few of them."""
_FADING = 0.8
"""What the weight of earlier reports is multiplied by at each new one."""
MAX_AGE = 3600.0
"""Seconds after which what was learned is forgotten, since servers change."""


@dataclass
class ModelCapabilities:
    """How one model at one address can be asked."""

    structured: list[Structured]
    """The ways of structured output that are left, the one in use first."""
    proven: bool = False
    """Whether the way in use has brought an output: one bad reply does not speak against it then."""
    tools: bool = True
    """Whether it takes tools; else they are shown in words, and called as a JSON object or as text."""
    n: bool = True
    """Whether one request may ask for several candidates."""
    seed: bool = True
    """Whether a request may carry a seed."""
    logprobs: bool = True
    """Whether a request may ask for log-probabilities."""
    context_tokens: int | None = None
    """Tokens of a prompt and its answer together; None while it is not known."""
    is_assumed: bool = False
    """Whether nobody has named that size: it is three quarters of a request that was too long."""
    talks: bool = False
    """Whether it writes at length beside its tool calls: then no text can be taken for an answer before it ends."""
    images: bool | None = None
    """Whether it takes images; None if nobody says."""
    switches: list[str] = field(default_factory=list)
    """The parameters that may turn its thinking up and down."""
    sampling: list[str] = field(default_factory=lambda: [*SAMPLING])
    """The options of sampling that it takes."""
    shortfalls: Counter[str] = field(default_factory=Counter)
    """How often in a row it took no notice of `n`, or of a method of structured output."""
    learned_at: float | None = None
    """When the first of it was learned from the server, by the clock of `time.monotonic`."""

    reported_tokens: float = field(default=1_000.0, compare=False)
    """Tokens of prompts that its server has reported, the latest ones with most weight. At first: a guess."""
    estimated_tokens: float = field(default=1_500.0, compare=False)
    """What was estimated for the same prompts."""
    is_calibrated: bool = field(default=False, compare=False)
    """Whether its server has reported the tokens of a prompt."""
    cuts_prompts: bool = field(default=False, compare=False)
    """Whether it has cut a prompt without a word."""
    failed_at: float | None = field(default=None, compare=False)
    """When it failed last, where another one could be asked instead."""

    @property
    def tokens_per_estimated(self) -> float:
        """Tokens of a prompt for each estimated one."""
        return self.reported_tokens / self.estimated_tokens

    def calibrate(self, reported: int, estimated: int) -> None:
        """Note how long a prompt was by its server's count, and by the estimate."""
        self.is_calibrated = True
        # Sums and not a mean of ratios, so that a long prompt says more than a short one.
        self.reported_tokens = _FADING * self.reported_tokens + reported
        self.estimated_tokens = _FADING * self.estimated_tokens + estimated

    def assume(self, tokens: int, known: int | None) -> None:
        """Take the context to hold less than a request that was too long, unless its size was named.

        Args:
            tokens: Likely tokens of the request, prompt and answer together.
            known: What was known when it was sent: others have been refused meanwhile.
        """
        is_named = self.context_tokens is not None and not self.is_assumed
        less = min(tokens, known or tokens) * 3 // 4
        if is_named or less < SMALLEST_ASSUMED:
            return
        self.context_tokens = min(less, self.context_tokens or less)
        self.is_assumed = True
        self.learned_at = self.learned_at or time.monotonic()

    def trial(self) -> "ModelCapabilities":
        """Return a copy on which to try what a refusal may mean."""
        return replace(self, structured=[*self.structured], switches=[*self.switches])

    def give_up(self, option: str) -> None:
        """Note that the server does not take an option: `n`, `seed`, `logprobs`, `tools`, `images`,
        `json_schema`, one of `SAMPLING`, or a switch of thinking."""
        self.learned_at = self.learned_at or time.monotonic()
        if option in ("n", "seed", "logprobs", "tools", "images"):
            setattr(self, option, False)
        if option == "json_schema":
            self.give_up_method("json_schema")
        self.switches = [switch for switch in self.switches if switch != option]
        self.sampling = [name for name in self.sampling if name != option]

    def give_up_method(self, method: Structured) -> bool:
        """Note that structured output does not work by a method; False if there is no other one."""
        if len(self.structured) < 2:
            return False
        self.learned_at = self.learned_at or time.monotonic()
        self.structured = [left for left in self.structured if left != method]
        self.proven = False
        return True

    def fell_short(self, feature: str) -> bool:
        """Note that the server took no notice of a feature; True from the second time in a row on: once is chance."""
        self.shortfalls[feature] += 1
        return self.shortfalls[feature] > 1


_by_name: dict[Hashable, ModelCapabilities] = {}
_of_objects: dict[int, ModelCapabilities] = {}


def capabilities_of(model: BaseChatModel) -> ModelCapabilities:
    """Return what is known of a model; at first, what its provider says of it."""
    capabilities = _of_objects.get(id(model))
    if capabilities is None:
        capabilities = _first(model)
        address = address_of(model)
        if address:
            name = str(getattr(model, "model_name", None) or getattr(model, "model", None))
            capabilities = _by_name.setdefault((type(model).__name__, name, address), capabilities)
        _of_objects[id(model)] = capabilities
        # Another object may get the same id once this one is gone.
        weakref.finalize(model, _of_objects.pop, id(model), None)
    if capabilities.learned_at is not None and time.monotonic() - capabilities.learned_at > MAX_AGE:
        # In place: all model objects of this name and address share it.
        vars(capabilities).update(vars(_first(model)))
    return capabilities


def way_of_acting(capabilities: ModelCapabilities, acting: Acting) -> Way:
    """Return the way in which a model calls tools: the one that is set, else the best that its server takes."""
    if acting not in ("auto", "paper"):
        return cast(Way, acting)
    if capabilities.tools:
        return "tools"
    return "schema" if "json_schema" in capabilities.structured else "text"


def forget_capabilities() -> None:
    """Forget what was learned about all models."""
    _by_name.clear()
    _of_objects.clear()


def address_of(model: BaseChatModel) -> str:
    """Return where a model is served; empty if it does not say."""
    client = getattr(model, "root_async_client", None)
    return str(getattr(client, "base_url", "") or "")


def is_openais(model: BaseChatModel) -> bool:
    """Tell whether a model is served by OpenAI itself, which shows a model the schema that its answer has to follow;
    servers of one's own only hold the answer to it."""
    return "api.openai.com" in address_of(model)


def speaks_openai(model: BaseChatModel) -> bool:
    """Tell whether a model is asked by OpenAI's chat completions."""
    return hasattr(model, "openai_api_base") and getattr(model, "use_responses_api", None) is not True


def _first(model: BaseChatModel) -> ModelCapabilities:
    profile: JsonObject = dict(getattr(model, "profile", None) or {})
    speaks_openai = hasattr(model, "openai_api_base")
    own_server = speaks_openai and not is_openais(model)
    capabilities: list[Structured] = ["tool", "text"]
    # Servers of one's own hold a model to a schema, and often take no notice of a forced tool, as llama.cpp's.
    if own_server:
        capabilities = ["json_schema", "tool", "text"]
    elif speaks_openai:
        capabilities = ["tool", "json_schema", "text"]
    has_tools = profile.get("tool_calling") is not False and binds_tools(model)
    if not has_tools:
        capabilities.remove("tool")
    switches = ["chat_template_kwargs", "reasoning_effort"] if own_server else ["reasoning_effort"]
    # LangChain's profile knows the provider's model, and a server of one's own may call anything by that name.
    known: JsonObject = {} if own_server else profile
    return ModelCapabilities(
        structured=capabilities,
        tools=has_tools,
        context_tokens=known.get("max_input_tokens"),
        images=False if isinstance(model, OfflineChatModel) else known.get("image_inputs"),
        switches=switches if speaks_openai else [],
    )


def binds_tools(model: BaseChatModel) -> bool:
    """Tell whether a chat model has a way to be given tools."""
    return type(model).bind_tools is not BaseChatModel.bind_tools


def with_tools(model: BaseChatModel, tools: Sequence[Tool], tool_choice: str | None = None) -> ChatModel:
    """Bind tools to a model. One that has no way for it is shown them as text."""
    choice = {} if tool_choice is None else {"tool_choice": tool_choice}
    if binds_tools(model):
        return model.bind_tools(tools, **choice)
    return model.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **choice)


def takes_n(model: ChatModel) -> bool:
    """Tell whether one request may ask for several candidates."""
    base, _ = unbind(model)
    return _sends(base, "n") and capabilities_of(base).n


def takes_seed(model: ChatModel) -> bool:
    """Tell whether a request may carry a seed."""
    base, _ = unbind(model)
    return _sends(base, "seed") and capabilities_of(base).seed


def takes_logprobs(model: ChatModel) -> bool:
    """Tell whether a request may ask for the reply's log-probabilities; OpenAI's reasoning models refuse that."""
    base, _ = unbind(model)
    return _sends(base, "logprobs") and takes_stop(model) and capabilities_of(base).logprobs


def _sends(base: BaseChatModel, option: str) -> bool:
    """Tell whether a model has an option as a field, by an API that takes it: the Responses API has none of these."""
    return option in type(base).model_fields and getattr(base, "use_responses_api", None) is not True


def takes_stop(model: ChatModel) -> bool:
    """Tell whether a request may name texts that stop the reply; OpenAI's reasoning models refuse that."""
    base, _ = unbind(model)
    return not (base._llm_type == "openai-chat" and re.match(r"o\d|gpt-5", name_of(base)))


def unbind(model: ChatModel) -> tuple[BaseChatModel, JsonObject]:
    """Return the model itself, and the options that are bound to it.

    Raises:
        UnknownModel: if it is no chat model.
    """
    if isinstance(model, RunnableBinding):
        base, inner = unbind(model.bound)
        return base, {**inner, **model.kwargs}
    if not isinstance(model, BaseChatModel):
        raise UnknownModel(f"a chat model is needed, not {type(model).__name__}")
    return model, {}


def name_of(model: ChatModel) -> str:
    """Return the name under which a model is known."""
    base, _ = unbind(model)
    return describe_model(base)["model_name"]


def is_forced(tool_choice: object) -> bool:
    """Tell whether a request leaves the model no choice but to call one tool."""
    return isinstance(tool_choice, dict) or tool_choice not in (None, "auto", "none", "any", "required", True, False)
