"""AB-MCTS: answers beside and below each other, several models, and what stands in the prompts on the way down."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from langchain_core.exceptions import ModelConnectionError
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError
from tenacity import wait_none

from reflective_agents.graphs.ab_mcts import arms, builder, graph
from reflective_agents.models.providers import close_models
from reflective_agents.prompts import lats as prompts
from reflective_agents.state.errors import UnknownModel
from reflective_agents.state.settings.ab_mcts import AbMctsContext
from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request, Script, ToolUse
from reflective_agents.tree_search.algorithms.ab_mcts import DEEPER, WIDER
from reflective_agents.tree_search.tree_paths import ROOT, depth_of, upwards
from tests.graphs.lats_scripts import QUESTION, judged, kind
from tests.strategies import thread


@pytest.fixture(autouse=True)
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Retries that do not wait, and no connection left open."""
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    yield
    await close_models()


async def run(model: Any, given: Any = QUESTION, **settings: Any) -> Any:
    made = model if isinstance(model, FakeChatModelWithoutN) else FakeChatModel(reply=model)
    context = AbMctsContext.model_validate({"search": "none", "seed": 1, **settings, "model": made})
    return await graph.ainvoke(given, context=context)


def last_answer(request: Request) -> str:
    """The answer that a judge has to judge, which is the last one of its trajectory."""
    return request.last.rpartition("<answer>\n")[2].partition("\n")[0]


def writing(score: Callable[[str], float], name: str = "answer", solved: float = 2.0) -> Script:
    """A model whose answers are all different, and a judge that scores them by their text."""

    def reply(request: Request) -> Reply:
        if request.schema:
            worth = score(last_answer(request))
            return {**judged(worth, worth >= solved), "reasoning": f"Of {last_answer(request)}: more."}
        return f"{name} {request.key[:8]} {request.attempt}"

    return reply


def samples(model: FakeChatModelWithoutN) -> list[Request]:
    return [request for request in model.calls if kind(request) == "sample"]


def assert_consistent(state: Any, merged: bool = False) -> None:
    """Nothing is in flight; every figure is that of the scores below, if no answer has come up twice."""
    tree, stats = state["tree"], state["stats"]
    assert set(tree) == set(stats)
    assert not any("virtual" in stat or "flight" in stat for stat in stats.values())
    for node_id, stat in stats.items():
        below = {
            key: node["score"] for key, node in tree.items() if node_id in upwards(key) and node["score"] is not None
        }
        wide = [score for key, score in below.items() if depth_of(key) == depth_of(node_id) + 1]
        deep = [score for key, score in below.items() if depth_of(key) > depth_of(node_id) + 1]
        ways = {way: [len(found), sum(found)] for way, found in ((WIDER, wide), (DEEPER, deep)) if found}
        assert (stat["visits"], stat["total"], stat.get("own", {}).get("arms", {})) == (
            len(below),
            sum(below.values()),
            ways,
        )


# The search


async def test_a_question_that_is_never_solved_costs_two_calls_an_answer() -> None:
    model = FakeChatModel(reply=writing(lambda _: 0.5))
    state = await graph.ainvoke(QUESTION, context=AbMctsContext(model=model, search="none"))
    assert state["usage"]["model_calls"] == len(model.calls) == 40
    assert state["outcome"]["status"] == "limit_reached"
    assert state["outcome"]["limit"] == {"name": "max_expansions", "most": 20, "spent": 20}
    assert len(state["tree"]) == 21
    assert {depth_of(key) for key in state["tree"]} >= {0, 1, 2, 3}, "it goes wider and deeper"
    assert_consistent(state)


