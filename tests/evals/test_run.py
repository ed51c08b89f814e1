"""Evaluations: measuring, crashes, concurrency, resumption, and folders that are not to be mixed up."""

import asyncio
import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.environments.base import Task
from reflective_agents.environments.plain import Plain
from reflective_agents.evals.datasets import Dataset
from reflective_agents.evals.description import about as make_about
from reflective_agents.evals.results import RESULTS, RUN, Result, read_run
from reflective_agents.evals.run import attempt, evaluate
from reflective_agents.evals.store import Store, folder_of
from reflective_agents.evals.summary import Summary
from reflective_agents.evals.transcripts import Transcript
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse, SandboxMissing
from tests.evals.fakes import dataset, strategy

CONTEXT = Context(model="offline")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "one"


def number(state: Any) -> str:
    """The right answer to a question of the data set."""
    return str(state["messages"][-1].text.removeprefix("Question ").removesuffix("?"))


def noting(seen: list[Any], answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Answer, and note what was asked."""

    def note(state: Any) -> Any:
        seen.append(state)
        return answer(state)

    return note


async def run(graph: Any, out: Path, n: int = 4, **options: Any) -> Summary:
    return await evaluate(graph, options.pop("data", dataset(n)), context=CONTEXT, out=out, **options)


async def test_nothing_is_sent_where_tasks_cannot_be_run(out: Path) -> None:
    class Unready(Plain):
        async def ready(self) -> None:
            raise SandboxMissing("no sandbox")

    seen: list[Any] = []
    with pytest.raises(SandboxMissing):
        await run(strategy(noting(seen, number)), out, data=Dataset("numbers", Unready(), dataset(1).tasks))
    assert (seen, await asyncio.to_thread(out.exists)) == ([], False)


async def test_every_task_has_a_result_that_is_measured(out: Path) -> None:
    summary = await run(strategy(lambda state: number(state) if number(state) != "3" else "three"), out)
    assert (summary["finished"], summary["correct"], summary["accuracy"]) == (4, 3, 0.75)
    assert summary["scores"] == {"em": 0.75, "f1": 0.75}
    assert summary["outcomes"] == {"solved": 4}
    assert summary["cost"]["model_calls"] == {"total": 8, "mean": 2, "median": 2}
    about, results = read_run(out)
    assert (about["strategy"], about["dataset"], about["tasks"]) == ("fake", "numbers", 4)
    assert about["settings"]["model"] == "offline"
    assert [results[name]["correct"] for name in "1234"] == [True, True, False, True]


async def test_crash_of_a_task_is_its_result(out: Path) -> None:
    def crash(state: Any) -> str:
        if number(state) == "2":
            raise ZeroDivisionError("what a day")
        return number(state)

    summary = await run(strategy(crash), out)
    assert (summary["finished"], summary["correct"], summary["measured"]) == (4, 3, 4)
    assert summary["errors"] == {"ZeroDivisionError": 1}
    crashed = read_run(out)[1]["2"]
    assert (crashed["error"], crashed["answer"], crashed["correct"]) == ("ZeroDivisionError: what a day", None, False)


@pytest.mark.hostile
async def test_a_crash_that_quotes_a_key_is_kept_without_it(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(state: Any) -> str:
        raise RuntimeError("refused sk-planted-0123456789")

    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    await run(strategy(crash), out)
    assert read_run(out)[1]["2"]["error"] == "RuntimeError: refused [OPENAI_API_KEY]"


async def test_cancellation_inside_a_task_is_a_crash(out: Path) -> None:
    def give_up(state: Any) -> str:
        raise asyncio.CancelledError

    summary = await run(strategy(give_up), out)
    assert summary["errors"] == {"NodeCancelledError": 4}


async def test_answer_stays_if_it_cannot_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_sandbox(*_: Any, **__: Any) -> None:
        raise SandboxMissing("there is no sandbox")

    monkeypatch.setattr(Plain, "measure", no_sandbox)
    result, _ = await attempt(strategy(number), "plain", dataset(1).tasks[0], CONTEXT)
    assert (result["answer"], result["correct"]) == ("1", False)
    assert result["error"] == "SandboxMissing: there is no sandbox"
    assert result["usage"]


async def test_failed_run_is_wrong_and_an_unknown_answer_is_neither(out: Path) -> None:
    tasks = [Task(id="a", question="Why?", gold="so"), Task(id="b", question="Who?")]
    graph = strategy(lambda state: None if "Why" in state["messages"][-1].text else "me")
    summary = await run(graph, out, data=Dataset("two", "plain", tasks))
    _, results = read_run(out)
    assert (results["a"]["correct"], results["b"]["correct"], summary["measured"]) == (False, None, 1)
    assert results["b"]["scores"] == {}


async def test_so_many_tasks_are_under_way_at_once(out: Path) -> None:
    under_way, most = 0, 0
    full = asyncio.Event()

    async def slow(state: Any) -> dict[str, Any]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == 3:
            full.set()
        await full.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        under_way -= 1
        return {"answer": number(state)}

    graph = strategy(number)
    graph.nodes["only"].bound.afunc = slow
    await run(graph, out, 9, concurrency=3)
    assert most == 3


async def test_same_call_goes_on_and_pays_nothing_twice(out: Path) -> None:
    states: list[str] = []

    def answer(state: Any) -> str:
        states.append(number(state))
        if len(states) == 3:
            raise KeyboardInterrupt
        return number(state)

    with pytest.raises(KeyboardInterrupt):
        await asyncio.to_thread(asyncio.run, run(strategy(answer), out, 6, concurrency=1))
    assert list(read_run(out)[1]) == ["1", "2"]
    reported: list[tuple[str, bool]] = []
    summary = await run(strategy(answer), out, 6, on_result=lambda result, new: reported.append((result["id"], new)))
    assert states == ["1", "2", "3", "3", "4", "5", "6"]
    assert reported[:2] == [("1", False), ("2", False)]
    assert sorted(reported[2:]) == [(name, True) for name in "3456"]
    assert summary["accuracy"] == 1


async def test_cancelled_evaluation_leaves_no_result_of_what_was_under_way(out: Path) -> None:
    began = asyncio.Event()

    async def endless(state: Any) -> dict[str, Any]:
        began.set()
        await asyncio.Event().wait()
        return {}

    graph = strategy(number)
    graph.nodes["only"].bound.afunc = endless
    task = asyncio.create_task(run(graph, out))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert read_run(out)[1] == {}
    assert (await run(strategy(number), out))["correct"] == 4


async def test_half_written_line_is_dropped_and_its_task_run_again(out: Path) -> None:
    await run(strategy(number), out)
    lines = (out / RESULTS).read_bytes().splitlines(keepends=True)
    (out / RESULTS).write_bytes(b"".join(lines[:3]) + lines[3][:50])
    assert len(read_run(out)[1]) == 3
    states: list[Any] = []
    summary = await run(strategy(noting(states, number)), out)
    assert [number(state) for state in states] == [json.loads(lines[3])["id"]]
    assert summary["correct"] == 4
    assert (out / RESULTS).read_bytes().count(b"\n") == 4


async def test_tasks_that_crashed_or_failed_can_be_run_again(out: Path) -> None:
    def crash(state: Any) -> Any:
        if number(state) == "4":
            return {"answer": None, "outcome": {"status": "failed", "reason": "no model answered"}}
        raise OSError("no network")

    assert (await run(strategy(crash), out))["errors"] == {"OSError": 3}
    assert (await run(strategy(number), out))["outcomes"] == {"failed": 1}
    summary = await run(strategy(number), out, retry_failed=True)
    assert (summary["errors"], summary["outcomes"]) == ({}, {"solved": 4})
    assert (summary["correct"], summary["finished"]) == (4, 4)


async def test_other_settings_do_not_get_into_the_same_folder(out: Path) -> None:
    await run(strategy(number), out)
    other = CONTEXT.model_copy(update={"max_model_calls": 7})
    with pytest.raises(Misuse, match=r"another run \(max_model_calls: 150 there, 7 now\): choose another --out"):
        await evaluate(strategy(number), dataset(4), context=other, out=out)
    with pytest.raises(Misuse, match=r"another run \(fingerprint: "):
        await evaluate(strategy(number), dataset(5), context=CONTEXT, out=out)


async def test_an_evaluation_goes_on_although_a_setting_was_added(out: Path) -> None:
    await run(strategy(number), out)
    about = json.loads((out / RUN).read_text())
    del about["settings"]["max_answer_tokens"]
    (out / RUN).write_text(json.dumps(about))
    states: list[Any] = []
    assert (await run(strategy(noting(states, number)), out))["correct"] == 4
    assert states == []
    (out.parent / f"{about['strategy']}-{about['dataset']}-earlier").symlink_to(out)
    wanted = make_about(about["strategy"], CONTEXT, dataset(4))
    assert folder_of(wanted, out.parent).name.endswith("-earlier")
    other = CONTEXT.model_copy(update={"max_answer_tokens": 99})
    assert not folder_of(make_about(about["strategy"], other, dataset(4)), out.parent).exists()
    with pytest.raises(Misuse, match=r"another run \(max_answer_tokens: 2048 there, 99 now\)"):
        await evaluate(strategy(number), dataset(4), context=other, out=out)


async def test_folder_that_is_in_use(out: Path) -> None:
    began, end = asyncio.Event(), asyncio.Event()

    async def slow(state: Any) -> dict[str, Any]:
        began.set()
        await end.wait()
        return {"answer": "1"}

    graph = strategy(number)
    graph.nodes["only"].bound.afunc = slow
    task = asyncio.create_task(run(graph, out, 1))
    await began.wait()
    with pytest.raises(Misuse, match="in use by another process"):
        await run(strategy(number), out, 1)
    end.set()
    assert (await task)["finished"] == 1


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        (RUN, "{}", "does not say what was run"),
        (RUN, "{", "cannot be read"),
        (RESULTS, "nonsense\n", "line 1: not valid JSON"),
        (RESULTS, "{}\n", "line 1: no result; remove the line"),
    ],
)
async def test_damaged_folder(out: Path, file: str, text: str, line: str) -> None:
    await run(strategy(number), out)
    (out / file).write_text(text)
    with pytest.raises(Misuse, match=line):
        await run(strategy(number), out)


async def test_folders_that_are_none(out: Path, tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="holds no run: name a folder"):
        read_run(out)
    (tmp_path / "file").touch()
    with pytest.raises(Misuse, match="cannot be written"):
        await run(strategy(number), tmp_path / "file")
    (tmp_path / RESULTS).touch()
    with pytest.raises(Misuse, match=r"holds results.jsonl but no run.json"):
        await run(strategy(number), tmp_path)


async def test_disk_that_is_full(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    def answer(state: Any) -> str:
        monkeypatch.setattr("os.fsync", full)
        return number(state)

    with pytest.raises(Misuse, match=r"cannot be written \(No space left on device\)"):
        await run(strategy(answer), out)


async def test_trials_are_measured_outside_the_run(out: Path) -> None:
    def trial(name: int, answer: str | None, score: float) -> dict[str, Any]:
        return {"trial": name, "answer": answer, "reward": None, "score": score, "solved": score == 1}

    def answer(state: Any) -> dict[str, Any]:
        right = number(state)
        made = {
            "1": [trial(1, right, 1.0)],
            "2": [trial(1, "wrong", 0.4), trial(2, right, 0.2), trial(3, right, 0.6)],
            "3": [trial(1, None, 0.9), trial(2, right, 0.1)],
            "4": [trial(1, "wrong", 1.0)],
        }
        return {"trials": made[right], "answer": made[right][-1]["answer"]}

    summary = await run(strategy(answer, knows_tasks=True), out)
    assert summary["trials"] == [0.25, 0.5, 0.75]
    assert [trial["correct"] for trial in read_run(out)[1]["2"]["trials"]] == [False, True, True]
    assert [trial["best_correct"] for trial in read_run(out)[1]["2"]["trials"]] == [False, False, True]


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(
    ("environment", "task", "answer", "words"),
    [
        ("questions", Task(id="1", question="Who?", gold="Ann"), "Ann", "Who?\n\nGive the answer alone"),
        ("fever", Task(id="1", question="It is {so}.", gold="REFUTES"), "refutes", "Claim: It is {so}.\n\nAnswer with"),
        ("game24", Task(id="1", question="4 6 1 1"), "Answer: 4 * 6 * 1 * 1 = 24", "Use each of the numbers 4 6 1 1"),
        (
            "crosswords",
            Task(id="1", question="a\nb", gold="ABCDE" * 5, data={"clues": ["x"] * 10}),
            "\n".join(["A B C D E"] * 5),
            "rows from above",
        ),
        ("plain", Task(id="1", question="Who?", gold="Ann"), "ann", "Who?"),
    ],
)
async def test_strategies_that_know_no_tasks_are_told_what_is_wanted(
    environment: str, task: Task, answer: str, words: str
) -> None:
    seen: list[Any] = []
    graph = strategy(noting(seen, lambda _: answer))
    result, _ = await attempt(graph, environment, task, CONTEXT)
    assert (result["error"], result["correct"]) == (None, True)
    assert words in seen[0]["messages"][-1].text
    assert (await attempt(strategy(lambda _: "no"), environment, task, CONTEXT)).result["correct"] is False


async def test_strategies_that_know_tasks_get_them() -> None:
    seen: list[Any] = []
    task = Task(id="1", question="4 6 1 1")
    await attempt(strategy(noting(seen, lambda _: "x"), knows_tasks=True), "game24", task, CONTEXT)
    assert (seen[0]["task"], seen[0]["messages"][-1].text) == (task, "4 6 1 1")


def answered(answer: str, _: Any) -> str:
    return answer


@pytest.mark.thorough
@pytest.mark.sandbox
async def test_programs_are_measured_by_the_hidden_tests() -> None:
    data = {"entry_point": "f", "prompt": "", "tests": [], "hidden": "assert f(2) == 4\nassert f(3) == 6"}
    task = Task(id="1", question="Double a number.", data=data)
    programs = {"def f(x): return 2 * x": True, "def f(x): return 4": False}
    for program, correct in programs.items():
        result, _ = await attempt(strategy(partial(answered, program)), "programming", task, CONTEXT)
        assert result["correct"] is correct


async def test_result_that_is_being_written_when_all_is_cancelled_counts(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, writing, go_on, append = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), Store.append

    def slow(self: Store, result: Result, transcript: Transcript | None) -> None:
        loop.call_soon_threadsafe(writing.set)
        assert go_on.wait(30)
        append(self, result, transcript)

    monkeypatch.setattr(Store, "append", slow)
    reported: list[str] = []
    task = asyncio.create_task(
        run(strategy(number), out, 3, concurrency=1, on_result=lambda result, new: reported.append(result["id"]))
    )
    await writing.wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert reported == list(read_run(out)[1]) == ["1"]
