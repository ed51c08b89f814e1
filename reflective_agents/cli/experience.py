"""`reflect experience`: what runs have learned under a name, to be looked at, corrected, reviewed and shipped."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar
from uuid import uuid4

import typer

from reflective_agents.cli.output import clean, print_table, say
from reflective_agents.cli.store import Force, Target, Vectors, lines, minute, read_lines, with_store
from reflective_agents.state.errors import Misuse

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from reflective_agents.memory.items import Items
    from reflective_agents.state.experience import Item

T = TypeVar("T")
COLUMNS = ("id", "seen", "solved", "failed", "status", "title", "applies when")
Name = Annotated[str, typer.Argument(help="The name that runs learn under (--experience).", show_default=False)]
Id = Annotated[str, typer.Argument(help="Its id, as `reflect experience list` shows it.", show_default=False)]
User = Annotated[str | None, typer.Option(help="Whose items, on a server that knows its users.")]
Text = Annotated[str | None, typer.Option(help="The new text.")]

app = typer.Typer(rich_markup_mode=None, help="Look at what runs have learned under a name, and change it.")


@app.command("list")
def list_(
    name: Name,
    user: User = None,
    limit: Annotated[int, typer.Option(min=1, help="Most items listed.")] = 20,
    html: Annotated[str | None, typer.Option(metavar="FILE|-", help="All items as one page, without network.")] = None,
    embeddings: Vectors = None,
    force: Force = False,
) -> int:
    """List items, the latest first."""
    from reflective_agents.cli.exports import Export, check_targets, write
    from reflective_agents.viewer.items import items_page

    check_targets({"--html": html}, force)

    async def read(items: "Items") -> list["Item"]:
        return [item async for item in items.everything()][::-1]

    items = _with_items(name, user, embeddings, read)
    if not items:
        say(f"nothing is kept under {name}: runs with --experience {name} keep what they learn")
    if html:
        write([Export("--html", html, items_page(f"Experience {name}", items))], force)
    else:
        print_table(COLUMNS, [_row(item) for item in items[:limit]])
    return 0


@app.command()
def show(name: Name, id: Id, user: User = None, embeddings: Vectors = None) -> int:
    """Show an item whole, with its history."""
    from reflective_agents.state.experience import advice_of

    item = _with_items(name, user, embeddings, lambda items: _get(items, id))
    counts = f"drawn {item['seen']} times, shown in {item['solved']} solved and {item['failed']} failed runs"
    print(f"{item['kind']} of {minute(item['created'])}, {item['status']}, {counts}")
    if item["against"]:
        print(f"contradicts {', '.join(item['against'])}")
    parts = {"title": item["title"], "applies when": item["applies_when"], "advice": advice_of(item)}
    for label, text in {**parts, "evidence": item["evidence"]}.items():
        print(f"\n{label}: {clean(text)}")
    for change in item["history"]:
        after = "; ".join(f"{field}: {text}" for field, text in change["after"].items())
        print(f"\n{change['what']} {minute(change['at'])}: {clean(after)}")
    return 0


@app.command()
def edit(
    name: Name,
    id: Id,
    title: Text = None,
    applies_when: Text = None,
    advice: Text = None,
    user: User = None,
    embeddings: Vectors = None,
) -> int:
    """Correct an item. What it said before stays in its history."""
    given = {"title": title, "applies_when": applies_when, "advice": advice}
    texts = {field: text.strip() for field, text in given.items() if text is not None}
    if not texts or not all(texts.values()):
        raise Misuse("give the new text: --title, --applies-when or --advice")
    _with_items(name, user, embeddings, lambda items: items.edit(f"edited {uuid4().hex}", id, texts, time.time()))
    say("corrected")
    return 0


@app.command()
def forget(
    name: Name,
    id: Annotated[str | None, typer.Argument(help="Its id, as `reflect experience list` shows it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Forget everything instead.")] = False,
    user: User = None,
    embeddings: Vectors = None,
) -> int:
    """Delete an item for good, or all of them."""
    if (id is None) != everything:
        raise Misuse("name the item that is to be forgotten, or --all")

    async def work(items: "Items") -> None:
        if id is None:
            await items.forget_all()
        else:
            await _get(items, id)
            await items.forget(id)

    _with_items(name, user, embeddings, work)
    say("everything is forgotten" if id is None else "forgotten")
    return 0


@app.command()
def export(
    name: Name,
    to: Target = "-",
    user: User = None,
    embeddings: Vectors = None,
    force: Force = False,
) -> int:
    """Write all items as JSON lines."""
    from reflective_agents.cli.exports import Export, check_targets, write
    from reflective_agents.memory.exchange import export_items

    check_targets({"--export": to}, force)
    text = _with_items(name, user, embeddings, lambda items: lines(export_items(items)))
    write([Export("--export", to, text)], force)
    return 0


@app.command("import")
def import_(
    name: Name,
    file: Annotated[Path, typer.Argument(help="Items as JSON lines, exported or written by hand.")],
    user: User = None,
    embeddings: Vectors = None,
) -> int:
    """Add items under their ids; existing ones stay as they are."""
    from reflective_agents.memory.exchange import import_items

    given = read_lines(file)
    added = _with_items(name, user, embeddings, lambda items: import_items(items, given))
    say(f"{len(added)} items added")
    return 0


@app.command()
def merge(
    name: Name,
    file: Annotated[Path, typer.Argument(help="Items as JSON lines, such as another name's export.")],
    user: User = None,
    embeddings: Vectors = None,
) -> int:
    """Add items; those in the same words as an existing one are counted with it."""
    from reflective_agents.memory.exchange import merge_items, read_items

    others = read_items(read_lines(file))
    merged = _with_items(name, user, embeddings, lambda items: merge_items(items, others))
    say(f"{merged.added} items added, {merged.counted} counted")
    return 0


def _with_items(name: str, user: str | None, embeddings: str | None, work: "Callable[[Items], Awaitable[T]]") -> T:
    """Do some work on the items of a name and return its result.

    Raises:
        Misuse: if they were made with other embeddings, or what a memory needs is not installed.
        NoDatabase: if the database cannot be reached or opened.
    """
    from reflective_agents.nodes.remembering.experience import experience_of

    async def open_and_work(store: "BaseStore") -> T:
        from reflective_agents.memory.items import Items

        return await work(await Items.open(store, experience_of(name, user), embeddings))

    return with_store(open_and_work)


async def _get(items: "Items", item_id: str) -> "Item":
    found = await items.get([item_id])
    if not found:
        raise Misuse(f"there is no item {item_id} here: reflect experience list shows them")
    return found[0]


def _row(item: "Item") -> tuple[str, ...]:
    counts = (str(item["seen"]), str(item["solved"]), str(item["failed"]))
    return (item["id"], *counts, item["status"], item["title"], item["applies_when"])
