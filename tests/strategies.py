"""The strategies, and what the shared tests need to know of each: a new one passes them all by one more entry here."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from graphs import chain_of_thought, lats, react, reflection, reflexion, trials
from state.context import (
    ChainOfThoughtContext,
    Context,
    LatsContext,
    ReactContext,
    ReflectionContext,
    ReflexionContext,
    TrialsContext,
)
from testing.script import Reply, Request, Script, ToolUse

Result = dict[str, Any]
QUESTION = "Why does reflection help? [alpha]"
ASK: dict[str, Any] = {"messages": [("user", QUESTION)]}
_MARK = re.compile(r"\[([a-z]+\d*)\]")


@dataclass(frozen=True)
class Strategy:
    """A strategy, how a model behaves that serves it well, and what to expect then."""

    name: str
    graph: Any  # a compiled graph; its overloads want literals where a test passes parameters
    context: type[Context]
    solving: Script
    """A model that needs a second round, and then ends the run as solved."""
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
    told: tuple[str, ...] = ()
    """Further keys, empty without an environment."""
    rewarded: bool = False
    """Whether the result has the environment's reward, which is None without one."""
    calls: int = 3
    """Calls of a `solving` run, or more."""
    roles: int = 2
    """Kinds of calls in a `solving` run: free text, and each form that is forced."""
    endless_calls: bool = True
    """Whether an `endless` run makes one call after another; else all of its calls are in flight at once."""
    answers_last: bool = False
    """Whether an agent decides when it answers: what breaks off the run before leaves no answer."""
    streams: bool = False
    """Whether the answer's tokens go to the `messages` stream."""
    searches: bool = False
    models: tuple[str, ...] = ("model",)
    """Settings that name a model."""

    @property
    def keys(self) -> set[str]:
        """All keys of the result beside those of the contract."""
        return {*self.artefact, *self.told, *(["reward"] if self.rewarded else [])}

    def make(self, **settings: Any) -> Context:
        """The strategy's settings: those of a quick run, changed by what is given."""
        return self.context(**{**self.settings, **settings})

    def with_memory(self, saver: InMemorySaver | None = None) -> Any:
        """The graph with a checkpointer that keeps bytes, as a database does."""
        return self.graph.builder.compile(checkpointer=saver or InMemorySaver(), name=self.name)


def marks(messages: Sequence[BaseMessage]) -> list[str]:
    """The words in square brackets, by which tests tell one question from another, in order and without repetition."""
    return list(dict.fromkeys(_MARK.findall("\n".join(message.text for message in messages))))


def _mark(request: Request) -> str:
    """The mark of the question that a request is about: the last one of the conversation."""
    return (marks(request.messages) or ["unmarked"])[-1]


def _reflection(request: Request, solves: bool) -> Reply:
    if request.schema == "Critique":
        good = solves and "Draft 2" in request.last.rpartition("<draft>")[2]
        return {"critique": "Good." if good else "Too short.", "score": 0.9 if good else 0.4, "accept": good}
    number = sum("<critique>" in message.text for message in request.messages) + 1
    return f"Draft {number} on [{_mark(request)}]: reflection finds mistakes."


def _reflexion(request: Request, solves: bool) -> Reply:
    rounds = sum(bool(getattr(message, "tool_calls", None)) for message in request.messages)
    good = solves and rounds >= 2
    reflection = {"missing": "" if good else f"Evidence {rounds}.", "superfluous": ""}
    queries = [] if good else [f"reflection evidence {rounds}", f"mistakes {rounds}"]
    common = {"reflection": reflection, "search_queries": queries}
    if request.schema == "AnswerQuestion":
        return {"answer": f"Draft on [{_mark(request)}].", **common}
    found = re.findall(r'"url": "([^"]+)"', request.text)[:1]
    answer = f"Revision {rounds} on [{_mark(request)}]" + (" [1]." if found else ".")
    return {"answer": answer, "references": found, **common}


def _lats(request: Request, solves: bool) -> Reply:
    if request.schema == "Judgement":
        return _judgement(request.last, solves)
    if request.schema == "Judgements":
        candidates = request.last.split("<candidate ")[1:]
        return {"judgements": [_judgement(candidate, solves) for candidate in candidates]}
    depth = sum(message.type == "ai" and not marks([message]) for message in request.messages)
    number = request.index + request.attempt
    name = f"{request.n}-{request.index}-{request.attempt}"
    if "search" in request.tools and request.tool_choice != "none" and (depth == 0 or number % 5 == 4):
        return ToolUse("search", {"query": f"reflection {name}"})
    return f"Answer {name} after {len(request.messages)} messages on [{_mark(request)}]: reflection finds mistakes."


def _judgement(text: str, solves: bool) -> dict[str, Any]:
    """An answer to an answer is solved; the first ones are not."""
    good = solves and text.count("<answer>") >= 2
    return {"reasoning": "Good." if good else "Not yet.", "score": 0.9 if good else 0.4, "solved": good}


