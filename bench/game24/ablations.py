"""What each part of LATS is worth: games of 24 solved without it, for 40 requests each, and for as many as it wants.

python -m bench.game24.ablations            # the tables of docs/search-results.md
python -m bench.game24.ablations lesson     # the rows whose names hold this word

What reflections are worth cannot be told from recorded answers, which were given without: there the model is a fake one
that can use a lesson.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import track

from bench.game24.budgets import LATS, as_recorded, recorded_games
from bench.game24.cost import Entry, Game, play_all, shown, sign_test, solved_within
from bench.game24.learner import Learner
from bench.options import parser_of
from reflective_agents.graphs import lats
from reflective_agents.testing.script import Script

ANY = 100_000
CALLS = (40, ANY)
LEARNING_CALLS = (40, 80, ANY)
PART = tuple[Entry, Callable[[], Script]]


def changed(**settings: Any) -> Entry:
    """Return LATS with other settings."""
    return Entry(lats.graph, LATS | settings)


AS_SET = "as set: n 8, K 30, w 1, lambda 0.5, depth 4"
ABLATIONS: Mapping[str, Entry] = {
    AS_SET: changed(),
    "without judge: lambda 0": changed(judge_weight=0.0),
    "without self-consistency: lambda 1": changed(judge_weight=1.0),
    "without simulation": changed(simulate=False),
    "w 0": changed(exploration_weight=0.0),
    "w 2": changed(exploration_weight=2.0),
    "depth 3": changed(max_depth=3),
    "depth 5": changed(max_depth=5),
    "n 3": changed(n=3),
    "n 5": changed(n=5),
    "one list of proposals": changed(lists=1),
    "expand_from 0.01": changed(expand_from=0.01),
    "expand_from 0.1": changed(expand_from=0.1),
}
NONE = "no lessons"
LESSONS: Mapping[str, Entry] = {
    f"{most or 'no'} lesson{'' if most == 1 else 's'}": changed(max_lessons=most) for most in (0, 1, 4, 10)
}
HEEDED: Mapping[str, Callable[[], Learner]] = {
    "4 lessons, heeded by the policy only": partial(Learner, values=False),
    "4 lessons, heeded by the value only": partial(Learner, proposes=False),
}


def table(played: Mapping[str, Sequence[Game]], first: str, columns: Sequence[int]) -> Iterator[str]:
    """Format a table as Markdown, with each row compared with the first, game by game, at the first budget."""
    heads = ["as many as it wants" if calls == ANY else f"{calls} requests" for calls in columns]
    yield f"| | {' | '.join(heads)} | only this, only the first row, p |"
    yield "|---|" + "--:|" * (len(columns) + 1)
    won = {name: [game.within("requests", columns[0]) for game in games] for name, games in played.items()}
    for name, games in played.items():
        cells = [shown(solved_within(games, "requests", calls), len(games)) for calls in columns]
        only, others, p = sign_test(won[name], won[first])
        compared = "" if name == first else f"{only}, {others}, {p:.2g}"
        yield f"| {name} | {' | '.join(cells)} | {compared} |"
    yield ""


async def play_parts(parts: Mapping[str, PART], games: Sequence[str], words: Sequence[str]) -> dict[str, list[Game]]:
    """Play games with each variant whose name holds one of the words; standard error says how far it is."""
    chosen = [name for name in parts if any(word in name for word in words)]
    played: dict[str, list[Game]] = {}
    for name in track(chosen, "games of 24", console=Console(stderr=True), transient=True):
        entry, player = parts[name]
        played[name] = await play_all(entry, games, player, ANY)
    return played


async def main() -> None:
    """Print the tables."""
    parser = parser_of("bench.game24.ablations", __doc__)
    parser.add_argument("words", nargs="*", default=[""], help="only the rows whose names hold one of these words")
    options = parser.parse_args()
    games = recorded_games()[: 1 if options.quick else None]
    recorded = await play_parts({name: (entry, as_recorded) for name, entry in ABLATIONS.items()}, games, options.words)
    if AS_SET in recorded:
        print("\n".join(table(recorded, AS_SET, CALLS)))
    lessons: dict[str, PART] = {name: (entry, Learner) for name, entry in LESSONS.items()}
    heeded: dict[str, PART] = {name: (LESSONS["4 lessons"], player) for name, player in HEEDED.items()}
    learned = await play_parts(lessons | heeded, games, options.words)
    if NONE in learned:
        print("\n".join(table(learned, NONE, LEARNING_CALLS)))


if __name__ == "__main__":
    asyncio.run(main())
