"""The log: one JSON line for each decision, model call, tool call and memory operation; nothing unless asked for."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from langchain_core.exceptions import ModelRateLimitError
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from tenacity import wait_none

from reflective_agents import telemetry
from reflective_agents.nodes.step import Step, Update, node
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse
from reflective_agents.state.run import RunState
from reflective_agents.telemetry.log import LOGGERS, Kind
from reflective_agents.telemetry.operations import Operation
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Request
from tests.strategies import ASK, STRATEGIES, Strategy, every_strategy, thread
from tests.telemetry.conftest import Line, Lines, Spans

ROOT = Path(__file__).parents[2]
BY_NAME = {strategy.name: strategy for strategy in STRATEGIES}
RUN = {"time", "level", "logger", "event", "run_id", "thread_id", "strategy", "step"}


def of_kind(lines: list[Line], kind: Kind) -> list[Line]:
    return [line for line in lines if line["logger"] == f"reflect.{kind}"]


async def run(strategy: Strategy, model: FakeChatModel | None = None, **settings: Any) -> dict[str, Any]:
    context = strategy.make(model=model or FakeChatModel(reply=strategy.solving), **settings)
    result: dict[str, Any] = await strategy.with_memory().ainvoke(ASK, thread(), context=context)
    return result


# Off


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Note the name of the logger of every record made."""
    made: list[str] = []
    factory = logging.getLogRecordFactory()

    def record(name: str, *args: Any, **kwargs: Any) -> logging.LogRecord:
        made.append(name)
        return factory(name, *args, **kwargs)

    logging.setLogRecordFactory(record)
    yield made
    logging.setLogRecordFactory(factory)


@pytest.mark.matrix
@every_strategy
async def test_nothing_is_made_while_nobody_asks_for_it(
    strategy: Strategy, records: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Operation, "__init__", lambda *_: pytest.fail("an operation was watched"))
    monkeypatch.setattr(
        "reflective_agents.telemetry.spans.Runs.on_chain_start", lambda *_, **__: pytest.fail("a run was watched")
    )
    monkeypatch.setattr("reflective_agents.telemetry.operations._event", lambda *_: pytest.fail("an event was made"))
    result = await run(strategy)
    assert result["usage"]["model_calls"] > 0
    assert [name for name in records if name.startswith("reflect")] == []


# Lines


@pytest.mark.matrix(keep=2)
@every_strategy
async def test_every_call_and_every_decision_is_one_line(strategy: Strategy, lines: Lines) -> None:
    events = []
    context = strategy.make(model=FakeChatModel(reply=strategy.solving))
    async for event in strategy.with_memory().astream(ASK, thread(), context=context, stream_mode="custom"):
        events.append(event)
    got = lines()
    own = [line for line in got if line["strategy"] == strategy.name]
    assert [line["event"] for line in of_kind(own, "decision")] == [event["event"] for event in events]
    requests = [line for line in of_kind(got, "model") if line["provider"] != "embedded"]
    assert len(requests) == events[-1]["model_calls"]
    assert all(line.keys() >= RUN for line in got)
    assert {line["thread_id"] for line in got} == {"t"}
    assert len({line["run_id"] for line in own}) == 1


async def test_a_line_is_numbers_and_names(lines: Lines) -> None:
    result = await run(BY_NAME["lats"])
    got = lines()
    call = of_kind(got, "model")[0]
    usage = result["usage"]
    assert call["model"] == "FakeChatModel"
    assert (call["provider"], call["n"], call["outcome"], call["level"]) == ("fake", 1, "ok", "INFO")
    assert sum(line["input_tokens"] for line in of_kind(got, "model")) == usage["input_tokens"]
    assert sum(line["output_tokens"] for line in of_kind(got, "model")) == usage["output_tokens"]
    tools = of_kind(got, "tool")
    assert len(tools) == usage["tool_calls"] > 0
    assert {(line["tool"], line["outcome"]) for line in tools} == {("search", "ok")}
    assert all(line["result_chars"] > 2 for line in tools)
    end = of_kind(got, "decision")[-1]
    assert (end["event"], end["status"], end["model_calls"]) == ("end", "solved", usage["model_calls"])
    assert end["reason_chars"] == len(result["outcome"]["reason"])


