"""Servers that behave like the awkward ones: what they refuse, ignore, wrap, translate, cut off, or think aloud.

    async with AwkwardServer(script, "refuses_tools") as server: ...

Each is an `OpenAIServer` that answers by a script and spoils it in its own way. A script sees what was asked for as
if the server could do it all: a form that is described in the prompt counts as asked for.
"""

import json
import re
from dataclasses import replace
from typing import Literal, get_args

from aiohttp import web

from reflective_agents.testing.completions import Json, completion, parse_request, usage_of
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Choice, Request, Script, ask, to_choice

Manner = Literal[
    "refuses_tools",  # 400 to any request with tools
    "ignores_tool_choice",  # tools are shown to no one
    "refuses_json_schema",  # 400 to any response format
    "refuses_everything",  # text in, text out
    "refuses_n",  # 400 to n > 1
    "ignores_n",  # one choice, whatever n is
    "fences",  # every text in fences
    "chinese",  # full-width signs, and labels in Chinese
    "cut_off",  # at most 60 tokens
    "thinks",  # <think>...</think> first
    "thinks_unclosed",  # <think> and no end
    "thinks_half",  # only the end tag
    "thinks_cut_off",  # cut off within the thought, unless there is room for 8,192 tokens
    "reasons",  # reasoning_content beside the answer
    "reasons_only",  # reasoning_content and no content, finish_reason "length"
    "small_context",  # 400 to prompts that do not fit into its context together with their answers
]
MANNERS: tuple[Manner, ...] = get_args(Manner)
TooLong = Literal[
    "size",  # names the size of its context
    "words",  # says that the context's length is exceeded, and no number
    "status",  # 413, as a proxy in front of it
]
"""How a server refuses what does not fit into its context."""
THOUGHT = "Hmm, let me see. The user wants an answer. SECRET THOUGHT."
_LABELS = {"Answer": "答案", "Action": "行动", "Thought": "思考"}
_FULL_WIDTH = str.maketrans(":,!?", "：，！？")


class AwkwardServer(OpenAIServer):
    """A server with one bad manner.

    Args:
        reply: The script of its model.
        manner: What is wrong with it.
        context: Tokens of its context, where that is small.
        too_long: How it refuses what does not fit into that.
    """

    def __init__(self, reply: Script, manner: Manner, *, context: int = 4_096, too_long: TooLong = "size") -> None:
        super().__init__(reply)
        self.manner: Manner = manner
        self.context, self._too_long = context, too_long
        self.held_to_forms = True
        """Whether its model writes a step in the form that was asked for."""

    def manner_of(self, body: Json) -> Manner | None:
        """Return the manner in which a request is answered; None for good manners."""
        return self.manner

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        body = await http.json()
        manner = self.manner_of(body)
        with self._exchange(body) as exchange:
            if refusal := _refusal(manner, body) or (manner == "small_context" and self._too_small(body)):
                exchange.fault = "400"
                if self._too_long == "status":
                    return web.Response(status=413, text="Request Entity Too Large")
                return self._refuse("400", refusal)
            request = _as_meant(parse_request(body), manner)
            with self._meter.call(request) as request:
                choices = [to_choice(reply, request, i) for i, reply in enumerate(ask(self._script, request))]
                if manner == "ignores_n":
                    choices = choices[:1]
                form = request.schemas.get(STEP) if self.held_to_forms else None
                choices = [_spoilt(manner, _in_form(choice, form), request) for choice in choices]
                exchange.tokens = usage_of(request, choices)["total_tokens"]
                if body.get("stream") or manner not in ("reasons", "reasons_only"):
                    return await self._answer(http, exchange, request, choices)
                return web.json_response(_reasoning(manner, body, request, choices))

    def _too_small(self, body: Json) -> str | None:
        """Return why a request is refused, if its context is too small."""
        shown = [*body.get("messages", []), body.get("tools"), body.get("response_format")]
        characters = sum(len(json.dumps(part, ensure_ascii=False)) for part in shown if part)
        words = characters // 4
        needed = words + (body.get("max_tokens") or body.get("max_completion_tokens") or 0)
        if needed <= self.context:
            return None
        if self._too_long == "words":
            return "The context length was exceeded."
        return f"This model's maximum context length is {self.context} tokens, but {needed} were requested."


def _refusal(manner: Manner | None, body: Json) -> str | None:
    """Return why a request is refused, if it is."""
    if body.get("tools") and manner in ("refuses_tools", "refuses_everything"):
        return "registry.example/library/small:1b does not support tools"
    if body.get("response_format") and manner in ("refuses_json_schema", "refuses_everything"):
        return "response_format of type json_schema is not supported"
    if (body.get("n") or 1) > 1 and manner in ("refuses_n", "refuses_everything"):
        return "Field 'n': Value must be between 1 <= value <= 1"
    if body.get("logprobs") and manner == "refuses_everything":
        return "logprobs is not supported by this model"
    return None


