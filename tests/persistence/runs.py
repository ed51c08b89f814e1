"""Runs that are stored: the saver, the model's script, and what of a state has to be the same in every run."""

import hashlib
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.memory import InMemoryStore

from reflective_agents.graphs import (
    ab_mcts,
    auto,
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
from reflective_agents.testing.script import Reply, Request, ToolUse

Graph = CompiledStateGraph[Any, Any, Any, Any]
Saver = BaseCheckpointSaver[Any]

GRAPHS: dict[str, Graph] = {
    module.graph.name: module.graph
    for module in (
        *(ab_mcts, auto, best_of_n, chain_of_thought, lats, memory, plan, rap, react, reflection, reflexion),
        *(team, town, tree_of_thoughts, trials),
    )
}
QUESTION: dict[str, Any] = {"messages": [("user", "Why does reflection help?")]}
SETTINGS: dict[str, dict[str, Any]] = {
    "auto": {"search": "local", "n": 3, "max_expansions": 2, "max_depth": 20, "max_trials": 1, "max_model_calls": 20},
    "lats": {"search": "local", "n": 3, "grading": "each", "max_expansions": 4, "max_depth": 20},
    "tree_of_thoughts": {"search": "local", "n": 3, "beam": 2, "parallel": 1, "max_depth": 3},
    "rap": {"search": "local", "n": 2, "confidence_samples": 2, "max_depth": 3, "max_rollouts": 2},
    "ab_mcts": {"search": "local", "max_expansions": 6, "max_depth": 20},
    "best_of_n": {"search": "local", "n": 2, "max_depth": 3, "parallel": 1},
    "reflection": {"max_rounds": 3},
    "reflexion": {"search": "local", "max_rounds": 2},
    "chain_of_thought": {"samples": 3},
    "react": {"search": "local", "max_actions": 3},
    "trials": {"search": "local", "max_actions": 2, "max_trials": 2},
    "plan": {"search": "local", "worker_settings": {"max_actions": 1}},
    "team": {
        "search": "local",
        "roles": [{"name": "solver", "instructions": "Solve it.", "settings": {"max_actions": 1}}],
        "max_rounds": 2,
    },
    "town": {
        "town": {
            "name": "Hamlet",
            "ends": "09:00",
            "places": [{"name": "House"}],
            "agents": [{"name": "Ada", "about": "Ada thinks.", "home": "House"}],
        },
        "embeddings": "lexical",
    },
    "memory": {"user": "killed", "retrieved": 0, "reflect_at": 100_000, "embeddings": "lexical"},
}
GRAPHS["lats, 8 at once"] = lats.graph
SETTINGS["lats, 8 at once"] = {"search": "none", "n": 2, "max_expansions": 40, "max_depth": 20, "parallel": 8}
NOW = re.compile(r"\w+day, \d{4}-\d\d-\d\d|\d{4}-\d\d-\d\d \d\d:\d\d UTC|Today is a \w+day")
"""How prompts say what day and time it is."""
THREAD: RunnableConfig = {"configurable": {"thread_id": "thread"}}


@asynccontextmanager
async def open_saver(
    database: str,
    sqlite: type[AsyncSqliteSaver] = AsyncSqliteSaver,
    postgres: type[AsyncPostgresSaver] = AsyncPostgresSaver,
) -> AsyncIterator[Saver]:
    if database.endswith(".sqlite"):
        async with sqlite.from_conn_string(database) as saver:
            yield saver
    else:
        async with postgres.from_conn_string(database) as saver:
            await saver.setup()
            yield saver


def stored(strategy: str, saver: Saver) -> Graph:
    """The strategy's graph with a checkpointer, and a store that knows nothing of other runs."""
    return GRAPHS[strategy].builder.compile(checkpointer=saver, store=InMemoryStore())


def script(request: Request) -> Reply:
    """Never satisfied, and the same for the same text at any time: two candidates differ only by their index."""
    text = re.sub(NOW, "", request.text)
    chance = random.Random(hashlib.sha256(f"{text}{request.index}".encode()).digest())
    score, number = chance.random(), chance.randrange(10**6)
    reflection = {"missing": f"Proof {number}.", "superfluous": "", "complete": False}
    if request.schema == "Judgement":
        return {"reasoning": f"Judgement {number}.", "score": score, "solved": False}
    if request.schema == "Judgements":
        scores = [chance.random() for _ in range(request.text.count("<candidate "))]
        return {"judgements": [{"reasoning": f"{score}.", "score": score, "solved": False} for score in scores]}
    if request.schema == "Usefulness":
        return {"scores": [chance.random() for _ in range(request.text.count("<candidate "))]}
    if request.schema == "Critique":
        return {"critique": f"Critique {number}.", "score": score, "accept": False}
    if request.schema == "AnswerQuestion":
        return {"answer": "Draft.", "reflection": reflection, "search_queries": [f"reflection {number}"]}
    if request.schema == "ReviseAnswer":
        found = re.findall(r'"url": "([^"]+)"', request.text)
        queries = [f"self-critique {number}"]
        return {"answer": "So [1].", "reflection": reflection, "search_queries": queries, "references": found[-1:]}
    if request.schema == "Plan":
        return {"subgoals": [{"id": "1", "goal": f"Goal {number}."}, {"id": "2", "goal": "So?", "needs": ["1"]}]}
    if request.schema == "Delegation":
        best = request.text.count("<candidate ")
        tasks = [{"to": "solver", "task": f"Task {number}."}]
        return {"critique": f"Critique {number}.", "best": best, "score": score, "done": False, "tasks": tasks}
    if request.schema == "DayPlan":
        return {"strokes": [{"start": "07:00", "what": f"thinks {number}"}]}
    if request.schema == "HourPlan":
        return {"hours": [{"start": "07:00", "what": f"thinks {number}", "place": "House"}]}
    if request.schema == "Actions":
        return {"actions": [{"minutes": 30, "what": f"thinks {number + n}", "place": "House"} for n in range(2)]}
    if request.schema == "Facts":
        return {"facts": [{"about": "the user", "statement": f"Fact {number}.", "importance": 1 + number % 10}]}
    if request.tools and request.tool_choice != "none":
        return ToolUse("search", {"query": f"reflection {number}"})
    return f"Answer {number}."


def content(value: Any) -> Any:
    """A state without what differs from run to run: the ids of messages and calls, the ids of the run and
    of the conversation, and the seconds."""
    if isinstance(value, BaseMessage):
        calls = [(call["name"], call["args"]) for call in getattr(value, "tool_calls", [])]
        return value.type, value.text, calls
    if isinstance(value, dict):
        return {
            key: content(item)
            for key, item in value.items()
            if key not in ("run_id", "conversation", "seconds", "said") and not (key == "id" and "text" in value)
        }
    return [content(item) for item in value] if isinstance(value, list) else value
