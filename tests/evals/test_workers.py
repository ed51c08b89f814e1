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

from reflective_agents.evals.results import read_run
from reflective_agents.evals.run import Run, attempt, evaluate
from reflective_agents.evals.worker import Job
from reflective_agents.evals.workers import local_workers
from reflective_agents.graphs import chain_of_thought
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.testing.openai_server import OpenAIServer
from tests.cli.conftest import away_from_the_project, reflect, slow_server, start
from tests.evals.fakes import dataset

__all__ = ["away_from_the_project", "reflect", "slow_server", "start"]
pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]
BUSY = os.getloadavg()[0] > 2 * (os.cpu_count() or 1) and os.getpriority(os.PRIO_PROCESS, 0) >= 0
"""Whether other processes take most of this machine's time: with a load of 10 on 2 processors the agent took 16 s."""
CONTEXT = ChainOfThoughtContext(model="offline", samples=1)
JOB = Job(strategy="chain_of_thought", settings=CONTEXT.model_dump(), environment="plain", cache=None)


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
        assert [one["content"] for one in left["messages"]] == [one["content"] for one in own["messages"]]


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


def children(process: Popen[str]) -> list[int]:
    """The processes that a process has started."""
    return [int(one) for one in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def told(process: Popen[str], count: int) -> None:
    """Wait until so many results were told."""
    assert process.stderr is not None
    next(line for line in process.stderr if line.startswith(f"{count}/"))


@pytest.fixture
def command(slow_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An evaluation of 24 tasks by two workers, which takes long enough to be killed."""
    monkeypatch.setenv("OPENAI_BASE_URL", slow_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    Path("q.csv").write_text("question,answer\n" + "".join(f"Question {number}?,x\n" for number in range(24)))
    options = ["--samples", "1", "--model", "openai:test", "--concurrency", "4", "--workers", "2", "--out", "run"]
    return ["eval", "chain_of_thought", "q.csv", *options]


def ids() -> Counter[str]:
    """How many results each task has."""
    return Counter(json.loads(line)["id"] for line in Path("run/results.jsonl").read_bytes().splitlines())


ONCE = Counter(map(str, range(1, 25)))


@pytest.mark.wire
@pytest.mark.thorough
def test_tasks_of_a_killed_worker_run_again(start: Callable[..., Popen[str]], command: list[str]) -> None:
    process = start(*command)
    told(process, 4)
    os.kill(children(process)[0], signal.SIGKILL)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert ids() == ONCE
    assert all(result["error"] is None for result in read_run(Path("run"))[1].values())


@pytest.mark.wire
@pytest.mark.thorough
def test_a_killed_driver_takes_its_workers_along_and_the_same_command_goes_on(
    start: Callable[..., Popen[str]], reflect: Any, command: list[str]
) -> None:
    process = start(*command)
    told(process, 4)
    workers = children(process)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "the workers outlive their driver"
        time.sleep(0.1)
    done = read_run(Path("run"))[1]
    assert 4 <= len(done) < 24
    assert reflect(*command).code == 0
    assert ids() == ONCE


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.filterwarnings("ignore")  # Ray's own
@pytest.mark.skipif(BUSY, reason="Ray gives its agent 15 seconds to begin, which no setting changes: too few here")
async def test_tasks_of_a_killed_ray_actor_run_again(
    tmp_path: Path, socket_enabled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "300")  # however busy the machine
    ray_workers = pytest.importorskip("reflective_agents.evals.on_ray").ray_workers
    killed: list[int] = []

    def killing(run: Run) -> Run:
        async def one(task: Any) -> Any:
            if task["id"] == "3":
                while not (actors := _actors()):  # noqa: ASYNC110 - they begin meanwhile, and tell nobody
                    await asyncio.sleep(0.1)
                killed.append(actors[0])
                os.kill(killed[0], signal.SIGKILL)
            return await run(task)

        return one

    async with ray_workers(JOB, "local", 2, 4) as run:
        summary = await evaluate(
            chain_of_thought.graph, dataset(12), context=CONTEXT, out=tmp_path / "run", elsewhere=killing(run)
        )
    assert (summary["finished"], summary["errors"], len(killed)) == (12, {}, 1)
    lines = (tmp_path / "run" / "results.jsonl").read_bytes().splitlines()
    assert Counter(json.loads(line)["id"] for line in lines) == Counter(map(str, range(1, 13)))


def _actors() -> list[int]:
    """The processes of Ray's actors on this machine."""
    files = Path("/proc").glob("[0-9]*/cmdline")
    return [int(file.parent.name) for file in files if file.read_bytes().startswith(b"ray::Place")]
