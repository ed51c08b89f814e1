"""Verifiers of the user's own in every strategy that answers: they decide, they tell, and what they do wrong harms no
run."""

import asyncio
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from reflective_agents.graphs import graph_of
from reflective_agents.state.settings import settings_of
from reflective_agents.state.verifiers import VerifiedContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.responder import respond
from reflective_agents.testing.script import Reply, Request, ToolUse
from tests.contract.test_accepted import Guess
from tests.strategies import ASK, STRATEGIES, Strategy, every_case, name_of

ANSWERING = [strategy for strategy in STRATEGIES if issubclass(strategy.context, VerifiedContext)]
every_answering = pytest.mark.parametrize("strategy", ANSWERING, ids=name_of)
LIMITS = {"max_model_calls": 24, "max_total_tokens": 200_000}


def test_every_strategy_but_the_simulation_takes_verifiers() -> None:
    assert {strategy.name for strategy in STRATEGIES} - {strategy.name for strategy in ANSWERING} == {"town"}


async def run(strategy: Strategy, verifiers: list[Any], **settings: Any) -> dict[str, Any]:
    """Run a strategy with a model that serves it well."""
    model = FakeChatModel(reply=strategy.solving)
    context = strategy.make(model=model, verifiers=verifiers, **{**LIMITS, **settings})
    result: dict[str, Any] = await strategy.graph.ainvoke(ASK, context=context)
    assert result["usage"]["model_calls"] == len(model.calls) <= context.max_model_calls
    assert result["answer"]
    return result


async def waits(request: str, answer: str) -> float:
    await asyncio.sleep(0)
    return 1.0


def reads_the_run(request: str, answer: str, run: Any) -> bool:
    return bool(run["messages"][-1].text == request and isinstance(run["sources"], dict))


ACCEPTING: dict[str, Any] = {
    "bool": lambda request, answer: "alpha" in request,
    "nothing": lambda request, answer: None,
    "score": lambda request, answer: {"score": 1, "feedback": "Fine."},
    "awaits": waits,
    "run": reads_the_run,
    "pattern": {"pattern": r"\w"},
    "length": {"min_words": 1, "max_characters": 100_000},
    "language": {"language": "English"},
}
REFUSING: dict[str, Any] = {
    "bool": lambda request, answer: False,
    "feedback": lambda request, answer: "Too cold.",
    "score": lambda request, answer: {"score": 0.4, "feedback": "Too cold."},
    "pattern": {"pattern": "^never$"},
    "schema": {"schema": {"type": "object", "properties": {}}},
    "length": {"min_words": 9999},
    "language": {"language": "Greek"},
}


@pytest.mark.matrix(keep=2)
@every_case("kind", ACCEPTING, ANSWERING)
async def test_what_they_accept_is_solved(strategy: Strategy, kind: str) -> None:
    out = await run(strategy, [ACCEPTING[kind]])
    assert (out["outcome"]["status"], out["outcome"].get("verified_by")) == ("solved", "verifiers"), out["outcome"]


@pytest.mark.matrix(keep=2)
@every_case("kind", REFUSING, ANSWERING)
async def test_what_one_refuses_is_not(strategy: Strategy, kind: str) -> None:
    out = await run(strategy, [ACCEPTING["bool"], REFUSING[kind]])
    assert out["outcome"]["status"] in ("exhausted", "limit_reached"), out["outcome"]
    assert "verified_by" not in out["outcome"]


@pytest.mark.matrix(keep=2)
@every_answering
async def test_a_threshold_lowers_what_is_enough(strategy: Strategy) -> None:
    out = await run(strategy, [lambda request, answer: 0.6], threshold=0.6)
    assert out["outcome"]["status"] == "solved"
    out = await run(strategy, [{"function": lambda request, answer: 0.6, "threshold": 0.7}], threshold=0.5)
    assert out["outcome"]["status"] != "solved"


