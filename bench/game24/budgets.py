"""Searches at equal cost: how many games of 24 each solves with the same recorded model.

python -m bench.game24.budgets            # the tables of docs/search-results.md
python -m bench.game24.budgets rap lats   # the rows whose names hold one of these words
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from rich.console import Console
from rich.progress import track

from bench.game24.cost import Cost, Entry, Game, best_of, play, play_all, shown, sign_test, solved_within
from bench.game24.recorded import Recorded, reachable
from bench.options import parser_of
from bench.recorded import RECORDED
from bench.replays.records import Record, load
from reflective_agents.graphs import ab_mcts, best_of_n, chain_of_thought, lats, rap, tree_of_thoughts
from reflective_agents.testing.script import Script

MOST = 160
"""Calls after which a run ends."""
BUDGETS: Mapping[str, Sequence[int]] = {
    "requests": (5, 10, 20, 40, 80),
    "samples": (10, 20, 40, 80, 160),
    "tokens": (2_000, 5_000, 10_000, 20_000, 40_000),
}
COMPARED = ("requests", 40)
"""Where each search is compared with LATS game by game."""

ON_PAPER: dict[str, Any] = {"acting": "paper"}
LATS: dict[str, Any] = {"n": 8, "max_rollouts": 30, "max_lessons": 0, **ON_PAPER}
BEAM: dict[str, Any] = {"n": 8, "beam": 5, "lists": 3, "parallel": 1, **ON_PAPER}
RAP: dict[str, Any] = {"n": 8, "max_rollouts": 1000, "max_depth": 4, "confidence_samples": 1}
TOGETHER: dict[str, Any] = {"grades": "judge", "grading": "together", "max_answer_tokens": 8000}
"""Judged in one call, with room for the judgements of a whole level."""
LEVELS = "tree_of_thoughts, breadth first"
IN_DEPTH: dict[str, Any] = {"method": "depth_first", "n": 8, "lists": 3, "max_states": 1000}

SEARCHES: Mapping[str, Entry] = {
    "lats": Entry(lats.graph, LATS),
    "lats, judged together": Entry(lats.graph, LATS | TOGETHER),
    "lats, without judge": Entry(lats.graph, LATS | {"judge_weight": 0}),
    "lats, sequential halving": Entry(lats.graph, LATS | {"selection": "gumbel"}),
    LEVELS: Entry(tree_of_thoughts.graph, BEAM),
    f"{LEVELS}, judged together": Entry(tree_of_thoughts.graph, BEAM | TOGETHER),
    "tree_of_thoughts, depth first": Entry(tree_of_thoughts.graph, IN_DEPTH),
    "rap, by likelihood": Entry(rap.graph, RAP),
    "rap, judged together": Entry(rap.graph, RAP | {"action_reward": "judge"}),
    "ab_mcts": Entry(ab_mcts.graph, {"max_expansions": 10_000, "max_depth": 4, **ON_PAPER}),
    "best_of_n, until the calls are spent": Entry(
        best_of_n.graph, {"n": 100, "max_depth": 4, "parallel": 1, **ON_PAPER}
    ),
}
SAMPLED = {
    "chain of thought, best of k": "tot_game24_cot100",
    "answer alone, best of k": "tot_game24_io100",
}
"""Recorded samples of whole answers, one request each."""


@cache
def recorded_games() -> list[str]:
    """Return the games of the recorded run."""
    return [record["task"]["input"] for record in load(RECORDED, "tot_game24_bfs")]


@cache
def _said() -> list[Record]:
    return load(RECORDED, "game24_llm_cache")


def as_recorded() -> Recorded:
    """Make a model that says what GPT-4 said."""
    return Recorded(_said())


def ceiling() -> int:
    """Count the games that GPT-4's proposals can solve."""
    lists = as_recorded().proposals
    return sum(reachable(game, lists) for game in recorded_games())


