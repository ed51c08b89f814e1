"""Random runs: settings, requests and a model that are functions of a seed."""

import random
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import ValidationError

from reflective_agents.graphs import builder_of
from reflective_agents.state.errors import Misuse
from reflective_agents.state.settings import settings_of
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.tree_search import steering
from reflective_agents.tree_search.tree_paths import ROOT
from tests.contract.contradictions import contradictions
from tests.contract.random_models import Model
from tests.contract.random_settings import QUESTIONS, RIGHT, STRATEGIES, TASKS, Run, random_messages, random_settings


async def random_run(seed: int) -> Run | None:
    """Run a strategy as the seed says; None where the settings do not fit together, or the task not to them."""
    chance = random.Random(seed)
    strategy = STRATEGIES[seed % len(STRATEGIES)]
    settings = random_settings(chance, strategy)
    right = RIGHT.get(settings.get("environment", ""), ())
    model = Model(seed, chance.choice([0, 0, 0.05, 0.3]), chance.choice([0.1, 0.5, 0.9]), right)
    chat = (FakeChatModel if chance.random() < 0.7 else FakeChatModelWithoutN)(reply=model)
    inputs: dict[str, Any] = {"messages": random_messages(chance)}
    task = TASKS.get(settings.get("environment", ""))
    if task:
        inputs["task"] = task
    try:
        context = settings_of(strategy)(model=chat, **settings)
    except ValidationError:
        return None
    graph = builder_of(strategy).compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 1000}
    sent = 0
    given: dict[str, Any] | Command[str] | None = inputs
    while given is not None:
        try:
            stream = graph.astream(given, config, context=context, stream_mode="custom")
            events = [event async for event in stream]
        except Misuse:
            return None
        out = (await graph.aget_state(config)).values
        run = Run(strategy, settings, context, model, chat, len(chat.calls) - sent, task, out, events)
        given = None if await contradictions(run) else random_sequel(chance, run)
        sent = len(chat.calls) if isinstance(given, dict) else sent
    return run


def random_sequel(chance: random.Random, run: Run) -> dict[str, Any] | Command[str] | None:
    """Choose how a thread goes on, if it does: with another question, or with an order to its tree search."""
    kind = chance.choice(["end", "end", "question", "order"])
    tree = run.out.get("tree")
    if kind == "order" and tree and run.strategy != "auto":
        below = [node for node in tree if node != ROOT]
        orders = {
            "prune": lambda: steering.prune(run.out, chance.choice(below or [ROOT])),
            "rescore": lambda: steering.rescore(run.out, chance.choice([*tree]), chance.choice([0, 0.5, 1])),
            "hint": lambda: steering.hint(run.out, chance.choice([*tree]), "Look {there}."),
            "more": lambda: steering.more(run.out, 2),
            "stop": lambda: steering.stop(run.out),
        }
        name = chance.choice(["rescore", "hint", "more", "stop", *(["prune"] if below else [])])
        return orders[name]()
    if kind == "question":
        return {"messages": [HumanMessage(chance.choice(QUESTIONS))], **({"task": run.task} if run.task else {})}
    return None