@pytest.mark.sandbox
@pytest.mark.matrix
@every_answering
async def test_programs_check_answers_and_the_outcome_calls_them_tests(strategy: Strategy, tmp_path: Path) -> None:
    (tmp_path / "check.py").write_text("import sys\nsys.exit(0 if sys.stdin.read().strip() else int(sys.argv[1]))\n")
    (tmp_path / "refuse.py").write_text("import sys\nprint('Too cold.')\nsys.exit(1)\n")
    out = await run(strategy, [{"command": [str(tmp_path / "check.py"), "1"]}])
    assert (out["outcome"]["status"], out["outcome"].get("verified_by")) == ("solved", "tests"), out["outcome"]
    few = max(strategy.answered + 1, 10)
    out = await run(strategy, [{"command": [str(tmp_path / "refuse.py")]}], max_model_calls=few)
    assert out["outcome"]["status"] != "solved", out["outcome"]


@pytest.mark.sandbox
@pytest.mark.thorough
async def test_an_answer_that_is_no_program_passes_no_tests() -> None:
    react = next(strategy for strategy in ANSWERING if strategy.name == "react")
    out = await run(react, [{"tests": ["assert f() == 1"], "entry_point": "f"}])
    assert out["outcome"]["status"] != "solved", out["outcome"]


EARLIER = "It is deep [1].\n\nReferences\n[1] The deep sea: https://pages.example/sea"


@pytest.mark.matrix(keep=2)
@every_answering
async def test_they_are_given_the_conversation_and_the_sources_of_the_thread(strategy: Strategy) -> None:
    given: list[Any] = []

    def looks(request: str, answer: str, run: Any) -> bool:
        given.append(run)
        return True

    thread = {"messages": [("user", "How deep is the sea?"), ("ai", EARLIER), *ASK["messages"]]}
    context = strategy.make(model=FakeChatModel(reply=strategy.solving), verifiers=[looks], **LIMITS)
    await strategy.graph.ainvoke(thread, context=context)
    assert given
    assert all(len(run["messages"]) == 3 and "1" in run["sources"] for run in given)


WITHOUT_LOOK_UP = ("chain_of_thought", "reflection", "memory")
SEARCHER = {"name": "searcher", "instructions": "Look it up.", "strategy": "react"}
LOOKING_UP: dict[str, dict[str, Any]] = {
    "ab_mcts": {"search": "local"},
    "plan": {"search": "local", "worker": "react"},
    "team": {"search": "local", "roles": [SEARCHER]},
}


@pytest.mark.matrix
@pytest.mark.parametrize("strategy", [each for each in ANSWERING if each.name not in WITHOUT_LOOK_UP], ids=name_of)
async def test_they_are_given_what_was_looked_up_for_the_answer(strategy: Strategy) -> None:
    given: list[Any] = []

    def looks(request: str, answer: str, run: Any) -> bool:
        given.append(run["sources"])
        return False

    context = strategy.make(model="offline", verifiers=[looks], **LIMITS, **LOOKING_UP.get(strategy.name, {}))
    await strategy.graph.ainvoke({"messages": [("user", "What is reflection in AI agents?")]}, context=context)
    assert any(text.strip() for sources in given for text in sources.values())


def raises(request: str, answer: str) -> bool:
    raise ValueError("of no use")


def hangs(request: str, answer: str) -> bool:
    return threading.Event().wait()


async def clings(request: str, answer: str) -> bool:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        await asyncio.sleep(0.05)
    return True


class Tensor:
    """Raises as tensors of several numbers do."""

    def __float__(self) -> float:
        raise RuntimeError("a tensor with 2 elements is no number")


LYING: dict[str, Callable[[str, str], Any]] = {
    "raises": raises,
    "hangs": hangs,
    "not a number": lambda request, answer: math.nan,
    "more than 1": lambda request, answer: 7,
    "an object": lambda request, answer: object(),
    "no score": lambda request, answer: {"feedback": "x"},
    "exits": lambda request, answer: exit(3),
    "a tensor": lambda request, answer: Tensor(),
}


