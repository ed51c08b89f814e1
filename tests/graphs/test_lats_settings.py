"""The paper's settings for each kind of tasks: what holds where nothing is said, and what is said instead."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from reflective_agents.environments.blocksworld import Blocksworld
from reflective_agents.environments.game24 import Game24
from reflective_agents.graphs.lats import builder
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from tests.graphs.lats_scripts import judged, kind
from tests.strategies import thread

PAPER = {
    "n": 5,
    "exploration_weight": 1.0,
    "judge_weight": 0.5,
    "max_depth": 7,
    "max_rollouts": 50,
    "simulate": True,
    "max_lessons": 4,
    "grading": "each",
}
OPEN = {
    "n": 5,
    "exploration_weight": 1.0,
    "judge_weight": 1.0,
    "max_depth": 5,
    "max_expansions": 10,
    "max_rollouts": None,
    "simulate": False,
    "max_lessons": 0,
    "grading": "together",
    "proposals": "samples",
    "grades": "judge",
}


def shown(context: LatsContext, like: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(context, name) for name in like}


@pytest.mark.parametrize("environment", ["questions", "fever", "crosswords", "blocksworld", "arithmetic"])
def test_in_an_environment_the_papers_settings_hold(environment: str) -> None:
    assert shown(LatsContext(environment=environment), PAPER) == PAPER


def test_programs_are_not_simulated_and_the_game_is_played_with_lists_and_labels() -> None:
    programs, game = LatsContext(environment="programming"), LatsContext(environment="game24")
    assert (programs.simulate, programs.max_expansions, programs.max_lessons) == (False, 50, 4)
    assert (game.proposals, game.grades, game.judge_weight, game.max_rollouts) == ("list", "labels", 0.5, 50)


def test_open_questions_are_searched_as_before() -> None:
    assert shown(LatsContext(), OPEN) == OPEN


class Mine(Blocksworld):
    name = "mine"


class Variant(Game24):
    name = "variant"


def test_an_environment_of_ones_own_has_the_papers_settings_too() -> None:
    assert shown(LatsContext(environment=Mine()), PAPER) == PAPER
    assert LatsContext(environment=Game24()).proposals == LatsContext(environment=Variant()).proposals == "list"


@pytest.mark.parametrize("environment", ["questions", "game24"])
def test_what_is_given_holds_even_where_it_is_the_default_elsewhere(environment: str) -> None:
    assert shown(LatsContext.model_validate({"environment": environment, **OPEN}), OPEN) == OPEN


def test_the_environments_variables_override_the_papers_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_JUDGE_WEIGHT", "0.25")
    monkeypatch.setenv("REFLECT_MAX_DEPTH", "5")
    monkeypatch.setenv("REFLECT_ENVIRONMENT", "questions")
    context = LatsContext(max_rollouts=3)
    assert shown(context, PAPER) == {**PAPER, "judge_weight": 0.25, "max_depth": 5, "max_rollouts": 3}
    assert LatsContext(environment="game24", max_depth=4).judge_weight == 0.25


def careful(request: Request) -> Reply:
    if request.schema:
        return judged(0.2)
    return "Not so." if kind(request) == "reflect" else f"Action: Finish[{request.index} {len(request.text)}]"


async def test_a_run_that_is_resumed_keeps_its_settings_and_those_of_its_kind_of_tasks() -> None:
    stored = builder.compile(checkpointer=InMemorySaver())
    given = {"messages": [("user", "Which?")]}
    model = FakeChatModel(reply=careful)
    begun = LatsContext(model=model, environment="questions", n=2, max_depth=3)
    await stored.ainvoke(given, thread(), context=begun, interrupt_after=["start"])
    result = await stored.ainvoke(None, thread(), context=LatsContext(model=model))
    children = [node for node in result["tree"].values() if node["depth"] == 1]
    assert len(children) == 2
    assert {name for node in children for name in node["terms"]} == {"judge", "consistency"}
    assert len(result["lessons"]) == 2
    assert (await stored.aget_state(thread())).values["settings"] == {
        "environment": "questions",
        "max_depth": 3,
        "n": 2,
    }


async def test_what_is_given_anew_when_a_run_is_resumed_holds() -> None:
    stored = builder.compile(checkpointer=InMemorySaver())
    model = FakeChatModel(reply=careful)
    begun = LatsContext(model=model, environment="questions", n=2)
    await stored.ainvoke({"messages": [("user", "Which?")]}, thread(), context=begun, interrupt_after=["start"])
    result = await stored.ainvoke(None, thread(), context=LatsContext(model=model, judge_weight=1, max_lessons=0))
    assert {name for node in result["tree"].values() for name in node.get("terms", {})} == set()
    assert result["lessons"] == []


def test_impossible_settings_are_refused() -> None:
    for setting in ({"max_rollouts": 0}, {"judge_weight": 1.1}, {"environment": "chess"}, {"proposals": "any"}):
        with pytest.raises(ValueError, match=next(iter(setting))):
            LatsContext.model_validate(setting)
