"""A chat model that answers by a script: no network, no key, the same answer for the same question.

model = FakeChatModel(reply=lambda request: {"score": 0.5} if request.schema == "Judgement" else "Paris")
await model.with_structured_output(Judgement).ainvoke("How good is it?")
model.calls, model.waves, model.max_in_flight
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.exceptions import ModelInvalidRequestError
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from reflective_agents.state.json_types import JsonObject
from reflective_agents.testing.meter import Latency, Meter, Metered, seconds
from reflective_agents.testing.script import Choice, Reply, Request, Script, ask, first_error, to_choice, usage
from reflective_agents.testing.wire import Piece, build_request, find_fault, pieces


class FakeChatModelWithoutN(Metered, BaseChatModel):
    """A scripted chat model that gives one candidate a call: it has no field `n` and refuses the argument.

    Tokens: a quarter of the characters, and one; for the messages' text, and for each candidate. Conversations that
    a provider refuses (unanswered tool calls) are refused.
    """

    reply: Script
    """What is answered: a function of the request."""
    latency: Latency = 0.0
    """Seconds each call takes, or a function of the request. `waves` says nothing about calls that take no time."""
    seed: int | None = None
    max_tokens: int | None = None
    """Most tokens of a candidate; it is cut there, with finish_reason "length"."""
    _meter: Meter = PrivateAttr(default_factory=Meter)

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(
        self,
        tools: Sequence[JsonObject | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | JsonObject | bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools, of any kind that LangChain can convert; `tool_choice` as for ChatOpenAI."""
        choice = {} if tool_choice is None else {"tool_choice": tool_choice}
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        with self._meter.call(self._request(messages, stop, kwargs)) as request:
            time.sleep(seconds(self.latency, request))
            return _result(self.reply, request)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        with self._meter.call(self._request(messages, stop, kwargs)) as request:
            await asyncio.sleep(seconds(self.latency, request))
            return _result(self.reply, request)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        with self._meter.call(self._request(messages, stop, kwargs)) as request:
            time.sleep(seconds(self.latency, request))
            yield from _chunks(self.reply, request)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        with self._meter.call(self._request(messages, stop, kwargs)) as request:
            await asyncio.sleep(seconds(self.latency, request))
            for chunk in _chunks(self.reply, request):
                yield chunk
                # Lets others run between two pieces, as a network does.
                await asyncio.sleep(0)

    def _combine_llm_outputs(self, llm_outputs: list[JsonObject | None]) -> JsonObject:
        """Sum up the usage over all prompts of one `generate`."""
        total: Counter[str] = Counter()
        for output in llm_outputs:
            total.update((output or {}).get("token_usage", {}))
        return {"token_usage": dict(total), "model_name": "fake"}

    def _request(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: JsonObject) -> Request:
        if "n" in kwargs and "n" not in type(self).model_fields:
            raise TypeError(f"{type(self).__name__} got an unexpected keyword argument 'n'")
        if refusal := find_fault(messages):
            raise ModelInvalidRequestError(refusal)
        shape: JsonObject = {
            name: kwargs[name] for name in ("tools", "tool_choice", "response_format") if name in kwargs
        }
        shape |= {name: kwargs.get(name, getattr(self, name)) for name in ("seed", "max_tokens")}
        shape["n"] = kwargs.get("n") or getattr(self, "n", 1)
        return build_request(messages, stop=stop, **shape)


class FakeChatModel(FakeChatModelWithoutN):
    """A scripted chat model that gives `n` candidates a call, as OpenAI's chat completions do.

    Every candidate's message carries the usage of the whole call. A streamed call interleaves its candidates in one
    message: who wants `n` of them passes `stream=False`.
    """

    n: int = 1
    """Number of candidates a call gives."""
    logprobs: bool | None = None
    """Accepted here and with each call: a reply has log-probabilities if its script gives them, as `likely` does."""


def _ask(script: Script, request: Request) -> tuple[list[Reply], list[Choice]]:
    replies = ask(script, request)
    if error := first_error(replies):
        raise error
    return replies, [to_choice(reply, request, index) for index, reply in enumerate(replies)]


def _result(script: Script, request: Request) -> ChatResult:
    replies, choices = _ask(script, request)
    spent = _usage(request, choices)
    generations = []
    for reply, choice in zip(replies, choices, strict=True):
        info = {"finish_reason": choice.finish_reason}
        generations.append(ChatGeneration(message=_message(reply, choice, spent), generation_info=info))
    names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens", "total_tokens": "total_tokens"}
    token_usage = {name: spent[key] for key, name in names.items()}  # type: ignore[literal-required]
    return ChatResult(generations=generations, llm_output={"token_usage": token_usage, "model_name": "fake"})


def _message(reply: Reply, choice: Choice, spent: UsageMetadata) -> AIMessage:
    if isinstance(reply, AIMessage):
        return reply.model_copy(update={"usage_metadata": reply.usage_metadata or spent})
    message = AIMessage(choice.content or "", usage_metadata=spent)
    for call in choice.calls:
        try:
            args = json.loads(call.arguments)
        except json.JSONDecodeError as error:
            broken = invalid_tool_call(name=call.name, args=call.arguments, id=call.id, error=str(error))
            message.invalid_tool_calls.append(broken)
        else:
            message.tool_calls.append(tool_call(name=call.name or "", args=args, id=call.id))
    return message


def _chunks(script: Script, request: Request) -> Iterator[ChatGenerationChunk]:
    _, choices = _ask(script, request)
    for piece in pieces(choices):
        yield ChatGenerationChunk(message=_chunk(piece))
    last = AIMessageChunk(content="", usage_metadata=_usage(request, choices), chunk_position="last")
    yield ChatGenerationChunk(message=last, generation_info={"finish_reason": choices[0].finish_reason})


def _chunk(piece: Piece) -> AIMessageChunk:
    if piece.call is None:
        return AIMessageChunk(content=piece.content)
    call = piece.call
    part = tool_call_chunk(name=call.name, args=call.arguments, id=call.id, index=piece.position)
    return AIMessageChunk(content="", tool_call_chunks=[part])


def _usage(request: Request, choices: Sequence[Choice]) -> UsageMetadata:
    prompt, completion = usage(request, choices)
    return UsageMetadata(input_tokens=prompt, output_tokens=completion, total_tokens=prompt + completion)