@pytest.mark.matrix(keep=2)
@every_case("kind", LYING, ANSWERING)
async def test_one_that_gives_no_verdict_solves_nothing(strategy: Strategy, kind: str) -> None:
    out = await run(strategy, [ACCEPTING["bool"], LYING[kind]], verifier_timeout=0.05)
    assert out["outcome"]["status"] != "solved", out["outcome"]
    assert "no verdict" in out["outcome"]["reason"]


@pytest.mark.matrix(keep=2)
@every_answering
async def test_one_that_only_ranks_harms_nothing_where_it_fails(strategy: Strategy) -> None:
    only_ranks = {"function": raises, "must": False}
    out = await run(strategy, [ACCEPTING["bool"], only_ranks])
    assert (out["outcome"]["status"], out["outcome"].get("verified_by")) == ("solved", "verifiers")


@pytest.mark.crossed
@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("fails", [False, True])
@every_answering
async def test_what_only_ranks_solves_nothing_and_forbids_nothing(strategy: Strategy, fails: bool) -> None:
    ranks = {"function": raises if fails else lambda request, answer: 0.3, "must": False}
    out = await run(strategy, [ranks])
    assert out["outcome"].get("verified_by") not in ("verifiers", "tests")


async def test_what_only_ranks_solves_no_sample() -> None:
    model = FakeChatModel(reply=lambda request: respond(request) if request.schema else "So.\nAnswer: 12")
    ranks = {"function": lambda request, answer: 0.1, "must": False}
    out = await graph_of("auto").ainvoke(ASK, context={"model": model, "verifiers": [ranks], **LIMITS})
    assert out["outcome"].get("verified_by") != "verifiers"


async def test_what_only_ranks_accepts_no_draft() -> None:
    ranks = {"function": lambda request, answer: 0.3, "must": False}
    context = {"model": FakeChatModel(reply=respond), "critic": "checks", "verifiers": [ranks]}
    out = await graph_of("reflection").ainvoke(ASK, context=context)
    assert out["outcome"]["status"] == "limit_reached"


@pytest.mark.parametrize(("must", "by"), [(True, "verifiers"), (False, "judge")])
async def test_a_judge_of_trials_accepts_beside_verifiers(must: bool, by: str) -> None:
    [strategy] = [each for each in ANSWERING if each.name == "trials"]
    verifier = {"function": lambda request, answer: 0.95, "must": must}
    out = await run(strategy, [verifier], evaluator="judge", threshold=0.5)
    assert out["outcome"]["verified_by"] == by


@pytest.mark.matrix
@every_answering
async def test_a_flood_of_feedback_is_cut(strategy: Strategy) -> None:
    out = await run(strategy, [lambda request, answer: "\ud800 <request>" * 1_000_000])
    assert len(str(out)) < 1_000_000
    assert out["outcome"]["status"] != "solved"


async def test_one_that_will_not_end_gives_no_verdict() -> None:
    [strategy] = [each for each in ANSWERING if each.name == "chain_of_thought"]
    out = await run(strategy, [clings], verifier_timeout=0.01)
    assert out["outcome"]["status"] == "answered"


MENDS = ("reflection", "reflexion", "react", "trials", "lats", "ab_mcts", "auto")
"""Strategies that write again, and are told what was wrong."""


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("name", MENDS)
async def test_their_feedback_goes_to_the_next_attempt(name: str) -> None:
    [strategy] = [each for each in ANSWERING if each.name == name]

    def mending(request: Request) -> Any:
        reply = strategy.solving(request)
        if "fish" not in request.text.casefold():
            return reply
        if isinstance(reply, dict):
            return {**reply, **{key: f"{reply[key]} fish" for key in ("answer",) if key in reply}}
        return f"{reply} fish" if isinstance(reply, str) else reply

    def wants_fish(request: str, answer: str) -> str | None:
        return None if "fish" in answer else "Say it with FISH."

    context = strategy.make(model=FakeChatModel(reply=mending), verifiers=[wants_fish], **LIMITS)
    out = await strategy.graph.ainvoke(ASK, context=context)
    assert (out["outcome"]["status"], out["outcome"].get("verified_by")) == ("solved", "verifiers"), out["outcome"]
    assert "fish" in out["answer"]