class Sampled:
    """Whole answers as they were recorded, drawn in any order; the environment says which is right."""

    def __init__(self, name: str, games: Sequence[str]) -> None:
        """Read the samples of a data set for some of its games."""
        records = {record["task"]["input"]: record for record in load(RECORDED, name)}
        self.games, self.records = games, [records[game] for game in games]
        self.right = [record["verdict"]["r"].count("1") for record in self.records]
        self.drawn = [len(record["outputs"]) for record in self.records]
        self.most = min(self.drawn)

    async def per_sample(self) -> Cost:
        """Calculate the cost of a sample, with the prompt of `graphs.chain_of_thought`."""
        texts = [record["outputs"][0]["text"] for record in self.records]
        entry = Entry(chain_of_thought.graph, {})
        games = [await play(entry, game, _says(text), 1) for game, text in zip(self.games, texts, strict=True)]
        return Cost(1, 1, sum(game.spent.tokens for game in games) / len(games))

    def solved(self, k: int) -> float | None:
        """Return how many games k samples solve on average; None if fewer were recorded."""
        if k > self.most:
            return None
        return sum(best_of(right, drawn, k) for right, drawn in zip(self.right, self.drawn, strict=True))


def _says(text: str) -> Script:
    return lambda request: text


Row = Mapping[str, Sequence[str]]


def search_row(games: Sequence[Game]) -> Row:
    """Return the cells of a tree search by unit."""
    return {unit: [_cell(games, unit, budget) for budget in budgets] for unit, budgets in BUDGETS.items()}


def _cell(games: Sequence[Game], unit: str, budget: float) -> str:
    if not _known(games, unit, budget):
        return ""
    return shown(solved_within(games, unit, budget), len(games))


def _known(games: Sequence[Game], unit: str, budget: float) -> bool:
    """Tell whether no run was cut off before it had spent so much."""
    return all(game.solved or game.spent.requests < MOST or getattr(game.spent, unit) >= budget for game in games)


async def sampled_row(name: str, games: Sequence[str]) -> Row:
    """Return the cells of recorded samples by unit."""
    sampled = Sampled(name, games)
    each = await sampled.per_sample()
    row: dict[str, list[str]] = {}
    for unit, budgets in BUDGETS.items():
        row[unit] = []
        for budget in budgets:
            count = sampled.solved(int(budget / getattr(each, unit)))
            row[unit].append("" if count is None else shown(count, len(games)))
    return row


def tables(rows: Mapping[str, Row]) -> Iterator[str]:
    """Format the tables as Markdown, one for each unit."""
    for unit, budgets in BUDGETS.items():
        yield f"| search | {budgets[0]} {unit} | " + " | ".join(map(str, budgets[1:])) + " |"
        yield "|---|" + "--:|" * len(budgets)
        for name, row in rows.items():
            yield f"| {name} | " + " | ".join(row[unit]) + " |"
        yield ""


def compared(played: Mapping[str, Sequence[Game]]) -> Iterator[str]:
    """Compare each tree search with LATS, game by game."""
    unit, budget = COMPARED
    won = {name: [game.within(unit, budget) for game in games] for name, games in played.items()}
    yield f"| at {budget} {unit} | only this one | only lats | p |"
    yield "|---|--:|--:|--:|"
    for name, own in won.items():
        if name != "lats":
            only, lats_only, p = sign_test(own, won["lats"])
            yield f"| {name} | {only} | {lats_only} | {p:.2g} |"


async def play_searches(
    searches: Mapping[str, Entry], games: Sequence[str], player: Callable[[], Script]
) -> dict[str, list[Game]]:
    """Play games with all searches; standard error says how far it is."""
    played: dict[str, list[Game]] = {}
    for name in track(searches, "games of 24", console=Console(stderr=True), transient=True):
        played[name] = await play_all(searches[name], games, player, MOST)
    return played


async def main() -> None:
    """Print the tables."""
    parser = parser_of("bench.game24.budgets", __doc__)
    parser.add_argument("words", nargs="*", default=[""], help="only the rows whose names hold one of these words")
    options = parser.parse_args()
    games = recorded_games()[: 1 if options.quick else None]

    def is_chosen(name: str) -> bool:
        return any(word in name for word in options.words)

    chosen = {name: entry for name, entry in SEARCHES.items() if is_chosen(name)}
    played = await play_searches(chosen, games, as_recorded)
    rows: dict[str, Row] = {name: search_row(found) for name, found in played.items()}
    for name in filter(is_chosen, SAMPLED):
        rows[name] = await sampled_row(SAMPLED[name], games)
    print("\n".join(tables(rows)))
    if "lats" in played:
        print("\n".join(compared(played)))


if __name__ == "__main__":
    asyncio.run(main())
