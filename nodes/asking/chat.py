"""How nodes talk to models: plain text, candidates, and structured output that is validated until it fits."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Literal, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from reflective_agents.models.calls import request
from reflective_agents.models.capabilities import capabilities_of, with_tools
from reflective_agents.models.images import images_of
from reflective_agents.models.prices import check_price, rates_of
from reflective_agents.models.providers import describe_model, load_client, model_for
from reflective_agents.models.refusals import is_unsupported
from reflective_agents.models.sending import Listener
from reflective_agents.models.structured import read_form, retry, structured_request, was_ignored
from reflective_agents.nodes.step import Step
from reflective_agents.state.context import Context, Model, Structured
from reflective_agents.state.errors import InvalidOutput, Misuse, ModelFailed, Refused
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.tool_calls import with_call_ids

T = TypeVar("T", bound=BaseModel)
ATTEMPTS = 3


def model_of(step: Step[Context], model: Model) -> BaseChatModel:
    """Return the chat model that a setting of this run names."""
    return model_for(step.context, model)


def price_of_call(step: Step[Context], tokens: int) -> int:
    """Return the most nano-dollars that a call of so many tokens costs, prompt and answer together; 0 for none."""
    rates = rates_of(model_of(step, step.context.model), step.meter.prices, tokens)
    answer = min(step.context.max_answer_tokens, tokens)
    return rates.cost(tokens - answer, answer) if rates else 0


def affordable_tokens(step: Step[Context]) -> int:
    """Return how many tokens a call may have, prompt and answer together, for the money that is left."""
    rates = rates_of(model_of(step, step.context.model), step.meter.prices)
    if step.meter.nano_left is None or rates is None or not rates.input:
        return step.context.max_total_tokens
    answer = step.context.max_answer_tokens
    return answer + int((step.meter.nano_left - rates.cost(0, answer)) / rates.input)


async def check_model(step: Step[Context], model: Model) -> None:
    """Refuse a setting that names no model that can be had, and have the others ready.

    Raises:
        UnknownModel, MissingKey: as `models.providers.get_model`.
        UnknownPrice: as `models.prices.check_price`.
        Misuse: if there are images in what is asked, and the model is known to take none.
    """
    await load_client(model)
    chat = model_of(step, model)
    await check_price(chat, step.meter.prices, required=step.context.max_cost is not None)
    if capabilities_of(chat).images is False and any(map(images_of, step.meter.questions)):
        name = describe_model(chat)["model_name"]
        raise Misuse(f"{name} takes no images: choose a model that does, or say in words what is in them")


async def write(
    step: Step[Context], model: Model, messages: Sequence[BaseMessage], listener: Listener | None = None
) -> AIMessage:
    """Let a model write a message of text; where it calls a tool instead, it is asked again.

    Args:
        step: The node that asks.
        model: Which model to ask.
        messages: The prompt.
        listener: Who listens while the text is written, if it is the answer.

    Raises:
        InvalidOutput: if it calls tools instead, in each of three attempts.
        LimitReached, ModelFailed: as `models.calls.request`.
    """
    for _ in range(ATTEMPTS):
        reply, *_ = await request(model_of(step, model), messages, step.meter, listener=listener)
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
    listener: Listener | None = None,
) -> str:
    """Let a model continue a text, in one request.

    Args:
        step: The node that asks.
        model: Which model to ask.
        messages: The prompt.
        stop: Texts before which the reply ends.
        tools: Tools whose calls stand in the prompt; none of them may be called.
        listener: Who listens while it is written, if it holds the answer.

    Raises:
        ModelFailed: if the model calls a tool instead.
    """
    chat = model_of(step, model)
    bound = with_tools(chat, tools, "none") if tools else chat
    options: JsonObject = {"stop": stop} if stop else {}
    reply, *_ = await request(bound, messages, step.meter, listener=listener, **options)
    if not reply.text.strip():
        raise ModelFailed("the model called a tool where it had to write text")
    return reply.text


async def call_tools(
    step: Step[Context],
    model: Model,
    messages: Sequence[BaseMessage],
    tools: Sequence[BaseTool],
    *,
    listener: Listener | None = None,
    choice: Literal["any"] | None = None,
) -> AIMessage:
    """Let a model call tools or answer; its message has an id for each call, and no metadata of the provider's.

    With the choice "any" it is to call one. Not every server holds its model to that.

    A model that was once taken to answer, and then called a tool, is not listened to any more while it writes.
    """
    chat = model_of(step, model)
    listener = None if capabilities_of(chat).talks else listener
    reply, *_ = await request(with_tools(chat, tools, choice), messages, step.meter, listener=listener)
    if listener and (reply.tool_calls or reply.invalid_tool_calls):
        # Something was shown as the answer and turned out to be none: this model writes at length before it calls.
        capabilities_of(chat).talks = await listener.retract()
    return called(reply, messages)


def called(reply: AIMessage, prompt: Sequence[BaseMessage]) -> AIMessage:
    """Return a reply with an id for each of its calls, which none in the prompt has, and no metadata of a provider."""
    return with_call_ids(reply.model_copy(update={"response_metadata": {}, "usage_metadata": None}), prompt)


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
    capabilities = capabilities_of(chat)
    prompt: list[BaseMessage] = list(messages)
    methods = _Methods(step, chat)
    problem = ""
    for _ in range(ATTEMPTS):
        send = partial(request, meter=step.meter, judging=judging)
        reply = await _fill_in(chat, prompt, schema, send, methods)
        value, problem = read_form(reply, schema)
        if value is not None:
            problem = await _problem_of(check, value)
            methods.worked()
            if not problem:
                return value
        step.meter.count(parse_failures=1)
        step.emit("invalid_output", schema=schema.__name__, problem=problem[:200], way=methods.current)
        # A method that has worked before was only missed this time.
        if value is None and was_ignored(reply, methods.current) and not capabilities.proven:
            methods.ignored()
        prompt += retry(reply, problem, prompt)
    cause = f" (its server {'; '.join(methods.failures)})" if methods.failures else ""
    raise InvalidOutput(f"no valid {schema.__name__} in {ATTEMPTS} attempts; the last one: {problem[:300]}{cause}")


async def _problem_of(check: Callable[[T], Awaitable[str] | str | None], value: T) -> str:
    problem = check(value)
    if inspect.isawaitable(problem):
        problem = await problem
    return problem or ""


class _Methods:
    """The methods of structured output that are left to a request. That one fails is learned once another has worked.

    Attributes:
        failures: Why others have failed, in words.
    """

    def __init__(self, step: Step[Context], chat: BaseChatModel) -> None:
        self._step, self._chat = step, chat
        chosen = step.context.structured
        self._left: list[Structured] = [chosen] if chosen else [*capabilities_of(chat).structured]
        self._lessons: list[tuple[Structured, str]] = []
        self.failures: list[str] = []

    @property
    def current(self) -> Structured:
        """The method in use."""
        return self._left[0]

    def refused(self, refusal: Refused) -> bool:
        """Go on to the next method, since the server refuses this one; False if there is none."""
        # Of a refusal that has other grounds, such as the prompt, nothing is to be learned.
        lessons: list[tuple[Structured, str]] = [(self.current, "refused")] if is_unsupported(str(refusal)) else []
        return self._next(f"refuses {self.current}: {refusal}"[:200], lessons)

    def ignored(self) -> None:
        """Go on to the next method, if there is one, since the model takes no notice of this one."""
        self._next(f"takes no notice of {self.current}", [(self.current, "ignored")])

    def _next(self, failure: str, lessons: list[tuple[Structured, str]]) -> bool:
        if failure not in self.failures:
            self.failures.append(failure)
        if len(self._left) == 1:
            return False
        del self._left[0]
        self._lessons += lessons
        return True

    def worked(self) -> None:
        """Note that the method in use has brought an output, and learn why those before it have not."""
        capabilities = capabilities_of(self._chat)
        name = describe_model(self._chat)["model_name"]
        for method, why in self._lessons:
            learnable = method in capabilities.structured and (why == "refused" or capabilities.fell_short(method))
            if learnable and capabilities.give_up_method(method):
                self._step.emit("learned", model=name, structured=capabilities.structured[0], **{why: method})
        self._lessons.clear()
        if self.current == capabilities.structured[0]:
            capabilities.proven = True
            capabilities.shortfalls[self.current] = 0


async def _fill_in(
    chat: BaseChatModel,
    prompt: list[BaseMessage],
    schema: type[BaseModel],
    send: Callable[..., Awaitable[list[AIMessage]]],
    methods: _Methods,
) -> AIMessage:
    """Request a reply by the first method of structured output that the server does not refuse."""
    first: Refused | None = None
    while True:
        bound, filled = structured_request(methods.current, chat, schema, prompt)
        try:
            reply, *_ = await send(bound, filled)
            return reply
        except Refused as refusal:
            first = first or refusal
            if not methods.refused(refusal):
                raise first from None
