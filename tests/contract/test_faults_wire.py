"""What providers do wrong, over the wire: no fault leaves a graph as an exception, and none costs an answer found."""

import re
from collections.abc import Callable
from typing import Any, get_args

import langchain_openai  # noqa: F401 - or the first run would load it, within its time
import openai.resources.chat  # noqa: F401 - and this the first call
import pytest
from langchain_core.messages import AIMessage

from reflective_agents.testing.completions import Json
from reflective_agents.testing.faults import Fault
from reflective_agents.testing.openai_server import Faults, OpenAIServer
from reflective_agents.testing.script import Script
from reflective_agents.testing.tavily_server import SearchFault, TavilyServer
from tests.strategies import ASK, SEARCHING, Result, Strategy, every_case, every_searching, every_strategy

pytestmark = [pytest.mark.wire, pytest.mark.matrix(over="strategy", keep=2), pytest.mark.usefixtures("provider")]

REFUSED: dict[Fault, str] = {"400": r"\b400\b.* is invalid", "401": r"\b401\b.*API key"}
"""Faults that no second attempt can mend, with how an outcome names them."""
BROKEN: dict[Fault, str] = {
    "429": r"\b429\b.*[Rr]ate limit",
    "500": r"\b500\b",
    "timeout": r"(?i)time.?out|timed out|within",
    "reset": r"(?i)connection",
    "truncated_json": r"(?i)json|unterminated|expecting",
    "empty_choices": r"(?i)neither text nor",
    "null_content": r"(?i)neither text nor",
}
"""Faults in whose place no reply comes."""
_INVALID = r"no valid \w+ in 3 attempts"
MALFORMED: dict[Fault, str] = {
    "length": _INVALID,
    "no_tool_call": _INVALID,
    "unknown_tool": rf"{_INVALID}|no text in 3 attempts|tool",
    "wrong_arguments": _INVALID,
    "bad_arguments_json": rf"{_INVALID}.*JSON",
    "score_out_of_range": rf"{_INVALID}.*score",
    "score_nan": rf"{_INVALID}.*score",
    "n_ignored": "",
}
"""Faults of the reply itself, which some strategies do not even notice."""
CAUSES = REFUSED | BROKEN | MALFORMED


