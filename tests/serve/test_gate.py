"""The gate: what a thread's owner may send, and that what was spent stays spent."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Send
from starlette.exceptions import HTTPException

from reflective_agents.graphs import graph_of
from reflective_agents.graphs.chain_of_thought import builder
from reflective_agents.serve.gate import check_command, check_config, check_metadata, check_start, written_by_runs
from reflective_agents.serve.graphs import GuardedGraph
from reflective_agents.serve.policy import policy
from reflective_agents.serve.refusals import Refused
from reflective_agents.state.settings import strategy_names

CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}
QUESTION: Any = {"messages": [("user", "Why?")]}
CONTEXT: Any = {"model": "offline"}
FORGED = {"model_calls": -100}


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Serve others, whom one strategy is offered."""
    path = tmp_path / "policy.json"
    path.write_text('{"strategies": ["chain_of_thought"]}')
    monkeypatch.setenv("REFLECT_POLICY", str(path))
    policy.cache_clear()
    yield
    policy.cache_clear()


@pytest.fixture
def graph() -> Any:
    graph: Any = builder.compile(name="chain_of_thought", checkpointer=InMemorySaver())
    graph.__class__ = GuardedGraph
    return graph


@pytest.mark.parametrize(
    "command",
    [
        {"resume": {"usage": 3}},
        {"update": {"answer": "Mine.", "orders": []}, "goto": "finish"},
        {"update": [["answer", "usage"]], "goto": ["finish", "sample"]},
        {"update": None, "goto": None},
        Command(resume=1, update={"answer": None}),
    ],
)
def test_an_owner_may_resume_write_and_go_to(command: Any) -> None:
    check_command(command)


@pytest.mark.parametrize(
    "name", ["usage", "run_id", "version", "raised", "reports", "subgoals", "rounds", "__pregel_tasks"]
)
@pytest.mark.parametrize("form", ["object", "pairs", "command", "copies"])
def test_what_the_run_alone_writes_is_refused_in_every_form(name: str, form: str) -> None:
    update: Any = {name: FORGED}
    given = {
        "object": {"update": update},
        "pairs": {"update": [["answer", "x"], [name, FORGED]]},
        "command": Command(update=update),
        "copies": {"update": [[[update, "sample"]]]},
    }[form]
    with pytest.raises(Refused, match=f"{name} is written by the run alone"):
        check_command(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "goto", [{"node": "sample", "input": {}}, ["finish", {"node": "sample"}], Send("sample", {}), [3]]
)
def test_nodes_are_gone_to_without_an_input(goto: Any) -> None:
    with pytest.raises(Refused, match="an input of their own cannot be given"):
        check_command({"goto": goto})


@pytest.mark.parametrize(
    "configurable", [{"__pregel_resuming": True}, {"checkpoint_ns": "a:1"}, {"checkpoint_map": {"": "1"}}]
)
def test_a_run_stays_on_its_thread(configurable: dict[str, Any]) -> None:
    check_config({"configurable": {"checkpoint_id": "1", "checkpoint_ns": "", "thread_id": "1"}})
    with pytest.raises(Refused, match="cannot be set by a request"):
        check_config({"configurable": configurable})


@pytest.mark.parametrize(
    "config", [{"recursion_limit": 0}, {"max_concurrency": -1}, {"callbacks": [1]}, {"tags": 7}, {"configurable": "x"}]
)
def test_a_configuration_that_no_run_can_have_is_refused(config: dict[str, Any]) -> None:
    check_config({"recursion_limit": 50, "max_concurrency": 2, "callbacks": None, "tags": ["a"], "metadata": {}})
    with pytest.raises(Refused, match=rf"^config\.{next(iter(config))}") as refused:
        check_config(config)
    assert refused.value.status == 400


def test_no_assistant_passes_for_the_servers_own() -> None:
    check_metadata({"owner": "ann"})
    with pytest.raises(Refused, match="created_by is written by the server alone"):
        check_metadata({"created_by": "system"})