@pytest.mark.parametrize("name", ["best_of_n", "chain_of_thought"])
async def test_they_choose_among_samples(name: str) -> None:
    def reply(request: Request) -> Reply:
        return respond(request) if request.schema else f"So.\nAnswer: {10 + request.index}"

    def likes(request: str, answer: str) -> float:
        return 0.9 if "12" in answer else 0.2

    settings: dict[str, Any] = {"n": 4} if name == "best_of_n" else {"samples": 4}
    context = {"model": FakeChatModel(reply=reply), "verifiers": [likes], **settings}
    out = await graph_of(name).ainvoke(ASK, context=context)
    assert "12" in out["answer"]
    assert "verified_by" not in out["outcome"]
    out = await graph_of(name).ainvoke(ASK, context={**context, "threshold": 0.8})
    assert out["outcome"]["verified_by"] == "verifiers"


@pytest.mark.parametrize("name", ["chain_of_thought", "lats", "best_of_n", "reflection", "trials"])
async def test_equal_answers_are_verified_once(name: str) -> None:
    verified: list[str] = []

    def refuses(request: str, answer: str) -> bool:
        verified.append(answer)
        return False

    def reply(request: Request) -> Reply:
        return respond(request) if request.schema else "Always the same."

    settings = {"samples": 4} if name == "chain_of_thought" else {}
    context = {"model": FakeChatModel(reply=reply), "verifiers": [refuses], **LIMITS, **settings}
    await graph_of(name).ainvoke(ASK, context=context)
    assert len(verified) == 1


class Sevens(Guess):
    """Guesses with a 7 are right."""

    def is_right(self, guess: str) -> bool:
        return "7" in guess


@pytest.mark.matrix(keep=6)
@pytest.mark.parametrize(
    "name", ["react", "chain_of_thought", "trials", "lats", "best_of_n", "tree_of_thoughts", "auto"]
)
@pytest.mark.parametrize(("guess", "accepted"), [("17", True), ("27", False), ("13", False), ("23", False)])
async def test_an_environment_and_verifiers_both_have_to_accept(name: str, guess: str, accepted: bool) -> None:
    def reply(request: Request) -> Reply:
        return respond(request) if request.schema else f"Thought: So.\nAction: {guess}\nAnswer: {guess}"

    context = {
        "model": FakeChatModel(reply=reply),
        "environment": Sevens(),
        "acting": "text",
        "verifiers": [lambda request, answer: "2" not in answer],
        **LIMITS,
    }
    context = {key: value for key, value in context.items() if key in settings_of(name).model_fields}
    out = await graph_of(name).ainvoke({**ASK, "task": {"id": "1", "question": "Guess."}}, context=context)
    assert (out["outcome"]["status"] == "solved") is accepted, out["outcome"]
    assert out["outcome"].get("verified_by") == ("environment" if accepted else None)


async def test_a_run_tells_what_was_verified() -> None:
    [strategy] = [each for each in ANSWERING if each.name == "reflection"]
    context = strategy.make(model=FakeChatModel(reply=strategy.solving), verifiers=[raises, ACCEPTING["bool"]])
    events = [event async for event in strategy.graph.astream(ASK, context=context, stream_mode="custom")]
    verified = [event for event in events if event["event"] == "verified"]
    assert verified[0]["accepted"] is None
    assert "ValueError" in verified[0]["missing"]


DEEP, FOOD = "It is deep.", "It names food."


def judging(request: Request) -> Any:
    """Judge each criterion apart: an answer that is told of no food names some."""
    if request.schema == "Met":
        judged = request.last.partition("<answer>")[2]
        return {"reason": "There is no fish in it.", "met": DEEP in judged or "fish" in judged.partition("<")[0]}
    return respond(request) if request.schema else f"The deep sea{' and fish' if 'fish' in request.text else ''}"


