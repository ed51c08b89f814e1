"""All prompts in other words: the offline model goes by data and does the same, whatever a prompt says."""

import importlib
import pkgutil
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.prompts.chat import BaseStringMessagePromptTemplate
from langchain_core.prompts.prompt import PromptTemplate

from reflective_agents import prompts
from tests.strategies import STRATEGIES, Strategy, name_of

PROMPTS = "reflective_agents.prompts."
QUESTION = "Why is reflection useful in AI, and what does UCT balance?"
FIELD = re.compile(r"\{\w*\}")

Reword = Callable[[str], str]
Result = dict[str, Any]


def foreign(text: str) -> str:
    """Each word gives way to one of another language; the fields stay where they are."""
    parts = re.split(r"(\{\w*\}|[^\w{}]+)", text)
    return "".join("ねこ" if part.isalpha() else part for part in parts)


def turned(text: str) -> str:
    """The words from the last to the first, and the fields in between in their old order."""
    parts = re.split(r"(\{\w*\})", text)
    return "".join(part if FIELD.fullmatch(part) else " ".join(part.split(" ")[::-1]) for part in parts)


def wordy(text: str) -> str:
    """Further words around each text, of those that prompts are known by; what is a line stays one."""
    between = "\n" if "\n" in text else " "
    return between.join(("Write up to 7 answers, question: criticise.", text, "Which is the best choice? Impossible."))


def modules() -> Iterator[ModuleType]:
    for module in pkgutil.iter_modules(prompts.__path__):
        yield importlib.import_module(f"{PROMPTS}{module.name}")


def holders() -> Iterator[Any]:
    """Whatever may hold a text under a name of its own: the project's modules, and their classes."""
    for name, module in [*sys.modules.items()]:
        if name.startswith("reflective_agents."):
            yield module
            yield from (value for value in vars(module).values() if isinstance(value, type))


def reworded(value: object, reword: Reword, monkeypatch: pytest.MonkeyPatch) -> object:
    """The same in other words; a template is changed where it is."""
    if isinstance(value, str):
        return reword(value) if re.search(r"\w\s\w", value) else value
    if isinstance(value, dict):
        return {key: reworded(part, reword, monkeypatch) for key, part in value.items()}
    if isinstance(value, ChatPromptTemplate):
        for message in value.messages:
            if isinstance(message, BaseStringMessagePromptTemplate) and isinstance(message.prompt, PromptTemplate):
                monkeypatch.setattr(message.prompt, "template", reword(message.prompt.template))
        texts = {key: reworded(part, reword, monkeypatch) for key, part in value.partial_variables.items()}
        monkeypatch.setattr(value, "partial_variables", texts)
    return value


def names_of_texts() -> dict[int, list[tuple[Any, str]]]:
    """Under the identity of each text, dict and template who holds it, and under which name."""
    names: defaultdict[int, list[tuple[Any, str]]] = defaultdict(list)
    for holder in holders():
        for name, value in vars(holder).items():
            if isinstance(value, str | dict | ChatPromptTemplate):
                names[id(value)].append((holder, name))
    return names


def reword_all(reword: Reword, monkeypatch: pytest.MonkeyPatch) -> int:
    """Put all prompts in other words, wherever they are named. Returns how many."""
    prompts_by_id = {
        id(value): value
        for module in modules()
        for name, value in vars(module).items()
        if not name.startswith("__") and isinstance(value, str | dict | ChatPromptTemplate)
    }
    names = names_of_texts()
    for identity, value in prompts_by_id.items():
        new = reworded(value, reword, monkeypatch)
        for holder, name in names[identity] if new is not value else []:
            monkeypatch.setattr(holder, name, new)
    return len(prompts_by_id)


async def ran(strategy: Strategy, settings: Mapping[str, Any]) -> Result:
    searches = getattr(strategy.context(), "searches", False)
    usual = {"search": "local", "model": "offline", "parallel": 1, **settings}  # else the first to end would differ
    context = {
        key: value
        for key, value in usual.items()
        if key in strategy.context.model_fields and (key != "search" or searches)
    }
    result: Result = await strategy.graph.ainvoke({"messages": [HumanMessage(QUESTION)]}, context=context)
    return result


def ending(result: Result) -> tuple[str, str]:
    """How a run has ended, and the first paragraph of its answer."""
    answer = result["answer"] or ""
    return result["outcome"]["status"], answer.split("\n\n")[0]


@pytest.mark.thorough
@pytest.mark.crossed
@pytest.mark.parametrize("strategy", STRATEGIES, ids=name_of)
@pytest.mark.parametrize("reword", [foreign, turned, wordy], ids=name_of)
async def test_a_strategy_runs_offline_whatever_its_prompts_say(
    strategy: Strategy, reword: Reword, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = {key: value for key, value in strategy.settings.items() if key in {"town", "embeddings"}}
    monkeypatch.setenv("REFLECT_HOME", str(tmp_path / "before"))
    before = await ran(strategy, settings | {"user": "before"})
    monkeypatch.setenv("REFLECT_HOME", str(tmp_path / "after"))
    assert reword_all(reword, monkeypatch) > 40
    assert ending(await ran(strategy, settings | {"user": "after"})) == ending(before)
