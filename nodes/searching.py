"""The search itself, the same for every algorithm: jobs are asked for, carried out at once, and told as they come."""

import asyncio
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from textwrap import shorten
from typing import Any, cast

from langgraph.types import Overwrite

from models.meter import Bill, billed
from nodes.candidates import Branch
from nodes.growth import Grown, Search
from nodes.step import Step, Update, stop
from search.base import ROOT, Algorithm, Child, Job, ask, parent_of, path, rank, tell, upwards, withdraw
from state.errors import LimitReached
from state.run import Outcome
from state.searching import TreeContext
from state.tree import Stats, Told, TreeNode, changes_of, first_figures

GROWING = ("expand", "simulate")
"""Kinds of jobs that count as expansions."""
WHY = 200
"""Characters of a refusal that the log keeps."""
JOBS_A_ROUND = 4
"""Jobs of one super-step for each that may be in flight, where several may: at its end none is, and all is stored."""

FRESH: dict[str, Any] = {
    "tree": Overwrite({}),
    "stats": Overwrite({}),
    "log": Overwrite([]),
    "lessons": Overwrite([]),
    "values": Overwrite({}),
    "expansions": 0,
    "best": None,
}
"""The channels of a search at the beginning of a turn."""


class Round:
    """One super-step of a search.

    Args:
        state: The state of the run.
        step: The node that searches.
        algorithm: What to expand next.
        search: What it is expanded with.
        order: Gives for the tree and an answer what answers are ordered by, the best first.
    """

    def __init__(
        self,
        state: Mapping[str, Any],
        step: Step[Any],
        algorithm: Algorithm,
        search: Search,
        order: Callable[[Mapping[str, TreeNode], TreeNode], Any] = lambda tree, node: rank(node),
    ) -> None:
        self.state, self.step, self.algorithm, self.search, self.order = state, step, algorithm, search, order
        self.context: TreeContext = step.context
        self.tree: ChainMap[str, TreeNode] = ChainMap({}, state["tree"])
        self.stats: ChainMap[str, Any] = ChainMap({}, state["stats"])
        self.best: str | None = state["best"]
        self.expansions: int = state["expansions"]
        self.values: ChainMap[str, str] = ChainMap({}, state["values"])
        self.log: list[Told] = []
        self.lessons = list(state["lessons"])
        self.outcome: Outcome | None = None
        self.failed = {lesson["answer"] for lesson in self.lessons if lesson["node"]}
        self._flight: dict[asyncio.Task[Grown], tuple[Job, Bill, int]] = {}

    async def run(self) -> Update:
        """Keep as many jobs in flight as may be, and take in what comes, until the round is over.

        Returns:
            The update of the state. Jobs in flight are given up when the search has come to its end; at a limit or a
            fault, what was paid for is taken in.
        """
        width = self.context.parallel if ROOT in self.stats else 1
        left = 1 if width == 1 else JOBS_A_ROUND * width
        try:
            while True:
                while left and self.outcome is None and len(self._flight) < width and (job := self._next()):
                    left -= 1
                    self._begin(job)
                if not self._flight or (self.outcome and self.outcome["status"] in ("solved", "exhausted")):
                    return self._update()
                done, _ = await asyncio.wait(self._flight, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in self._flight if task in done]:
                    job, bill, _ = self._flight.pop(task)
                    self._take(job, bill, task.result())
        finally:
            await self._give_up()

    def _next(self) -> Job | None:
        """The next job, as wide as the limits allow; None if there is none now. Says why if there never will be."""
        most = self.context.max_expansions
        jobs, changed = ask(self.algorithm, self.stats)
        if not jobs:
            self._end(*self._why_nothing())
            return None
        if jobs[0]["kind"] in GROWING and self.expansions + len(self._flight) >= most:
            self._end("limit_reached", f"max_expansions={most} reached")
            return None
        width = self._affordable(jobs[0]) if jobs[0]["node"] else 1
        if width < 1 or (width < jobs[0]["width"] and self._flight):
            left = f"max_model_calls={self.context.max_model_calls} leaves no room for another expansion"
            self._end("limit_reached", left)
            return None
        self.stats.update(changed)
        narrowed: Any = {"narrowed": True} if width < jobs[0]["width"] else {}
        return {**jobs[0], "width": width, **narrowed}

    def _end(self, status: Any, reason: str) -> None:
        """End the run, unless something is in flight that may change the matter."""
        if not self._flight:
            self.outcome = Outcome(status=status, reason=reason)

    def _why_nothing(self) -> tuple[str, str]:
        root = self.stats[ROOT]
        if said := getattr(self.algorithm, "ended", lambda _: None)(self.stats):
            return said  # type: ignore[no-any-return]
        for name, spent in (("max_rollouts", root.get("begun", 0)), ("max_states", root["visits"])):
            most = getattr(self.algorithm, name, None)
            if most is not None and spent >= most and not root["closed"]:
                return "limit_reached", f"{name}={most} reached"
        told = [*self.state["log"], *self.log]
        if any("narrowed" in entry for entry in told):
            return "limit_reached", f"max_model_calls={self.context.max_model_calls} left no room for more candidates"
        reason = getattr(self.algorithm, "exhausted", "no leaf is left that could be expanded")
        return "exhausted", "; ".join([reason, *self._dead_ends(told)])

    def _dead_ends(self, told: Sequence[Told]) -> list[str]:
        """What has kept a search without an answer from going on, in words."""
        if self.best is not None:
            return []
        most, refused = self.context.max_depth, sum(entry.get("refused", 0) for entry in told)
        deep = sum(node["depth"] >= most for node in self.tree.values())
        why = next((entry["why"] for entry in reversed(told) if "why" in entry), "")
        said = [f"nodes without an answer at max_depth={most}: {deep}"] if deep else []
        return [*said, f"steps refused: {refused}, the last one because {why}"] if why else said

    def _affordable(self, job: Job) -> int:
        """How many candidates the calls that are left allow, those promised to other jobs apart. Nodes are judged all
        or not at all."""
        promised = sum(max(planned - bill.calls, 0) for _, bill, planned in self._flight.values())
        left = self.step.meter.calls_left - self.keep - promised
        widths = [job["width"]] if job["kind"] == "judge" else range(job["width"], 0, -1)
        return next((width for width in widths if self.search.calls(job["kind"], width) <= left), 0)

    @property
    def keep(self) -> int:
        """How many calls are kept back: one for an answer, as long as there is none."""
        return int(self.best is None)

    def _begin(self, job: Job) -> None:
        with billed() as bill:
            growth = self.search.growth(self._branch(job), self._known(), self.failed)
            task = asyncio.create_task(growth.run())
        self._flight[task] = (job, bill, self.search.calls(job["kind"], job["width"]))

    def _branch(self, job: Job) -> Branch:
        nodes = path(self.tree, job["node"]) if job["node"] else []  # type: ignore[arg-type]
        may_act = len(nodes) < self.context.max_depth and self.step.meter.calls_left > self.keep
        said = [lesson["text"] for lesson in self.lessons]
        judged = [path(self.tree, node) for node in job.get("nodes", ())]  # type: ignore[arg-type]
        if judged:
            shared = _shared(judged)
            nodes, judged = judged[0][:shared], [steps[shared:] for steps in judged]
        asked = self.state["messages"], self.state["request"]
        return Branch(job, *asked, nodes, said, may_act, self.keep, judged, self.tree)

    def _known(self) -> Mapping[str, TreeNode]:
        return _Known(self.values, self.tree)

    def _take(self, job: Job, bill: Bill, grown: Grown) -> None:
        """Tell the algorithm what came of a job, and everybody else."""
        unmet = job["kind"] == "judge" or any(isinstance(reason, LimitReached) for reason in grown.stops)
        if grown.stops and unmet and not grown.children:
            self.stats.update(withdraw(self.stats, job))
        children = [self._known_here(job, child) for child in grown.children]
        grown.children = [child for child in grown.children if child in children]
        grown.merged += len(children) - len(grown.children)
        changed = tell(self.algorithm, self.stats, job, children)
        pruned = [key for key in changed if changed[key].get("pruned") and not self._pruned(key)]
        self.stats.update(changed)
        self.expansions += job["kind"] in GROWING
        self.tree.update({child.node["id"]: child.node for child in grown.children})
        self.values.update({key: node for key, node in grown.keys.items() if key not in self.values})
        self.lessons += grown.lessons
        self._report(job, bill, grown, changed, pruned)
        self._weigh([child.node for child in grown.children])
        self._judge_run(grown)

    def _known_here(self, job: Job, child: Child) -> Child:
        """Where children are made one by one, the one that came to the same before, if there is one."""
        first = self.values.get(child.key) if "arm" in job else None
        if first is None or parent_of(first) != job["node"]:
            return child
        self.step.emit("merged", with_node=first)
        return child._replace(node=self.tree[first])

    def _pruned(self, key: str) -> bool:
        return key in self.stats and bool(self.stats[key].get("pruned"))

    def _report(self, job: Job, bill: Bill, grown: Grown, changed: Stats, pruned: list[str]) -> None:
        """Write the log, and tell the events: the nodes first, then what has changed above them."""
        judging = job["kind"] == "judge"
        new = [child for child in grown.children if not judging and child.node["id"] != job["node"]]
        added = [child.node["id"] for child in new]
        firsts = {child.node["id"]: first_figures(child.node) for child in new}
        seen: dict[str, list[float]] = {key: [stat["visits"], stat["total"]] for key, stat in changed.items()}
        figures = {key: figure for key, figure in seen.items() if figure != firsts.get(key)}
        told = Told(
            kind=job["kind"], node=job["node"], added=added, stats=figures, calls=bill.calls, tokens=bill.tokens
        )
        why = shorten(grown.refused[-1], WHY) if grown.refused and not grown.children else ""
        extra: dict[str, Any] = {
            "merged": grown.merged,
            "failed": bool(grown.stops and grown.fruitless),
            "arm": job.get("arm"),
            "narrowed": job.get("narrowed"),
            "refused": len(grown.refused),
            "why": why,
            "pruned": pruned,
        }
        self.log.append(cast(Told, {**told, **{key: entry for key, entry in extra.items() if entry}}))
        for child in grown.children:
            node = child.node
            shown = {key: node[key] for key in ("id", "parent_id", "depth", "kind", "score", "solved")}
            extra = {key: node[key] for key in ("reward", "samples", "terms") if key in node}
            event = "node" if node["id"] in added else "judged"
            self.step.emit(event, **shown, **extra, expansions=self.expansions)
        if job["node"]:
            above = {key: figures[key] for key in upwards(job["node"]) if key in figures}
            spent = {"calls": bill.calls, "tokens": bill.tokens}
            self.step.emit("visited", node=job["node"], kind=job["kind"], stats=above, **spent)
        for node_id in pruned:
            self.step.emit("pruned", node=node_id)
        for lesson in grown.lessons:
            self.step.emit("reflected", node=lesson["node"], lesson=lesson["text"])

    def _weigh(self, nodes: list[TreeNode]) -> None:
        known = [self.tree[self.best]] if self.best else []
        answers = [node for node in [*known, *nodes] if node["kind"] == "answer"]
        best = min(answers, key=lambda node: self.order(self.tree, node), default=None)
        self.best = best["id"] if best else None

    def _judge_run(self, grown: Grown) -> None:
        """See whether the run is over: solved, at a limit, without a model that answers, or with nothing to gain."""
        solved = sorted((child.node for child in grown.children if child.node["solved"]), key=rank)
        limits = [reason for reason in grown.stops if isinstance(reason, LimitReached)]
        if solved:
            self.outcome = Outcome(status="solved", reason=why_solved(solved[0]))
        elif self.outcome:
            return  # a limit or a fault was met before: only a solution is better news
        elif limits:
            self.outcome = Outcome(status="limit_reached", reason=str(limits[0]))
        elif grown.stops and grown.fruitless and self._keeps_failing():
            self.outcome = Outcome(status="failed", reason=str(grown.stops[0]))
        elif (least := getattr(self.context, "min_gain", None)) is not None and self.best and not self._may_gain(least):
            reason = f"no open leaf is better than the best answer by more than min_gain={least:g}"
            self.outcome = Outcome(status="exhausted", reason=reason)

    def _keeps_failing(self) -> bool:
        """Whether one job more has failed in a row than there are models to choose from, or all so far; and no model
        has been spared. One alone costs only itself."""
        paid = [entry for entry in [*self.state["log"], *self.log] if entry["calls"] or "failed" in entry]
        row = list(takewhile(lambda entry: "failed" in entry, reversed(paid)))
        models = set(getattr(self.algorithm, "arms", ("",)))
        spared = models - {entry.get("arm", "") for entry in row}
        return not spared and (len(row) > len(models) or len(row) == len(paid))

    def _may_gain(self, least: float) -> bool:
        assert self.best is not None
        reached = self.tree[self.best]["score"] or 0.0
        leaves = ((key, stat) for key, stat in self.stats.items() if not stat["closed"] and not stat["children"])
        return any((self.tree[key]["score"] or stat.get("prior", 0.0)) > reached + least for key, stat in leaves)

    async def _give_up(self) -> None:
        """Cancel what is in flight, wait until it has ended, and take its virtual losses back."""
        flight, self._flight = self._flight, {}
        for task, (job, _, _) in flight.items():
            task.cancel()
            self.stats.update(withdraw(self.stats, job))
        await asyncio.gather(*flight, return_exceptions=True)

    def _news(self, node: TreeNode) -> Mapping[str, Any]:
        """What is new of a node: all of it, or what it has gained if it is stored already."""
        stored = self.state["tree"].get(node["id"], {})
        return {key: told for key, told in node.items() if key not in stored or stored[key] != told}

    def _update(self) -> Update:
        for job, _, _ in self._flight.values():
            self.stats.update(withdraw(self.stats, job))
        grown = {
            "tree": {key: self._news(node) for key, node in self.tree.maps[0].items()},
            "stats": changes_of(self.stats.maps[0], self.state["stats"]),
            "log": self.log,
            "values": self.values.maps[0],
            "lessons": self.lessons[len(self.state["lessons"]) :],
        }
        update: Update = {name: new for name, new in grown.items() if new}
        update |= {"expansions": self.expansions}
        update |= {"best": self.best} if self.best != self.state["best"] else {}
        return update | (stop(**self.outcome) if self.outcome else {})