@pytest.mark.matrix(keep=2)
@every_strategy
async def test_no_text_of_a_question_or_an_answer_is_told(
    strategy: Strategy, lines: Lines, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFLECT_LOG_LEVEL", "DEBUG")
    telemetry.configure()
    result = await run(strategy)
    everything = json.dumps(lines()) + "".join(span.to_json() for span in spans())
    assert result["answer"]
    for secret in ("Why does reflection help", "alpha", "mistakes", result["answer"]):
        assert secret not in everything


async def test_a_strategy_in_another_names_the_run_above(lines: Lines) -> None:
    await run(BY_NAME["trials"])
    got = lines()
    [outer] = {line["run_id"] for line in got if line["strategy"] == "trials"}
    inner = [line for line in got if line["strategy"] == "react"]
    assert {line["parent_run_id"] for line in inner} == {outer}
    assert outer not in {line["run_id"] for line in inner}
    assert {line["thread_id"] for line in inner} == {"t"}


async def test_runs_at_once_keep_their_ids(lines: Lines) -> None:
    strategy = BY_NAME["lats"]
    graph, context = strategy.with_memory(), strategy.make(model=FakeChatModel(reply=strategy.solving, latency=0.005))
    results = await asyncio.gather(*(graph.ainvoke(ASK, thread(str(i)), context=context) for i in range(5)))
    got = lines()
    for i, result in enumerate(results):
        own = [line for line in got if line["thread_id"] == str(i)]
        assert len({line["run_id"] for line in own}) == 1
        assert len(of_kind(own, "model")) == result["usage"]["model_calls"]
    assert len({line["run_id"] for line in got}) == 5


def test_a_second_question_on_a_thread_is_a_new_run_and_invoke_is_told_too(lines: Lines) -> None:
    strategy = BY_NAME["reflection"]
    graph, context = strategy.with_memory(), strategy.make(model=FakeChatModel(reply=strategy.solving))
    states = [graph.invoke(ASK, thread(), context=context) and graph.get_state(thread()).values for _ in range(2)]
    ids = list(dict.fromkeys(line["run_id"] for line in lines()))
    assert ids == [state["run_id"] for state in states]
    assert len(set(ids)) == 2


# Failures


async def test_a_failing_call_is_told_with_its_class_and_without_its_text(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    model = FakeChatModel(reply=lambda request: ModelRateLimitError("busy: sk-planted"))
    await run(BY_NAME["reflection"], model)
    got = lines()
    assert [(line["outcome"], line["fault"]) for line in of_kind(got, "model")] == [
        ("error", "ModelRateLimitError")
    ] * 3
    assert "planted" not in json.dumps(got)


async def test_a_call_that_takes_too_long_is_told(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    strategy = BY_NAME["reflection"]
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    slow = FakeChatModel(reply=strategy.solving, latency=lambda request: 30 if request.attempt == 0 else 0)
    await run(strategy, slow, call_timeout=0.1)
    first, second, *_ = of_kind(lines(), "model")
    assert (first["outcome"], first["fault"], second["outcome"]) == ("error", "TimeoutError", "ok")
    assert first["seconds"] >= 0.1


async def test_a_call_that_is_cancelled_is_told(lines: Lines) -> None:
    sent = asyncio.Event()

    def latency(_: Request) -> float:
        sent.set()
        return 30

    model = FakeChatModel(reply=lambda request: "late", latency=latency)
    task = asyncio.create_task(run(BY_NAME["reflection"], model))
    await sent.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [line["outcome"] for line in of_kind(lines(), "model")] == ["cancelled"]


# Memory operations, and what else a node does


def graph_of(function: Any) -> Any:
    builder: Any = StateGraph(RunState, context_schema=Context)
    builder.add_node("remember", node(Context)(function))
    return builder.add_edge(START, "remember").compile(checkpointer=InMemorySaver())


START_STATE = {"messages": [("user", "Hello")], "run_id": "r1", "strategy": "own"}


async def test_a_memory_operation_is_one_line(lines: Lines) -> None:
    async def remember(_: Any, __: Step[Context]) -> Update:
        with telemetry.memory_operation("retrieve", namespace="lessons", query="what was secret") as operation:
            operation.note(found=3, ids=["a", "b"])
        return {}

    await graph_of(remember).ainvoke(START_STATE, thread())
    [line] = lines()
    assert line["seconds"] >= 0
    del line["time"], line["seconds"]
    assert line == {
        "level": "INFO",
        "logger": "reflect.memory",
        "event": "retrieve",
        "run_id": "r1",
        "thread_id": "t",
        "strategy": "own",
        "step": "remember",
        "outcome": "ok",
        "namespace": "lessons",
        "query_chars": 15,
        "found": 3,
        "ids_count": 2,
    }


async def test_waiting_for_a_person_is_no_failure(lines: Lines) -> None:
    async def remember(_: Any, __: Step[Context]) -> Update:
        with telemetry.memory_operation("confirm"):
            interrupt("May I?")
        return {}

    await graph_of(remember).ainvoke(START_STATE, thread())
    assert [line["outcome"] for line in lines()] == ["paused"]


async def test_a_field_does_not_hide_the_time_of_a_line(lines: Lines) -> None:
    async def remember(_: Any, step: Step[Context]) -> Update:
        step.emit("slept", time=8.5)
        return {}

    await graph_of(remember).ainvoke(START_STATE, thread())
    [line] = lines()
    assert line["time_"] == 8.5
    assert line["time"].startswith("20")


def test_outside_a_run_a_line_has_no_ids(lines: Lines) -> None:
    with telemetry.step("remember", "r1", "own", {}):
        pass
    with telemetry.memory_operation("export") as operation:
        operation.note(memories=7)
    [line] = lines()
    assert line.keys() == {"time", "level", "logger", "event", "seconds", "outcome", "memories"}


# Where the lines go


def remember_something() -> None:
    with telemetry.memory_operation("store"):
        pass


def test_standard_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("REFLECT_LOG", "stderr")
    telemetry.configure()
    remember_something()
    telemetry.log.close()
    out, err = capsys.readouterr()
    assert (out, json.loads(err)["event"]) == ("", "store")


def test_steps_are_told_on_the_level_debug(monkeypatch: pytest.MonkeyPatch, lines: Lines) -> None:
    monkeypatch.setenv("REFLECT_LOG_LEVEL", "debug")
    telemetry.configure()
    strategy = BY_NAME["reflection"]
    strategy.graph.invoke(ASK, context=strategy.make(model=FakeChatModel(reply=strategy.solving)))
    steps = [line["step"] for line in lines() if line["event"] == "step"]
    assert (steps[0], steps[-1]) == ("begin", "finish")


def test_one_kind_alone_can_be_switched_on(lines: Lines, caplog: pytest.LogCaptureFixture) -> None:
    lines()
    strategy = BY_NAME["reflection"]
    caplog.set_level("INFO", "reflect.model")
    strategy.graph.invoke(ASK, context=strategy.make(model=FakeChatModel(reply=strategy.solving)))
    messages: list[Any] = [record.msg for record in caplog.records]
    assert {record.name for record in caplog.records} == {"reflect.model"}
    assert all(event["run_id"] for event in messages)


def test_configuring_again_doubles_nothing(lines: Lines) -> None:
    telemetry.configure()
    telemetry.configure()
    remember_something()
    assert len(lines()) == 1


def test_what_is_no_longer_asked_for_leaves_nothing(lines: Lines) -> None:
    logger, threads = logging.getLogger("reflect"), threading.active_count()
    lines()
    assert [type(handler) for handler in logger.handlers] == [logging.NullHandler]
    assert logger.level == logging.NOTSET
    assert threading.active_count() == threads - 1


@pytest.mark.thorough
@pytest.mark.process
def test_lines_are_complete_when_the_process_ends(tmp_path: Path) -> None:
    script = """
from reflective_agents import telemetry
telemetry.configure()
for number in range(2000):
    with telemetry.memory_operation("store", number=number): pass
"""
    environment = {**os.environ, "REFLECT_LOG": str(tmp_path / "run.log")}
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, check=True)
    lines = (tmp_path / "run.log").read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == list(range(2000))


def test_lines_are_added_to_a_file(lines: Lines, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text('{"earlier": 1}\n')
    remember_something()
    assert len(lines()) == 2


def test_a_thread_of_its_own_writes(lines: Lines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    writers = []
    write = logging.FileHandler.emit

    def emit(handler: logging.FileHandler, record: logging.LogRecord) -> None:
        if handler.baseFilename == str(tmp_path / "run.log"):
            writers.append(threading.current_thread())
        write(handler, record)

    monkeypatch.setattr(logging.FileHandler, "emit", emit)
    remember_something()
    assert len(lines()) == len(writers) == 1
    assert threading.current_thread() not in writers


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("REFLECT_LOG", "/proc/none/run.log", "REFLECT_LOG=/proc/none/run.log cannot be written"),
        ("REFLECT_LOG_LEVEL", "loud", "REFLECT_LOG_LEVEL=loud"),
    ],
)
def test_what_cannot_be_done_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str, complaint: str
) -> None:
    monkeypatch.setenv("REFLECT_LOG", str(tmp_path / "run.log"))
    monkeypatch.setenv(name, value)
    with pytest.raises(Misuse, match=complaint):
        telemetry.configure()
    remember_something()


# An application with logs of its own


@contextmanager
def application() -> Iterator[None]:
    """An application that shows what is logged on standard error."""
    handler, root = logging.StreamHandler(), logging.getLogger()
    handler.setFormatter(logging.Formatter("app: %(message)s"))
    root.addHandler(handler)
    yield
    root.removeHandler(handler)


def test_it_gets_the_lines(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    caplog.set_level("INFO", "reflect")
    with application():
        remember_something()
    [line] = capsys.readouterr().err.splitlines()
    assert json.loads(line.removeprefix("app: "))["event"] == "store"


def test_no_line_reaches_standard_error_twice(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFLECT_LOG", "stderr")
    telemetry.configure()
    with application():
        remember_something()
        telemetry.log.close()
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("app: ")


def test_a_file_is_written_beside_it(lines: Lines, capsys: pytest.CaptureFixture[str]) -> None:
    with application():
        remember_something()
    assert len(lines()) == len(capsys.readouterr().err.splitlines()) == 1


def test_every_kind_has_a_logger() -> None:
    assert set(LOGGERS) == set(get_args(Kind))
