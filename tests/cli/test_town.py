"""`reflect town` offline: a day on the terminal, as JSON, as a page; going on after an interruption; misuse."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.graphs.town_scripts import town_of

OPENING = "Anna gives a garden party at the Café today at 17:00, and everyone in town is invited."


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")


@pytest.fixture
def hamlet(tmp_path: Path) -> str:
    """The file of a small town."""
    file = tmp_path / "hamlet.json"
    file.write_text(json.dumps(town_of({"Anna": ["Café", "Café"], "Ben": ["Café", "Café"]})))
    return str(file)


def test_a_day_is_told_line_by_line_and_its_page_is_written(reflect: Any, tmp_path: Path) -> None:
    page = tmp_path / "day.html"
    ended = reflect("town", "--html", str(page), "--thread", "t")
    assert ended.code == 0
    assert f"Anna was told: {OPENING}" in ended.out
    assert (
        "3 of 3 know about 'garden party': Anna (07:00); Anna > Ben (08:00); Anna > Ben > Clara (14:00)." in ended.out
    )
    assert re.search(r"^answered: .*26", ended.out, re.MULTILINE)
    assert "calls: act: time=08:00, agent=Anna, place=Café, doing=serves coffee and cake at the Café" in ended.err
    assert f"calls: say: time=08:00, talk=1, agent=Anna, text={OPENING}" in ended.err
    assert "\x1b" not in ended.out + ended.err
    assert OPENING in page.read_text()
    assert reflect("town", "--show", "--html", str(page)).code == 2  # it is there already
    assert reflect("town", "--show", "--html", str(page), "--force").code == 0
    shown = reflect("town", "--show", "--thread", "t").out.splitlines()
    assert shown[0] == "time\tAnna\tBen\tClara"
    assert shown[3] == "09:00\t-\tSchool: teaches at the School\t-"
    drawn = reflect("draw", "town", "--thread", "t").out.splitlines()
    assert drawn == shown[: len(drawn)]


def test_json_has_the_artefact(reflect: Any, hamlet: str) -> None:
    data = json.loads(reflect("town", "There is a party.", "--town", hamlet, "--json", "--steps", "1").out)
    assert data.keys() >= {"day", "conversations", "retrievals", "agents", "spread", "answer", "outcome"}
    assert data["outcome"]["limit"] == {"name": "max_steps", "most": 1, "spent": 1}
    assert [agent["knows"] for agent in data["spread"]] == [True, True]
    shown = json.loads(reflect("town", "--show", "--json").out)
    assert shown["spread"] == data["spread"]


@pytest.mark.thorough
def test_an_interrupted_day_goes_on(reflect: Any, hamlet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("reflective_agents.cli.timeline.Timeline.add", interrupted)
        ended = reflect("town", "There is a party.", "--town", hamlet, "--thread", "t")
    assert ended.code == 130
    assert "go on with: reflect run town --thread t --resume" in ended.err
    unfinished = reflect("town", "--show", "--thread", "t")
    assert unfinished.code == 2
    assert "the day of thread t is not over: reflect town --thread t --resume" in unfinished.err
    again = reflect("town", "--resume", "--thread", "t")
    assert again.code == 0
    assert "Anna was told: There is a party." in again.out


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--show"], "no day was played yet: play one with: reflect town"),
        (["--show", "--thread", "none"], "there is no thread none"),
        (["--show", "Go."], "--show plays nothing"),
        (["--town", "nowhere.json"], "town: nowhere.json: No such file or directory; the shipped ones are lindenhof"),
        (["--steps", "0"], "--steps: must be at least 1"),
        (["--resume"], "nothing to resume"),
    ],
)
def test_misuse(reflect: Any, args: list[str], problem: str) -> None:
    ended = reflect("town", *args)
    assert (ended.code, ended.out) == (2, "")
    assert problem in ended.err
