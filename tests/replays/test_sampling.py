"""When sampling stops on recorded answers: the page shows it, and stopping later never elects worse."""

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.game24 import its_hub, sampling
from bench.game24.sampling import CRITERIA, DATA, beta, chances, choose, elected, measured, report, window
from bench.peers.drivers.its_hub_voting import vote
from bench.peers.environments import version
from bench.replays.records import load

PAGE = Path(__file__).parents[2] / "docs" / "sampling.md"


def test_the_beta_criterion_stops_where_the_leader_is_safe_and_a_window_where_all_agree() -> None:
    answers = ["4", "", "5", "4", "4", "4"]
    known = chances(answers)
    assert known == pytest.approx([3 / 4, 3 / 4, 1 / 2, 11 / 16, 13 / 16, 57 / 64])
    assert [k for k in range(1, 7) if beta(0.8)(answers, known, k)] == [5, 6]
    assert [k for k in range(1, 7) if window(2)(answers, known, k)] == [6]
    assert elected(answers) == "4"


@pytest.mark.thorough
@pytest.mark.published
def test_more_confidence_takes_more_samples_and_agrees_more_often(recorded: Path) -> None:
    tables = measured([sampling.recorded(record) for record in load(recorded, DATA)], orders=2)
    drawn, agree, _ = tables["all 100"].mean(axis=(0, 1))
    assert (drawn, agree) == (100, 1)
    curve = [tables[f"Beta, {level}, 1 at once"].mean(axis=(0, 1)) for level in sampling.LEVELS]
    assert [row[0] for row in curve] == sorted(row[0] for row in curve)
    assert curve[-1][1] > 0.99 > curve[0][1]
    assert tables[choose(tables)][..., 1].mean() >= sampling.AGREEMENT


@pytest.mark.thorough
@pytest.mark.published
def test_the_page_shows_what_each_criterion_saves(recorded: Path) -> None:
    tables = measured([sampling.recorded(record) for record in load(recorded, DATA)], sampling.ORDERS)
    shown = re.findall(r"^\|.*\|$", PAGE.read_text(), re.MULTILINE)
    assert [row for row in report(tables) if row not in shown] == []
    assert len(tables) == len(CRITERIA)


class UntilThreeAgree:
    """A peer's algorithm: it asks for all answers at once, and stops when the first three are the same."""

    async def ainfer(self, lm: Any, prompt: str, budget: int, *, return_response_only: bool) -> Any:
        tasks = [asyncio.create_task(lm.agenerate_single(prompt)) for _ in range(budget)]
        responses: list[dict[str, str]] = []
        for reply in asyncio.as_completed(tasks):
            responses.append(await reply)
            if len({response["content"] for response in responses[-3:]}) == 1 and len(responses) >= 3:
                break
        for task in tasks:
            task.cancel()
        return SimpleNamespace(responses=responses, the_one=responses[-1])


async def test_a_peer_sees_one_answer_after_the_other() -> None:
    assert await vote(UntilThreeAgree(), ["4", "5", "4", "4", "4", "6"]) == (5, "4")
    assert await vote(UntilThreeAgree(), ["4", "5"]) == (2, "5")


def test_what_a_peer_prints_is_read_in_the_order_of_the_games() -> None:
    games = [sampling.Game(["4", "4", ""], frozenset("4")), sampling.Game(["5", "5", "6"], frozenset("6"))]
    printed = ['[[2, "4"], [3, ""]]', '[[2, "4"], [3, "4"]]', '[[1, "6"], [3, "5"]]', '[[3, "5"], [3, "5"]]']
    beta, adaptive = its_hub.tables(games, 2, printed, "as it is").values()
    assert beta.tolist() == [[[2, 1, 1], [2, 1, 1]], [[1, 0, 1], [3, 1, 0]]]
    assert adaptive[0].tolist() == [[3, 0, 0], [3, 1, 1]]
    assert its_hub.told_apart(["4", "", ""]) == ["4", "unreadable 1", "unreadable 2"]


def test_the_page_has_both_algorithms_of_the_peer_with_answers_together_and_apart() -> None:
    rows = re.findall(r"^\| its_hub ([\d.]+): (\w+), ([^|]+) \|", PAGE.read_text(), re.MULTILINE)
    ways = [(name, how) for how in its_hub.UNREADABLE.values() for name in its_hub.ALGORITHMS]
    assert rows == [(version(its_hub.PEER), *way) for way in ways]
