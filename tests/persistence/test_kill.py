"""kill -9 at every super-step, then resume: the same result, and at most one super-step is paid again."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from models.providers import close_models
from testing.openai_server import OpenAIServer
from tests.persistence.runs import QUESTION, SETTINGS, THREAD, content, open_saver, script, stored
from tests.persistence.victim import Victim

pytestmark = pytest.mark.wire

WIDTH = SETTINGS["lats"]["n"]
CALLS_OF_A_STEP = 1 + WIDTH
LAST_STEP = {"lats": 8, "reflection": 8, "reflexion": 7, "chain_of_thought": 4, "react": 9, "trials": 9}
MIDST_OF_LATS = {"start, sampling": 1, "start, judging": 2} | {
    f"expansion {k}": 2 + CALLS_OF_A_STEP * (k - 1) + 2 for k in (1, 2, 3, 4)
}
MIDST_OF_LATS["finish"] = 2 + 4 * CALLS_OF_A_STEP + 1


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


@pytest.mark.parametrize("step", range(-1, LAST_STEP["lats"] + 1))
async def test_lats_killed_after_a_checkpoint_repeats_nothing(
    step: int, victim: Victim, server: OpenAIServer, database: str
) -> None:
    victim.run("lats", database, at_step=step)
    await check("lats", database, server, paid_again=range(1))


@pytest.mark.parametrize("call", MIDST_OF_LATS.values(), ids=MIDST_OF_LATS)
async def test_lats_killed_in_a_step_repeats_that_step_only(
    call: int, victim: Victim, server: OpenAIServer, database: str
) -> None:
    victim.run("lats", database, at_call=call)
    await check("lats", database, server, paid_again=range(1, CALLS_OF_A_STEP + 1))


@pytest.mark.parametrize(
    ("strategy", "step"), [("reflection", 4), ("reflexion", 4), ("chain_of_thought", 2), ("react", 5), ("trials", 3)]
)
async def test_the_other_strategies_go_on_as_well(
    strategy: str, step: int, victim: Victim, server: OpenAIServer, database: str
) -> None:
    victim.run(strategy, database, at_step=step)
    await check(strategy, database, server, paid_again=range(1))


@pytest.mark.parametrize(
    ("strategy", "call"), [("reflection", 4), ("reflexion", 2), ("chain_of_thought", 1), ("react", 3), ("trials", 6)]
)
async def test_the_other_strategies_repeat_one_step_only(
    strategy: str, call: int, victim: Victim, server: OpenAIServer, database: str
) -> None:
    victim.run(strategy, database, at_call=call)
    await check(strategy, database, server, paid_again=range(1, 2))