def _actions(request: Request) -> int:
    return sum(bool(getattr(message, "tool_calls", None)) for message in request.messages)


def _react(request: Request, actions: float) -> Reply:
    """Searches so many times, and then answers."""
    taken = _actions(request)
    if taken < actions and request.tool_choice != "none":
        return ToolUse("search", {"query": f"reflection {taken}"})
    return f"Answer after {taken} searches on [{_mark(request)}]: reflection finds mistakes."


def _chain_of_thought(request: Request) -> Reply:
    return f"Sample {request.index} thinks.\nAnswer: reflection finds mistakes, on [{_mark(request)}]"


def _trials(request: Request, solves: bool) -> Reply:
    """The second attempt is the one that solves."""
    if request.schema == "Judgement":
        good = solves and "Attempt 2" in request.last
        return {"reasoning": "Good." if good else "Not yet.", "score": 0.9 if good else 0.4, "solved": good}
    if request.last.endswith("Reflection:"):
        return "Look for more evidence."
    if _actions(request) == 0 and request.tool_choice != "none":
        return ToolUse("search", {"query": "reflection"})
    lessons = request.messages[0].text.count("\n- ")
    return f"Attempt {lessons + 1} on [{_mark(request)}]: reflection finds mistakes."


STRATEGIES = [
    Strategy(
        name="reflection",
        graph=reflection.graph,
        context=ReflectionContext,
        solving=lambda request: _reflection(request, solves=True),
        endless=lambda request: _reflection(request, solves=False),
        artefact=("drafts",),
        answered=2,
        longest={"max_rounds": 100},
        impossible={"max_rounds": 0, "min_words": 0, "critic": "nobody"},
        streams=True,
        models=("model", "critic_model"),
    ),
    Strategy(
        name="reflexion",
        graph=reflexion.graph,
        context=ReflexionContext,
        solving=lambda request: _reflexion(request, solves=True),
        endless=lambda request: _reflexion(request, solves=False),
        artefact=("answers", "sources"),
        answered=1,
        settings={"search": "local"},
        longest={"max_rounds": 100},
        impossible={"max_rounds": 0, "max_queries": 11, "search": "yahoo"},
        searches=True,
    ),
    Strategy(
        name="lats",
        graph=lats.graph,
        context=LatsContext,
        solving=lambda request: _lats(request, solves=True),
        endless=lambda request: _lats(request, solves=False),
        artefact=("tree", "stats", "expansions"),
        answered=8,
        settings={"search": "local"},
        fan_out={"n": 50},
        longest={"max_expansions": 10_000, "max_depth": 100},
        impossible={"n": 0, "max_expansions": -1, "min_score": 1.5, "search": "yahoo"},
        searches=True,
        models=("model", "judge_model"),
    ),
    Strategy(
        name="react",
        graph=react.graph,
        context=ReactContext,
        solving=lambda request: _react(request, actions=2),
        endless=lambda request: _react(request, actions=math.inf),
        artefact=("steps",),
        answered=1,
        settings={"search": "local"},
        longest={"max_actions": 1000, "max_repeats": 1000},
        impossible={"max_actions": 0, "max_repeats": 0, "mode": "both", "environment": "chess", "search": "yahoo"},
        rewarded=True,
        roles=1,
        answers_last=True,
        searches=True,
    ),
    Strategy(
        name="chain_of_thought",
        graph=chain_of_thought.graph,
        context=ChainOfThoughtContext,
        solving=_chain_of_thought,
        endless=_chain_of_thought,
        artefact=("samples",),
        told=("observation",),
        answered=1,
        settings={"search": "none", "samples": 3},
        fan_out={"samples": 50},
        impossible={"samples": 0, "environment": "chess", "max_context_tokens": 1},
        rewarded=True,
        calls=1,
        roles=1,
        endless_calls=False,
    ),
    Strategy(
        name="trials",
        graph=trials.graph,
        context=TrialsContext,
        solving=lambda request: _trials(request, solves=True),
        endless=lambda request: _trials(request, solves=False),
        artefact=("trials",),
        answered=3,
        settings={"search": "local"},
        longest={"max_trials": 100},
        impossible={"max_trials": 0, "memory_size": 0, "actor": "trials", "min_score": 1.5, "experience": ""},
        searches=True,
        models=("model", "judge_model"),
    ),
]


def name_of(value: object) -> str | None:
    """How a strategy is named among a test's parameters."""
    return value.name if isinstance(value, Strategy) else None


SEARCHING = [strategy for strategy in STRATEGIES if strategy.searches]
ENDLESS = [strategy for strategy in STRATEGIES if strategy.endless_calls]
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES, ids=name_of)
every_endless = pytest.mark.parametrize("strategy", ENDLESS, ids=name_of)
every_searching = pytest.mark.parametrize("strategy", SEARCHING, ids=name_of)


def thread(name: str = "t") -> RunnableConfig:
    """The config that names a thread."""
    return {"configurable": {"thread_id": name}}