def _shared(paths: Sequence[Sequence[TreeNode]]) -> int:
    """How many nodes all paths begin with, the last of each apart."""
    levels = zip(*([node["id"] for node in steps[:-1]] for steps in paths), strict=False)
    return sum(1 for _ in takewhile(lambda ids: len(set(ids)) == 1, levels))


class _Known(Mapping[str, TreeNode]):
    """The first node of each state of the world."""

    def __init__(self, values: Mapping[str, str], tree: Mapping[str, TreeNode]) -> None:
        self._values, self._tree = values, tree

    def __getitem__(self, key: str) -> TreeNode:
        return self._tree[self._values[key]]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def why_solved(node: TreeNode) -> str:
    """Who says that a node solves the task."""
    if "reward" in node:
        return f"node {node['id']} has a reward of {node['reward']:g}"
    return f"the judge accepts node {node['id']} with a score of {node['score']:.2f}"


def start_of(world: Mapping[str, Any]) -> Child:
    """The root of a task in an environment: where nothing has been done yet."""
    state = {key: value for key, value in world.items() if key != "task"}
    root = TreeNode(
        id=ROOT, parent_id=parent_of(ROOT), depth=0, kind="root", messages=[], critique="", score=None, solved=False
    )
    return Child({**root, "state": state} if state else root, True)
