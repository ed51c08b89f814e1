"""The strategies, and what the shared tests need to know of each: a new one passes them all by one more entry here."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from graphs import (
    ab_mcts,
    best_of_n,
    chain_of_thought,
    lats,
    memory,
    plan,
    rap,
    react,
    reflection,
    reflexion,
    team,
    town,
    tree_of_thoughts,
    trials,
)
from state.context import (
    ChainOfThoughtContext,
    Context,
    ReactContext,
    ReflectionContext,
    ReflexionContext,
    TrialsContext,
)
from state.cooperation import PlanContext, TeamContext
from state.remembering import MemoryContext
from state.searching import AbMctsContext, BestOfNContext, LatsContext, RapContext, TreeOfThoughtsContext
from state.town import TownContext
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
    given_up: str = ""
    """How the reason names that steps which bring nothing have ended a run, where nobody judges them."""
    answers_last: bool = False
    """Whether an agent decides when it answers: what breaks off the run before leaves no answer."""
    streams: bool = False
    """Whether the answer's tokens go to the `messages` stream."""
    searches: bool = False
    models: tuple[str, ...] = ("model",)
    """Settings that name a model."""
    leads: tuple[str, ...] = ()
    """Kinds of calls without which nothing is answered at all, beside the first call's."""

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


def _ab_mcts(request: Request, solves: bool) -> Reply:
    """The second answer is solved, wherever it stands: the prompt of one beside the first is the same once more."""
    if request.schema == "Judgement":
        work = request.last.rpartition("<trajectory>")[2]
        good = solves and (work.count("<answer>") >= 2 or re.search(r"Answer \d+-\d+-[1-9]", work) is not None)
        return {"reasoning": "So.", "score": 0.9 if good else 0.4, "solved": good}
    return _lats(request, solves)


def _best_of_n(request: Request, solves: bool) -> Reply:
    """Trajectories that search once, or for ever; the judge takes the first answer, or none."""
    if request.schema == "Judgement":
        return {"reasoning": "So.", "score": 0.9 if solves else 0.4, "solved": solves}
    taken = _actions(request)
    name = f"{request.n}-{request.index}-{request.attempt}-{taken}"
    if "search" in request.tools and request.tool_choice != "none" and taken == 0:
        return ToolUse("search", {"query": f"reflection {name}"})
    return f"Answer {name} on [{_mark(request)}]: reflection finds mistakes."


def _tree_of_thoughts(request: Request, solves: bool) -> Reply:
    """Plans and searches, and then answers; the judge takes the first answers, or none."""
    if request.schema == "Judgements":
        answers = ["<answer>" in candidate for candidate in request.text.split("<candidate ")[1:]]
        scores = [0.9 if answer and solves else 0.4 for answer in answers]
        return {"judgements": [{"reasoning": "So.", "score": score, "solved": score > 0.5} for score in scores]}
    depth = sum(message.type == "ai" and not marks([message]) for message in request.messages)
    number = request.index + request.attempt
    name = f"{request.n}-{request.index}-{request.attempt}"
    if "search" in request.tools and depth == 0 and number % 5 > 2:
        return ToolUse("search", {"query": f"reflection {name}"})
    if depth == 0 and "plan" in request.messages[0].text:
        return f"Plan {name}: begin with mistakes."
    return f"Answer {name} after {len(request.messages)} messages on [{_mark(request)}]: reflection finds mistakes."


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


def _rap(request: Request, solves: bool) -> Reply:
    """After one sub-question the whole may be answered, by each path alike or never so."""
    if request.schema == "Usefulness":
        steps = re.findall(r'<candidate number="\d+">\n(.*)\n', request.text)
        return {"scores": [0.9 if "Now" in step else round(0.8 / place, 2) for place, step in enumerate(steps, 1)]}
    asked, number = request.last.count("<asked "), request.index + request.attempt + (request.n == 1)
    if "Write sub-question" in request.last:
        last = asked and number % 2 == 0
        return "Now we can answer the question." if last else f"What is {asked}.{number}, for [{_mark(request)}]?"
    if "Answer this sub-question" in request.last:
        return f"So.\nAnswer: {asked}.{number}"
    told = "" if solves else f", by way {request.key[:8]}"
    return f"So.\nAnswer: On [{_mark(request)}]: reflection finds mistakes{told}."


