"""A budget for a whole evaluation: nothing is sent beyond it, what is finished stays, and more of it goes on."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflective_agents.cli.main import main
from reflective_agents.evals.budget import SPENT, Budget
from reflective_agents.evals.ledger import Ledger
from reflective_agents.evals.results import read_run
from reflective_agents.evals.run import evaluate
from reflective_agents.graphs import chain_of_thought
from reflective_agents.state.errors import LimitReached, Misuse, UnknownPrice
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.openai_server import OpenAIServer
from tests.cli.conftest import away_from_the_project, start, stubborn
from tests.evals.fakes import dataset, make_result

__all__ = ["away_from_the_project", "start"]


def context(model: FakeChatModel) -> ChainOfThoughtContext:
    return ChainOfThoughtContext(model=model, samples=1, max_answer_tokens=100)


async def test_evaluation_stops_at_its_budget_and_goes_on_with_more(tmp_path: Path) -> None:
    model = FakeChatModel(reply=lambda request: "1")
    tasks = dataset(20)
    await evaluate(chain_of_thought.graph, dataset(1), context=context(model), out=tmp_path / "one")
    usage = read_run(tmp_path / "one")[1]["1"]["usage"]
    assert usage is not None
    most = 8 * usage["total_tokens"]
    budget = Budget(tokens=most)
    out = tmp_path / "run"
    summary = await evaluate(chain_of_thought.graph, tasks, context=context(model), out=out, budget=budget)
    assert 0 < summary["finished"] < 20
    assert summary["cost"]["total_tokens"]["total"] <= most
    assert budget.reached is not None
    assert budget.reached["name"] == "budget_tokens"
    assert {result["outcome"]["status"] for result in read_run(out)[1].values() if result["outcome"]} == {"answered"}
    sent = len(model.calls)
    await evaluate(chain_of_thought.graph, tasks, context=context(model), out=out, budget=Budget(tokens=most))
    assert len(model.calls) == sent
    whole = await evaluate(chain_of_thought.graph, tasks, context=context(model), out=out, budget=Budget(tokens=10**6))
    assert (whole["finished"], len(model.calls)) == (20, 1 + 20)


async def test_calls_in_flight_are_waited_for_before_one_is_refused() -> None:
    budget = Budget(cost=1e-6)  # 1,000 nano-dollars
    first = await budget.hold(10, 600)
    waiting = asyncio.create_task(budget.hold(10, 600))
    await asyncio.sleep(0)
    assert not waiting.done()
    await first(1, 10, 300)
    second = await waiting
    await second(1, 10, 600)
    with budget.task() as cut, pytest.raises(LimitReached, match="max_total_cost"):
        await budget.hold(10, 600)
    assert cut.short


def test_what_was_spent_elsewhere_counts() -> None:
    budget = Budget(tokens=50)
    for calls in (2, 2):
        assert budget.reached is None
        budget.add(make_result("x", calls=calls))
    budget.add(make_result("y", calls=1))
    assert budget.reached
    assert (budget.reached["name"], budget.reached["most"]) == ("budget_tokens", 50)


async def test_what_was_under_way_in_a_killed_session_is_spent(tmp_path: Path) -> None:
    """A session ends without a word after one call was settled, and one was sent."""
    killed = Budget(tokens=1000)
    killed.record(tmp_path / SPENT)
    settle = await killed.hold(300, 0)
    await settle(1, 40, 0)
    await killed.hold(500, 0)
    later = Budget(tokens=1000)
    with later.held(tmp_path, []):
        await later.hold(460, 0)
        with pytest.raises(LimitReached):
            await later.hold(461, 0)
    assert later.unreadable == 0


async def test_spending_of_results_counts_once(tmp_path: Path) -> None:
    results = [make_result("x", calls=3)]
    for _ in range(3):
        budget = Budget(tokens=100)
        with budget.held(tmp_path, results):
            settle = await budget.hold(70, 0)
            await settle(1, 0, 0)


@pytest.mark.parametrize(
    "text",
    ['{"budget_tokens": 60, "max_total_cost": 0}', '{"budget_tokens": 60, "max_total_cost": 0}\n{"budget_to', '{"bud'],
    ids=["as earlier versions wrote it", "half a line", "nothing but half a line"],
)
async def test_half_written_files_are_read_as_far_as_they_go(text: str, tmp_path: Path) -> None:
    (tmp_path / SPENT).write_text(text)
    for _ in range(2):
        budget = Budget(tokens=100)
        with budget.held(tmp_path, [make_result("x", calls=6)]):
            assert budget.unreadable == text.count("{") - text.count("}")
            settle = await budget.hold(40, 0)
            await settle(1, 0, 0)
            with pytest.raises(LimitReached):
                await budget.hold(41, 0)


LINE = b'{"budget_tokens": 60, "max_total_cost": 7}\n'


@pytest.mark.parametrize(
    "line",
    [b'{"budget_tokens": 1e999, "max_total_cost": 0}', b"[" * 100_000, b"\xff", b"\0" * 99, b'["budget_tokens"]', b"7"],
)
def test_lines_that_are_none_are_left_out(line: bytes, tmp_path: Path) -> None:
    (tmp_path / SPENT).write_bytes(LINE + line + b"\n" + LINE)
    ledger = Ledger(tmp_path / SPENT)
    assert (ledger.total(), ledger.unreadable) == ({"budget_tokens": 120, "max_total_cost": 14}, 1)
    ledger.close()


@given(cut=st.integers(0, 4 * len(LINE)))
def test_a_ledger_cut_anywhere_keeps_the_lines_before_and_after(cut: int) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, SPENT)
        file.write_bytes((LINE * 4)[:cut])
        ledger = Ledger(file)
        ledger.add({"budget_tokens": 1, "max_total_cost": 1})
        whole = (cut + 1) // len(LINE)
        assert ledger.total() == {"budget_tokens": 60 * whole + 1, "max_total_cost": 7 * whole + 1}
        ledger.close()


def test_a_line_that_does_not_fit_on_the_disk_is_no_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:9]))
    ledger = Ledger(tmp_path / SPENT)
    with pytest.raises(Misuse, match="No space left"):
        ledger.add({"budget_tokens": 1, "max_total_cost": 1})
    ledger.close()


async def test_a_session_without_a_budget_is_in_the_ledger_of_those_with_one(tmp_path: Path) -> None:
    model = FakeChatModel(reply=lambda request: "1")
    (tmp_path / SPENT).write_bytes(LINE)  # spent on a task that has not ended
    await evaluate(chain_of_thought.graph, dataset(3), context=context(model), out=tmp_path)
    spent = sum(result["usage"]["total_tokens"] for result in read_run(tmp_path)[1].values() if result["usage"])
    ledger = Ledger(tmp_path / SPENT)
    assert ledger.total()["budget_tokens"] == 60 + spent
    ledger.close()


@pytest.mark.parametrize("cost", [float("inf"), float("nan")])
def test_a_budget_is_a_number_of_dollars(cost: float) -> None:
    with pytest.raises(Misuse, match="give a number of dollars"):
        Budget(cost=cost)


async def test_a_budget_of_money_needs_all_prices() -> None:
    with pytest.raises(UnknownPrice):
        await Budget(cost=1).hold(10, None)
    await Budget(tokens=100).hold(10, None)


@pytest.mark.process
@pytest.mark.wire
@pytest.mark.timeout(600)  # Ray may take a minute or two to start where other tests load the machine
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("where", "sessions"),
    [([], 2), (["--workers", "2"], 2), (["--workers", "2", "--ray", "local"], 1)],
    ids=["here", "workers", "ray"],
)
def test_killed_sessions_forget_nothing_they_spent(
    start: Callable[..., Popen[str]], where: list[str], sessions: int
) -> None:
    most = 12_000
    Path("q.csv").write_text("question,answer\nWhy?,x\nWho?,y\n")
    with OpenAIServer(stubborn, latency=0.02).threaded() as server:
        options = ["--max-rounds", "60", "--max-answer-tokens", "50", "--budget-tokens", str(most), "--out", "run"]
        command = ["eval", "reflection", "q.csv", "--model", "openai:test", "--concurrency", "2", *options, *where]
        for _ in range(sessions):
            before = server.total_tokens
            process = start(*command, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="test")
            while process.poll() is None and server.total_tokens - before < most / 2:
                time.sleep(0.01)
            process.kill()
            process.wait()
            time.sleep(0.5 if where else 0)  # until the workers have ended
        ledger = Ledger(Path("run", SPENT))
        assert most / 2 < server.total_tokens <= ledger.total()["budget_tokens"]
        ledger.close()
        assert where or server.total_tokens <= most  # tasks under way in workers may exceed it


def test_what_is_unreadable_is_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    Path("q.csv").write_text("question,answer\nWhy?,x\n")
    Path("run").mkdir()
    Path("run", SPENT).write_text('{"budget')
    assert (
        main(["eval", "chain_of_thought", "q.csv", "--model", "offline", "--budget-tokens", "9999", "--out", "run"])
        == 0
    )
    assert "note: 1 lines of run/spent.json cannot be read" in capsys.readouterr().err
