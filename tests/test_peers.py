"""The comparison with other libraries, without any of them: nothing is installed here."""

import io
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import platformdirs
import pytest
from langchain_core.messages import HumanMessage

from bench.peers import environments, measure
from bench.peers.drivers import drive
from bench.peers.figures import Comparison, Figures, Round
from bench.peers.report import report
from bench.peers.script import reply
from bench.peers.searches import ENTRIES, Entry
from bench.peers.server import Conditions, Weather, serving
from bench.wire import Counters
from reflective_agents.testing.script import Request

LINE = '{"seconds": 2.5, "cpu": 0.25, "nodes": 50, "expansions": 10, "calls": 100, "finished": true}'
PEERS = sorted({entry.peer for entry in ENTRIES if entry.peer})
MCTS = next(entry for entry in ENTRIES if entry.driver == "tree_quest")


def figures(**changes: Any) -> Figures:
    run = Round.parse(LINE)
    error = "openai.InternalServerError: Error code: 500"
    return replace(Figures(MCTS, run, Counters(100, 20, 5000), replace(run, nodes=4, finished=False), error), **changes)


def test_a_line_of_a_driver_is_read() -> None:
    assert Round.parse(LINE) == Round(seconds=2.5, cpu=0.25, nodes=50, expansions=10, calls=100, finished=True)


@pytest.mark.parametrize("line", ["", "Traceback", "[]", "{}", LINE.replace("cpu", "gpu"), LINE[:-1] + ', "more": 1}'])
def test_any_other_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"printed|Expecting"):
        Round.parse(line)


def test_the_table_shows_what_a_search_took_and_how_it_fares_with_failing_requests() -> None:
    assert report(Comparison([figures()])).splitlines()[-1] == (
        "| treequest 0.3.3: StandardMCTS, step, 50 nodes | 100 | 20 | 2.50 s | 2.5 ms | 50 | "
        "raises InternalServerError, 4 nodes |"
    )
    assert "returns, 50 nodes" in report(Comparison([figures(faulty=Round.parse(LINE), error="")]))


def test_what_is_left_out_is_shown_with_its_reason() -> None:
    comparison = Comparison([], {"ag2": "not installed: no network"})
    assert report(comparison).splitlines()[-1] == "left out: ag2: not installed: no network"


class Tree:
    """A search of the drivers' kind: a root with two children, one of which has a child."""

    calls = 3

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def run(self, question: str) -> None:
        if self._error:
            raise self._error

    def root(self) -> Any:
        leaf = SimpleNamespace(children=None)
        return SimpleNamespace(children=[leaf, SimpleNamespace(children=[leaf])])


def test_a_driver_reports_the_tree_that_is_in_hand() -> None:
    out = io.StringIO()
    drive.report(Tree(), "Why?", out)
    run = Round.parse(out.getvalue())
    assert (run.nodes, run.expansions, run.calls, run.finished) == (3, 2, 3, True)
    assert drive.size(None) == (0, 0)


def test_a_search_that_raises_is_reported_before_it_ends_the_driver() -> None:
    out = io.StringIO()
    with pytest.raises(LookupError):
        drive.report(Tree(LookupError()), "Why?", out)
    run = Round.parse(out.getvalue())
    assert (run.nodes, run.finished) == (3, False)


@pytest.mark.parametrize("peer", PEERS)
def test_every_pin_of_a_peer_is_exact(peer: str) -> None:
    lines = (environments.PINS / f"{peer}.txt").read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9._-]+==[^\s;]+( ; .+)?", line)] == []
    assert f"{peer}=={environments.version(peer)}" in lines


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.what)
def test_every_search_has_a_driver(entry: Entry) -> None:
    assert "class Search" in (measure.DRIVERS / f"{entry.driver}.py").read_text()


def test_an_environment_is_made_once_and_again_if_that_failed(monkeypatch: Any, tmp_path: Path) -> None:
    commands: list[list[str]] = []
    faults: list[Exception] = []

    def run(command: list[str], **_: Any) -> None:
        commands.append(command[4:])
        if faults and "install" in command:
            raise faults.pop()

    monkeypatch.setattr(platformdirs, "user_cache_path", lambda _: tmp_path)
    monkeypatch.setattr(subprocess, "run", run)
    target = environments.folder("treequest")
    target.mkdir(parents=True)

    faults.append(subprocess.CalledProcessError(1, "uv", stderr="no network"))
    with pytest.raises(subprocess.CalledProcessError):
        environments.prepare("treequest")
    assert environments.prepare("treequest") == target / "bin" / "python"
    assert [command[0] for command in commands] == ["venv", "pip", "venv", "pip"]
    environments.prepare("treequest")
    assert len(commands) == 4
    assert "--no-deps" in commands[-1]