def _plan(request: Request, solves: bool) -> Reply:
    """Of the first plan one sub-goal is reached and one is not; what the next plans try is reached at last."""
    if request.schema == "Plan":
        number = request.text.count("<subgoal")
        goals = ["Find one", "Try"] if number == 0 else ["Try again"]
        names = enumerate(goals, number + 1)
        return {
            "subgoals": [{"id": f"{n}", "goal": f"{goal}: {n} [{_mark(request)}]", "needs": []} for n, goal in names]
        }
    if "The results:" in request.last:
        return f"All in all on [{_mark(request)}]: reflection finds mistakes."
    reached = "Find" in request.last or (solves and "again" in request.last)
    return f"Answer: {'Reflection finds mistakes' if reached else 'IMPOSSIBLE: nothing was found'}"


def _team(request: Request, solves: bool) -> Reply:
    """The second report is the one that is accepted."""
    if request.schema == "Delegation":
        numbers = [int(number) for number in re.findall(r'<candidate number="(\d+)"', request.last)]
        best = max(numbers, default=0)
        good = solves and best == 2
        tasks = [] if good else [{"to": "solver", "task": f"Answer {best + 1} on [{_mark(request)}]."}]
        said = {"critique": "Good." if good else "Too short.", "score": 0.9 if good else 0.4}
        return {**said, "best": best, "done": good, "tasks": tasks}
    return f"Answer: {request.last.removeprefix('Question: ')} Reflection finds mistakes."


def _memory(request: Request) -> Reply:
    if request.schema == "Ratings":
        return {"ratings": [1] * request.text.count("<memory ")}
    return f"Answer on [{_mark(request)}]: reflection finds mistakes."


HAMLET: dict[str, Any] = {
    "name": "Hamlet",
    "begins": "07:00",
    "ends": "08:00",
    "fact": "mistakes",
    "places": [{"name": "House"}],
    "agents": [{"name": "Ada", "about": "Ada thinks.", "home": "House"}],
}


