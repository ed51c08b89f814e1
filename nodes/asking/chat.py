"""How nodes talk to models: plain text, candidates, and structured output that is validated until it fits."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from reflective_agents.models.calls import request
from reflective_agents.models.images import images_of
from reflective_agents.models.prices import check_price, rates_of
from reflective_agents.models.providers import describe_model, get_model, load_client
from reflective_agents.models.sending import Listener
from reflective_agents.models.structured import in_way, read_form, retry, was_ignored
from reflective_agents.models.ways import ways_of
from reflective_agents.nodes.step import Step
from reflective_agents.state.context import Context, Model, Structured
from reflective_agents.state.errors import InvalidOutput, Misuse, ModelFailed, Refused
from reflective_agents.state.json_types import JsonObject
from reflective_agents.tools.run import with_call_ids

T = TypeVar("T", bound=BaseModel)
ATTEMPTS = 3


def model_of(step: Step[Context], model: Model) -> BaseChatModel:
    """Return the chat model that a setting of this run names."""
    context: Context = step.context
    return get_model(model, max_answer_tokens=context.max_answer_tokens, call_timeout=context.call_timeout)


def price_of_call(step: Step[Context], tokens: int) -> int:
    """Return the most nano-dollars that a call of so many tokens costs, prompt and answer together; 0 for none."""
    rates = rates_of(model_of(step, step.context.model), step.meter.prices, tokens)
    answer = min(step.context.max_answer_tokens, tokens)
    return rates.cost(tokens - answer, answer) if rates else 0


def affordable_tokens(step: Step[Context]) -> int:
    """Return how many tokens a call may have, prompt and answer together, for the money that is left."""
    rates, most = rates_of(model_of(step, step.context.model), step.meter.prices), step.context.max_answer_tokens
    if step.meter.nano_left is None or rates is None or not rates.input:
        return step.context.max_total_tokens
    return most + int((step.meter.nano_left - rates.cost(0, most)) / rates.input)


async def check_model(step: Step[Context], model: Model) -> None:
    """Refuse a setting that names no model that can be had, and have the others ready.

    Raises:
        UnknownModel, MissingKey: as `models.providers.get_model`.
        UnknownPrice: as `models.prices.check_price`.
        Misuse: if there are images in what is asked, and the model is known to take none.
    """
    await load_client(model)
    chat = model_of(step, model)
    await check_price(chat, step.meter.prices, needed=step.context.max_cost is not None)
    if ways_of(chat).images is False and any(map(images_of, step.meter.asked)):
        name = describe_model(chat)["model_name"]
        raise Misuse(f"{name} takes no images: choose a model that does, or say in words what is in them")


async def write(
    step: Step[Context], model: Model, messages: Sequence[BaseMessage], voice: Listener | None = None
) -> AIMessage:
    """Let a model write text.

    Args:
        step: The node that asks.
        model: Which model to ask.
        messages: The prompt.
        voice: Who listens while the text is written, if it is the answer.

    Raises:
        InvalidOutput: if it calls tools instead, in each of three attempts.
        LimitReached, ModelFailed: as `models.calls.request`.
    """
    for _ in range(ATTEMPTS):
        reply = (await request(model_of(step, model), messages, step.meter, voice=voice))[0]
        if reply.text.strip():
            return reply
        step.meter.count(parse_failures=1)
        step.emit("invalid_output", problem="a tool was called where text was asked for")
    raise InvalidOutput(f"no text in {ATTEMPTS} attempts: the model called a tool instead")


async def complete(
    step: Step[Context],
    model: Model,
    messages: Sequence[BaseMessage],
    *,
    stop: list[str] | None = None,
    tools: Sequence[BaseTool] = (),
    voice: Listener | None = None,
) -> str:
    """Let a model continue a text.

    Args:
        step: The node that asks.
        model: Which model to ask.
        messages: The prompt.
        stop: Texts before which the reply ends.
        tools: Tools whose calls stand in the prompt; none of them may be called.
        voice: Who listens while it is written, if it holds the answer.

    Raises:
        ModelFailed: if the model calls a tool instead.
    """
    chat = model_of(step, model)
    bound = chat.bind_tools(tools, tool_choice="none") if tools else chat
    options: JsonObject = {"stop": stop} if stop else {}
    reply = (await request(bound, messages, step.meter, voice=voice, **options))[0]
    if not reply.text.strip():
        raise ModelFailed("the model called a tool where it had to write text")
    return reply.text


async def call_tools(
    step: Step[Context],
    model: Model,
    messages: Sequence[BaseMessage],
    tools: Sequence[BaseTool],
    *,
    voice: Listener | None = None,
) -> AIMessage:
    """Let a model call tools or answer; its message has an id for each call, and no metadata of the provider's.

    A model that was once taken to answer, and then called a tool, is not listened to any more while it writes.
    """
    chat = model_of(step, model)
    listener = None if ways_of(chat).talks else voice
    reply = (await request(chat.bind_tools(tools), messages, step.meter, voice=listener))[0]
    if listener and (reply.tool_calls or reply.invalid_tool_calls):
        ways_of(chat).talks = await listener.withdraw()
    return called(reply)


def called(reply: AIMessage) -> AIMessage:
    """Return a reply with an id for each of its calls, and no metadata of the provider's."""
    return with_call_ids(reply.model_copy(update={"response_metadata": {}, "usage_metadata": None}))


