"""Errors of a user's own code, told from those of providers."""

import importlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import langchain_core
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatResult
from tenacity import wait_none

from reflective_agents.graphs.chain_of_thought import graph
from reflective_agents.graphs.lats import graph as lats
from reflective_agents.models import faults
from reflective_agents.testing.fake import FakeChatModel

ASK: dict[str, Any] = {"messages": [("user", "6 * 7?")]}


class Broken(BaseChatModel):
    """A model with an error in its code."""

    error: Callable[[], object]
    calls: list[int]

    @property
    def _llm_type(self) -> str:
        return "broken"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        self.calls.append(1)
        raise AssertionError(self.error())


MISTAKES: list[tuple[Callable[[], object], type[Exception]]] = [
    (lambda: len(5), TypeError),  # type: ignore[arg-type]
    (lambda: dict[str, str]()["choices"], KeyError),
    (lambda: json.loads("<html>"), ValueError),
]


@pytest.mark.parametrize(("mistake", "kind"), MISTAKES)
@pytest.mark.parametrize("strategy", [graph, lats])
@pytest.mark.parametrize("is_async", [False, True])
async def test_an_error_of_a_users_model_is_raised_at_once_as_it_is(
    strategy: Any, mistake: Callable[[], object], kind: type[Exception], is_async: bool
) -> None:
    model = Broken(error=mistake, calls=[])
    context = {"model": model, "max_model_calls": 20}
    with pytest.raises(kind) as caught:
        await strategy.ainvoke(ASK, context=context) if is_async else strategy.invoke(ASK, context=context)
    names = [entry.frame.code.name for entry in caught.traceback]
    assert "_generate" in names
    assert len(model.calls) <= 5  # what was in flight at once; none of it again
    if strategy is graph:
        assert len(model.calls) == 1


async def test_bad_data_of_a_provider_is_retried_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "WAIT", wait_none())
    model = FakeChatModel(reply=lambda request: TypeError("'NoneType' object is not iterable"))
    out = await graph.ainvoke(ASK, context={"model": model})
    assert (out["outcome"]["status"], len(model.calls)) == ("failed", 3)
    assert "TypeError: 'NoneType'" in out["outcome"]["reason"]


async def test_packages_are_not_the_users_code_wherever_they_are_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As in a user's own folder of packages, or in one that a service brings along."""
    provider = tmp_path / "packages" / "a_provider.py"
    provider.parent.mkdir()
    provider.write_text("def read(text):\n    return text['choices']\n")
    monkeypatch.syspath_prepend(provider.parent)
    read = importlib.import_module("a_provider").read
    with ThreadPoolExecutor() as threads:  # so that no frame is this test's
        fault = threads.submit(read, {}).exception()
    assert fault
    assert faults.is_of_users_code(fault)
    monkeypatch.setattr(langchain_core, "__file__", str(provider.parent / "langchain_core" / "__init__.py"))
    assert not faults.is_of_users_code(fault)