Ask = Callable[..., Any]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Run a strategy against a server that shows faults; what holds for every such run is checked here."""

    async def run(
        strategy: Strategy, faults: Faults, *, script: Script | None = None, retry_after: float = 0, **settings: Any
    ) -> tuple[Result, OpenAIServer]:
        async with OpenAIServer(script or strategy.solving, faults=faults, retry_after=retry_after) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            context = strategy.make(model="openai:test", **settings)
            result = await strategy.graph.ainvoke(ASK, context=context)
        assert_kept(result, server)
        return result, server

    return run


def assert_kept(result: Result, server: OpenAIServer) -> None:
    """Either an answer or a failure without any message; the counts of the server; the cause in one line."""
    status, reason = result["outcome"]["status"], result["outcome"]["reason"]
    if status == "failed":
        assert result["answer"] is None
        assert [message.type for message in result["messages"]] == ["human"]
    else:
        assert [message.type for message in result["messages"]] == ["human", "ai"]
        final = result["messages"][-1]
        assert isinstance(final, AIMessage)
        assert (final.tool_calls, final.invalid_tool_calls) == ([], [])
        assert result["answer"] == final.text
        assert final.text.strip()
    assert reason.strip()
    assert "\n" not in reason
    assert result["usage"]["model_calls"] == len(server.requests)
    assert result["usage"]["total_tokens"] >= server.total_tokens


def timeout_for(fault: Fault | SearchFault) -> dict[str, Any]:
    return {"call_timeout": 1.0} if fault == "timeout" else {}


CHECKS = {"SupportCheck", "Revision"}
"""Forms by which an answer is held against its sources, where a faulty reply leaves it any."""


def role(body: Json) -> str:
    """What a call is for: the form that is asked for, or free text."""
    if form := body.get("response_format"):
        return str(form["json_schema"]["name"])
    choice = body.get("tool_choice")
    return str(choice["function"]["name"]) if isinstance(choice, dict) else "free"


def first_of_each_role(fault: Fault) -> Faults:
    seen: set[str] = set()

    def faults(body: Json, _: int) -> Fault | None:
        new = role(body) not in seen
        seen.add(role(body))
        return fault if new else None

    return faults


def from_call(number: int, fault: Fault) -> Faults:
    return lambda _, count: fault if count >= number else None


def test_every_fault_is_tried() -> None:
    assert set(CAUSES) == set(get_args(Fault))


# Transient


@pytest.mark.matrix(keep=2)
@every_case("fault", [*BROKEN, *MALFORMED])
async def test_a_fault_of_the_first_call_of_each_kind_costs_no_answer(
    ask: Ask, strategy: Strategy, fault: Fault
) -> None:
    result, server = await ask(strategy, first_of_each_role(fault), **timeout_for(fault))
    cut = fault == "length" and strategy.votes  # what was cut off does not vote
    assert result["outcome"]["status"] == ("exhausted" if cut else strategy.status), result["outcome"]
    roles = {role(exchange.body) for exchange in server.requests}
    assert len(roles - CHECKS) == strategy.roles
    assert result["usage"]["failed_calls"] == (len(roles) if fault in BROKEN else 0)


@every_strategy
async def test_a_retry_waits_as_long_as_the_provider_asks(ask: Ask, strategy: Strategy) -> None:
    _, server = await ask(strategy, lambda _, count: "429" if count == 0 else None, retry_after=0.2)
    refused, again = server.requests[:2]
    assert refused.ended is not None
    assert again.started - refused.ended >= 0.19


@every_strategy
async def test_a_wait_beyond_the_runs_time_ends_it_at_once(ask: Ask, strategy: Strategy) -> None:
    result, server = await ask(strategy, from_call(0, "429"), retry_after=50, max_seconds=20)
    assert (result["outcome"]["status"], len(server.requests)) == ("failed", 1)
    limit = result["outcome"]["limit"]
    assert (limit["name"], limit["most"], limit["needed"]) == ("max_seconds", 20, 50)
    assert result["usage"]["seconds"] < 20


# Permanent, once there is an answer


@pytest.mark.matrix(keep=2)
@every_case("fault", CAUSES)
async def test_a_fault_that_comes_to_stay_leaves_the_best_answer(ask: Ask, strategy: Strategy, fault: Fault) -> None:
    result, server = await ask(strategy, from_call(strategy.answered, fault), **timeout_for(fault))
    left = "failed" if strategy.answers_last else strategy.status if strategy.answer_stands else "exhausted"
    assert result["outcome"]["status"] in (left, "limit_reached", strategy.status)
    if fault not in MALFORMED and len(server.requests) > strategy.answered:
        assert result["outcome"]["status"] == left
    if result["outcome"]["status"] == "exhausted":
        assert re.search(CAUSES[fault], result["outcome"]["reason"])


@pytest.mark.matrix(keep=2)
@every_case("fault", [*REFUSED, "500", "null_content", "no_tool_call", "score_nan"])
async def test_a_model_that_answers_but_never_judges_leaves_an_answer(
    ask: Ask, strategy: Strategy, fault: Fault
) -> None:
    first: list[str] = []

    def faults(body: Json, _: int) -> Fault | None:
        first.append(role(body))
        return fault if role(body) not in (first[0], *strategy.leads) else None

    result, _ = await ask(strategy, faults)
    assert result["answer"]
    if result["outcome"]["status"] not in ("solved", "answered"):
        assert re.search(CAUSES[fault], result["outcome"]["reason"])


# Permanent, from the start


@pytest.mark.matrix(keep=2)
@every_case("fault", [*REFUSED, *BROKEN])
async def test_without_any_reply_the_run_fails_and_names_the_cause(ask: Ask, strategy: Strategy, fault: Fault) -> None:
    result, server = await ask(strategy, from_call(0, fault), **timeout_for(fault))
    assert result["outcome"]["status"] == "failed"
    assert re.search(CAUSES[fault], result["outcome"]["reason"])
    ways = 3 if fault == "400" and strategy.begins_with_a_form else 1  # a form may be asked for in three ways
    assert len(server.requests) == (ways if fault in REFUSED else 3)


@pytest.mark.matrix(keep=2)
@every_case("fault", MALFORMED)
async def test_replies_that_never_fit_end_the_run_soon(ask: Ask, strategy: Strategy, fault: Fault) -> None:
    result, server = await ask(strategy, from_call(0, fault))
    usage, reason = result["usage"], result["outcome"]["reason"]
    if result["outcome"]["status"] not in ("solved", "answered"):
        given_up = "max_(actions|repeats)" if strategy.answers_last else strategy.given_up
        assert re.search(CAUSES[fault], reason) or (given_up and re.search(given_up, reason))
        assert usage["parse_failures"] + usage["tool_errors"] >= 3
        assert len(server.requests) <= 10


# Streaming


@pytest.mark.matrix(keep=2)
@every_case("fault", [*BROKEN, *MALFORMED])
async def test_a_streamed_answer_survives_a_fault(
    strategy: Strategy, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: dict[str, str] = {}
    result: Result = {}
    async with OpenAIServer(strategy.solving, faults=lambda _, count: fault if count == 0 else None) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        parts = strategy.graph.astream(
            ASK,
            context=strategy.make(model="openai:test", **timeout_for(fault)),
            stream_mode=["messages", "values"],
        )
        async for mode, part in parts:
            if mode == "values":
                result = part
            else:
                texts[part[0].id] = texts.get(part[0].id, "") + part[0].text
    assert_kept(result, server)
    if fault == "length" and strategy.votes:  # what was cut off does not vote
        assert result["outcome"]["status"] == "exhausted"
        return
    assert result["outcome"]["status"] == strategy.status
    assert texts[result["messages"][-1].id] == result["answer"]
    assert list(texts.values()).count(result["answer"]) == 1


# Searches


@pytest.fixture
def tavily(monkeypatch: pytest.MonkeyPatch) -> Callable[[TavilyServer], dict[str, Any]]:
    """Settings of a run that searches with this server."""

    def use(server: TavilyServer) -> dict[str, Any]:
        monkeypatch.setenv("TAVILY_API_KEY", "tvly-test")
        monkeypatch.setenv("TAVILY_BASE_URL", server.url)
        return {"search": "tavily"}

    return use


SEARCH_CAUSES: dict[SearchFault, str] = {
    "401": "401",
    "429": "429",
    "432": "plan's (set usage )?limit",
    "500": "500",
    "timeout": "in time|longer than|within",
    "reset": "connection",
    "truncated_json": "could not be read",
    "no_results": "(?i)nothing was found|found nothing",
}


@pytest.mark.matrix
@every_case("fault", SEARCH_CAUSES, SEARCHING)
async def test_the_run_goes_on_without_searches_and_the_model_is_told(
    ask: Ask, strategy: Strategy, fault: SearchFault, tavily: Callable[[TavilyServer], dict[str, Any]]
) -> None:
    async with TavilyServer(fault=fault) as searches:
        result, server = await ask(strategy, lambda *_: None, **timeout_for(fault), **tavily(searches))
    assert result["outcome"]["status"] in (strategy.status, "answered"), "nothing was found that could be cited"
    assert searches.requests
    assert result["usage"]["tool_errors"] == result["usage"]["tool_calls"] >= len(searches.requests)
    assert any(re.search(SEARCH_CAUSES[fault], request.text) for request in server.calls)


@pytest.mark.matrix(keep=2)
@every_case("fault", SEARCH_CAUSES, SEARCHING)
async def test_one_failing_search_does_not_spoil_the_others(
    ask: Ask, strategy: Strategy, fault: SearchFault, tavily: Callable[[TavilyServer], dict[str, Any]]
) -> None:
    async with TavilyServer(fault=lambda _, count: fault if count == 0 else None) as searches:
        settings = {**timeout_for(fault), **tavily(searches), "max_model_calls": 12}
        result, server = await ask(strategy, lambda *_: None, script=strategy.endless, **settings)
    assert result["answer"]
    assert result["usage"]["tool_errors"] == 1
    assert any("https://example.com/first" in request.text for request in server.calls)


@pytest.mark.thorough
@every_searching
async def test_a_search_that_hangs_does_not_outlast_the_run(
    ask: Ask, strategy: Strategy, tavily: Callable[[TavilyServer], dict[str, Any]]
) -> None:
    async with TavilyServer(fault="timeout") as searches:
        result, _ = await ask(strategy, lambda *_: None, max_seconds=1, **tavily(searches))
    assert result["outcome"]["status"] in ("limit_reached", "failed")
    assert result["outcome"]["limit"]["name"] == "max_seconds"
    assert 1 <= result["usage"]["seconds"] < 20


@every_searching
async def test_the_key_goes_to_tavily_only(
    ask: Ask, strategy: Strategy, tavily: Callable[[TavilyServer], dict[str, Any]]
) -> None:
    async with TavilyServer() as searches:
        result, server = await ask(strategy, lambda *_: None, **tavily(searches))
    assert set(searches.keys) == {"tvly-test"}
    assert "tvly-test" not in str(result) + str([exchange.body for exchange in server.requests])