def _town(request: Request, step: int) -> Reply:
    """One agent does something else in each step."""
    if request.schema == "DayPlan":
        return {"strokes": [{"start": "07:00", "what": "thinks"}]}
    if request.schema == "HourPlan":
        return {"hours": [{"start": "00:00", "what": "thinks", "place": "House"}]}
    if request.schema == "Actions":
        (hour,) = re.findall(r"<time>\n(\d\d)", request.text)
        steps = range(0, 60, step)
        return {"actions": [{"minutes": step, "what": f"thinks {hour}:{past}", "place": "House"} for past in steps]}
    return {"ratings": [3] * request.schemas["Ratings"]["properties"]["ratings"]["minItems"]}


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
        artefact=("tree", "stats", "log", "expansions"),
        told=("lessons",),
        rewarded=True,
        answered=8,
        settings={"search": "local"},
        fan_out={"n": 50},
        longest={"max_expansions": 10_000, "max_depth": 100},
        impossible={"n": 0, "max_expansions": -1, "min_score": 1.5, "search": "yahoo", "parallel": 0, "simulate": "so"},
        searches=True,
        models=("model", "judge_model"),
    ),
    Strategy(
        name="tree_of_thoughts",
        graph=tree_of_thoughts.graph,
        context=TreeOfThoughtsContext,
        solving=lambda request: _tree_of_thoughts(request, solves=True),
        endless=lambda request: _tree_of_thoughts(request, solves=False),
        artefact=("tree", "stats", "log", "expansions"),
        told=("lessons",),
        rewarded=True,
        answered=6,
        settings={"search": "local"},
        fan_out={"n": 50},
        longest={"max_expansions": 10_000, "max_depth": 100},
        impossible={
            "n": 0,
            "beam": 65,
            "max_depth": 0,
            "method": "so",
            "prune_below": 2,
            "max_states": 0,
            "search": "yahoo",
        },
        searches=True,
        models=("model", "judge_model"),
    ),
    Strategy(
        name="rap",
        graph=rap.graph,
        context=RapContext,
        solving=lambda request: _rap(request, solves=True),
        endless=lambda request: _rap(request, solves=False),
        artefact=("tree", "stats", "log", "expansions", "weights"),
        told=("lessons",),
        rewarded=True,
        answered=9,
        settings={"search": "local", "n": 2, "confidence_samples": 1, "examples": False},
        fan_out={"n": 50},
        longest={"max_rollouts": 10_000, "max_expansions": 10_000, "max_depth": 100},
        impossible={
            "n": 0,
            "alpha": 2,
            "aggregate": "sum",
            "confidence_samples": 0,
            "max_rollouts": 0,
            "proposals": "so",
            "search": "yahoo",
        },
        calls=10,
        searches=True,
        models=("model", "judge_model"),
    ),
    Strategy(
        name="ab_mcts",
        graph=ab_mcts.graph,
        context=AbMctsContext,
        solving=lambda request: _ab_mcts(request, solves=True),
        endless=lambda request: _ab_mcts(request, solves=False),
        artefact=("tree", "stats", "log", "expansions"),
        told=("lessons",),
        rewarded=True,
        answered=2,
        settings={"search": "none"},
        fan_out={"parallel": 50, "max_expansions": 1000},
        longest={"max_expansions": 10_000, "max_depth": 100},
        impossible={"prior": 0, "arms": "offline", "parallel": 65, "max_expansions": -1, "min_score": 1.5},
        models=("model", "judge_model"),
    ),
    Strategy(
        name="best_of_n",
        graph=best_of_n.graph,
        context=BestOfNContext,
        solving=lambda request: _best_of_n(request, solves=True),
        endless=lambda request: _best_of_n(request, solves=False),
        artefact=("tree", "stats", "log", "expansions"),
        told=("lessons",),
        rewarded=True,
        answered=3,
        settings={"search": "local", "n": 2, "parallel": 1},
        fan_out={"n": 50, "parallel": 50},
        given_up=r"steps refused: \d+, .* and failed: |without an answer at max_depth=\d",
        longest={"n": 100, "max_expansions": 10_000, "max_depth": 100},
        impossible={"n": 0, "parallel": 65, "max_expansions": -1, "min_score": 1.5, "search": "yahoo"},
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
    Strategy(
        name="plan",
        graph=plan.graph,
        context=PlanContext,
        solving=lambda request: _plan(request, solves=True),
        endless=lambda request: _plan(request, solves=False),
        artefact=("subgoals",),
        answered=3,
        settings={"search": "none", "worker": "chain_of_thought"},
        longest={"max_replans": 100},
        impossible={"max_subgoals": 0, "max_replans": -1, "worker": "plan", "worker_settings": {"max_rounds": 3}},
        calls=6,
        streams=True,
        leads=("Plan", "free"),
    ),
    Strategy(
        name="team",
        graph=team.graph,
        context=TeamContext,
        solving=lambda request: _team(request, solves=True),
        endless=lambda request: _team(request, solves=False),
        artefact=("rounds",),
        answered=2,
        settings={
            "search": "none",
            "roles": [{"name": "solver", "instructions": "Solve it.", "strategy": "chain_of_thought"}],
        },
        longest={"max_rounds": 100},
        impossible={"max_rounds": 0, "shape": "crowd", "roles": [{"name": "a b", "instructions": "So."}]},
        calls=5,
        models=("model", "judge_model"),
        leads=("Delegation", "free"),
    ),
    Strategy(
        name="memory",
        graph=memory.graph,
        context=MemoryContext,
        solving=_memory,
        endless=_memory,
        artefact=(),
        told=("memories",),
        answered=1,
        settings={"user": "shared tests", "retrieved": 0, "reflect_at": 100_000, "embeddings": "lexical"},
        impossible={"user": "", "retrieved": 101, "relevance": 0, "max_memories": 9, "embeddings": 7},
        calls=2,
        endless_calls=False,
        streams=True,
    ),
    Strategy(
        name="town",
        graph=town.graph,
        context=TownContext,
        solving=lambda request: _town(request, step=30),
        endless=lambda request: _town(request, step=10),
        artefact=("day", "agents", "spread"),
        told=("conversations", "retrievals"),
        answered=4,
        settings={"town": HAMLET, "embeddings": "lexical", "reflect_at": 10_000},
        longest={"town": {**HAMLET, "begins": "00:00", "ends": "24:00"}, "minutes": 10, "max_steps": 10_000},
        impossible={"minutes": 0, "max_steps": 0, "max_turns": 0, "reflect_at": -1, "town": 7, "relevance": 0},
        calls=5,
        roles=4,
        leads=("DayPlan", "HourPlan", "Actions", "Ratings"),
    ),
]


