"""An agent's memory as JSON lines: one memory a line, and at the end up to where it was reflected on."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from reflective_agents.state.errors import Misuse, problems_of
from reflective_agents.state.memories import BEGINNING, Mark, Memory, check_time, new_memory

if TYPE_CHECKING:  # loads numpy, and a file is read without
    from reflective_agents.memory.stream import Change, MemoryStream

_MEMORY = TypeAdapter(Memory)
_MARK = TypeAdapter(dict[str, Mark])
_ID = re.compile(r"[0-9a-f]{32}")


async def export_jsonl(stream: "MemoryStream") -> AsyncIterator[str]:
    """Export an agent's memory as JSON lines, without line ends, in the order of creation."""
    async for memory in stream.everything():
        yield json.dumps(memory, ensure_ascii=False)
    mark = await stream.reflected()
    if mark != BEGINNING:
        yield json.dumps({"mark": mark._asdict()})


async def import_jsonl(stream: "MemoryStream", lines: Iterable[str]) -> "Change":
    """Add exported memories, under their ids; the vectors are made anew. What is in the archive follows from the
    evidence.

    Args:
        stream: Where to; memories that it knows already are left as they are.
        lines: What was exported, such as an open file. They are read in another thread.

    Raises:
        Misuse: if a line is no memory; then nothing is imported.
    """
    memories, mark = await asyncio.to_thread(_parse, lines)
    return await stream.add(memories, reflected=mark)


def _parse(lines: Iterable[str]) -> tuple[list[Memory], Mark | None]:
    memories: list[Memory] = []
    mark: Mark | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            if line.lstrip().startswith('{"mark"'):
                mark = _MARK.validate_json(line)["mark"]
            else:
                memories.append(_checked(_MEMORY.validate_json(line)))
        except (ValidationError, Misuse) as error:
            raise Misuse(f"line {number} is no memory: {_first_problem(error)}") from error
    return memories, mark


def _checked(memory: Memory) -> Memory:
    """Check a memory and return it as it would have been made here."""
    if not _ID.fullmatch(memory["id"]):
        raise Misuse("an id has 32 hexadecimal digits")
    check_time(memory["accessed"])
    checked = new_memory(
        memory["text"],
        created=memory["created"],
        kind=memory["kind"],
        importance=memory["importance"],
        evidence=memory["evidence"],
        speaker=memory.get("speaker", ""),
        conversation=memory.get("conversation", ""),
        about=memory.get("about", ""),
        topic=memory.get("topic"),
        since=memory.get("since", ""),
        supersedes=memory.get("supersedes", ()),
    )
    return {**checked, "id": memory["id"], "accessed": max(memory["accessed"], checked["created"])}


def _first_problem(error: ValidationError | Misuse) -> str:
    return str(error) if isinstance(error, Misuse) else problems_of(error, "line")[0]