def _as_meant(request: Request, manner: Manner | None) -> Request:
    """Return a request as its model sees it, with forms and tools that are described in words."""
    if manner == "ignores_tool_choice":
        request = replace(request, tools=(), tool_choice=None, schema=request.schema if request.as_json else None)
    if (step := request.schemas.get(STEP)) and request.schema == STEP:
        return _as_step(request, step)
    if form := _FORM.search(request.last):
        return replace(request, schema=form[1], as_json=True)
    if not request.tools and (shown := _TOOLS.search(request.text)):
        names = tuple(re.findall(r"^(\w+)\[", shown[1], re.MULTILINE))
        return replace(request, tools=names, tool_choice="none" if _ENDS in request.last else None)
    if not request.tools and _ACT in request.text:
        return replace(request, tools=("act",), tool_choice="none" if _ENDS in request.last else None)
    return request


def _as_step(request: Request, form: Json) -> Request:
    """Return a request for a step, held to a form, as one for calls of tools."""
    fields = _fields(form)
    names = [name for name in fields.get("action", {}).get("enum", ["act"]) if name != "answer"]
    choice = "none" if "answer" in fields else None
    return replace(request, tools=tuple(names), tool_choice=choice, schema=None, as_json=False)


def _fields(form: Json) -> Json:
    """Return the fields of a step, of its first form where there are two."""
    return dict(form.get("anyOf", [form])[0]["properties"])


def _in_form(choice: Choice, form: Json | None) -> Choice:
    """Write a call, or an answer, as the form that was asked for."""
    if form is None:
        return choice
    if not choice.calls:
        step: Json = {"answer": choice.content}
        if "input" in _fields(form):
            step = {"action": "answer", "input": choice.content}
        return replace(choice, content=json.dumps({"thought": "", **step}, ensure_ascii=False))
    call = choice.calls[0]
    args = json.loads(call.arguments)
    step = {"action": call.name, "input": call.arguments} if "input" in _fields(form) else args
    content = json.dumps({"thought": choice.content or "", **step}, ensure_ascii=False)
    return replace(choice, content=content, calls=(), finish_reason="stop")


_FORM = re.compile(r"one JSON object \((\w+)\) and nothing else")
STEP = "Step"
"""The name of the form of a step."""
_ACT, _ENDS = "the tool act itself need not be named", "No tool can be called now"
_TOOLS = re.compile(r"You may use these tools:\n(.*?)\nTo use one", re.DOTALL)


def _spoilt(manner: Manner | None, choice: Choice, request: Request) -> Choice:
    """Change what the model says in the server's manner."""
    if choice.calls and any(how in request.text for how in ("You may use these tools", _ACT)):
        calls = "\n".join(f"Action: {call.name}[{call.arguments}]" for call in choice.calls)
        choice = replace(choice, content=calls, calls=(), finish_reason="stop")
    text = choice.content or ""
    if manner == "fences" and text and not choice.calls:
        return replace(choice, content=f"```{'json' if text.startswith('{') else ''}\n{text}\n```")
    if manner == "chinese" and text and not text.startswith("{"):
        for label, word in _LABELS.items():
            text = text.replace(f"{label}:", f"{word}:")
        return replace(choice, content=text.translate(_FULL_WIDTH))
    if manner == "cut_off":
        return choice.cut(240)
    if manner == "thinks":
        return replace(choice, content=f"<think>\n{THOUGHT}\n</think>\n\n{text}")
    if manner == "thinks_half":
        return replace(choice, content=f"{THOUGHT}\n</think>\n\n{text}")
    limit = request.max_tokens or 0
    if manner == "thinks_unclosed" or (manner == "thinks_cut_off" and limit < _LEAST_TOKENS):
        return Choice(f"<think>\n{THOUGHT}", finish_reason="length")
    if manner == "thinks_cut_off":
        return replace(choice, content=f"<think>\n{THOUGHT}\n</think>\n\n{text}")
    return choice


_LEAST_TOKENS = 8_192


def _reasoning(manner: Manner | None, body: Json, request: Request, choices: list[Choice]) -> Json:
    reply = completion(body, request, choices)
    for choice in reply["choices"]:
        choice["message"]["reasoning_content"] = THOUGHT
        if manner == "reasons_only":
            choice["message"] |= {"content": "", "tool_calls": None}
            choice["finish_reason"] = "length"
    return reply