def name_of(value: object) -> str | None:
    """How a strategy is named among a test's parameters."""
    return value.name if isinstance(value, Strategy) else None


SEARCHING = [strategy for strategy in STRATEGIES if strategy.searches]
ENDLESS = [strategy for strategy in STRATEGIES if strategy.endless_calls]
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES, ids=name_of)
THROUGHOUT = ("reflection", "react")
"""Strategies that meet every case. The others share nearly all their code with these and with each other."""
ONE = THROUGHOUT[:1]
"""Enough where what a case is about does not depend on the strategy."""
TREES = ("lats", "tree_of_thoughts", "rap", "ab_mcts", "best_of_n")
"""Those that share one engine: together they meet every case once."""


def every_case(
    name: str,
    values: Iterable[Any],
    among: Sequence[Strategy] = STRATEGIES,
    ids: Callable[[Any], Any] = str,
    throughout: Sequence[str] = THROUGHOUT,
) -> pytest.MarkDecorator:
    """Parametrize with strategies and cases: those of `throughout` with all, the others in turns.

    Each case comes to some of them, and each of them meets some of the cases, so that the tests stay quick.
    """
    cases = list(values)

    def meets(strategy: Strategy, case: int) -> bool:
        if strategy.name in throughout:
            return True
        turns = min(len(TREES) if strategy.name in TREES else 9, len(cases))
        return (among.index(strategy) + case) % turns == 0

    pairs = [
        pytest.param(strategy, case, id=f"{strategy.name}-{ids(case)}")
        for strategy in among
        for number, case in enumerate(cases)
        if meets(strategy, number)
    ]
    return pytest.mark.parametrize(("strategy", name), pairs)


def ring(*steps: int) -> pytest.MarkDecorator:
    """Parametrize with strategies and others that stand so many places after them: each comes as often as the rest."""
    pairs = [
        pytest.param(strategy, other, id=f"{strategy.name}-{other.name}")
        for step in steps
        for strategy, other in zip(STRATEGIES, [*STRATEGIES[step:], *STRATEGIES[:step]], strict=True)
    ]
    return pytest.mark.parametrize(("strategy", "other"), pairs)


every_endless = pytest.mark.parametrize("strategy", ENDLESS, ids=name_of)
every_searching = pytest.mark.parametrize("strategy", SEARCHING, ids=name_of)


def thread(name: str = "t") -> RunnableConfig:
    """The config that names a thread."""
    return {"configurable": {"thread_id": name}}