def test_what_cannot_be_installed_or_run_does_not_keep_the_others_from_being_measured(monkeypatch: Any) -> None:
    def prepare(peer: str) -> Path:
        if peer == "ag2":
            raise subprocess.CalledProcessError(2, "uv", stderr="error: tried\nerror: no network\n\n")
        return Path(sys.executable)

    async def measured(entry: Entry, python: Path, server: object) -> Figures:
        if entry.driver == "opti_llm":
            raise ValueError("ImportError: no torch")
        return figures(entry=entry)

    monkeypatch.setattr(measure, "prepare", prepare)
    monkeypatch.setattr(measure, "measure", measured)
    monkeypatch.setattr(measure, "serving", lambda: nullcontext(object()))
    reports: list[tuple[str, int]] = []
    comparison = measure.measure_peers(ENTRIES, lambda *what: reports.append(what))

    left = [entry for entry in ENTRIES if entry.peer != "ag2" and entry.driver != "opti_llm"]
    assert [measured.entry for measured in comparison.figures] == left
    assert comparison.left_out.pop("ag2") == "not installed: error: no network"
    assert set(comparison.left_out.values()) == {"ImportError: no torch"}
    assert len(comparison.left_out) == 2
    assert [done for what, done in reports if what.startswith("preparing")] == sorted({done for _, done in reports})


@pytest.mark.parametrize(
    ("prompt", "schema", "fits"),
    [
        ("Rate from 0 to 1, with only a number.", None, lambda text: 0 <= float(text) <= 1),
        ("**Possible Options:** ...", None, lambda text: len(re.findall(r"Option \d+: ", text)) == 5),
        ("rate on a scale of 1 to 10", None, lambda text: 1 <= float(re.findall(r"[\d.]+", text)[0]) < 10),
        ("Give candidates", "Candidates", lambda form: len(set(form["candidates"])) == 5),
        ("Evaluate", "Evaluation", lambda form: not form["is_done"]),
        ("Judge", "Judgement", lambda form: not form["solved"]),
        ("Answer", None, lambda text: len(text) == 400),
    ],
)
def test_each_search_is_answered_in_its_own_form(prompt: str, schema: str | None, fits: Callable[[Any], bool]) -> None:
    assert fits(reply(Request((HumanMessage(prompt),), schema=schema)))


def test_no_two_candidates_are_the_same() -> None:
    request = Request((HumanMessage("Answer"),), n=2)
    requests = [request, replace(request, index=1), replace(request, seed=1)]
    assert len({str(reply(each)) for each in requests}) == 3


def test_each_tenth_request_fails_however_often_it_is_sent() -> None:
    weather = Weather()
    weather.change(Conditions(latency=0.01, failing=10))
    bodies = [{"messages": [number]} for number in range(1, 31)]
    failing = [body for body in bodies if weather.fault(body, 0) == "500"]
    assert failing == [bodies[9], bodies[19], bodies[29]]
    assert [weather.fault(bodies[9], 0), weather.fault(bodies[10], 0)] == ["500", None]
    weather.change(Conditions())
    assert [weather.fault(body, 0) for body in bodies] == [None] * 30


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.process
async def test_a_driver_is_measured_in_a_process_of_its_own(monkeypatch: Any) -> None:
    monkeypatch.setattr(measure, "NORMAL", Conditions())
    bare = next(entry for entry in ENTRIES if entry.driver == "bare_client")
    with serving() as server:
        measured = await measure.measure(bare, Path(sys.executable), server)
        assert measured.run.calls == measured.sent.calls == 60
        assert measured.sent.waves >= 20
        assert measured.fate == "raises InternalServerError, 0 nodes"
        with pytest.raises(ValueError, match="No module named 'no_such_driver'"):
            await measure.measure(replace(bare, driver="no_such_driver"), Path(sys.executable), server)
