"""The form in which a request offers its tools: natively, as a JSON object a step, or as text in turns."""

from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from reflective_agents.models.capabilities import ModelCapabilities, Way, is_forced, takes_stop, way_of_acting
from reflective_agents.models.toolless import (
    answer_alone,
    read_step_object,
    read_written_calls,
    step_format,
    tools_in_words,
)
from reflective_agents.state.context import Acting
from reflective_agents.state.json_types import JsonObject


class ToolForm(NamedTuple):
    """How a request offers tools, and how its replies are read.

    `way` is how tools are called, and `tools` are those of the request, in OpenAI's form. None is called any more if
    it `ends`; one must be if it is `forced`, which only servers with tools of their own can do.
    """

    way: Way
    tools: Sequence[JsonObject]
    ends: bool
    forced: bool

    @property
    def in_words(self) -> bool:
        """Whether tools and calls are words of the prompt."""
        return self.way != "tools"

    @property
    def streams(self) -> bool:
        """Whether what comes is the answer as it stands: else it is known at the end what it is."""
        return not self.in_words or (self.way == "text" and self.ends)

    def options(self, model: BaseChatModel, options: JsonObject) -> JsonObject:
        """Return a request's options with what holds the model to the form."""
        if not self.in_words:
            return options
        left = {name: value for name, value in options.items() if name not in ("tools", "tool_choice")}
        if self.way == "schema":
            held = {"response_format": step_format(self.tools, ends=self.ends)}
            return {**left, "extra_body": {**left.get("extra_body", {}), **held}}
        return {**left, "stop": ["\nObservation"]} if takes_stop(model) and not self.ends else left

    def prompt(self, messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
        """Return a request's messages with the tools in words, where the form demands it."""
        return tools_in_words(messages, self.tools, self.way, ends=self.ends) if self.in_words else messages

    def read(self, reply: AIMessage) -> AIMessage:
        """Return a reply with the calls that it wrote as native ones, or as the answer that it gives."""
        if self.way == "schema":
            return read_step_object(reply, self.tools, ends=self.ends)
        if self.in_words and self.ends:
            return answer_alone(reply)
        callable_tools = [] if self.ends or self.forced else self.tools
        return read_written_calls(reply, callable_tools, labelled=self.in_words)


def tool_form(capabilities: ModelCapabilities, options: JsonObject, acting: Acting) -> ToolForm:
    """Return the form in which a model is offered the tools among a request's options."""
    tools, choice = options.get("tools") or [], options.get("tool_choice")
    forced = is_forced(choice)
    way = way_of_acting(capabilities, acting) if tools and not forced else "tools"
    return ToolForm(way, tools, ends=choice == "none", forced=forced)
