"""What has been learned about each model at its address: the ways in which it can be asked.

It is kept for the life of the process and never stored: another process asks anew.
"""

import re
import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableBinding

from reflective_agents.models.providers import describe_model
from reflective_agents.offline import OfflineChatModel
from reflective_agents.state.context import Structured
from reflective_agents.state.errors import UnknownModel
from reflective_agents.state.json_types import JsonObject

ChatModel = Runnable[LanguageModelInput, AIMessage]
"""A chat model, with or without tools bound to it."""

Tell = Callable[..., None]
"""Tells an event: its name, and its data by name."""

_CONTEXT = re.compile(
    r"context (?:length|size|window)|maximum context|exceed_context|(?:prompt|input) is too long|too many tokens",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?:n_ctx\D{1,4}|context (?:length|size|window)\D{1,40}?|maximum (?:context )?(?:length )?of )(\d{3,8})",
    re.IGNORECASE,
)
_N = re.compile(r"(?<![\w'])n(?![\w'])|['\"`]n['\"`]")
_TOOLS = re.compile(r"\btools?\b|\bfunctions?\b|tool_call", re.IGNORECASE)


@dataclass
class ModelCapabilities:
    """How one model at one address can be asked."""

    structured: list[Structured]
    """The ways of structured output that are left, the one in use first."""
    proven: bool = False
    """Whether the way in use has brought an output: one bad reply does not speak against it then."""
    tools: bool = True
    """Whether it takes tools; else they are shown as text."""
    n: bool = True
    """Whether one request may ask for several candidates."""
    logprobs: bool = True
    """Whether a request may ask for log-probabilities."""
    context_tokens: int | None = None
    """Tokens of a prompt and its answer together; None while it is not known."""
    talks: bool = False
    """Whether it writes at length beside its tool calls: then no text can be taken for an answer before it ends."""
    images: bool | None = None
    """Whether it takes images; None if nobody says."""
    switches: list[str] = field(default_factory=list)
    """The parameters that may turn its thinking up and down."""

    def next_structured(self) -> bool:
        """Go on to the next way of structured output; False if there is none."""
        if len(self.structured) > 1:
            del self.structured[0]
            self.proven = False
            return True
        return False


_known: dict[Hashable, ModelCapabilities] = {}
_of_objects: dict[int, ModelCapabilities] = {}


def capabilities_of(model: BaseChatModel) -> ModelCapabilities:
    """Return what is known of a model; at first, what its provider says of it."""
    capabilities = _of_objects.get(id(model))
    if capabilities is None:
        address = address_of(model)
        name = str(getattr(model, "model_name", None) or getattr(model, "model", None))
        capabilities = (
            _known.setdefault((type(model).__name__, name, address), _first(model)) if address else _first(model)
        )
        _of_objects[id(model)] = capabilities
        weakref.finalize(model, _of_objects.pop, id(model), None)
    return capabilities


def forget_capabilities() -> None:
    """Forget what was learned about all models."""
    _known.clear()
    _of_objects.clear()


def address_of(model: BaseChatModel) -> str:
    """Return where a model is served; empty if it does not say."""
    client = getattr(model, "root_async_client", None)
    return str(getattr(client, "base_url", "") or "")


def speaks_openai(model: BaseChatModel) -> bool:
    """Tell whether a model is asked by OpenAI's chat completions."""
    return hasattr(model, "openai_api_base") and getattr(model, "use_responses_api", None) is not True


def _first(model: BaseChatModel) -> ModelCapabilities:
    profile: JsonObject = dict(getattr(model, "profile", None) or {})
    speaks_openai, address = hasattr(model, "openai_api_base"), address_of(model)
    own_server = speaks_openai and "api.openai.com" not in address
    capabilities: list[Structured] = ["tool", "text"]
    if own_server:
        capabilities = ["json_schema", "tool", "text"]
    elif speaks_openai:
        capabilities = ["tool", "json_schema", "text"]
    if profile.get("tool_calling") is False:
        capabilities.remove("tool")
    switches = ["chat_template_kwargs", "reasoning_effort"] if own_server else ["reasoning_effort"]
    return ModelCapabilities(
        structured=capabilities,
        tools=profile.get("tool_calling") is not False,
        context_tokens=None if own_server else profile.get("max_input_tokens"),
        images=False if isinstance(model, OfflineChatModel) else None if own_server else profile.get("image_inputs"),
        switches=switches if speaks_openai else [],
    )


def takes_n(model: ChatModel) -> bool:
    """Tell whether one request may ask for several candidates."""
    base, _ = unbind(model)
    known = "n" in type(base).model_fields and getattr(base, "use_responses_api", None) is not True
    return known and capabilities_of(base).n


def takes_seed(model: ChatModel) -> bool:
    """Tell whether a request may carry a seed."""
    base, _ = unbind(model)
    return "seed" in type(base).model_fields and getattr(base, "use_responses_api", None) is not True


def takes_logprobs(model: ChatModel) -> bool:
    """Tell whether a request may ask for the reply's log-probabilities; OpenAI's reasoning models refuse that."""
    base, _ = unbind(model)
    known = "logprobs" in type(base).model_fields and getattr(base, "use_responses_api", None) is not True
    return known and takes_stop(model) and capabilities_of(base).logprobs


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


def is_too_long(text: str) -> bool:
    """Tell whether an error says that the prompt does not fit into the context."""
    return bool(_CONTEXT.search(text))


def learn_context_size(capabilities: ModelCapabilities, text: str, name: str, tell: Tell) -> None:
    """Take the size of the context from an error, if it names one."""
    numbers = [int(number) for number in _NUMBER.findall(text)]
    if numbers:
        capabilities.context_tokens = min(numbers)
        tell("learned", model=name, context_tokens=capabilities.context_tokens)


def learn(capabilities: ModelCapabilities, text: str, asked: JsonObject, name: str, tell: Tell) -> bool:
    """Learn from a refusal what not to ask for again: several candidates, log-probabilities, tools, or a
    switch of thinking.

    Args:
        ways: What is known.
        text: The error.
        asked: The options of the request.
        name: Name of the model.
        tell: Tells what was learned.

    Returns:
        Whether anything was learned, so that the request may be sent again in another way.
    """
    sent = {**asked, **asked.get("extra_body", {})}
    named = next((switch for switch in capabilities.switches if switch in sent and switch in text), None)
    if named is None and "thinking" in text.casefold() and capabilities.switches:
        named = next((switch for switch in capabilities.switches if switch in sent), None)
    if named:
        capabilities.switches = [switch for switch in capabilities.switches if switch != named]
        tell("learned", model=name, refused=named)
    elif sent.get("logprobs") and capabilities.logprobs and "logprobs" in text:
        capabilities.logprobs = False
        tell("learned", model=name, refused="logprobs")
    elif sent.get("n", 1) > 1 and capabilities.n and _N.search(text):
        capabilities.n = False
        tell("learned", model=name, refused="n")
    elif sent.get("tools") and capabilities.tools and _TOOLS.search(text) and not is_forced(sent.get("tool_choice")):
        capabilities.tools = False
        tell("learned", model=name, refused="tools", instead="text")
    else:
        return False
    return True