@pytest.mark.thorough
async def test_where_critiques_help_it_deepens_and_where_first_answers_vary_it_widens() -> None:
    def answered(request: Request) -> str:
        return f"answer {request.key} at {1 + sum(message.type == 'ai' for message in request.messages)} end"

    def depth(request: Request) -> int:
        return int(request.last.split(" at ")[1].split()[0])

    def helped(request: Request) -> Reply:
        return judged(min(depth(request) * 0.3, 0.95)) if request.schema else answered(request)

    def spoilt(request: Request) -> Reply:
        return judged(0.8 if depth(request) == 1 else 0.1) if request.schema else answered(request)

    deep, wide = [await run(reply, max_expansions=40, max_depth=10) for reply in (helped, spoilt)]
    shares = [sum(depth_of(key) == 1 for key in state["tree"]) / 40 for state in (deep, wide)]
    assert shares[0] < 0.3
    assert shares[1] > 0.6


async def test_a_refinement_is_asked_for_with_the_critique_of_each_answer_on_the_way_and_of_no_other() -> None:
    model = FakeChatModel(reply=writing(lambda text: int(text.split()[1][:1], 16) / 20))
    state = await run(model, max_expansions=30)
    for request in samples(model):
        answers = [message.text for message in request.messages if message.type == "ai"]
        criticised = re.findall(r"<critique>\n(.*?)\n</critique>", request.text)
        assert criticised == [f"Of {answer}: more." for answer in answers]
        assert request.text.count(prompts.NEXT_ANSWER) == len(answers)
    refined = {key: node for key, node in state["tree"].items() if depth_of(key) > 1}
    for key, node in refined.items():
        path = [state["tree"][node_id]["messages"][0].text for node_id in list(upwards(key))[1:-1]][::-1]
        assert [[m.text for m in request.messages if m.type == "ai"] for request in samples(model)].count(path) >= 1
        assert node["messages"][0].text not in path
    assert len(refined) > 3


async def test_an_accepted_answer_ends_the_search_and_the_best_one_is_returned_otherwise() -> None:
    scores: dict[str, float] = {}
    model = writing(lambda text: scores.setdefault(text, (len(scores) * 7 % 20) / 20), solved=0.9)
    solved, unsolved = await run(model), await run(model, max_expansions=10, min_score=1)
    assert solved["outcome"]["status"] == "solved"
    assert unsolved["outcome"]["status"] == "limit_reached"
    for state in (solved, unsolved):
        found = [node["messages"][0].text for node in state["tree"].values() if node["messages"]]
        assert scores[state["answer"]] == max(scores[text] for text in found)


async def test_with_tools_a_node_may_be_a_step_on_the_way_to_an_answer() -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return judged(0.9, solved="<answer>" in request.last)
        searched = any(message.type == "tool" for message in request.messages)
        return "So it is." if searched else ToolUse("search", {"query": f"reflection {request.attempt}"})

    state = await run(reply, search="local")
    assert state["outcome"]["status"] == "solved"
    assert {node["kind"] for node in state["tree"].values()} == {"root", "action", "answer"}


# Seeds and answers that come up again


@pytest.mark.thorough
async def test_the_same_seed_gives_the_same_tree_and_another_seed_another_one() -> None:
    first, again, other = [await run(writing(lambda text: len(text) % 7 / 10), seed=seed) for seed in (5, 5, 6)]
    assert (first["stats"], first["log"], first["answer"]) == (again["stats"], again["log"], again["answer"])
    assert first["tree"].keys() != other["tree"].keys()


@pytest.mark.thorough
async def test_questions_of_a_data_set_are_not_searched_by_the_same_draws() -> None:
    questions = [{"messages": [("user", f"What is {i}?")]} for i in range(3)]
    trees = [await run(writing(lambda _: 0.5), given, max_expansions=10) for given in questions]
    assert len({frozenset(state["tree"]) for state in trees}) > 1


async def test_answers_beside_each_other_are_drawn_with_seeds_of_their_own() -> None:
    model = FakeChatModel(reply=writing(lambda _: 0.5))
    await run(model, seed=100)
    prompts = [(request.text, request.seed) for request in samples(model)]
    assert len(set(prompts)) == len(prompts)
    assert min(seed for _, seed in prompts if seed is not None) == 100