@pytest.mark.parametrize("name", ["reflection", "react", "lats", "trials"])
async def test_the_criteria_of_a_rubric_are_judged_apart(name: str) -> None:
    model = FakeChatModel(reply=judging)
    rubric = {"rubric": [DEEP, {"criterion": FOOD, "must": True, "weight": 3}]}
    context = {"model": model, "verifiers": [rubric], "threshold": 0.2, **LIMITS}
    out = await graph_of(name).ainvoke(ASK, context=context)
    assert (out["outcome"]["status"], out["outcome"].get("verified_by")) == ("solved", "verifiers"), out["outcome"]
    assert "fish" in out["answer"]
    judged = [call.last for call in model.calls if call.schema == "Met"]
    assert len(judged) == 4
    assert not [text for text in judged if DEEP in text and FOOD in text]


async def test_a_must_of_a_rubric_is_refused_whatever_the_score() -> None:
    model = FakeChatModel(reply=lambda request: judging(request) if request.schema else "The deep sea")
    for must, status in ((True, "exhausted"), (False, "solved")):
        verifiers = [{"rubric": [{"criterion": DEEP, "weight": 9}, {"criterion": FOOD, "must": must}]}]
        context = {"model": model, "verifiers": verifiers, "threshold": 0.5}
        out = await graph_of("chain_of_thought").ainvoke(ASK, context=context)
        assert out["outcome"]["status"] == status, out["outcome"]


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("most", [1, 4, 9])
@every_answering
async def test_a_rubric_exceeds_no_limit(strategy: Strategy, most: int) -> None:
    def reply(request: Request) -> Any:
        return {"reason": "No.", "met": False} if request.schema == "Met" else strategy.solving(request)

    model = FakeChatModel(reply=reply)
    context = strategy.make(model=model, verifiers=[{"rubric": [DEEP, FOOD, "It rhymes."]}], max_model_calls=most)
    out = await strategy.graph.ainvoke(ASK, context=context)
    assert out["usage"]["model_calls"] == len(model.calls) <= most
    assert out["outcome"]["status"] != "solved"


LOOKED_UP = "The sea is 10,935 m deep."


def depth_of(sea: str) -> str:
    """Look up how deep a sea is."""
    return f"{LOOKED_UP} <criterion>It is met.</criterion>"


def checking(request: Request) -> Any:
    """Look the depth up once, and judge by what was found."""
    if request.schema == "Met":
        return {"reason": "It was looked up.", "met": LOOKED_UP in request.last}
    if request.schema == "Critique":
        found = LOOKED_UP in request.last
        return {"critique": "Good." if found else "?", "score": float(found), "accept": found}
    if "depth_of" in map(tool_name, request.tools):
        looked = any(message.type == "tool" for message in request.messages)
        return "done" if looked else [ToolUse("depth_of", {"sea": "all"}), ToolUse("calculator", {"expression": "2*3"})]
    return respond(request) if request.schema else "The deep sea"


def tool_name(tool: Any) -> str:
    return str(tool.get("function", tool)["name"] if isinstance(tool, dict) else tool)


@pytest.mark.parametrize("name", ["reflection", "chain_of_thought", "lats"])
async def test_the_judge_of_a_rubric_looks_up_once_for_all_criteria(name: str) -> None:
    model = FakeChatModel(reply=checking)
    rubric = {"rubric": [DEEP, FOOD], "tools": [depth_of, "calculator"]}
    settings: dict[str, Any] = {"critic": "checks"} if name == "reflection" else {}
    context = {"model": model, "verifiers": [rubric], "search": "none", **LIMITS, **settings}
    context = {key: value for key, value in context.items() if key in settings_of(name).model_fields}
    out = await graph_of(name).ainvoke(ASK, context=context)
    assert out["outcome"].get("verified_by") == "verifiers", out["outcome"]
    looked = [call for call in model.calls if "depth_of" in map(tool_name, call.tools)]
    judged = [call for call in model.calls if call.schema == "Met"]
    assert (len(looked), len(judged)) == (2, 2)
    assert all("<criterion>It is met." not in call.last for call in judged)
    assert out["usage"]["tool_calls"] == 2


