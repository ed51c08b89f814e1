"""Data that is nested deeper than Python can follow, or holds numbers that no clock or scale shows."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from pydantic import ValidationError

from reflective_agents.evals.datasets import load_dataset
from reflective_agents.evals.results import read_run
from reflective_agents.graphs.chain_of_thought import graph
from reflective_agents.graphs.lats import graph as lats
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.memory.transfer import import_jsonl
from reflective_agents.state.errors import Misuse
from reflective_agents.state.memories import new_memory
from reflective_agents.state.settings.plan import PlanContext
from reflective_agents.state.settings.town import TownContext
from reflective_agents.testing.fake import FakeChatModel

pytestmark = pytest.mark.hostile

DEEP = "[" * 100_000
DEEP_OBJECT = '{"a":' * 100_000


def test_settings() -> None:
    with pytest.raises(ValidationError, match="JSON"):
        PlanContext.model_validate({"worker_settings": DEEP})
    with pytest.raises(ValidationError, match="JSON"):
        TownContext.model_validate({"town": DEEP_OBJECT})


def test_files(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(DEEP)
    (tmp_path / "data.jsonl").write_text(DEEP)
    with pytest.raises(Misuse, match="cannot be read"):
        read_run(tmp_path)
    with pytest.raises(Misuse, match="JSON"):
        load_dataset(tmp_path / "data.jsonl")


HOSTILE = [
    ("created", float("nan")), ("created", 1e300), ("created", -1e18), ("accessed", float("nan")), ("accessed", 1e300),
    ("importance", float("nan")), ("importance", 1e308), ("id", "../../etc"), ("kind", "system"), ("text", " "),
]  # fmt: skip


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize(("field", "value"), HOSTILE)
async def test_imported_memories(field: str, value: object) -> None:
    stream = await MemoryStream.open(InMemoryStore(), "agent", "lexical")
    memory = new_memory("The vault is in the cellar.", created=0.0)
    for line in (json.dumps({**memory, field: value}), DEEP):
        with pytest.raises(Misuse, match="line 1 is no memory"):
            await import_jsonl(stream, [line])


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("reply", [DEEP, DEEP_OBJECT, f"```json\n{DEEP}\n```", json.dumps(DEEP)], ids=range(4))
async def test_replies(reply: str) -> None:
    question = {"messages": [("user", "Why?")]}
    model = FakeChatModel(reply=lambda _: reply)
    cases: list[tuple[Any, dict[str, Any]]] = [
        (graph, {}),
        (lats, {"n": 2, "max_expansions": 1, "max_model_calls": 12}),
    ]
    for strategy, settings in cases:
        result = await strategy.ainvoke(question, context={"model": model, **settings})
        assert result["outcome"]["reason"]


def test_yaml_is_read_nowhere() -> None:
    root = Path(__file__).parents[2]
    rooms = ("graphs", "nodes", "prompts", "state", "reflective_agents")
    files = [file for folder in rooms for file in (root / folder).rglob("*.py")]
    assert len(files) > 200
    readers = re.compile(r"^\s*(?:import|from)\s+(?:ruamel\.)?_?yaml\b", re.MULTILINE)
    assert [file.name for file in files if readers.search(file.read_text())] == []
