"""Choosing by pairs and merging against chance: what the graphs find where all rates are known, and what is computed.

    python -m bench.choosing    # the table of docs/choosing.md

The model is right in a sample, in a comparison and in a merged answer with chances that are given. Nothing verifies.
"""

import asyncio
import random
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.chance import Measured, chosen_by_pairs, merged
from bench.options import parser_of
from reflective_agents.graphs import aggregation, best_of_n
from reflective_agents.testing.fake import FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request

RUNS = 1600
RIGHT = re.compile(r"right\b")


class Writer:
    """A model of known rates.

    Args:
        p: The chance that a sample is right.
        judge: The chance that a comparison of a right and a wrong answer is.
        merge: The chance that a merged answer is right, by how many of its group are.
        alike: Whether all right answers are alike, and all wrong ones.
        seed: What its luck begins with.
    """

    def __init__(self, p: float, judge: float, merge: Sequence[float], alike: bool, seed: int) -> None:
        self.p, self.judge, self.merge, self.alike = p, judge, merge, alike
        self.luck = random.Random(seed)

    def __call__(self, request: Request) -> Reply:
        """Compare, merge, or answer."""
        if request.schema == "Comparison":
            return {"reasoning": "So.", "better": 1 if self.prefers_first(request.last) else 2}
        merging = "<attempt" in request.text
        chance = self.merge[len(RIGHT.findall(request.text.partition("<attempt")[2]))] if merging else self.p
        name = "right" if self.luck.random() < chance else "wrong"
        return f"Answer: {name}" if self.alike else f"Answer: {name} {self.luck.random()}"

    def prefers_first(self, text: str) -> bool:
        """Tell whether the first of two answers seems to be the better one."""
        first, second = (bool(RIGHT.search(part)) for part in text.split("</candidate>")[:2])
        better = 0.5 if first == second else self.judge if first else 1 - self.judge
        return self.luck.random() < better


class Entry(NamedTuple):
    """A strategy with its settings, the rates of its model, and the computed chance."""

    graph: Any
    settings: dict[str, Any]
    p: float
    judge: float
    merge: Sequence[float]
    computed: float


def pairs(graph: Any, size: str, p: float, judge: float, n: int, **settings: Any) -> Entry:
    """Return an entry in which each of n answers is compared with each."""
    settings |= {size: n, "choose": "pairs", "comparisons": n * (n - 1) // 2}
    return Entry(graph, settings, p, judge, (), chosen_by_pairs(p, judge, n))


def rsa(p: float, merge: Sequence[float], n: int, rounds: int) -> Entry:
    """Return an entry in which groups of answers are merged."""
    settings = {"population": n, "rounds": rounds} | ({"group": len(merge) - 1} if rounds > 1 else {})
    return Entry(aggregation.graph, settings, p, 0.5, merge, merged(p, merge, n, rounds))


GOOD = (0.2, 0.7, 0.9)
"""How often a merged answer is right, where none, one or both of its group are."""
ENTRIES = {
    "one sample, p 0.4": rsa(0.4, (0.2, 0.9), 1, 1),
    "best_of_n by pairs, N 4, p 0.4, judge 0.8": pairs(best_of_n.graph, "n", 0.4, 0.8, 4),
    "best_of_n by pairs, N 4, p 0.4, judge 0.5": pairs(best_of_n.graph, "n", 0.4, 0.5, 4),
    "aggregation by pairs, N 4, T 1, p 0.4, judge 0.8": pairs(aggregation.graph, "population", 0.4, 0.8, 4, rounds=1),
    "vote, N 6, T 1, p 0.4": rsa(0.4, GOOD, 6, 1),
    "RSA, N 6, K 2, T 2, p 0.4": rsa(0.4, GOOD, 6, 2),
}


async def measure(entry: Entry, runs: int) -> Measured:
    """Run a strategy so many times."""
    return Measured(sum([await _is_right(entry, seed) for seed in range(runs)]), runs)


async def _is_right(entry: Entry, seed: int) -> bool:
    is_tournament = "choose" in entry.settings
    model = FakeChatModelWithoutN(reply=Writer(entry.p, entry.judge, entry.merge, not is_tournament, seed))
    context = {"search": "none", "seed": seed, **entry.settings, "model": model}
    out = await entry.graph.ainvoke({"messages": [("user", f"Question {seed}?")]}, context=context)
    return bool(RIGHT.search(out["answer"]))


def main() -> None:
    """Print the table."""
    options = parser_of("bench.choosing", __doc__).parse_args()
    print("| way | computed | measured | interval (99%) |\n|---|--:|--:|---|", flush=True)
    for name, entry in ENTRIES.items():
        measured = asyncio.run(measure(entry, 4 if options.quick else RUNS))
        low, high = measured.interval
        share = measured.found / measured.runs
        print(f"| {name} | {entry.computed:.3f} | {share:.3f} | {low:.3f} to {high:.3f} |", flush=True)


if __name__ == "__main__":
    main()