@pytest.mark.parametrize("parallel", [1, 8])
async def test_an_answer_that_comes_up_again_is_neither_judged_nor_a_node_again(parallel: int) -> None:
    """A model without temperature: the same prompt is answered in the same way."""

    def same(request: Request) -> Reply:
        return judged(0.5) if request.schema else f"answer {sum(m.type == 'ai' for m in request.messages)}"

    model = FakeChatModel(reply=same)
    state = await run(model, parallel=parallel, max_expansions=30)
    texts = [node["messages"][0].text for node in state["tree"].values() if node["messages"]]
    assert sorted(texts) == [f"answer {i}" for i in range(len(texts))], "one answer at each depth"
    assert sum(kind(request) == "judge" for request in model.calls) == len(texts) > 2
    assert sum(entry.get("merged", 0) for entry in state["log"]) == 30 - len(texts)
    root = state["stats"][ROOT]
    assert root["visits"] == 30
    assert root["own"]["arms"][WIDER][0] + root["own"]["arms"][DEEPER][0] == 30


# In flight


@pytest.mark.matrix
@pytest.mark.parametrize(("parallel", "seconds"), [(1, 40), (4, 10), (8, 6)])
def test_answers_are_tried_at_once(parallel: int, seconds: int) -> None:
    model = FakeChatModel(reply=writing(lambda text: len(text) % 7 / 10), latency=1.0)
    state, passed = virtually(run(model, parallel=parallel))
    assert passed == seconds
    assert model.max_in_flight == parallel
    assert (len(model.calls), len(state["tree"])) == (40, 21)
    assert_consistent(state)


# Limits and faults


@pytest.mark.thorough
async def test_limits() -> None:
    none = await run(writing(lambda _: 0.5), max_expansions=0)
    assert (none["outcome"]["status"], none["expansions"]) == ("limit_reached", 0)
    assert none["answer"], "an answer is asked for where the search has none"
    for limit in range(1, 8):
        model = FakeChatModel(reply=writing(lambda _: 0.5))
        state = await run(model, max_model_calls=limit, parallel=8)
        assert len(model.calls) <= limit
        assert (state["outcome"]["limit"]["name"], state["outcome"]["limit"]["most"]) == ("max_model_calls", limit)
        assert (state["outcome"]["status"], bool(state["answer"])) == ("limit_reached", True)
    shallow = await run(writing(lambda _: 0.5), max_depth=1)
    assert {depth_of(key) for key in shallow["tree"]} == {0, 1}


@pytest.mark.parametrize("parallel", [1, 8])
async def test_a_judge_that_always_fails_ends_the_run_and_is_named(parallel: int) -> None:
    def reply(request: Request) -> Reply:
        return "no form" if request.schema else f"answer {request.attempt}"

    state = await run(reply, parallel=parallel)
    assert (state["outcome"]["status"], state["usage"]["parse_failures"] % 3) == ("exhausted", 0)
    assert state["answer"].startswith("answer")
    assert state["expansions"] <= parallel


async def test_a_single_fault_of_the_judge_costs_one_answer_only() -> None:
    def reply(request: Request) -> Reply:
        if request.schema and "answer 3" in request.last:
            return "no form"
        return judged(0.5) if request.schema else f"answer {len(request.messages)} {request.attempt}"

    state = await run(reply, max_depth=1)
    assert state["outcome"]["status"] == "limit_reached"
    assert state["outcome"]["limit"] == {"name": "max_expansions", "most": 20, "spent": 20}


def broken(request: Request) -> Reply:
    return ModelConnectionError("no route to it")


