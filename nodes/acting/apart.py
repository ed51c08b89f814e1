"""Running the tool calls of a message each as a task of its own, as LangChain's agents do.

LangGraph tells the questions that one task asks a person apart by their order alone, and calls that run at once ask in
any order: the answer to one would reach another, and what had ended would be run again with each answer.
"""

import operator
from typing import Annotated

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config, get_stream_writer
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime
from langgraph.types import Send
from typing_extensions import TypedDict

from reflective_agents.nodes.evidence.long_texts import is_read_on
from reflective_agents.state.tool_calls import only_calls
from reflective_agents.tools.run import run_together


class _Replies(TypedDict):
    messages: Annotated[list[ToolMessage], operator.add]


class _Alone(TypedDict):
    """What one task is sent: the message with its call alone."""

    message: AIMessage


async def run_apart(node: ToolNode, message: AIMessage) -> list[ToolMessage]:
    """Run all calls of a message at once, each as a task; on a thread, a call that has ended is not run again.

    To be called at most once by a node, whose state holds the message: a node that is resumed finds its tasks by their
    order.
    """
    on_a_thread = get_config().get("configurable", {}).get(CONFIG_KEY_CHECKPOINTER)
    if len(message.tool_calls) == 1 or not on_a_thread:  # then nothing is kept, and nobody can be asked
        return await run_together(node, message)
    write, metadata = get_stream_writer(), get_config().get("metadata", {})

    async def call(state: _Alone) -> _Replies:
        # What a tool streams belongs to the stream of the run, not to that of a graph that nobody sees.
        config = get_config()
        configurable = config.get("configurable", {})
        runtime = {
            key: value.override(stream_writer=write)
            for key, value in configurable.items()
            if isinstance(value, Runtime)
        }
        within: RunnableConfig = {**config, "metadata": metadata, "configurable": {**configurable, **runtime}}
        (reply,) = (await node.ainvoke({"messages": [state["message"]]}, within))["messages"]
        return _Replies(messages=[_storable(reply)])

    calls = [Send("call", _Alone(message=only_calls(message, [each]))) for each in message.tool_calls]
    builder = StateGraph(_Replies)
    builder.add_node("call", call, input_schema=_Alone)
    builder.add_conditional_edges(START, lambda _: calls, ["call"])
    replies = await builder.compile(name="tools").ainvoke(_Replies(messages=[]))
    return [*replies["messages"]]


def _storable(reply: ToolMessage) -> ToolMessage:
    """Return a result without what a tool of the user's gives beside the text, which may be anything."""
    return reply if is_read_on(reply) else reply.model_copy(update={"artifact": None})
