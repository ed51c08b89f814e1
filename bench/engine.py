"""What the search itself takes beside the models, in a small tree and in a large one."""

import asyncio
import gc
import math
import random
import statistics
import time
from collections import ChainMap
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from bench.rows import Row
from bench.scripts import QUESTION
from reflective_agents.graphs.lats import builder
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.state.tree import LogEntry, Stats, Tree, TreeNode
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from reflective_agents.tree_search.algorithms.mcts import Mcts
from reflective_agents.tree_search.base import START, Child, ask, tell
from reflective_agents.tree_search.candidates import Candidate, Grade
from reflective_agents.tree_search.tree_paths import ROOT, depth_of, parent_of

SMALL = 100
WIDTH = 5
STEPS = 40
OWED = 1.5
"""Most that an expansion may take in the large tree, compared with the small one."""
SEARCH = Mcts(WIDTH)
THREAD: RunnableConfig = {"configurable": {"thread_id": "engine"}}


def measure_engine(large: int, rounds: int) -> list[Row]:
    """Measure selection and backpropagation alone, and a whole super-step without its model calls.

    Args:
        large: The nodes of the large tree, which is compared with one of 100.
        rounds: How often each is measured; the best counts.
    """
    small_tree, large_tree = grow(SMALL), grow(large)
    pure = [min(_pure(tree) for _ in range(rounds)) for tree in (small_tree, large_tree)]
    own = asyncio.run(_own(rounds, small_tree, large_tree))
    return [
        Row(f"Selection and backpropagation, a level of {SMALL} nodes", 1e6 * pure[0], "us", timed=True, digits=1),
        Row(f"  {large:,} nodes / {SMALL} nodes", pure[1] / pure[0], "", OWED, timed=True, digits=2),
        Row(f"Engine's own time an expansion, {SMALL} nodes", 1000 * own[0], "ms", timed=True, digits=2),
        Row(f"  {large:,} nodes / {SMALL} nodes", own[1] / own[0], "", OWED, timed=True, digits=2),
    ]


class Grown:
    """A tree with its statistics and its log, as a run would have left them."""

    def __init__(self) -> None:
        root = _node(ROOT, 0.5)
        self.tree: Tree = {ROOT: root}
        self.stats: Stats = tell(SEARCH, {}, START, [Child(root, True)])
        self.log: list[LogEntry] = []

    def expand(self, chance: random.Random) -> None:
        """Let the leaf that is selected have children."""
        (job,), changes = ask(SEARCH, self.stats)
        self.stats.update(changes)
        kids = _kids(str(job["node"]), [chance.random() for _ in range(WIDTH)])
        changed = tell(SEARCH, self.stats, job, kids)
        self.stats.update(changed)
        self.tree.update({child.node["id"]: child.node for child in kids})
        figures: dict[str, list[float]] = {key: [stat["visits"], stat["total"]] for key, stat in changed.items()}
        added = [child.node["id"] for child in kids]
        self.log.append(LogEntry(kind="expand", node=job["node"], added=added, stats=figures, calls=6, tokens=600))


def grow(nodes: int) -> Grown:
    """Grow a tree of at least so many nodes."""
    grown, chance = Grown(), random.Random(nodes)
    while len(grown.tree) < nodes:
        grown.expand(chance)
    return grown


def _kids(parent: str, scores: Sequence[float]) -> list[Child]:
    return [Child(_node(f"{parent}.{number}", score), True) for number, score in enumerate(scores)]


def _node(node_id: str, score: float) -> TreeNode:
    """Return the node of a judged answer."""
    grade = Grade(score, "It could be better.")
    answer = Candidate(0, [AIMessage(f"answer {node_id}")], answers=True, final=True, grade=grade)
    return answer.as_node(node_id, parent_of(node_id))


def _pure(grown: Grown) -> float:
    """Measure the seconds of selection and backpropagation, new nodes included, per level that they pass."""
    levels, began = 0, time.process_time()
    for _ in range(10 * STEPS):
        (job,), changes = ask(SEARCH, grown.stats)
        node = str(job["node"])
        tell(SEARCH, ChainMap(changes, grown.stats), job, _kids(node, [0.5] * WIDTH))
        levels += depth_of(node) + 1
    return (time.process_time() - began) / levels


async def _own(rounds: int, *trees: Grown) -> list[float]:
    """Measure the seconds of processor time of an expansion in each tree beyond its calls of the model.

    The trees are measured in turn, and the least of each counts: a machine that slows down for a while spoils neither.
    """
    least, calls = [math.inf] * len(trees), math.inf
    for _ in range(rounds):
        for number, tree in enumerate(trees):
            least[number] = min(least[number], await _step(tree))
        calls = min(calls, await _calls())
    return [seconds - calls for seconds in least]


async def _step(grown: Grown) -> float:
    """Measure the seconds of processor time of a super-step in which a leaf of a grown tree is expanded."""
    before = len(grown.log)
    limits = {"max_model_calls": 10**5, "max_total_tokens": 10**9, "max_depth": 100, "max_expansions": before + STEPS}
    context = LatsContext.model_validate({"model": FakeChatModel(reply=_terse), "search": "none", **limits})
    graph = builder.compile(checkpointer=InMemorySaver())
    await graph.ainvoke(QUESTION, THREAD, context=context, interrupt_after=["start"])
    state = {"tree": grown.tree, "stats": grown.stats, "log": grown.log, "expansions": before, "best": ROOT}
    await graph.aupdate_state(THREAD, state, as_node="start")
    gc.collect()
    times, began = [], time.process_time()
    async for update in graph.astream(None, THREAD, context=context, stream_mode="updates"):
        if "expand" in update:
            times.append(time.process_time() - began)
        began = time.process_time()
    return statistics.median(times[1:-1])


async def _calls() -> float:
    """Measure the seconds of processor time of an expansion's calls alone."""
    model: Any = FakeChatModel(reply=_terse)
    schema = {
        "type": "function",
        "function": {"name": "Judgements", "parameters": {"type": "object", "properties": {}}},
    }
    judge = model.bind_tools([schema], tool_choice="Judgements")
    prompt, times = [HumanMessage("text " * 300)], []
    for _ in range(STEPS):
        began = time.process_time()
        await model.agenerate([prompt], n=WIDTH)
        await judge.ainvoke(prompt)
        times.append(time.process_time() - began)
    return statistics.median(times)


def _terse(request: Request) -> Reply:
    if request.schema:
        judgement = {"reasoning": "It could be better.", "score": 0.5, "solved": False}
        return {"judgements": [judgement] * max(request.last.count("<candidate "), 1)}
    return f"answer {request.index} to {request.key}"
