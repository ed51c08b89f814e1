"""State and settings of other releases: brought up to date where they are read, or refused in one sentence."""

import warnings
from typing import Any, ClassVar

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError

from reflective_agents.cli.options import make_context
from reflective_agents.graphs import builder_of
from reflective_agents.state import versions
from reflective_agents.state.context import Context
from reflective_agents.state.errors import WrongThread
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.state.versions import VERSION, upgraded
from tests.strategies import ASK, thread


class RenamedContext(Context):
    """Settings of which one had another name."""

    renamed: ClassVar[dict[str, str]] = {"attempts": "tries"}
    tries: int = 3


async def test_a_run_notes_the_version_of_its_state() -> None:
    graph = builder_of("chain_of_thought").compile(checkpointer=InMemorySaver())
    await graph.ainvoke(ASK, thread(), context={"model": "offline", "search": "none"})
    assert (await graph.aget_state(thread())).values["version"] == VERSION


async def test_a_run_of_a_newer_release_is_not_gone_on_with() -> None:
    graph = builder_of("chain_of_thought").compile(checkpointer=InMemorySaver(), interrupt_before=["vote"])
    settings: Any = {"model": "offline", "search": "none"}
    await graph.ainvoke(ASK, thread(), context=settings)
    await graph.aupdate_state(thread(), {"version": VERSION + 1})
    with pytest.raises(WrongThread, match=f"newer release .state version {VERSION + 1}, here {VERSION}.: update"):
        await graph.ainvoke(None, thread(), context=settings)


def test_older_state_passes_through_all_upgrades(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "VERSION", 4)
    monkeypatch.setattr(versions, "UPGRADES", {1: lambda state: {**state, "a": 1}, 3: lambda state: {**state, "b": 2}})
    assert upgraded({"version": 1}) == {"version": 1, "a": 1, "b": 2}
    assert upgraded({"version": 2}) == {"version": 2, "b": 2}
    assert upgraded({"version": 4}) == {"version": 4}
    assert upgraded({"version": 0}) == {"version": 0}, "a run that only begins has no version yet"


async def test_a_run_goes_on_with_state_of_an_older_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if version 1 had called the answers of samples `reply`."""

    def rename(state: dict[str, Any]) -> dict[str, Any]:
        samples = [{"answer": sample.get("reply"), **sample} for sample in state["samples"]]
        return {**state, "samples": samples, "version": 2}

    settings: Any = {"model": "offline", "search": "none", "samples": 2}
    graph = builder_of("chain_of_thought").compile(checkpointer=InMemorySaver(), interrupt_before=["vote"])
    stopped = await graph.ainvoke(ASK, thread(), context=settings)
    older = [
        {"reply" if key == "answer" else key: value for key, value in sample.items()} for sample in stopped["samples"]
    ]
    await graph.aupdate_state(thread(), {"samples": older})
    with pytest.raises(WrongThread, match="samples"):
        await graph.ainvoke(None, thread(), context=settings)
    monkeypatch.setattr(versions, "VERSION", 2)
    monkeypatch.setattr(versions, "UPGRADES", {1: rename})
    result = await graph.ainvoke(None, thread(), context=settings)
    assert result["answer"] == stopped["samples"][0]["answer"]


def test_an_old_name_of_a_setting_is_taken_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(FutureWarning, match="attempts is now called tries"):
        assert RenamedContext.model_validate({"attempts": 5}).tries == 5
    with pytest.warns(FutureWarning, match="attempts is now called tries"):
        context = make_context(RenamedContext, {"attempts": "5"})
    assert (context.model_dump()["tries"], context.explicit_settings()) == (5, {"tries": 5})
    monkeypatch.setenv("REFLECT_ATTEMPTS", "7")
    with pytest.warns(FutureWarning, match="REFLECT_ATTEMPTS is now called tries"):
        assert RenamedContext().tries == 7
    with pytest.warns(FutureWarning, match="REFLECT_ATTEMPTS"):
        assert RenamedContext(tries=2).tries == 2


def test_a_run_that_was_begun_under_an_old_name_is_resumed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RenamedContext().resumed({"attempts": 5}).tries == 5
        assert RenamedContext(tries=5).resumed({"attempts": 5}).tries == 5


def test_a_run_that_was_begun_with_a_setting_that_is_gone_says_so() -> None:
    with pytest.raises(WrongThread, match=r"settings that no longer exist \(colour\): ask the question again"):
        RenamedContext().resumed({"colour": "red"})


def test_a_value_of_a_wrong_kind_under_an_old_name_is_refused() -> None:
    with pytest.warns(FutureWarning, match="mode"), pytest.raises(ValidationError, match="acting"):
        ReactContext.model_validate({"mode": ["text"]})
