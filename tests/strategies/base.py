"""What the shared tests need to know of a strategy."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver

from reflective_agents.graphs import graph_of
from reflective_agents.state.context import Context
from reflective_agents.state.outcome import Status, VerifiedBy
from reflective_agents.state.settings import settings_of
from reflective_agents.testing.checker import checked
from reflective_agents.testing.script import Request, Script

_MARK = re.compile(r"\[([a-z]+\d*)\]")


@dataclass(frozen=True)
class Strategy:
    """A strategy, how a model behaves that serves it well, and what to expect then."""

    name: str
    solving: Script
    """A model that needs a second round, and then ends the run as `status`."""
    endless: Script
    """A model with which a run goes on until something stops it."""
    artefact: tuple[str, ...]
    """Keys of the result beside those of the contract that hold something."""
    answered: int
    """Calls of a `solving` run after which there is an answer, judged if the strategy judges answers."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of a quick run without network."""
    fan_out: Mapping[str, Any] = field(default_factory=dict)
    """Settings under which as many calls as the strategy can are in flight at once, 50 if it can."""
    longest: Mapping[str, Any] = field(default_factory=dict)
    """Settings that let its own limit (rounds, expansions) be the last one to stop a run."""
    impossible: Mapping[str, Any] = field(default_factory=dict)
    """Settings out of their bounds, beside those that all strategies share."""
    refused: tuple[str, ...] = ()
    """Settings that it has from its family, and refuses as having no effect."""
    further: tuple[str, ...] = ()
    """Further keys, empty without an environment."""
    rewarded: bool = False
    """Whether the result has the environment's reward, which is None without one."""
    calls: int = 3
    """Calls of a `solving` run, or more."""
    roles: int = 2
    """Kinds of calls in a `solving` run: free text, and each form that is forced."""
    endless_calls: bool = True
    """Whether an `endless` run makes one call after another; else all of its calls are in flight at once."""
    given_up: str = ""
    """How the reason names that steps which bring nothing have ended a run, where nobody judges them."""
    answers_last: bool = False
    """Whether an agent decides when it answers: what breaks off the run before leaves no answer."""
    answer_stands: bool = False
    """Whether what follows the answer concerns later runs alone, and takes nothing from it."""
    begins_with_a_form: bool = False
    """Whether the first call asks for a structured reply."""
    votes: bool = False
    """Whether samples vote, among which those that were cut off do not count."""
    verified_by: VerifiedBy | None = None
    """Who verifies the answer of a `solving` run; None if nobody does."""
    streams: bool = False
    """Whether the answer's tokens go to the `messages` stream."""
    leads: tuple[str, ...] = ()
    """Kinds of calls without which nothing is answered at all, beside the first call's."""

    def __post_init__(self) -> None:
        """Let the models fill in the form in which an answer is held against its sources."""
        object.__setattr__(self, "solving", checked(self.solving))
        object.__setattr__(self, "endless", checked(self.endless, "partly"))

    @property
    def graph(self) -> Any:  # a compiled graph; its overloads want literals where a test passes parameters
        """The compiled strategy."""
        return graph_of(self.name)

    @property
    def status(self) -> Status:
        """How a `solving` run ends."""
        return "solved" if self.verified_by else "answered"

    @property
    def context(self) -> type[Context]:
        """Its settings."""
        return settings_of(self.name)

    @property
    def searches(self) -> bool:
        """Whether a quick run searches."""
        return self.settings.get("search") == "local"

    @property
    def models(self) -> list[str]:
        """Settings that name a model."""
        return [name for name in ("model", "judge_model", "critic_model") if name in self.context.model_fields]

    @property
    def keys(self) -> set[str]:
        """All keys of the result beside those of the contract."""
        return {*self.artefact, *self.further, *(["reward"] if self.rewarded else [])}

    def make(self, **settings: Any) -> Context:
        """The strategy's settings: those of a quick run, changed by what is given."""
        return self.context(**{**self.settings, **settings})

    def with_memory(self, saver: InMemorySaver | None = None) -> Any:
        """The graph with a checkpointer that keeps bytes, as a database does."""
        return self.graph.builder.compile(checkpointer=saver or InMemorySaver(), name=self.name)


def marks(messages: Sequence[BaseMessage]) -> list[str]:
    """The words in square brackets, by which tests tell one question from another, in order and without repetition."""
    return list(dict.fromkeys(_MARK.findall("\n".join(message.text for message in messages))))


def mark(request: Request) -> str:
    """The mark of the question that a request is about: the last one of the conversation.

    A system prompt may name it first, as a sample of the language to write in.
    """
    conversation = [message for message in request.messages if message.type != "system"]
    return (marks(conversation) or marks(request.messages) or ["unmarked"])[-1]


def actions(request: Request) -> int:
    """Actions taken so far: tool calls, or what a model writes that takes no tools."""
    texts = [message.text for message in request.messages if message.type == "ai"]
    written = [text for text in texts if text.startswith(("Action: ", "Thought: ", '{"thought"'))]
    return len(written) + sum(bool(getattr(message, "tool_calls", None)) for message in request.messages)


def judgement(text: str, solves: bool) -> dict[str, Any]:
    """An answer to an answer is solved; the first ones are not."""
    good = solves and (text.count("<answer") >= 2 or "Revised answer" in text)
    return {"reasoning": "Good." if good else "Not yet.", "score": 0.9 if good else 0.4, "solved": good}
