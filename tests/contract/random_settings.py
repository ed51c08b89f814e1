"""Settings, tasks and conversations at random, and the run that comes of them."""

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from reflective_agents.environments.base import Task
from reflective_agents.state.context import Context
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.settings import settings_of, strategy_names
from reflective_agents.testing.fake import FakeChatModelWithoutN
from tests.contract.random_models import Model

STRATEGIES = sorted({*strategy_names()} - {"town"})
"""All but the simulation, whose runs answer no question."""
ARTICLES = {
    "context": [["Moon", ["The Moon pulls the sea.", " It orbits Earth."]], ["Sun", ["The Sun is a star."]]],
    "supporting": [["Moon", ["The Moon pulls the sea."]]],
}
TASKS: dict[str, Task] = {
    "game24": {"id": "1", "question": "4 5 6 10"},
    "blocksworld": {
        "id": "b",
        "question": "",
        "data": {
            "init": ["on red blue", "ontable blue", "ontable white", "clear red", "clear white", "handempty"],
            "goal": ["on white red"],
        },
    },
    "questions": {"id": "1", "question": "What pulls the sea?", "gold": "the Moon", "data": ARTICLES},
    "fever": {"id": "2", "question": "The Moon pulls the sea.", "gold": "SUPPORTS", "data": ARTICLES},
    "arithmetic": {"id": "3", "question": "Two and two apples?", "gold": "4"},
    "math": {"id": "3", "question": "Two and two apples?", "gold": "4"},
}
RIGHT: dict[str, Sequence[str]] = {
    "game24": [
        "10 - 4 = 6 (left: 5 6 6)",
        "5 * 6 = 30 (left: 6 30)",
        "30 - 6 = 24 (left: 24)",
        "(10 - 4) * 5 - 6 = 24",
    ],
    "blocksworld": ["unstack red blue", "put-down red", "pick-up white", "stack white red"],
    "questions": ["Finish[the Moon]", "the Moon"],
    "fever": ["Finish[SUPPORTS]", "SUPPORTS"],
    "arithmetic": ["Answer: 4", "4"],
    "math": ["Answer: 4", "4"],
}
"""What leads to the right answer of each task, and last that answer."""
FEW: dict[str, list[Any]] = {
    "max_model_calls": [1, 2, 3, 5, 8, 20, 40],
    "max_total_tokens": [500, 3000, 20_000, 200_000],
    "max_expansions": [0, 1, 2, 4],
    "max_depth": [1, 2, 3],
    "n": [1, 2, 3],
    "parallel": [1, 2, 4],
    "samples": [1, 2, 5],
    "population": [1, 2, 3],
    "rounds": [1, 2, 3],
    "choose": ["score", "pairs"],
    "max_rollouts": [1, 2, 3],
    "max_rounds": [1, 2, 3],
    "grade_samples": [1, 3],
    "beam": [1, 2],
    "max_states": [1, 3, 5],
    "max_trials": [1, 2, 3],
    "max_actions": [1, 2, 3],
    "step_samples": [1, 2, 3],
    "confidence_samples": [1, 2],
    "max_subgoals": [1, 2, 4],
    "max_replans": [0, 1],
    "max_queries": [1, 3],
    "max_lessons": [0, 1, 3],
    "min_paths": [1, 2],
    "min_gain": [None, 0.0, 0.1],
    "min_score": [0.0, 0.5, 0.7],
    "min_words": [None, 2, 50],
    "max_words": [None, 5, 500],
    "critic": ["model", "checks"],
    "evaluator": [None, "judge", "environment", "exact_match"],
    "actor": ["react", "chain_of_thought"],
    "acting": ["auto", "tools", "paper"],
    "shape": ["supervisor", "debate"],
    "grades": ["judge", "labels", "vote"],
    "grading": ["each", "together"],
    "method": ["breadth_first", "depth_first"],
    "proposals": ["samples", "list"],
    "selection": ["uct", "gumbel"],
    "simulate": [True, False],
    "votes": ["count", "likelihood"],
    "reflection": ["none", "last_attempt", "reflexion"],
    "answer_at_limit": [True, False],
    "action_reward": [None, "judge"],
    "aggregate": ["mean", "max"],
    "retrieved": [0, 3],
    "gold_reward": [True, False],
}
"""Values of settings that change what a run decides by, small enough for a quick run."""
WORKERS = ["react", "chain_of_thought", "lats", "reflexion", "best_of_n", "reflection"]
SHELF = [
    {"title": "Moon", "url": "https://pages.example/moon", "content": "The sea is pulled by the Moon."},
    {"title": "Fares", "url": "https://pages.example/fares", "content": "A ticket costs 6.40 crowns."},
    {"title": "Sun", "url": "https://pages.example/sun", "content": "The Sun is a star."},
]
QUESTIONS = [
    "Why is there tide? [alpha]",
    "Write a poem on the sea.",
    "4 5 6 10",
    "Was kostet die Fahrt?",
    "海为什么有潮汐？",
]


def shelf(query: str) -> list[JsonObject]:
    """Find one or two pages, or none, or fail: by the query."""
    chance = random.Random(query)
    if chance.random() < 0.1:
        raise RuntimeError("the shelf is closed")
    return chance.sample(SHELF, chance.choice([0, 1, 2]))


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Run(NamedTuple):
    """A run that came to its end: what it was given, the calls that it sent, and what came of it."""

    strategy: str
    settings: dict[str, Any]
    context: Context
    model: Model
    chat: FakeChatModelWithoutN
    calls: int
    task: Task | None
    out: dict[str, Any]
    events: list[JsonObject]


def random_settings(chance: random.Random, strategy: str) -> dict[str, Any]:
    """Choose settings of a strategy at random, small ones."""
    fields = settings_of(strategy).model_fields
    names = [name for name in FEW if name in fields and chance.random() < 0.4]
    settings = {name: chance.choice(FEW[name]) for name in names}
    settings = {name: value for name, value in settings.items() if value is not None}
    settings.setdefault("max_model_calls", 60)
    if strategy == "rap":
        settings.setdefault("max_rollouts", 2)
    if "max_expansions" in fields and strategy != "auto":
        settings.setdefault("max_expansions", 4)
    if "search" in fields:
        settings["search"] = chance.choice([shelf, shelf, "none"])
    if "environment" in fields and chance.random() < 0.5:
        settings["environment"] = chance.choice(sorted(TASKS))
    if "tools" in fields and chance.random() < 0.2:
        settings["tools"] = [add]
    if chance.random() < 0.1:
        settings["answer_schema"] = {"type": "object", "properties": {"result": {"type": "string"}}}
    if strategy == "plan":
        settings["worker"] = chance.choice(WORKERS)
    if strategy == "team" and chance.random() < 0.7:
        settings["roles"] = [
            {"name": name, "instructions": "Be good.", "strategy": chance.choice(WORKERS)} for name in ("anna", "bert")
        ]
    if strategy == "memory":
        settings |= {"embeddings": "lexical", "reflect_at": 100_000}
    return settings


def random_messages(chance: random.Random) -> list[AnyMessage]:
    """Choose a conversation at random."""
    question = HumanMessage(chance.choice(QUESTIONS))
    before: list[list[AnyMessage]] = [
        [],
        [],
        [SystemMessage("Be brief.")],
        [HumanMessage("Hello."), AIMessage("Hello [1].")],
    ]
    return [*chance.choice(before), question]