@pytest.mark.parametrize("run", [{"feedback_keys": ["a"]}, {"command": {"graph": "__parent__", "goto": "finish"}}])
def test_a_run_stays_on_this_server_and_in_its_graph(run: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        check_start("chain_of_thought", run)
    assert refused.value.status == 403


@pytest.mark.parametrize(
    ("strategy", "run", "status"),
    [
        ("lats", {}, 403),
        ("chain_of_thought", {"context": {"colour": "red"}}, 400),
        ("chain_of_thought", {"config": {"configurable": {"samples": 0}}}, 400),
        (None, {"context": {"colour": "red"}}, 400),
    ],
)
def test_a_run_begins_with_what_is_offered(strategy: str | None, run: dict[str, Any], status: int) -> None:
    engines = {"__event_streaming_v2": True, "thread_id": "1", "checkpoint_id": "1"}
    check_start("chain_of_thought", {"context": {"samples": 2, **engines}, "config": {"configurable": engines}})
    with pytest.raises(Refused) as refused:
        check_start(strategy, run)
    assert refused.value.status == status


def test_no_input_holds_what_the_run_alone_writes() -> None:
    for name in strategy_names():
        graph = graph_of(name)
        given = {*graph.get_input_jsonschema()["properties"]}
        assert not given & written_by_runs(), name
        assert {"usage", "run_id", "version"} <= written_by_runs() & {*graph.channels}


async def test_a_graph_refuses_what_is_not_offered_and_writes_that_are_the_runs(graph: Any) -> None:
    await graph.ainvoke(QUESTION, CONFIG, context=CONTEXT)
    before = (await graph.aget_state(CONFIG)).values
    forged: list[Command[str]] = [Command(update={"usage": FORGED}), Command(goto=Send("sample", {**before}))]
    for given in forged:
        with pytest.raises(HTTPException, match="403"):
            await graph.ainvoke(given, CONFIG, context=CONTEXT)
    forms: list[Any] = [{"usage": FORGED}, Command(update={"usage": FORGED}), [({"usage": FORGED}, "sample")]]
    for values in forms:
        with pytest.raises(HTTPException, match="usage is written by the run alone"):
            await graph.aupdate_state(CONFIG, values)
    assert (await graph.aget_state(CONFIG)).values == before
    graph.name = "lats"
    with pytest.raises(HTTPException, match="lats is not offered here"):
        await graph.ainvoke(QUESTION, CONFIG, context=CONTEXT)


async def test_a_turn_that_goes_back_is_charged_with_all_it_has_spent(graph: Any) -> None:
    await graph.ainvoke(QUESTION, CONFIG, context=CONTEXT)
    states = [state async for state in graph.aget_state_history(CONFIG) if state.values.get("run_id")]
    begun = states[-1].config
    for calls, given in ((2, None), (3, Command(update={"answer": None})), (4, None)):
        out = await graph.ainvoke(given, begun, context=CONTEXT)
        assert out["usage"]["model_calls"] == calls
    with pytest.raises(HTTPException, match="changed where it is now"):
        await graph.aupdate_state(begun, {"answer": "x"})
    await graph.ainvoke(QUESTION, CONFIG, context=CONTEXT)
    with pytest.raises(HTTPException, match="ask a new one from there"):
        await graph.ainvoke(None, begun, context=CONTEXT)
    assert (await graph.ainvoke(QUESTION, begun, context=CONTEXT))["usage"]["model_calls"] == 1


async def test_the_operator_alone_writes_what_he_likes(graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_POLICY", "")
    policy.cache_clear()
    await graph.ainvoke(QUESTION, CONFIG, context=CONTEXT)
    await graph.aupdate_state(CONFIG, {"usage": {"model_calls": 7}})
    assert (await graph.aget_state(CONFIG)).values["usage"]["model_calls"] == 7


def test_the_schema_of_settings_is_made_once() -> None:
    graphs = [copy.copy(graph_of("lats")) for _ in range(2)]
    for graph in graphs:
        graph.__class__ = GuardedGraph
    first, second = (graph.get_context_jsonschema() for graph in graphs)
    assert first is second
    assert first == graph_of("lats").get_context_jsonschema()
