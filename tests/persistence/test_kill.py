"""kill -9 at every super-step, then resume: the same result, and at most one super-step is paid again."""

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from reflective_agents.models.providers import close_models
from reflective_agents.testing.openai_server import OpenAIServer
from tests.graphs.lats_scripts import assert_consistent
from tests.persistence.conftest import POSTGRES
from tests.persistence.runs import QUESTION, SETTINGS, THREAD, content, open_saver, script, stored
from tests.persistence.victim import Victim

pytestmark = [pytest.mark.wire, pytest.mark.process, pytest.mark.thorough]

WIDTH = SETTINGS["lats"]["n"]
CALLS_OF_A_STEP = 1 + WIDTH
LAST_STEP = {
    "auto": 17,
    "lats": 8,
    "tree_of_thoughts": 12,
    "rap": 8,
    "ab_mcts": 10,
    "best_of_n": 9,
    "reflection": 8,
    "reflexion": 7,
    "chain_of_thought": 4,
    "react": 9,
    "trials": 9,
    "plan": 9,
    "team": 9,
    "town": 7,
    "memory": 7,
}
MIDST_OF_LATS = {"start": 1} | {f"expansion {k}": 1 + CALLS_OF_A_STEP * (k - 1) + 2 for k in (1, 2, 3, 4)}
MIDST_OF_LATS["finish"] = 1 + 4 * CALLS_OF_A_STEP + 1


@pytest.fixture
def victim() -> Victim:
    return Victim()


