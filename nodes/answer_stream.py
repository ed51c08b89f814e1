"""The way of an answer to the `messages` stream, token by token, while a model still writes it.

Every call to a model is hidden from that stream. An `AnswerStream` listens to the call that writes the answer, and
sends what is certain to be part of it. If the answer turns out to be another one after all, what was sent is withdrawn:
the event `withdrawn` names its message, and the answer follows as a message of its own.
"""

from collections.abc import Callable
from typing import Protocol
from uuid import uuid4

from langchain_core.callbacks import AsyncCallbackManager, AsyncCallbackManagerForLLMRun
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, LLMResult
from langchain_core.runnables import ensure_config
from langchain_core.runnables.config import get_async_callback_manager_for_config

from reflective_agents.nodes.step import Step
from reflective_agents.state.context import Context
from reflective_agents.state.json_types import JsonObject
from reflective_agents.text.clean import clean
from reflective_agents.text.labels import label_of
from reflective_agents.text.thinking import ThoughtFilter

BESIDE_CALLS = 240
"""Characters that a model may write beside its tool calls; a longer text is taken for the answer."""
PREFIX = "answer--"
"""How the ids of streamed messages begin."""
LONGEST_LABEL = 200
"""Characters of a line in which its label is looked for."""
_LOOSE = " \t\r\n*_`~\"”'」』)）"
"""What is not said before something follows it: readers of answers strip it from the end."""
_OPENING = ("{", "[", "<", "`", "*", "_", '"', "“", "「", "『")
"""How texts begin that may be read as something else: a call, or an answer within decoration."""


class Reader(Protocol):
    """Finds the answer in a reply while that comes."""

    def feed(self, text: str) -> str:
        """Take the next piece of the reply, and return the next piece of the answer."""
        ...


class Whole:
    """Reads replies that are the answer, from the first character on."""

    def feed(self, text: str) -> str:
        """Return the piece as it is."""
        return text


class Labelled:
    """Reads replies in which the answer stands after a label such as `Final Answer:`.

    Args:
        names: The labels, by their keys in `text.labels.NAMES`.
        others: Labels of what is not the answer; nothing after them is.
    """

    def __init__(self, *names: str, others: tuple[str, ...] = ()) -> None:
        self._names, self._others = names, others
        self._line, self._label = "", ""

    def feed(self, text: str) -> str:
        """Return what follows the label."""
        if self._label:
            return text if self._label in self._names else ""
        lines = (self._line + text).split("\n")
        for number, line in enumerate(lines):
            found = label_of(line[:LONGEST_LABEL], (*self._names, *self._others))
            if found and (value := line[found[1] :].lstrip()):
                self._label = found[0] if not value.startswith(_OPENING) else "undecided"
                return "\n".join([value, *lines[number + 1 :]]) if self._label in self._names else ""
        self._line = lines[-1][:LONGEST_LABEL]  # a label stands at the beginning of its line
        return ""


def was_streamed(answer: AIMessage) -> bool:
    """Tell whether an answer was heard while it was written, so that it has to stay as it is."""
    return (answer.id or "").startswith(PREFIX)


def final_answer() -> Labelled:
    """Make a reader of steps written as text, where the answer stands after `Final Answer:`."""
    return Labelled("final", others=("action", "input"))


class AnswerStream:
    """Says an answer in the `messages` stream while it is written.

        stream = AnswerStream(step)
        reply = await write(step, model, prompt, stream)
        message_id = await stream.end(reply.text)   # the id of the message under which it was streamed

    Args:
        step: The node that asks for the answer.
        reader: Makes the reader of a reply.
        beside_calls: Characters of a reply that are waited for, since a tool call may follow them.
    """

    def __init__(self, step: Step[Context], reader: Callable[[], Reader] = Whole, beside_calls: int = 0) -> None:
        self._step, self._reader, self._wait = step, reader, beside_calls
        self._manager = _streams()
        self._run: AsyncCallbackManagerForLLMRun | None = None
        self._id = ""
        self._begin()

    def _begin(self) -> None:
        self._run, self._streamed, self._held = None, "", ""
        self._thought, self._read = ThoughtFilter(), self._reader()

    @property
    def is_subscribed(self) -> bool:
        """Whether somebody listens: nothing is streamed otherwise."""
        return bool(self._manager.handlers)

    @property
    def has_begun(self) -> bool:
        """Whether somebody has heard the beginning of the answer."""
        return self._run is not None

    async def on_token(self, text: str) -> None:
        """Take the next piece of the reply."""
        self._held += self._read.feed(clean(self._thought.feed(text)))
        may_be_a_call = len(self._held) <= self._wait or (self._wait > 0 and self._held.startswith(_OPENING))
        if not self._streamed and may_be_a_call:
            return
        ready = self._held.rstrip(_LOOSE)
        if ready:
            self._held = self._held[len(ready) :]
            await self._say(ready)

    async def end(self, answer: str | None) -> str | None:
        """Say the rest of the answer, and return the id of its message.

        Returns:
            None if nothing of it was said, or something else; the answer comes as a message of its own then.
        """
        if self._run is None:
            return None
        if not answer or not answer.startswith(self._streamed):
            await self.retract()
            return None
        if rest := answer[len(self._streamed) :]:
            await self._say(rest)
        await self._run.on_llm_end(LLMResult(generations=[[ChatGeneration(message=AIMessage(answer, id=self._id))]]))
        self._run = None
        return self._id

    async def retract(self) -> bool:
        """Take back what was said, if anything was, and be ready for another reply."""
        run = self._run
        if run is not None:
            await run.on_llm_error(ValueError("withdrawn"), response=LLMResult(generations=[]))
            self._step.emit("withdrawn", message=self._id)
        self._begin()
        return run is not None

    async def _say(self, text: str) -> None:
        if self._run is None:
            self._id = f"{PREFIX}{uuid4()}"
            [self._run] = await self._manager.on_chat_model_start({"name": "answer"}, [[]], name="answer")
        # A server may send a piece twice, and a piece may be like the one before it: their places tell which it is.
        position: JsonObject = {"offsets": [len(self._streamed)]}
        self._streamed += text
        piece = AIMessageChunk(content=text, id=self._id, additional_kwargs=position)
        await self._run.on_llm_new_token(text, chunk=ChatGenerationChunk(message=piece))


def _streams() -> AsyncCallbackManager:
    """Return the callbacks that stream; to those that trace or count calls an answer is no further call."""
    manager = get_async_callback_manager_for_config(ensure_config())
    # LangChain's streaming handlers are known by this method: their class is private.
    manager.handlers = [handler for handler in manager.handlers if hasattr(handler, "tap_output_aiter")]
    return manager
