"""What a scripted model is asked and what it answers: shared by the fake chat model and the local OpenAI server.

A script is a function `Request -> Reply`. It is a function of what is asked and never a queue, because under a fan-out
the order of arrival is random. The same script drives `FakeChatModel` and `OpenAIServer`.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel

from reflective_agents.state.json_types import JsonMapping, JsonObject

FinishReason: TypeAlias = Literal["stop", "tool_calls", "length"]


@dataclass(frozen=True)
class ToolUse:
    """A reply that calls a tool. `args` given as text is sent as it is, which is how broken JSON is scripted."""

    name: str
    args: JsonMapping | str = field(default_factory=dict)


Reply: TypeAlias = str | JsonObject | BaseModel | ToolUse | Sequence[ToolUse] | AIMessage | Exception
"""Answer text; arguments of the forced schema (dict or model); tool calls; a ready message; an error to raise."""

Script: TypeAlias = Callable[["Request"], Reply | Sequence[Reply]]
"""A list (other than of tool uses) holds one reply for each candidate; a short one is gone through again."""


@dataclass(frozen=True)
class Request:
    """What one candidate of a reply is asked for."""

    messages: tuple[BaseMessage, ...]
    tools: tuple[str, ...] = ()
    """Names of the tools bound."""
    tool_choice: str | None = None
    """None, "auto", "none", "required" or the name of one tool."""
    schema: str | None = None
    """The form asked for: the one tool that is forced, or the name of the JSON schema of the response format."""
    as_json: bool = False
    """Whether the form is asked for as JSON text (a response format) and not as a tool call."""
    n: int = 1
    """Number of candidates the call asks for."""
    index: int = 0
    """Which of the n candidates this is, from 0."""
    seed: int | None = None
    max_tokens: int | None = None
    """Most tokens a candidate may have; it is cut there."""
    stop: tuple[str, ...] = ()
    """Texts before which the answer's text ends."""
    attempt: int = 0
    """How many times this very content has been asked before."""
    schemas: Mapping[str, JsonObject] = field(default_factory=dict, repr=False, compare=False)
    """JSON schema of each tool's arguments, and of the response format, by name."""

    @property
    def text(self) -> str:
        """The text of all messages, joined by newlines."""
        return "\n".join(str(message.text) for message in self.messages)

    @property
    def last(self) -> str:
        """The text of the last message; empty without messages."""
        return str(self.messages[-1].text) if self.messages else ""

    @property
    def key(self) -> str:
        """A digest of what is asked, the same for the same content whatever the messages' ids."""
        messages = [
            [m.type, m.content, getattr(m, "tool_calls", None), getattr(m, "tool_call_id", None)] for m in self.messages
        ]
        content = [messages, self.tools, self.tool_choice, self.schema, self.n, self.seed]
        return hashlib.sha256(json.dumps(content, default=str).encode()).hexdigest()


@dataclass(frozen=True)
class Call:
    """A tool call as the wire carries it: its arguments are JSON text, or a piece of it (then without id and name)."""

    arguments: str
    id: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Choice:
    """One candidate as the wire carries it."""

    content: str | None
    calls: tuple[Call, ...] = ()
    finish_reason: FinishReason = "stop"
    logprobs: JsonMapping | None = None
    """Log-probabilities of the text's tokens, as OpenAI tells them; see `likely`."""

    @property
    def size(self) -> int:
        """Characters of the text and of all tool arguments."""
        arguments = sum(len(call.arguments) for call in self.calls)
        return len(self.content or "") + arguments

    def cut(self, size: int) -> "Choice":
        """Cut this candidate off after `size` characters; unchanged if it is not longer."""
        if self.size <= size:
            return self
        content = self.content[:size] if self.content is not None else None
        left, calls = size - len(content or ""), []
        for call in self.calls:
            if left > 0:
                calls.append(replace(call, arguments=call.arguments[:left]))
                left -= len(calls[-1].arguments)
        return Choice(content, tuple(calls), "length")