async def test_a_model_that_always_fails_is_asked_less_and_less_and_costs_no_run() -> None:
    good, dead = FakeChatModel(reply=writing(lambda _: 0.6)), FakeChatModel(reply=broken)
    state = await run(good, arms=[dead, good], max_expansions=30)
    assert state["outcome"]["limit"] == {"name": "max_expansions", "most": 30, "spent": 30}
    made = [node["model"] for node in state["tree"].values() if "model" in node]
    failed = [entry["arm"] for entry in state["log"] if "failed" in entry]
    assert set(made) == {"1"}
    assert set(failed) == {"0"}
    assert len(failed) < 10
    assert state["stats"][ROOT]["own"]["models"]["0"] == [len(failed), 0]


async def test_where_all_models_fail_the_run_fails_with_the_cause() -> None:
    models = [FakeChatModel(reply=broken) for _ in range(3)]
    state = await run(models[0], arms=models)
    assert (state["outcome"]["status"], state["answer"]) == ("failed", None)
    assert "no route to it" in state["outcome"]["reason"]
    assert all(model.calls for model in models), "none is given up untried"
    assert sum(len(model.calls) for model in models) <= 3 * 15


# Several models


def by_name(text: str) -> float:
    return 0.8 if text.startswith("strong") else 0.2


@pytest.mark.thorough
async def test_among_several_models_the_better_one_is_asked_more_often() -> None:
    weak, strong = [FakeChatModel(reply=writing(by_name, name)) for name in ("weak", "strong")]
    judge = FakeChatModel(reply=writing(by_name))
    state = await run(judge, arms=[weak, strong], max_expansions=50)
    made = Counter(node["model"] for node in state["tree"].values() if "model" in node)
    assert made["1"] > 3 * made["0"] > 0
    assert (len(weak.calls), len(strong.calls)) == (made["0"], made["1"])
    assert {kind(request) for request in judge.calls} == {"judge"}
    for key, node in state["tree"].items():
        assert key == ROOT or node["messages"][0].text.startswith(["weak", "strong"][int(node["model"])])
    assert state["answer"].startswith("strong")
    assert_consistent(state)


def test_models_are_named_by_their_strings_or_by_their_places() -> None:
    model = FakeChatModel(reply=broken)
    assert list(arms(AbMctsContext(arms=["openai:a", "openai:b"]))) == ["openai:a", "openai:b"]
    assert list(arms(AbMctsContext(arms=["openai:a", model]))) == ["openai:a", "1"]
    assert list(arms(AbMctsContext(arms=["openai:a", "offline", "openai:a"]))) == ["0", "offline", "2"]
    assert arms(AbMctsContext(model=model)) == {"": model}


def test_models_may_be_given_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    assert AbMctsContext.model_validate({"arms": '["openai:a", "offline"]'}).arms == ["openai:a", "offline"]
    monkeypatch.setenv("REFLECT_ARMS", '["offline", "openai:b"]')
    assert AbMctsContext().arms == ["offline", "openai:b"]
    assert AbMctsContext().explicit_settings() == {}
    assert AbMctsContext(arms=["offline"]).explicit_settings() == {"arms": ["offline"]}
    assert AbMctsContext(arms=["offline", FakeChatModel(reply=broken)]).explicit_settings() == {}


@pytest.mark.parametrize("given", ["offline", "[", "[]", "[null]", '{"a": 1}', "[1]", ["", "offline"], [object()]])
def test_what_names_no_models_is_refused(given: Any) -> None:
    with pytest.raises(ValidationError, match="arms"):
        AbMctsContext(arms=given)


@pytest.mark.parametrize("name", ["n", "grading", "min_gain"])
def test_settings_that_would_change_nothing_are_refused(name: str) -> None:
    with pytest.raises(ValidationError, match=name):
        AbMctsContext.model_validate({name: 1})