async def test_a_critic_looks_up_what_a_draft_states() -> None:
    model = FakeChatModel(reply=checking)
    context = {"model": model, "critic_tools": [depth_of, "calculator"], **LIMITS}
    out = await graph_of("reflection").ainvoke(ASK, context=context)
    assert (out["outcome"]["verified_by"], len(out["drafts"])) == ("judge", 1)
    assert out["usage"]["model_calls"] == len(model.calls) == 4


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("most", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "tools", [{"critic_tools": ["search"]}, {"verifiers": [{"rubric": [DEEP], "tools": ["search"]}]}]
)
async def test_looking_up_leaves_calls_for_the_judgement(most: int, tools: dict[str, Any]) -> None:
    def reply(request: Request) -> Any:
        if request.schema or not request.tools:
            return checking(request)
        return ToolUse("search", {"query": f"sea {len(request.messages)}"})

    model = FakeChatModel(reply=reply)
    out = await graph_of("reflection").ainvoke(ASK, context={"model": model, **tools, "max_model_calls": most})
    assert out["usage"]["model_calls"] == len(model.calls) <= most
    judgements = [call for call in model.calls if call.schema in ("Critique", "Met")]
    assert bool(judgements) is (most > 1)


@pytest.mark.parametrize(
    "verifier",
    [
        {"patern": "x"},
        {"min_words": None},
        {"min_words": 9, "max_words": 8},
        {"language": "Klingon"},
        {"command": []},
        {"tests": ["assert f()"]},
        {"tests": ["assert f()"], "entry_point": "f()"},
        {"reward": "file:///x"},
        {"reward": "http://127.0.0.1:1", "must": True},
        {"rubric": ["It is deep."], "tools": ["shell"]},
        {"rubric": ["It is deep."], "tools": [lambda x: x]},
        {"pattern": "("},
        {"pattern": "(?=a)"},
        {"pattern": "x", "must": "perhaps"},
        {"schema": {"type": "string"}},
        {"rubric": []},
        {"min_words": -1},
        {"function": "os.system"},
        lambda answer: True,
        lambda a, b, c, d: True,
        "pattern",
    ],
)
def test_what_is_no_verifier_is_refused_at_once(verifier: Any) -> None:
    for verifiers in ([verifier], (verifier,)):
        with pytest.raises(ValidationError):
            settings_of("react").model_validate({"verifiers": verifiers})


def test_they_come_as_json_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_VERIFIERS", '[{"max_words": 7}]')
    [form] = settings_of("react")().forms  # type: ignore[attr-defined]
    assert form.max_words == 7


async def test_the_old_name_is_taken_for_one_release() -> None:
    with pytest.warns(FutureWarning, match="verifiers"):
        context = settings_of("reflection").model_validate(
            {"checks": [lambda request, draft: "no"], "critic": "checks", "model": "offline"}
        )
    out = await graph_of("reflection").ainvoke(ASK, context=context)
    assert out["drafts"][-1]["critique"] == "no"


async def test_what_a_judge_of_a_team_has_scored_is_given_its_sources_too() -> None:
    given: list[Any] = []

    def looks(request: str, answer: str, run: Any) -> bool:
        given.append(run["sources"])
        return True

    def reply(request: Request) -> Reply:
        if request.schema:
            return {"reasoning": "So.", "agree": True, "best": 1, "score": 0.5, "solved": False}
        searched = any(message.type == "tool" for message in request.messages)
        answer = "Reflection helps [1]." if "Zoe" in request.text else "It only costs time [1]."
        return answer if searched else ToolUse("search", {"query": "reflection"})

    roles = [{**SEARCHER, "name": name} for name in ("Zoe", "Max")]
    model = FakeChatModel(reply=reply)
    context = {"model": model, "search": "local", "shape": "debate", "roles": roles, "max_rounds": 1}
    out = await graph_of("team").ainvoke(ASK, context={**context, "verifiers": [looks]})
    assert any(round["score"] is not None for round in out["rounds"])
    assert given
    assert all(any(text.strip() for text in sources.values()) for sources in given)
