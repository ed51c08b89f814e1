"""The embedded default model: deterministic, extractive, without weights and without a network.

It works from the evidence that stands in the conversation: it ranks the sentences that were found, writes an answer of
them with citations, names what is not covered, proposes queries for it, and grades by coverage, support and citation.
It understands nothing, and says what it is in `response_metadata["note"]`.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import invalid_tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from reflective_agents.offline.experience import learn
from reflective_agents.offline.grading import grade
from reflective_agents.offline.planning import subquestion, vote
from reflective_agents.offline.reading import Reading, read
from reflective_agents.offline.schema import Filler
from reflective_agents.offline.summing import words_asked_for
from reflective_agents.offline.support import hold_against_sources
from reflective_agents.offline.town import live
from reflective_agents.offline.writing import NOTE, moves
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.text.digest import digest

QUERY_FIELDS = ("query", "search_query", "q", "question", "keywords", "entity", "topic", "term", "input")
NO_QUERY_FIELDS = frozenset({"answer", "code", "command", "expression", "file", "path", "url"})
"""Names of required strings that are no queries, so that a calculator is not asked for articles."""
TOKEN = 4
"""Characters a token."""

Tool: TypeAlias = JsonMapping


class OfflineChatModel(BaseChatModel):
    """An offline extractive chat model.

    The same messages, seed and n give the same output, byte for byte; only the ids of messages are the framework's.
    Candidate i of a request with seed s is candidate 0 of the same request with seed s + i. Candidates repeat only when
    there are no more different things to do. Four characters of a text, or what is left of it, are a token.

    Every generation of a request with n > 1 carries the usage of the whole request, as OpenAI's do: the input once and
    the output of all candidates. `llm_output["token_usage"]` holds the same numbers.
    """

    model_name: str = "offline"
    """The name under which it reports itself."""
    seed: int = 0
    """Which of the possible next steps comes first. Also accepted by each call."""
    n: int = Field(default=1, ge=1)
    """Candidates a request, from 1. Also accepted by each call. A stream yields the first one only."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens a candidate may have; a longer one is cut: its finish_reason is `length`. Also accepted by each call."""
    temperature: float | None = None
    """Accepted and without effect."""
    stop: list[str] | None = None
    """Texts before which an answer is cut. Also accepted by each call."""
    streaming: bool = False
    """Whether `invoke` goes through the stream."""

    @property
    def _llm_type(self) -> str:
        return "offline-extractive"

    @property
    def _identifying_params(self) -> JsonObject:
        return {"model_name": self.model_name, "seed": self.seed, "n": self.n, "max_tokens": self.max_tokens}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop or self.stop, **kwargs)
        params["ls_provider"] = "offline"
        return params

    def _streaming_disabled(self, **kwargs: Any) -> bool:
        """Disable streaming for several candidates: a stream has room for only one."""
        return kwargs.get("n", self.n) > 1 or super()._streaming_disabled(**kwargs)

    def get_token_ids(self, text: str) -> list[int]:
        """Return one number a token; they mean nothing but their count."""
        return list(range(-(-len(text) // TOKEN)))

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Sequence[Tool] | None = None) -> int:
        """Return the tokens of the messages' texts, of their tool calls, and of the tools' schemas."""
        texts = [json.dumps(convert_to_openai_tool(tool)) for tool in tools or ()]
        for message in messages:
            texts.append(message.text)
            if isinstance(message, AIMessage):
                texts += [f"{call['name']} {json.dumps(call['args'])}" for call in message.tool_calls]
        return sum(map(self.get_num_tokens, texts))

    def bind_tools(
        self,
        tools: Sequence[JsonObject | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | JsonObject | bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model with tools.

        Args:
            tools: what it may call.
            tool_choice: `auto` or None (it decides), `none`, `any` or `required` (it must call one), or the tool that
                it must call, by name or in OpenAI's form.
            **kwargs: bound as they are.
        """
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reading = read(messages, kwargs.get("request", ""))
        seed, tools = kwargs.get("seed", self.seed) or 0, kwargs.get("tools") or []
        limit, stops = kwargs.get("max_tokens", self.max_tokens), stop or self.stop or []
        key = _key_of(messages)
        replies = []
        for variant in range(seed, seed + (kwargs.get("n", self.n) or 1)):
            text, calls = self._candidate(reading, tools, kwargs.get("tool_choice"), variant)
            replies.append(self._reply(text, calls, f"{key}{variant:x}", limit, stops))
        usage = self._usage(messages, tools, replies)
        for reply in replies:
            reply.usage_metadata = usage
        tokens = {key: usage[of] for key, of in _OPENAI_USAGE.items()}  # type: ignore[literal-required]
        generations = [ChatGeneration(message=reply, generation_info=_finish(reply)) for reply in replies]
        return ChatResult(generations=generations, llm_output={"model_name": self.model_name, "token_usage": tokens})

    def _combine_llm_outputs(self, llm_outputs: list[JsonObject | None]) -> JsonObject:
        """Add up the usage of the requests that one `generate` has made."""
        total = Counter(dict.fromkeys(_OPENAI_USAGE, 0))
        for output in llm_outputs:
            if output:
                total.update(output["token_usage"])
        return {"model_name": self.model_name, "token_usage": dict(total)}

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        message = self._generate(messages, stop, **{**kwargs, "n": 1}).generations[0].message
        assert isinstance(message, AIMessage)
        for chunk in _chunks(message):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _candidate(
        self, reading: Reading, tools: Sequence[Tool], choice: str | bool | JsonMapping | None, variant: int
    ) -> tuple[str, list[tuple[str, JsonObject]]]:
        """Return the text of a candidate, or the names and arguments of its tool calls."""
        forced = _forced(reading, tools, choice)
        if forced:
            return "", [(forced["name"], _arguments(reading, forced, variant))]
        if reading.verdict or reading.criticises:
            return str(grade(reading, reading.draft)), []
        words = words_asked_for(reading.scene)
        if reading.turns and words:
            return digest(reading.turns, words), []
        if reading.last:
            return subquestion(reading, variant), []
        if reading.candidates:
            return vote(reading), []
        search_tool = None if choice == "none" else _search_tool(tools)
        steps = moves(reading, search_tool is not None)
        step = steps[variant % len(steps)]
        if search_tool is None or not isinstance(step, tuple):
            return str(step), []
        tool, name = search_tool
        filler = Filler(reading, tool["parameters"], variant)
        return "", [(tool["name"], {**filler.fill(), name: query}) for query in step]

    def _reply(
        self, text: str, calls: list[tuple[str, JsonObject]], key: str, limit: int | None, stops: list[str]
    ) -> AIMessage:
        """Make the message, cut at the limit and before the first of the stops."""
        for mark in stops:
            text = text.split(mark, 1)[0]
        reason = "tool_calls" if calls else "stop"
        calls_made, calls_cut = [], []
        used = self.get_num_tokens(text)
        if limit is not None and used > limit:
            text, reason = text[: limit * TOKEN], "length"
        for number, (name, args) in enumerate(calls):
            spelled = json.dumps(args, ensure_ascii=False)
            used += self.get_num_tokens(f"{name} {spelled}")
            if limit is None or used <= limit:
                calls_made.append(ToolCall(name=name, args=args, id=f"call_{key}_{number}"))
            else:
                reason = "length"
                calls_cut.append(
                    invalid_tool_call(name=name, args="", id=f"call_{key}_{number}", error="cut at max_tokens")
                )
        metadata = {"model_name": self.model_name, "model_provider": "offline", "note": NOTE, "finish_reason": reason}
        return AIMessage(text, tool_calls=calls_made, invalid_tool_calls=calls_cut, response_metadata=metadata)

    def _usage(self, messages: list[BaseMessage], tools: Sequence[Tool], replies: Sequence[AIMessage]) -> UsageMetadata:
        sent = self.get_num_tokens_from_messages(messages, tools)
        made = self.get_num_tokens_from_messages(list(replies))
        return UsageMetadata(input_tokens=sent, output_tokens=made, total_tokens=sent + made)


_OPENAI_USAGE = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "total_tokens": "total_tokens",
}


def _key_of(messages: Sequence[BaseMessage]) -> str:
    """Return what tells this conversation from others, for the ids of tool calls."""
    conversation = "\0".join(f"{message.type} {message.text}" for message in messages)
    return hashlib.sha256(conversation.encode(errors="surrogatepass")).hexdigest()[:16]


def _finish(message: AIMessage) -> JsonObject:
    return {"finish_reason": message.response_metadata["finish_reason"]}


def _arguments(reading: Reading, function: JsonObject, variant: int) -> JsonObject:
    """Fill in a function that must be called: a form that this model knows, or any other by its schema."""
    name = function["name"]
    known = live(name, reading.scene) or hold_against_sources(name, reading) or learn(name, reading)
    if known:
        return known
    arguments: JsonObject = Filler(reading, function.get("parameters", {}), variant).fill()
    return arguments


def _forced(reading: Reading, tools: Sequence[Tool], choice: str | bool | JsonMapping | None) -> JsonObject | None:
    """Return the function that must be called: the one named, or with several to choose from the one to search with."""
    functions: dict[str, JsonObject] = {tool["function"]["name"]: tool["function"] for tool in tools}
    if isinstance(choice, Mapping):
        choice = choice.get("function", {}).get("name", choice.get("name"))
    if not functions or choice in (None, False, "auto", "none"):
        return None
    if str(choice) in functions:
        return functions[str(choice)]
    search_tool = _search_tool(tools) if len(functions) > 1 else None
    return search_tool[0] if search_tool else next(iter(functions.values()))


def _search_tool(tools: Sequence[Tool]) -> tuple[JsonObject, str] | None:
    """Return the function to search with and its field for the query, if one of the tools is fit for it."""
    # By the most usual name first, whichever tool has it; None stands for any other name.
    for field in (*QUERY_FIELDS, None):
        for tool in tools:
            for name in _required_texts(tool["function"].get("parameters", {})):
                if name == field or (field is None and name not in NO_QUERY_FIELDS):
                    return tool["function"], name
    return None


def _required_texts(parameters: JsonMapping) -> Iterator[str]:
    for name in parameters.get("required", ()):
        if parameters["properties"].get(name, {}).get("type") == "string":
            yield name


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    """Yield a message word by word, its tool calls, and at last its metadata and usage."""
    for word in re.findall(r"\s*\S+|\s+$", message.text):
        yield ChatGenerationChunk(message=AIMessageChunk(content=word))
    calls = [(call["name"], json.dumps(call["args"], ensure_ascii=False), call["id"]) for call in message.tool_calls]
    calls += [(str(call["name"]), call["args"] or "", call["id"]) for call in message.invalid_tool_calls]
    for index, (name, args, key) in enumerate(calls):
        part = tool_call_chunk(name=name, args=args, id=key, index=index)
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[part]))
    last = AIMessageChunk(
        content="",
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        chunk_position="last",
    )
    yield ChatGenerationChunk(message=last, generation_info=_finish(message))
