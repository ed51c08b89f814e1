"""Tasks that run in other processes: the same results, and what a killed worker or driver had under way runs again."""

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from reflective_agents.environments.base import Task
from reflective_agents.evals import worker
from reflective_agents.evals.budget import SPENT, Budget
from reflective_agents.evals.ledger import Ledger
from reflective_agents.evals.results import empty_result, read_run
from reflective_agents.evals.run import Finished, attempt
from reflective_agents.evals.worker import Job
from reflective_agents.evals.workers import local_workers
from reflective_agents.graphs import chain_of_thought
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request
from tests.cli.conftest import away_from_the_project, slow_server, start
from tests.evals.fakes import dataset

__all__ = ["away_from_the_project", "slow_server", "start"]
pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]
CONTEXT = ChainOfThoughtContext(model="offline", samples=1)
JOB = Job(strategy="chain_of_thought", settings=CONTEXT.model_dump(), environment="plain", cache=None)


@pytest.mark.thorough
async def test_workers_answer_as_this_process_does() -> None:
    tasks = dataset(5).tasks
    async with local_workers(JOB, 2) as run:
        there = await asyncio.gather(*map(run, tasks))
    here = [await attempt(chain_of_thought.graph, "plain", task, CONTEXT) for task in tasks]
    shown = ("id", "answer", "correct", "scores", "outcome")
    for (away, left), (home, own) in zip(there, here, strict=True):
        assert {name: away[name] for name in shown} == {name: home[name] for name in shown}  # type: ignore[literal-required]
        assert left is not None
        assert own is not None
        assert [message["content"] for message in left["messages"]] == [
            message["content"] for message in own["messages"]
        ]


async def test_a_task_that_kills_its_workers_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    from reflective_agents.evals import workers

    class Doomed:
        alive = False

        async def run(self, task: object) -> Any:
            raise workers.WorkerLost

        async def close(self) -> None:
            pass

    async def begin() -> Doomed:
        return Doomed()

    async with workers.sharing(begin, 2, "plain") as run:
        result, left = await run(dataset(1).tasks[0])
    assert (result["error"], result["correct"], left) == (
        "WorkerLost: 3 workers died while it was under way",
        False,
        None,
    )


async def test_long_results_that_are_written_at_once_do_not_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    class Talkative:
        def __init__(self, job: Job) -> None:
            pass

        async def run(self, task: Task) -> Finished:
            return Finished({**empty_result(task), "answer": task["id"] * 300_000}, None)

    monkeypatch.setattr(worker, "Runner", Talkative)
    tasks, sent, results = dataset(5).tasks, asyncio.StreamReader(), asyncio.StreamReader(limit=worker.LONGEST)
    come, go = os.pipe()
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(results), os.fdopen(come, "rb"))
    serving = asyncio.create_task(worker.serve(sent, go))
    for line in (JOB, *tasks):
        sent.feed_data(json.dumps(line).encode() + b"\n")
    lines = [await results.readline() for _ in tasks]
    sent.feed_eof()
    await serving
    pipe.close()
    os.close(go)
    expected = sorted(json.dumps(task["id"] * 300_000).encode() for task in tasks)
    assert [answer in line for answer, line in zip(expected, sorted(lines), strict=True)] == [True] * len(tasks)


def workers(pid: int) -> list[int]:
    """The workers among the processes that a process has started, and those that these have started."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    begun = [int(child) for file in files for child in file.read_text().split()]
    return [worker for child in begun for worker in ([child] if is_worker(child) else workers(child))]


def is_worker(pid: int) -> bool:
    """Whether a process is a worker: one of this package's, or an actor of Ray."""
    command = Path(f"/proc/{pid}/cmdline").read_bytes()
    return b"reflective_agents.evals.worker" in command or command.startswith(b"ray::TaskActor")


def wait_for_results(process: Popen[str], count: int) -> None:
    """Wait until the command has reported so many results."""
    assert process.stderr is not None
    next(line for line in process.stderr if line.startswith(f"{count}/"))


