"""Export and import as JSON lines."""

import json

import pytest
from langgraph.store.memory import InMemoryStore

from reflective_agents.memory.transfer import export_jsonl, import_jsonl
from reflective_agents.state.errors import Misuse
from reflective_agents.state.memories import new_memory
from tests.memory.windows import items, open_window

GOOD = new_memory("aaa", created=1, importance=4, key="a")


async def test_an_export_is_imported_as_it_was() -> None:
    store = InMemoryStore()
    stream = await open_window(store, "anna")
    leaf, other = GOOD, new_memory("b\nb \N{SNOWMAN}", created=2, importance=2, key="b")
    top = new_memory("ccc", created=3, kind="reflection", evidence=[leaf["id"], "0" * 32], key="c")
    await stream.add([leaf, other])
    await stream.add([top], reflected=(await stream.pending()).latest)
    await stream.retrieve("b", k=1, now=50.0)
    lines = [line async for line in export_jsonl(stream)]
    assert len(lines) == 4
    assert not [line for line in lines if "\n" in line]

    copy = await open_window(store, "bob")
    change = await import_jsonl(copy, [f"{line}\n" for line in lines] + ["\n"])
    assert len(change.added) == 3
    assert [line async for line in export_jsonl(copy)] == lines
    assert await copy.pending() == await stream.pending()
    before = items(store)
    assert await import_jsonl(copy, lines) == ([], [])
    assert items(store) == before


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": "../anna"}, "32 hexadecimal digits"),
        ({"text": " "}, "needs a text"),
        ({"importance": 11}, "importance is 1..10"),
        ({"kind": "order"}, "kind: must be"),
        ({"created": "soon"}, "created: must be"),
    ],
)
async def test_nothing_is_imported_if_a_line_is_wrong(change: dict[str, object], problem: str) -> None:
    stream = await open_window(InMemoryStore())
    with pytest.raises(Misuse, match=f"line 2 is no memory: .*{problem}"):
        await import_jsonl(stream, [json.dumps(GOOD), json.dumps({**GOOD, **change})])
    with pytest.raises(Misuse, match="line 1 is no memory"):
        await import_jsonl(stream, ["not JSON"])
    assert await stream.count() == 0


async def test_a_memory_that_was_never_reflected_on_has_no_mark() -> None:
    stream = await open_window(InMemoryStore())
    await stream.add([GOOD])
    assert [json.loads(line) async for line in export_jsonl(stream)] == [GOOD]