async def test_an_unknown_model_is_refused_before_anything_is_asked() -> None:
    model = FakeChatModel(reply=broken)
    with pytest.raises(UnknownModel, match="nobody"):
        await run(model, arms=["offline", "nobody:x"])
    assert model.calls == []


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer(writing(lambda _: 0.5)).threaded() as listening:
        monkeypatch.setenv("OPENAI_BASE_URL", listening.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        yield listening


def prompts_of(server: OpenAIServer, what: str) -> list[str]:
    pairs = zip(server.requests, server.calls, strict=True)
    return [exchange.body["model"] for exchange, request in pairs if kind(request) == what]


@pytest.mark.thorough
@pytest.mark.wire
async def test_models_by_name_are_asked_over_the_wire_and_named_in_the_tree(server: OpenAIServer) -> None:
    context = AbMctsContext(
        model="openai:judge", arms=["openai:a", "openai:b"], search="none", seed=1, max_expansions=12
    )
    state = await graph.ainvoke(QUESTION, context=context)
    made = [node["model"] for node in state["tree"].values() if "model" in node]
    assert Counter(name.removeprefix("openai:") for name in made) == Counter(prompts_of(server, "sample"))
    assert set(made) == {"openai:a", "openai:b"}
    assert set(prompts_of(server, "judge")) == {"judge"}
    best = next(
        node for node in state["tree"].values() if node["messages"] and node["messages"][0].text == state["answer"]
    )
    assert state["messages"][-1].response_metadata["model_name"] == best["model"].removeprefix("openai:")


@pytest.mark.thorough
@pytest.mark.wire
async def test_models_by_name_are_kept_for_a_run_that_is_resumed(server: OpenAIServer) -> None:
    stored = builder.compile(checkpointer=InMemorySaver())
    settings: dict[str, Any] = {"search": "none", "seed": 1, "max_expansions": 12}
    begun = AbMctsContext(model="openai:judge", arms=["openai:a", "openai:b"], **settings)
    await stored.ainvoke(QUESTION, thread(), context=begun, interrupt_after=["start"])
    assert prompts_of(server, "sample") == []
    state = await stored.ainvoke(None, thread(), context=AbMctsContext())
    assert set(prompts_of(server, "sample")) == {"a", "b"}
    assert state["expansions"] == 12
    assert (await stored.aget_state(thread())).values["settings"]["arms"] == ["openai:a", "openai:b"]


# Tasks of environments

PROGRAM: dict[str, Any] = {
    "messages": [("user", "Write double(x).")],
    "task": {
        "id": "p",
        "question": "Write double(x), which returns twice x.",
        "data": {"entry_point": "double", "tests": ["assert double(2) == 4", "assert double(3) == 6"], "hidden": ""},
    },
}


@pytest.mark.sandbox
async def test_a_program_is_refined_by_the_tests_that_it_has_failed() -> None:
    def reply(request: Request) -> Reply:
        body = "2 * x" if "# output: " in request.last else f"x + 2 + 0 * {request.attempt}"
        return f"Thought: so\nAction: ```python\ndef double(x):\n    return {body}\n```"

    model = FakeChatModel(reply=reply)
    state = await run(model, PROGRAM, environment="programming")
    assert (state["outcome"]["status"], state["reward"]) == ("solved", 1)
    assert "2 * x" in state["answer"]
    assert "Tests failed:\nassert double(3) == 6 # output: 5" in model.calls[-1].text
    assert {node["score"] for key, node in state["tree"].items() if depth_of(key) == 1} == {0.5}
    assert {kind(request) for request in model.calls} == {"sample"}, "a judge is not asked where tests can be run"


async def test_a_game_is_played_step_by_step_and_its_reward_is_the_score() -> None:
    steps = ["1 + 2 = 3 (left: 3 3 4)", "3 + 3 = 6 (left: 4 6)", "4 * 6 = 24 (left: 24)", "Answer: (1 + 2 + 3) * 4"]

    def reply(request: Request) -> Reply:
        if request.schema:
            return judged(0.5)
        taken = sum(message.type == "tool" for message in request.messages)
        return f"Action: {steps[min(taken, 3)]}"

    state = await run(reply, {"messages": [("user", "1 2 3 4")]}, environment="game24", max_expansions=60)
    assert (state["outcome"]["status"], state["reward"]) == ("solved", 1)