async def ask(
    step: Step[Context],
    model: Model,
    messages: Sequence[BaseMessage],
    schema: type[T],
    check: Callable[[T], Awaitable[str] | str | None] = lambda _: None,
    *,
    judging: bool = False,
) -> T:
    """Ask for structured output, in the way that the model can do: a JSON schema of its server's, a forced tool, or
    text. What does not fit goes back to the model with the error, up to three attempts in all.

    Args:
        step: The node that asks.
        model: Which model to ask.
        messages: The prompt.
        schema: What the model has to fill in.
        check: A further demand on a valid output: nothing, or what is wrong with it, in words for the model.
        judging: Whether a judge or critic is asked.

    Raises:
        InvalidOutput: if no attempt fits.
        LimitReached, ModelFailed: as `models.calls.request`.
    """
    chat = model_of(step, model)
    prompt: list[BaseMessage] = list(messages)
    problem, lacking = "", dict[Structured, str]()
    for _ in range(ATTEMPTS):
        asked = partial(request, meter=step.meter, judging=judging)
        way, reply = await _filled(step, chat, prompt, schema, asked, lacking)
        value, problem = read_form(reply, schema)
        problem = problem if value is None else await _checked(check, value)
        if value is not None:
            ways_of(chat).proven = True
        if value is not None and not problem:
            return value
        step.meter.count(parse_failures=1)
        step.emit("invalid_output", schema=schema.__name__, problem=problem[:200], way=way)
        if value is None and was_ignored(reply, way) and not (step.context.structured or ways_of(chat).proven):
            _go_on(step, chat, way, "ignored")
            lacking[way] = f"takes no notice of {way}"
        prompt += retry(reply, problem)
    cause = f" (its server {'; '.join(lacking.values())})" if lacking else ""
    raise InvalidOutput(f"no valid {schema.__name__} in {ATTEMPTS} attempts; the last one: {problem[:300]}{cause}")


async def _checked(check: Callable[[T], Awaitable[str] | str | None], value: T) -> str:
    problem = check(value)
    return (await problem if inspect.isawaitable(problem) else problem) or ""


async def _filled(
    step: Step[Context],
    chat: BaseChatModel,
    prompt: list[BaseMessage],
    schema: type[BaseModel],
    send: Callable[..., Awaitable[list[AIMessage]]],
    lacking: dict[Structured, str],
) -> tuple[Structured, AIMessage]:
    """Request a reply in a way of structured output that the model supports; never retry a way its server refuses."""
    ways = ways_of(chat)
    before, first = list(ways.structured), None
    while True:
        way = step.context.structured or ways.structured[0]
        bound, asked = in_way(way, chat, schema, prompt)
        try:
            return way, (await send(bound, asked))[0]
        except Refused as refusal:
            first = first or refusal
            lacking[way] = f"refuses {way}: {refusal}"[:200]
            if step.context.structured or not _go_on(step, chat, way, "refused"):
                ways.structured[:] = before
                raise first from None


def _go_on(step: Step[Context], chat: BaseChatModel, way: Structured, why: str) -> bool:
    """Go on to the next way of structured output, unless another call has done so; False if there is none."""
    ways = ways_of(chat)
    if ways.structured[0] == way and not ways.next_structured():
        return False
    name = describe_model(chat)["model_name"]
    step.emit("learned", model=name, structured=ways.structured[0], **{why: way})
    return True
