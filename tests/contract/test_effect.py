"""Settings that have no effect beside the others are refused, whichever way they come; defaults never are."""

from typing import Any

import pytest
from pydantic import ValidationError

from reflective_agents.graphs import graph_of
from reflective_agents.graphs.lats import graph as lats
from reflective_agents.graphs.react import graph as react
from reflective_agents.middleware import ReflectionMiddleware
from reflective_agents.serve.chat_request import check_settings
from reflective_agents.serve.refusals import Refused
from reflective_agents.state.errors import Misuse
from reflective_agents.state.settings import settings_of, strategy_names
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request

ASK: Any = {"messages": [("user", "What pulls the sea?")]}
TASK: Any = {**ASK, "task": {"id": "1", "question": "What pulls the sea?", "data": {"context": []}}}


def weigh(thing: str) -> str:
    """Weigh a thing."""
    return "7"


@pytest.mark.parametrize(
    ("strategy", "name", "settings"),
    [
        *[
            (strategy, "tools", {"tools": [weigh], "environment": "questions"})
            for strategy in ("lats", "best_of_n", "tree_of_thoughts", "ab_mcts", "auto")
        ],
        ("react", "tools", {"tools": [weigh], "environment": "questions", "acting": "paper"}),
        ("trials", "tools", {"tools": [weigh], "environment": "questions", "actor": "chain_of_thought"}),
        ("lats", "grades", {"grades": "labels"}),
        ("auto", "grades", {"grades": "labels"}),
        ("lats", "grade_samples", {"grade_samples": 4}),
        ("lats", "revise_answers", {"revise_answers": False, "environment": "questions"}),
        ("lats", "gold_reward", {"gold_reward": True}),
        ("lats", "lists", {"lists": 2}),
        ("auto", "selection", {"selection": "gumbel"}),
        ("tree_of_thoughts", "beam", {"beam": 2, "method": "depth_first"}),
        ("tree_of_thoughts", "prune_below", {"prune_below": 0.5}),
        ("chain_of_thought", "max_context_tokens", {"max_context_tokens": 1000}),
        ("chain_of_thought", "corpus", {"corpus": "."}),
        ("chain_of_thought", "docstore", {"docstore": "docs", "environment": "questions"}),
        ("rap", "docstore", {"docstore": "docs", "environment": "questions"}),
        ("chain_of_thought", "batch", {"batch": 2}),
        ("react", "corpus", {"corpus": ".", "search": "none"}),
        ("react", "memory_size", {"memory_size": 5}),
        ("react", "verify_sources", {"verify_sources": False, "environment": "questions"}),
        ("reflection", "critic_model", {"critic_model": "offline", "critic": "checks"}),
        ("trials", "acting", {"acting": "paper", "actor": "chain_of_thought"}),
        ("trials", "samples", {"samples": 2}),
        ("trials", "verify_sources", {"verify_sources": False}),
        ("trials", "min_score", {"min_score": 0.5, "environment": "questions"}),
        ("plan", "tools", {"tools": [weigh], "worker": "chain_of_thought"}),
        ("plan", "grades", {"worker": "lats", "worker_settings": {"grades": "labels"}}),
    ],
)
async def test_what_has_no_effect_is_refused_before_the_first_call(
    strategy: str, name: str, settings: dict[str, Any]
) -> None:
    model = FakeChatModel(reply=lambda _: "Never.")
    with pytest.raises(Misuse, match=f"^{name} has an effect only "):
        await graph_of(strategy).ainvoke(TASK, context={"model": model, **settings})
    assert model.calls == []


@pytest.mark.parametrize("strategy", strategy_names())
def test_a_form_that_is_sent_whole_is_never_refused(strategy: str) -> None:
    schema = settings_of(strategy)
    fields = schema.model_json_schema()["properties"]
    check_settings(schema, {name: field["default"] for name, field in fields.items() if "default" in field})