def likely(text: str, *probabilities: float) -> AIMessage:
    """Build a reply with log-probabilities, as a provider gives them when asked for `logprobs`.

    Args:
        text: The answer; its tokens are its words, each with the blanks that follow it, and its line breaks.
        probabilities: That of each token of the first line, of the second, and so on; the last one holds for the rest.
    """
    content, line = [], 0
    for token in re.findall(r"\n|[^\S\n]*\S+[^\S\n]*", text):
        logprob = math.log(probabilities[min(line, len(probabilities) - 1)])
        content.append({"token": token, "logprob": logprob, "bytes": [*token.encode()], "top_logprobs": []})
        line += token == "\n"
    return AIMessage(text, response_metadata={"logprobs": {"content": content, "refusal": None}})


def count_tokens(size: int) -> int:
    """Count the tokens of a text of `size` characters, by the rule of this room: a quarter of them, plus one."""
    return size // 4 + 1


def usage(request: Request, choices: Sequence[Choice]) -> tuple[int, int]:
    """Count the tokens of a whole call: those of all its messages' text, and those of all candidates."""
    return count_tokens(len(request.text)), sum(count_tokens(choice.size) for choice in choices)


def ask(script: Script, request: Request) -> list[Reply]:
    """Return a reply for each of the `request.n` candidates."""
    return [_pick(script(replace(request, index=index)), index) for index in range(request.n)]


def first_error(replies: Sequence[Reply]) -> Exception | None:
    """Return the first of the replies that is an error, for then the whole call fails."""
    return next((reply for reply in replies if isinstance(reply, Exception)), None)


def to_choice(reply: Reply, request: Request, index: int = 0) -> Choice:
    """Convert a reply to candidate number `index`, cut at the request's `stop` and `max_tokens`.

    Raises:
        TypeError: if the reply is of no known kind, or fills in a schema though none is forced.
    """
    choice = _choice(reply, request, index)
    for stop in request.stop:
        if choice.content:
            choice = replace(choice, content=choice.content.split(stop)[0])
    # The longest text that `count_tokens` counts as so many.
    return choice if request.max_tokens is None else choice.cut(4 * request.max_tokens - 1)


def _pick(reply: Reply | Sequence[Reply], index: int) -> Reply:
    if isinstance(reply, list | tuple) and not all(isinstance(item, ToolUse) for item in reply):
        picked: Reply = reply[index % len(reply)]
        return picked
    return reply  # type: ignore[return-value]  # a sequence of tool uses is one reply


def _choice(reply: Reply, request: Request, index: int) -> Choice:
    if isinstance(reply, str):
        return Choice(reply)
    if isinstance(reply, AIMessage):
        return _from_message(reply)
    if isinstance(reply, BaseModel):
        return _choice(reply.model_dump(mode="json"), request, index)
    if isinstance(reply, dict):
        return _fill(reply, request, index)
    uses = [reply] if isinstance(reply, ToolUse) else reply
    if isinstance(uses, list | tuple):
        return _called(uses, request, index)
    raise TypeError(f"a script replied {type(reply).__name__}; see testing.script.Reply for what it may reply")


def _fill(args: JsonObject, request: Request, index: int) -> Choice:
    if request.as_json:
        return Choice(json.dumps(args))
    if request.schema is None:
        raise TypeError("a script replied the arguments of a schema, but none is forced: reply ToolUse(name, args)")
    return _called([ToolUse(request.schema, args)], request, index)


def _called(uses: Sequence[ToolUse], request: Request, index: int) -> Choice:
    stem = f"{request.key}-{request.attempt}-{index}"
    calls = []
    for position, use in enumerate(uses):
        arguments = use.args if isinstance(use.args, str) else json.dumps(use.args)
        calls.append(Call(arguments, _call_id(stem, position), use.name))
    return Choice(None, tuple(calls), "tool_calls") if calls else Choice("")


def _call_id(stem: str, position: int) -> str:
    return "call_" + hashlib.sha256(f"{stem}-{position}".encode()).hexdigest()[:24]


def _from_message(message: AIMessage) -> Choice:
    calls = [Call(json.dumps(call["args"]), call["id"], call["name"]) for call in message.tool_calls]
    calls += [Call(call["args"] or "", call["id"], call["name"]) for call in message.invalid_tool_calls]
    reason: FinishReason = "tool_calls" if calls else "stop"
    return Choice(str(message.text), tuple(calls), reason, message.response_metadata.get("logprobs"))