async def test_what_actors_spend_is_in_the_ledger_while_they_run(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    from reflective_agents.evals.on_ray import recorded

    budgets = [Budget(), Budget()]

    class Remote:
        def __init__(self, budget: Budget) -> None:
            self.budget = budget

        async def spent(self) -> dict[str, int]:
            return self.budget.total()

    remotes, file = [Remote(budgets[0])], tmp_path / "run" / SPENT
    settle = await budgets[0].hold(300, 5)
    async with recorded(remotes, str(file)):
        await asyncio.sleep(0.01)
        ledger = Ledger(file)
        assert ledger.total() == {"budget_tokens": 300, "max_total_cost": 5}
        await settle(1, 40, 2)
        remotes.append(Remote(budgets[1]))
        await budgets[1].hold(100, 0)
        await asyncio.sleep(0.2)
    assert ledger.total() == {"budget_tokens": 140, "max_total_cost": 2}
    ledger.close()


async def test_an_actor_sends_a_call_once_it_is_written(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    from reflective_agents.evals.on_ray import ReportedBudget

    budget = ReportedBudget()
    holding = asyncio.create_task(budget.hold(300, 0))
    for _ in range(2):
        await asyncio.sleep(0.01)
        assert not holding.done()
        assert (await budget.report())["budget_tokens"] == 300
    await (await holding)(1, 40, 0)
    cancelled = asyncio.create_task(budget.hold(300, 0))
    await asyncio.sleep(0.01)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    assert budget.total()["budget_tokens"] == 40


@pytest.fixture(params=["processes", "ray"])
def command(request: pytest.FixtureRequest, slow_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An evaluation of 24 tasks by two workers, which takes long enough to be killed."""
    monkeypatch.setenv("OPENAI_BASE_URL", slow_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    Path("q.csv").write_text("question,answer\n" + "".join(f"Question {number}?,x\n" for number in range(24)))
    options = ["--samples", "1", "--model", "openai:test", "--concurrency", "4", "--workers", "2", "--out", "run"]
    return ["eval", "chain_of_thought", "q.csv", *options, *(["--ray", "local"] if request.param == "ray" else [])]


def ids() -> Counter[str]:
    """How many results each task has."""
    return Counter(json.loads(line)["id"] for line in Path("run/results.jsonl").read_bytes().splitlines())


ONCE = Counter(map(str, range(1, 25)))


@pytest.mark.wire
@pytest.mark.thorough
def test_tasks_of_a_killed_worker_run_again_and_a_killed_driver_takes_its_workers_along(
    start: Callable[..., Popen[str]], command: list[str]
) -> None:
    process = start(*command)
    wait_for_results(process, 2)
    os.kill(workers(process.pid)[0], signal.SIGKILL)
    wait_for_results(process, 12)  # four were under way, of which two are lost with their worker
    begun = workers(process.pid)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in begun):
        assert time.monotonic() < deadline, "the workers outlive their driver"
        time.sleep(0.1)
    done = read_run(Path("run"))[1]
    assert 12 <= len(done) < 24
    again = start(*command)
    _, errors = again.communicate(timeout=300)
    assert again.returncode == 0, errors
    assert ids() == ONCE
    assert all(result["error"] is None for result in read_run(Path("run"))[1].values())


def programmer(request: Request) -> Reply:
    """Add one, whatever is asked."""
    return "```python\ndef add(number):\n    return number + 1\n```"


@pytest.mark.wire
@pytest.mark.sandbox
@pytest.mark.thorough
@pytest.mark.parametrize("where", [["--workers", "1"], ["--ray", "local"]])
def test_programs_run_in_the_sandbox_of_a_worker(start: Callable[..., Popen[str]], where: list[str]) -> None:
    tasks = [
        {
            "task_id": f"add/{more}",
            "prompt": f'def add(number):\n    """Add {more}."""\n',
            "entry_point": "add",
            "test": f"def check(candidate):\n    assert candidate(1) == {1 + more}\n",
        }
        for more in (1, 2)
    ]
    Path("programs.jsonl").write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    with OpenAIServer(programmer).threaded() as server:
        options = ["--model", "openai:test", "--out", "run", *where]
        process = start(
            *("eval", "chain_of_thought", "programs.jsonl", *options),
            OPENAI_BASE_URL=server.base_url,
            OPENAI_API_KEY="test",
        )
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert {name: result["correct"] for name, result in read_run(Path("run"))[1].items()} == {
        "add/1": True,
        "add/2": False,
    }
