"""An agent of the user's own as the actor of a strategy: any LangGraph graph or LangChain agent that takes messages.

Its calls to models are held against the limits of the run before they are sent. What it raises, and its interrupts,
pass: they are the user's.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.config import get_async_callback_manager_for_config
from langgraph.constants import TAG_NOSTREAM
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel
from pydantic_core import to_json

from reflective_agents.models.event_loops import is_background, running_loop
from reflective_agents.models.meter import Meter
from reflective_agents.models.watched import Watch
from reflective_agents.nodes.strategy import Strategy
from reflective_agents.state.errors import LimitReached, Misuse, ModelFailed
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.text.clean import clean
from reflective_agents.text.joined import joined


class Agent(Protocol):
    """An agent of the user's own: a graph, or anything else that takes messages."""

    async def ainvoke(
        self, input: JsonObject, config: RunnableConfig, **settings: JsonObject
    ) -> JsonMapping | BaseMessage | str:
        """Answer `{"messages": [...]}` with the same, a message or a text."""
        ...


class AgentReply(NamedTuple):
    """What an agent has answered, and the steps to it as text; these are empty if it took none."""

    answer: str
    steps: str


async def ask_agent(agent: Agent, messages: Sequence[BaseMessage], meter: Meter) -> AgentReply:
    """Let an agent answer a conversation.

    Args:
        agent: The agent.
        messages: The conversation.
        meter: The limits of the run.

    Raises:
        LimitReached: if a limit does not let it go on.
        ModelFailed: if it gives no answer.
        Misuse: if what it returns holds no messages.
    """
    meter.check()
    watch = Watch(meter)
    time = asyncio.timeout(meter.seconds_left)
    try:
        async with time:
            result = await _invoke(agent, list(messages), watch)
    except TimeoutError:
        # Another TimeoutError is the agent's own.
        if time.expired():
            raise LimitReached(meter.limit("max_seconds")) from None
        raise
    finally:
        await watch.close()
    taken = _since_the_question(_messages_in(result))
    watch.count_unseen([message for message in taken if isinstance(message, AIMessage)])
    tools = [message for message in taken if isinstance(message, ToolMessage)]
    meter.count(tool_calls=len(tools), tool_errors=sum(message.status == "error" for message in tools))
    answers = [message for message in taken if _is_answer(message)]
    form = _structured(agent, result)
    # Before a form the agent may have written at length: then only what comes last is its answer.
    if answers and (form is None or answers[-1] is taken[-1]):
        return AgentReply(clean(answers[-1].text), _steps_text(taken, answers[-1]))
    if form is None:
        raise ModelFailed(f"the agent {name_of(agent)} gave no answer{_reason(result)}")
    return AgentReply(clean(form), _steps_text(taken))


def name_of(agent: Agent) -> str:
    """Return the name of an agent."""
    return str(getattr(agent, "name", None) or type(agent).__name__)


def drawable(agent: Agent) -> dict[str, Pregel[Any, Any, Any, Any]]:
    """Return an agent by its name, if it is a graph."""
    return {name_of(agent): agent} if isinstance(agent, Pregel) else {}


async def _invoke(agent: Agent, messages: list[BaseMessage], watch: Watch) -> JsonMapping | BaseMessage | str:
    """Call an agent. A graph gets settings of its own, or it would be given those of the strategy.

    For a synchronous caller a graph works in a thread, as if it were called itself: the asynchronous clients of its
    models may belong to an event loop of the user's.
    """
    manager = get_async_callback_manager_for_config(ensure_config())
    for handler in watch.handlers:
        manager.add_handler(handler)
    # Its words are not yet the strategy's answer, so they do not enter its stream.
    config = RunnableConfig(callbacks=manager, tags=[TAG_NOSTREAM])
    if not isinstance(agent, Pregel):
        return await agent.ainvoke({"messages": messages}, config)
    settings: Any = {} if agent.context_schema else None
    if is_background(running_loop()) and _works_in_threads(agent):
        with suppress(NotImplementedError):  # of a middleware that is asynchronous alone
            return await asyncio.to_thread(agent.invoke, {"messages": messages}, config, context=settings)
    return await agent.ainvoke({"messages": messages}, config, context=settings)


def _works_in_threads(agent: Pregel[Any, Any, Any, Any]) -> bool:
    """Tell whether an agent should be called by synchronous code: none of its nodes and tools is asynchronous alone."""
    if isinstance(agent, Strategy):  # which has clients for each loop
        return False
    parts: list[Runnable[Any, Any]] = []
    for node in agent.nodes.values():
        parts.append(node.bound)
        if isinstance(node.bound, ToolNode):
            parts += node.bound.tools_by_name.values()
    return all(getattr(part, "func", part) is not None for part in parts)


def _messages_in(result: JsonMapping | BaseMessage | str) -> list[AnyMessage]:
    if isinstance(result, str | BaseMessage):
        return [AIMessage(result) if isinstance(result, str) else result]  # type: ignore[list-item]
    if isinstance(result, Mapping) and isinstance(result.get("messages"), list):
        return convert_to_messages(result["messages"])  # type: ignore[return-value]
    raise Misuse('an agent takes {"messages": [...]} and returns them with its answer: this one returned none')


def _reason(result: JsonMapping | BaseMessage | str) -> str:
    """Return why there is no answer, if the agent says so, as the strategies do."""
    outcome = result.get("outcome") if isinstance(result, Mapping) else None
    reason = outcome.get("reason") if isinstance(outcome, Mapping) else None
    return f": {reason}" if isinstance(reason, str) else ""


def _since_the_question(messages: list[AnyMessage]) -> list[AnyMessage]:
    for index in reversed(range(len(messages))):
        if isinstance(messages[index], HumanMessage):
            return messages[index + 1 :]
    return messages


def _structured(agent: Agent, result: JsonMapping | BaseMessage | str) -> str | None:
    """Return what an agent with a `response_format` has answered, as JSON.

    Raises:
        ModelFailed: if it is a strategy of ours that has failed, and says why instead.
    """
    data = result.get("structured_response") if isinstance(result, Mapping) else None
    if data is None:
        return None
    assert isinstance(result, Mapping)
    if data == result.get("outcome"):
        raise ModelFailed(f"the agent {name_of(agent)} gave no answer: {data['reason']}")
    return to_json(data).decode()


def _is_answer(message: BaseMessage) -> bool:
    return isinstance(message, AIMessage) and not message.tool_calls and bool(message.text.strip())


def _steps_text(messages: Sequence[BaseMessage], answer: BaseMessage | None = None) -> str:
    steps = [_step_text(message) for message in messages if message is not answer]
    return clean("\n".join(steps))


def _step_text(message: BaseMessage) -> str:
    parts: list[str] = [message.text]
    for call in getattr(message, "tool_calls", []):
        args = json.dumps(call["args"], default=str)
        parts.append(f"{call['name']}({args})")
    return joined(parts)
