"""How nodes talk to models: plain text, candidates, and structured output that is validated until it fits."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.utils.json import parse_json_markdown
from pydantic import BaseModel, ValidationError

from models.calls import request
from models.providers import get_model, load_client
from nodes.step import Step
from state.context import Context, Model
from state.errors import InvalidOutput, ModelFailed
from tools.run import with_call_ids

T = TypeVar("T", bound=BaseModel)
ATTEMPTS = 3


def model_of(step: Step[Any], model: Model) -> BaseChatModel:
    """The chat model that a setting of this run names."""
    context: Context = step.context
    return get_model(model, max_answer_tokens=context.max_answer_tokens, call_timeout=context.call_timeout)


async def check_model(step: Step[Any], model: Model) -> None:
    """Refuse a setting that names no model that can be had, and have the others ready.

    Raises:
        UnknownModel, MissingKey: as `models.providers.get_model`.
    """
    await load_client(model)
    model_of(step, model)


async def write(step: Step[Any], model: Model, messages: Sequence[BaseMessage]) -> AIMessage:
    """Let a model write text; its tokens go to the `messages` stream as they come.

    Raises:
        InvalidOutput: if it calls tools instead, in each of three attempts.
        LimitReached, ModelFailed: as `models.calls.request`.
    """
    for _ in range(ATTEMPTS):
        reply = (await request(model_of(step, model), messages, step.meter, stream=True))[0]
        if reply.text.strip():
            return reply
        step.meter.count(parse_failures=1)
        step.emit("invalid_output", problem="a tool was called where text was asked for")
    raise InvalidOutput(f"no text in {ATTEMPTS} attempts: the model called a tool instead")


async def complete(
    step: Step[Any],
    model: Model,
    messages: Sequence[BaseMessage],
    *,
    stop: list[str] | None = None,
    tools: Sequence[BaseTool] = (),
) -> str:
    """Let a model go on with a text, which does not reach the `messages` stream.

    Args:
        step: The node that asks.
        model: Which model to ask.
        messages: The prompt.
        stop: Texts before which the reply ends.
        tools: Tools whose calls stand in the prompt; none of them may be called.

    Raises:
        ModelFailed: if the model calls a tool instead.
    """
    chat = model_of(step, model)
    bound = chat.bind_tools(tools, tool_choice="none") if tools else chat
    options: dict[str, Any] = {"stop": stop} if stop else {}
    reply = (await request(bound, messages, step.meter, **options))[0]
    if not reply.text.strip():
        raise ModelFailed("the model called a tool where it had to write text")
    return reply.text


async def call_tools(
    step: Step[Any], model: Model, messages: Sequence[BaseMessage], tools: Sequence[BaseTool]
) -> AIMessage:
    """Let a model call tools or answer; its message has an id for each call, and no metadata of the provider's."""
    reply = (await request(model_of(step, model).bind_tools(tools), messages, step.meter))[0]
    return with_call_ids(reply.model_copy(update={"response_metadata": {}, "usage_metadata": None}))


async def ask(
    step: Step[Any],
    model: Model,
    messages: Sequence[BaseMessage],
    schema: type[T],
    check: Callable[[T], str | None] = lambda _: None,
) -> T:
    """Ask for structured output. What does not fit goes back to the model with the error, up to three attempts in all.

    Args:
        step: The node that asks.
        model: Which model to ask.
        messages: The prompt.
        schema: What the model has to fill in.
        check: A further demand on a valid output: None, or what is wrong with it, in words for the model.

    Raises:
        InvalidOutput: if no attempt fits.
        LimitReached, ModelFailed: as `models.calls.request`.
    """
    bound = model_of(step, model).bind_tools([_as_tool(schema)], tool_choice=schema.__name__)
    prompt = list(messages)
    problem = ""
    for _ in range(ATTEMPTS):
        reply = (await request(bound, prompt, step.meter))[0]
        value, problem = _parse(reply, schema)
        problem = problem if value is None else check(value) or ""
        if value is not None and not problem:
            return value
        step.meter.count(parse_failures=1)
        step.emit("invalid_output", schema=schema.__name__, problem=problem[:200])
        prompt += [
            AIMessage(_raw(reply)),
            HumanMessage(f"That does not fit: {problem}\nCall {schema.__name__} again, corrected."),
        ]
    raise InvalidOutput(f"no valid {schema.__name__} in {ATTEMPTS} attempts; the last one: {problem[:300]}")


@cache
def _as_tool(schema: type[BaseModel]) -> dict[str, Any]:
    """A schema as a tool; making it takes longer than all else that is done for a call."""
    return convert_to_openai_tool(schema)


def _parse(reply: AIMessage, schema: type[T]) -> tuple[T | None, str]:
    """The output of a reply, or None with what is wrong with it."""
    if reply.response_metadata.get("finish_reason") == "length":
        return None, "your output was cut off because it was too long; be shorter"
    calls = [call["args"] for call in reply.tool_calls if call["name"] == schema.__name__]
    try:
        return schema.model_validate(calls[0] if calls else parse_json_markdown(reply.text, parser=json.loads)), ""
    except ValidationError as error:
        return None, "; ".join(f"{'.'.join(map(str, e['loc'])) or 'output'}: {e['msg']}" for e in error.errors())
    except (OutputParserException, ValueError):
        if reply.invalid_tool_calls:
            return None, f"the arguments are no valid JSON: {reply.invalid_tool_calls[0]['args']!r:.200}"
        return None, f"you have to call {schema.__name__} with arguments that fit its schema"


def _raw(reply: AIMessage) -> str:
    calls = [f"{call['name']}({call['args']})" for call in (*reply.tool_calls, *reply.invalid_tool_calls)]
    return "\n".join([*([reply.text] if reply.text else []), *calls]) or "(nothing)"