def test_a_request_is_refused_before_its_run() -> None:
    with pytest.raises(Refused, match="grades has an effect only in an environment"):
        check_settings(settings_of("lats"), {"grades": "labels"})
    check_settings(settings_of("lats"), {"grades": "labels", "environment": "game24"})


async def test_what_the_environment_says_for_all_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_GRADES", "labels")
    monkeypatch.setenv("REFLECT_BATCH", "2")
    result = await graph_of("chain_of_thought").ainvoke(ASK, context={"model": FakeChatModel(reply=lambda _: "Moon")})
    assert result["answer"] == "Moon"


@pytest.mark.parametrize(
    "settings",
    [{"answer_schema": {"type": "object"}}, {"experience": "x"}, {"generate_prompt": "In verse."}, {"agent": lats}],
)
def test_a_middleware_takes_no_setting_that_it_would_ignore(settings: dict[str, Any]) -> None:
    [name] = settings
    with pytest.raises(Misuse, match=f"{name} has no effect in a middleware"):
        ReflectionMiddleware(**settings)


@pytest.mark.parametrize("examples", [True, False])
@pytest.mark.parametrize("strategy", ["lats", "tree_of_thoughts", "best_of_n", "ab_mcts", "rap", "auto"])
@pytest.mark.parametrize(
    "example",
    [{"task": "Why?", "reasoning": "BECAUSE"}, {"task": "Why?", "acts": [["BECAUSE", "search[x]", "x"]]}],
    ids=["reasoning", "acts"],
)
async def test_own_examples_are_shown_on_open_questions(
    strategy: str, example: dict[str, Any], *, examples: bool
) -> None:
    if strategy == "auto" and "acts" in example:
        pytest.skip("its samples answer at once")

    def reply(request: Request) -> Reply:
        return {"reasoning": "Yes.", "score": 0.9, "solved": True} if request.schema == "Judgement" else "The Moon."

    model = FakeChatModel(reply=reply)
    settings: Any = {"model": model, "own_examples": [example], "examples": examples, "search": "none"}
    await graph_of(strategy).ainvoke(ASK, context={**settings, "max_model_calls": 6})
    assert ("BECAUSE" in model.calls[0].text) is examples


def many(*numbers: float) -> str:
    """Multiply numbers."""
    return "1"


def undocumented(number: float) -> str:
    return str(number)


@pytest.mark.parametrize(
    ("tool", "words"),
    [(many, "arguments of many: let it take a list"), (undocumented, "undocumented has no docstring")],
)
async def test_a_tool_that_no_model_could_call_is_refused(tool: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        await react.ainvoke(ASK, context={"tools": [tool]})


@pytest.mark.parametrize(
    ("settings", "tools"),
    [
        ({}, ("calculator",)),
        ({"tools": [weigh]}, ("weigh",)),
        ({"tools": [weigh], "calculator": True}, ("calculator", "weigh")),
        ({"calculator": False}, ()),
    ],
)
async def test_a_calculator_comes_where_it_is_wanted(settings: dict[str, Any], tools: tuple[str, ...]) -> None:
    model = FakeChatModel(reply=lambda _: "The Moon.")
    await react.ainvoke(ASK, context={"model": model, "search": "none", **settings})
    assert model.calls[0].tools == tools


async def test_the_form_of_a_judge_holds_as_many_judgements_as_there_are_candidates() -> None:
    sizes: list[tuple[int, int, int]] = []

    def reply(request: Request) -> Reply:
        if request.schema != "Judgements":
            return f"Answer {request.index} of {len(request.messages)}"
        form, count = request.schemas["Judgements"]["properties"]["judgements"], request.text.count("<candidate number")
        sizes.append((form["minItems"], form["maxItems"], count))
        return {"judgements": [{"reasoning": "No.", "score": 0.3, "solved": False}] * count}

    settings: Any = {"model": FakeChatModel(reply=reply), "n": 2, "search": "none", "max_model_calls": 8}
    await lats.ainvoke(ASK, context=settings)
    assert {least for least, _, _ in sizes} == {1, 2}
    assert all(least == most == count for least, most, count in sizes)