@pytest.fixture
def server(victim: Victim, index_folder: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """The model's server, which outlives the victim."""
    with OpenAIServer(script, latency=victim.strike).threaded() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("REFLECT_CACHE_DIR", index_folder)
        yield server


@pytest.fixture(autouse=True)
async def connections() -> AsyncIterator[None]:
    yield
    await close_models()


_undisturbed: dict[str, dict[str, Any]] = {}


async def undisturbed(strategy: str, server: OpenAIServer) -> dict[str, Any]:
    """The final state of a run that nothing happens to."""
    if strategy not in _undisturbed:
        graph = stored(strategy, InMemorySaver())
        await graph.ainvoke(QUESTION, THREAD, context=SETTINGS[strategy])
        snapshot = await graph.aget_state(THREAD)
        assert snapshot.metadata is not None
        assert snapshot.metadata["step"] == LAST_STEP[strategy]
        _undisturbed[strategy] = snapshot.values
    return _undisturbed[strategy]


async def resume(strategy: str, database: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The usage before the run goes on, and the state at its end."""
    async with open_saver(database) as saver:
        graph = stored(strategy, saver)
        before = (await graph.aget_state(THREAD)).values
        await graph.ainvoke(None, THREAD, context=SETTINGS[strategy], durability="sync")
        return before.get("usage") or {}, (await graph.aget_state(THREAD)).values


async def check(strategy: str, database: str, server: OpenAIServer, paid_again: range) -> None:
    spent = len(server.calls)
    before, state = await resume(strategy, database)
    spent_in_all = len(server.calls)
    expected = await undisturbed(strategy, server)
    assert content(state) == content(expected)
    assert spent_in_all - expected["usage"]["model_calls"] in paid_again
    assert before.get("model_calls", 0) <= spent
    assert all(state["usage"][counter] >= value for counter, value in before.items())


def in_turns(names: str, places: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrize with places to be killed at, and with the two databases in turns."""
    cases = []
    for turn, moment in enumerate(places):
        database = pytest.param("sqlite") if turn % 2 else POSTGRES
        values = moment if isinstance(moment, tuple) else (moment,)
        cases.append(pytest.param(*values, *database.values, marks=database.marks))
    return pytest.mark.parametrize(f"{names},database", cases, indirect=["database"])


@in_turns("step", range(-1, LAST_STEP["lats"] + 1))
async def test_lats_killed_after_a_checkpoint_repeats_nothing(
    step: int, victim: Victim, server: OpenAIServer, database: str
) -> None:
    victim.run("lats", database, at_step=step)
    await check("lats", database, server, paid_again=range(1))


@in_turns("moment,call", MIDST_OF_LATS.items())
async def test_lats_killed_in_a_step_repeats_that_step_only(
    moment: str, call: int, victim: Victim, server: OpenAIServer, database: str
) -> None:
    victim.run("lats", database, at_call=call)
    await check("lats", database, server, paid_again=range(1, CALLS_OF_A_STEP + 1))


OTHERS = {
    "auto": 7,
    "tree_of_thoughts": 5,
    "rap": 6,
    "ab_mcts": 3,
    "best_of_n": 5,
    "reflection": 4,
    "reflexion": 2,
    "chain_of_thought": 1,
    "react": 3,
    "trials": 6,
    "plan": 3,
    "team": 6,
    "town": 4,
    "memory": 2,
}
"""In which call the other strategies are killed: none but this one is paid again."""


@in_turns("strategy,call", OTHERS.items())
async def test_the_other_strategies_repeat_one_step_only(
    strategy: str, call: int, victim: Victim, server: OpenAIServer, database: str
) -> None:
    victim.run(strategy, database, at_call=call)
    await check(strategy, database, server, paid_again=range(1, 2))


AT_ONCE, EXPANSIONS = "lats, 8 at once", 40
JOBS_OF_A_STEP, CALLS_OF_A_JOB = 4 * 8, 1 + 1
STEPS_OF_EIGHT = {"in the first step": 2, "in the second": 3}
MIDST_OF_EIGHT = {
    "eight leaves": 40,
    "last of the first step": 2 + JOBS_OF_A_STEP * CALLS_OF_A_JOB,
    "second step": 2 + (JOBS_OF_A_STEP + 4) * CALLS_OF_A_JOB,
}


async def check_eight(database: str, server: OpenAIServer, paid_again: int) -> None:
    """Nothing of a finished super-step is lost, no more than one is paid again, and the tree is whole."""
    async with open_saver(database) as saver:
        before = (await stored(AT_ONCE, saver).aget_state(THREAD)).values
    assert not any(stat.get("virtual") or stat.get("flight") for stat in before.get("stats", {}).values())
    _, state = await resume(AT_ONCE, database)
    assert state["outcome"]["limit"] == {"name": "max_expansions", "most": EXPANSIONS, "spent": EXPANSIONS}
    assert_consistent(state)
    tree, log = before.get("tree", {}), before.get("log", [])
    assert content(tree) == content({key: state["tree"][key] for key in tree})
    assert content(log) == content(state["log"][: len(log)])
    assert state["usage"]["model_calls"] == 2 + EXPANSIONS * CALLS_OF_A_JOB
    assert 0 <= len(server.calls) - state["usage"]["model_calls"] <= paid_again


@pytest.mark.parametrize("step", STEPS_OF_EIGHT.values(), ids=STEPS_OF_EIGHT)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_eight_leaves_at_once_killed_after_a_checkpoint_repeat_nothing(
    step: int, victim: Victim, server: OpenAIServer, database: str
) -> None:
    victim.run(AT_ONCE, database, at_step=step)
    await check_eight(database, server, paid_again=0)


@pytest.mark.parametrize(
    ("database", "call"),
    [*(("sqlite", call) for call in MIDST_OF_EIGHT.values()), pytest.param("postgres", 40, marks=POSTGRES.marks)],
    indirect=["database"],
)
async def test_eight_leaves_at_once_killed_in_a_step_repeat_that_step_only(
    call: int, victim: Victim, server: OpenAIServer, database: str
) -> None:
    victim.run(AT_ONCE, database, at_call=call)
    await check_eight(database, server, paid_again=JOBS_OF_A_STEP * CALLS_OF_A_JOB)
