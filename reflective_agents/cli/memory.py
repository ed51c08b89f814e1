"""`reflect memory`: what is remembered of a user, to be looked at, corrected and kept."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from reflective_agents.cli.output import clean, print_table, say
from reflective_agents.cli.store import Force, Target, Vectors, lines, minute, read_lines, with_store
from reflective_agents.state.errors import Misuse

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from reflective_agents.memory.stream import MemoryStream
    from reflective_agents.state.memories import Memory

T = TypeVar("T")
COLUMNS = ("id", "when", "kind", "importance", "text")
User = Annotated[str | None, typer.Option(help="Whose memories. Default: REFLECT_USER, else 'default'.")]
Id = Annotated[str, typer.Argument(help="Its id, as `reflect memory list` shows it.", show_default=False)]

app = typer.Typer(
    rich_markup_mode=None, help="Look at what is remembered, correct it, forget it, export and import it."
)


@app.command("list")
def list_(
    user: User = None,
    limit: Annotated[int, typer.Option(min=1, help="Most memories listed.")] = 20,
    archived: Annotated[bool, typer.Option("--archived", help="Also those that a reflection rests on.")] = False,
    embeddings: Vectors = None,
) -> int:
    """List memories, the latest first."""

    async def read(stream: "MemoryStream") -> list["Memory"]:
        if archived:
            return [memory async for memory in stream.everything()][-limit:]
        return await stream.latest(limit)

    memories = _with_memory(user, embeddings, read)
    print_table(COLUMNS, [_row(memory) for memory in reversed(memories)])
    return 0


@app.command()
def profile(
    user: User = None,
    limit: Annotated[int, typer.Option(min=1, help="Most facts shown.")] = 50,
    embeddings: Vectors = None,
) -> int:
    """Show what holds of a user, by topic and by importance, with the words that each fact rests on."""
    from reflective_agents.state.memories import TOPICS

    async def read(stream: "MemoryStream") -> list[tuple["Memory", list["Memory"]]]:
        facts = [fact for fact in await stream.facts(limit) if fact.get("topic") != "other"]
        return [(fact, await stream.get(fact["evidence"])) for fact in facts]

    facts = _with_memory(user, embeddings, read)
    by_topic = sorted(facts, key=lambda entry: TOPICS.index(entry[0].get("topic", "other")))
    print_table(("topic", "id", "fact", "since", "in the words"), [_row_of_fact(*entry) for entry in by_topic])
    return 0


@app.command()
def show(id: Id, user: User = None, embeddings: Vectors = None) -> int:
    """Show a memory whole, with what it rests on and what rests on it."""

    async def read(stream: "MemoryStream") -> tuple["Memory", list["Memory"], list["Memory"]]:
        return await _get(stream, id), await stream.evidence(id), await stream.derived(id)

    memory, evidence, derived = _with_memory(user, embeddings, read)
    retrieval = "archived: found through what rests on it" if memory["archived"] else "in ordinary retrieval"
    print(f"{memory['kind']} of {minute(memory['created'])}, importance {memory['importance']:g}, {retrieval}")
    if "until" in memory:
        print(f"superseded: no longer holds since {minute(memory['until'])}")
    print(f"last accessed {minute(memory['accessed'])}\n\n{clean(_text(memory))}")
    for title, related in (("rests on", evidence), ("is the ground of", derived)):
        if related:
            print(f"\n{title}:")
            print_table(COLUMNS, [_row(each) for each in related])
    return 0


@app.command()
def forget(
    id: Annotated[str | None, typer.Argument(help="Its id, as `reflect memory list` shows it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Forget everything instead.")] = False,
    derived: Annotated[
        bool, typer.Option("--derived", help="Also what rests on it: facts, insights, lessons.")
    ] = False,
    user: User = None,
    embeddings: Vectors = None,
) -> int:
    """Delete a memory for good, or all of them. What rests on it is listed, and stays unless you say so.

    Threads keep the conversations themselves.
    """
    if (id is None) != everything:
        raise Misuse("name the memory that is to be forgotten, or --all")
    if id is None:
        _with_memory(user, embeddings, lambda stream: stream.forget_all())
        say("everything is forgotten")
        return 0

    async def look(stream: "MemoryStream") -> list["Memory"]:
        resting = await stream.derived(id)
        if not (derived and resting):  # what rests on it can still be forgotten when it is gone itself
            await _get(stream, id)
        return resting

    async def delete(stream: "MemoryStream") -> None:
        await stream.delete(id)
        if too:
            for memory in resting:
                await stream.delete(memory["id"])

    resting = _with_memory(user, embeddings, look)
    too = derived
    if resting and not derived:
        print_table(COLUMNS, [_row(memory) for memory in resting])
        question = f"{len(resting)} memories rest on it, and may say the same: forget them, too?"
        too = sys.stdin.isatty() and typer.confirm(question, err=True)
    _with_memory(user, embeddings, delete)
    _say_forgotten(len(resting), too)
    return 0


def _say_forgotten(resting: int, too: bool) -> None:
    if not resting:
        say("forgotten")
    elif too:
        say(f"forgotten, and {resting} memories that rested on it")
    else:
        say(f"forgotten; {resting} memories that rest on it stay: --derived forgets them, too")


@app.command()
def edit(
    id: Id,
    text: Annotated[str, typer.Argument(help="The new text.", show_default=False)],
    user: User = None,
    embeddings: Vectors = None,
) -> int:
    """Correct the text of a memory. What rests on it stays, and is listed."""

    async def change(stream: "MemoryStream") -> list["Memory"]:
        await stream.edit(id, text)
        return await stream.derived(id)

    resting = _with_memory(user, embeddings, change)
    say(f"corrected; {len(resting)} memories rest on it" if resting else "corrected")
    if resting:
        print_table(COLUMNS, [_row(memory) for memory in resting])
    return 0


@app.command()
def export(
    to: Target = "-",
    user: User = None,
    embeddings: Vectors = None,
    force: Force = False,
) -> int:
    """Write all memories as JSON lines, those in the archive too."""
    from reflective_agents.cli.exports import Export, check_targets, write
    from reflective_agents.memory.transfer import export_jsonl

    check_targets({"--export": to}, force)
    text = _with_memory(user, embeddings, lambda stream: lines(export_jsonl(stream)))
    write([Export("--export", to, text)], force)
    return 0


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="What `reflect memory export` has written.")],
    user: User = None,
    embeddings: Vectors = None,
) -> int:
    """Add exported memories under their ids; existing ones stay as they are."""
    from reflective_agents.memory.transfer import import_jsonl

    given = read_lines(file)
    change = _with_memory(user, embeddings, lambda stream: import_jsonl(stream, given))
    forgotten = f", {len(change.forgotten)} forgotten to keep to the size" if change.forgotten else ""
    say(f"{len(change.added)} memories added{forgotten}")
    return 0


def _with_memory(user: str | None, embeddings: str | None, work: "Callable[[MemoryStream], Awaitable[T]]") -> T:
    """Do some work on a memory and return its result.

    Raises:
        Misuse: if it was made with other embeddings, or what a memory needs is not installed.
        NoDatabase: if the database cannot be reached or opened.
    """
    from reflective_agents.cli.options import make_context
    from reflective_agents.nodes.remembering.remember import owner_of
    from reflective_agents.state.settings.memory import MemoryContext

    options = {"user": user, "embeddings": embeddings}
    given = {name: value for name, value in options.items() if value is not None}
    context = make_context(MemoryContext, given)
    assert isinstance(context, MemoryContext)
    owner, most = owner_of(context.user), context.max_memories

    async def open_and_work(store: "BaseStore") -> T:
        from reflective_agents.memory.stream import MemoryStream

        return await work(await MemoryStream.open(store, owner, context.embeddings, max_memories=most))

    return with_store(open_and_work)


async def _get(stream: "MemoryStream", memory_id: str) -> "Memory":
    memories = await stream.get([memory_id])
    if not memories:
        raise Misuse(f"there is no memory {memory_id} here: reflect memory list shows them")
    return memories[0]


def _row(memory: "Memory") -> tuple[str, str, str, str, str]:
    text = _text(memory)
    if "until" in memory:
        text = f"(superseded {minute(memory['until'])}) {text}"
    return memory["id"], minute(memory["created"]), memory["kind"], f"{memory['importance']:g}", text


def _row_of_fact(fact: "Memory", evidence: list["Memory"]) -> tuple[str, str, str, str, str]:
    words = " / ".join(turn["text"] for turn in evidence)
    return fact.get("topic", ""), fact["id"], fact["text"], fact.get("since", ""), words


def _text(memory: "Memory") -> str:
    return f"{memory['speaker']}: {memory['text']}" if "speaker" in memory else memory["text"]
