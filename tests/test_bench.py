"""The figures that do not depend on the clock: calls and waves of every strategy, and how the bench reports them."""

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from bench.engine import grow
from bench.prefixes import SETTINGS as PREFIXES
from bench.prefixes import Setting, as_sent, measured, new_share
from bench.replay import Recorder
from bench.rows import Row, kept, table
from bench.scripts import QUESTION, unsolvable
from bench.strategies import AT_ONCE, EACH, LATS
from reflective_agents.graphs import lats, reflection, reflexion
from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request


async def cost(graph: Any, model: FakeChatModelWithoutN, **settings: Any) -> tuple[int, int]:
    """Calls and waves of a run on the question that nothing solves."""
    state = await graph.ainvoke(QUESTION, context={**settings, "model": model})
    assert state["outcome"]["status"] in ("limit_reached", "exhausted")
    assert state["usage"]["model_calls"] == len(model.calls)
    return len(model.calls), model.waves


def test_lats_needs_no_more_waves_where_a_request_brings_one_candidate() -> None:
    def script(request: Request) -> Reply:
        return unsolvable(replace(request, index=request.attempt))  # what tells the candidates apart here

    model = FakeChatModelWithoutN(reply=script, latency=1.0)
    (calls, waves), _ = virtually(cost(lats.graph, model, **EACH))
    assert calls == 1 + 1 + 10 * (5 + 5)
    assert waves <= 22  # the first candidate may be judged while the last one is still being sampled
    assert model.max_in_flight >= 5


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(("settings", "calls"), [(EACH, 62), (LATS, 22)], ids=["each", "together"])
@pytest.mark.parametrize(("parallel", "waves"), [(1, 22), *AT_ONCE.items()])
def test_lats_needs_so_many_calls_and_waves(parallel: int, waves: int, settings: dict[str, Any], calls: int) -> None:
    model = FakeChatModel(reply=unsolvable, latency=1.0)
    (sent, _), seconds = virtually(cost(lats.graph, model, **{**settings, "parallel": parallel}))
    assert sent == calls
    assert seconds == pytest.approx(waves)


def test_the_recorder_sees_the_chain_where_waves_overlap() -> None:
    recorder = Recorder()
    model = FakeChatModel(reply=unsolvable, latency=1.0)
    settings = {**EACH, "model": model, "parallel": 2, "max_expansions": 3}
    virtually(lats.graph.ainvoke(QUESTION, {"callbacks": [recorder]}, context=settings))
    assert [len(wave) for wave in recorder.waves] == [1, 1, 1, 5, 2, 10]


@pytest.mark.thorough
@pytest.mark.parametrize("setting", [setting for setting in PREFIXES if setting.owed], ids=lambda setting: setting.name)
async def test_most_of_a_prompt_was_sent_before(setting: Setting) -> None:
    new = (await measured(setting)).new
    assert setting.owed is not None
    assert 0.02 < new <= setting.owed / 100


def test_what_is_new_in_a_prompt_is_what_no_earlier_one_began_with() -> None:
    def request_with(*texts: str) -> Request:
        return Request(tuple(HumanMessage(text) for text in texts))

    first, longer, other = request_with("a" * 100), request_with("a" * 100, "b" * 100), request_with("c" * 100)
    assert new_share([first]) == 1
    assert new_share([first, first]) == 0.5
    sizes = [len(as_sent(request)) for request in (first, longer, other)]
    start = len(as_sent(request_with("")).partition('""')[0]) + 1
    assert new_share([first, longer, other]) == pytest.approx(
        (sizes[0] + (sizes[1] - sizes[0]) + (sizes[2] - start)) / sum(sizes)
    )
    with_tools = Request(first.messages, tools=("search",))
    assert new_share([first, with_tools]) > 0.9, "tools stand before the messages"


def test_a_large_tree_is_one_that_a_search_has_grown() -> None:
    grown = grow(200)
    assert len(grown.tree) == len(grown.stats) == 201
    assert sum(len(entry["added"]) for entry in grown.log) == 200
    assert grown.stats["0"]["visits"] == 201


def test_reflection_needs_two_calls_a_round() -> None:
    model = FakeChatModel(reply=unsolvable, latency=1.0)
    assert virtually(cost(reflection.graph, model, max_rounds=3)) == ((6, 6), 6)


def test_reflexion_needs_one_call_a_round() -> None:
    model = FakeChatModel(reply=unsolvable, latency=1.0)
    assert virtually(cost(reflexion.graph, model, search="local", max_rounds=3, verify_sources=False)) == ((4, 4), 4)


def test_only_a_count_that_is_too_high_fails_the_bench() -> None:
    slow, growing = Row("clock", 1.2, "s", 1.05, timed=True, digits=2), Row("calls", 63, "", 62)
    fine = [Row("calls", 62, "", 62), Row("bare client", 3.0, "ms")]
    assert kept([*fine, slow])
    assert not kept([*fine, growing])
    assert growing.cells() == ("calls", "63", "≤ 62", "NO")
    assert table([*fine, slow]).splitlines()[-1] == "| clock | 1.20 s | ≤ 1.05 s | NO |"


def test_a_figure_just_beyond_its_goal_does_not_look_like_it() -> None:
    assert Row("growth", 1.05004, "", 1.05, digits=3).cells() == ("growth", "1.05004", "≤ 1.05000", "NO")
    assert Row("growth", 1.04996, "", 1.05, digits=3).cells() == ("growth", "1.050", "≤ 1.050", "yes")
