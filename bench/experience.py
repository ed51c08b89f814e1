"""Which items of experience reach the tasks that they fit, on 200 labelled pairs of task and item.

    python -m bench.experience [--replies FILE] [--model NAME]

Prints the tables of docs/memory.md, for both embeddings: what the look-up brings, what is shown once a model has named
the items that apply, and whether a floor of the cosine would save calls. The model is the labels themselves; with
--replies one whose replies a JSON file holds, from the number of a task, from 1, to the names of the items that apply;
with --model one that is asked, such as openai:NAME for the server at OPENAI_BASE_URL, or offline.
"""

import asyncio
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.language_models import BaseChatModel
from langgraph.store.memory import InMemoryStore
from numpy.typing import NDArray

from bench.labelled_items import LESSONS
from bench.labelled_tasks import CASES, Labelled
from bench.options import parser_of
from reflective_agents.graphs import chain_of_thought
from reflective_agents.memory.items import Items
from reflective_agents.models.embeddings import get_embeddings
from reflective_agents.models.minilm import is_installed
from reflective_agents.nodes.remembering.experience import LOOKED_AT, experience_of
from reflective_agents.state.context import Context
from reflective_agents.state.errors import ModelFailed
from reflective_agents.state.experience import new_item
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request

SHOWN: int = Context.model_fields["memory_size"].default
LABELS = "the labels themselves"
NAMES = [*LESSONS]
IDS = {f"{number:032x}": name for number, name in enumerate(NAMES)}
_CONDITION = re.compile(r'<lesson number="(\d+)"[^>]*>\napplies when: (.*?)\n</lesson>', re.DOTALL)
Found = list[list[str]]
"""For each task the names of the items that were found or shown, the best first."""


# What is looked up, and what is shown


async def stored(embeddings: str) -> InMemoryStore:
    """Return a store that holds the forty items."""
    store = InMemoryStore()
    items = await Items.open(store, experience_of("labelled"), embeddings)
    lessons = zip(IDS, LESSONS.values(), strict=True)
    await items.add([new_item(item_id, *lesson, kind="success", created=0.0) for item_id, lesson in lessons])
    return store


async def looked_up(embeddings: str, tasks: Sequence[Labelled]) -> Found:
    """Look up as many items for each task as a run holds against it."""
    items = await Items.open(await stored(embeddings), experience_of("labelled"), embeddings)
    found: Found = []
    for task in tasks:
        nearest = await items.nearest(task.question, SHOWN + LOOKED_AT)
        found.append([IDS[item["id"]] for item in nearest])
    return found


async def shown(embeddings: str, tasks: Sequence[Labelled], models: Sequence[BaseChatModel | str]) -> Found:
    """Run each task with its model, all at once, and return what they were shown.

    Raises:
        ModelFailed: if a model gave no reply, which a run goes on without.
    """
    os.environ["REFLECT_EMBEDDINGS"] = embeddings
    graph = chain_of_thought.builder.compile(store=await stored(embeddings))
    usual: dict[str, Any] = {"model": FakeChatModel(reply=lambda _: "Answer: done"), "samples": 1, "search": "none"}

    async def run(task: Labelled, model: BaseChatModel | str) -> list[Any]:
        learning = {"experience": "labelled", "experience_model": model, "call_timeout": 900}
        context = ChainOfThoughtContext.model_validate(usual | learning)
        question = {"messages": [("user", task.question)]}
        return [part async for part in graph.astream(question, context=context, stream_mode=["custom", "values"])]

    names: Found = []
    for parts in await asyncio.gather(*map(run, tasks, models)):
        state: Any = {}
        for mode, part in parts:
            if mode == "values":
                state = part
            elif part["event"] == "recalled" and "reason" in part:
                raise ModelFailed(part["reason"])
        names.append([IDS[item["id"]] for item in state["experience"]["shown"]])
    return names


def naming(names: Collection[str]) -> FakeChatModel:
    """Make a model that says of these items that they apply."""
    conditions = {LESSONS[name].applies_when for name in names}

    def reply(request: Request) -> Reply:
        numbers = [int(number) for number, text in _CONDITION.findall(request.text) if text in conditions]
        return {"applies": numbers}

    return FakeChatModel(reply=reply)


# Figures


def share(part: int, whole: int) -> str:
    """Write a share in per cent, with what it is a share of."""
    return f"{100 * part / whole:.0f} ({part} of {whole})" if whole else "-"


def hits(tasks: Iterable[Labelled], found: Iterable[Sequence[str]]) -> int:
    """Count what was found and fits."""
    return sum(len({*task.fits} & {*names}) for task, names in zip(tasks, found, strict=True))


def recall(tasks: Sequence[Labelled], found: Found, *, english: bool) -> str:
    """Write how many of the fitting items of English or other tasks were found."""
    wanted = right = 0
    for task, names in zip(tasks, found, strict=True):
        if (task.language == "English") == english:
            wanted += len(task.fits)
            right += hits([task], [names])
    return share(right, wanted)


def row(embeddings: str, how: str, tasks: Sequence[Labelled], found: Found) -> str:
    """Format the recall and the precision of what was found: of what the 200 pairs have of it, and of all of it."""
    right, labelled = hits(tasks, found), 0
    for task, names in zip(tasks, found, strict=True):
        labelled += sum(name in task.fits + task.tempts for name in names)
    cells = [recall(tasks, found, english=True), recall(tasks, found, english=False)]
    cells += [share(right, labelled), share(right, sum(map(len, found)))]
    return f"| {embeddings} | {how} | {' | '.join(cells)} |"


def cosines(embeddings: str, tasks: Sequence[Labelled]) -> NDArray[np.float64]:
    """Calculate the cosine of each task, a row, and each item's condition."""
    embedder = get_embeddings(embeddings)
    conditions = np.array(embedder.embed_documents([lesson.applies_when for lesson in LESSONS.values()]))
    questions = np.array(embedder.embed_documents([task.question for task in tasks]))
    return np.asarray(questions @ conditions.T)


def quartiles(embeddings: str, tasks: Sequence[Labelled]) -> Iterator[str]:
    """Format the cosines of the labelled pairs: the least, the quartiles and the highest."""
    values, fits = cosines(embeddings, tasks), fitting(tasks)
    tempts = np.array([[name in task.tempts for name in NAMES] for task in tasks])
    english = np.array([[task.language == "English"] for task in tasks])
    for language, spoken in (("English", english), ("other", ~english)):
        for name, group in (("fits", fits), ("does not", tempts)):
            chosen = values[group & spoken]
            if len(chosen):
                cells = " | ".join(f"{value:.2f}" for value in np.quantile(chosen, [0, 0.25, 0.5, 0.75, 1]))
                yield f"| {embeddings} | {language} | {name} | {len(chosen)} | {cells} |"


def fitting(tasks: Sequence[Labelled]) -> NDArray[np.bool_]:
    """Return which item, a column, fits which task, a row."""
    return np.array([[name in task.fits for name in NAMES] for task in tasks])


def floors(embeddings: str, tasks: Sequence[Labelled]) -> Iterator[str]:
    """Format what a floor would do that is chosen on every second task, as the highest that loses nothing there, on the
    others, and the reverse.

    No call is made where all items of a name lie below the floor; a name holds one kind of the items, or all forty.
    """
    kinds = np.array([name.split()[0] for name in NAMES])
    held = {"one kind": [kinds == kind for kind in dict.fromkeys(kinds)], "all forty": [kinds == kinds]}
    for language, chosen in (("all", [*tasks]), ("English", [task for task in tasks if task.language == "English"])):
        values, fits, odd = cosines(embeddings, chosen), fitting(chosen), np.arange(len(chosen)) % 2 == 1
        for what, names in held.items():
            best = np.array([values[:, name].max(axis=1) for name in names])
            needed = np.array([fits[:, name].any(axis=1) for name in names])
            by_half = [(best[:, half][needed[:, half]].min(), ~half) for half in (odd, ~odd)]
            below = np.zeros_like(needed)
            for floor, others in by_half:
                below[:, others] = best[:, others] < floor
            cells = [", ".join(f"{floor:.2f}" for floor, _ in by_half)]
            cells += [share(int((below & group).sum()), int(group.sum())) for group in (needed, ~needed)]
            yield f"| {embeddings} | {language} | {what} | {' | '.join(cells)} |"


async def report(
    embeddings: Sequence[str], tasks: Sequence[Labelled], models: Mapping[str, Sequence[BaseChatModel | str]]
) -> None:
    """Print the tables; `models` has, by its name, what says for each task which items apply to it."""
    print("| embedding | shown by | recall, English | recall, other | precision, 200 pairs | precision, all forty |")
    print("|---|---|--:|--:|--:|--:|")
    for each in embeddings:
        found = await looked_up(each, tasks)
        print(row(each, f"(the {SHOWN + LOOKED_AT} that a model is asked about)", tasks, found))
        print(row(each, f"the look-up alone, the first {SHOWN}", tasks, [names[:SHOWN] for names in found]))
        for name, chosen in models.items():
            print(row(each, name, tasks, await shown(each, tasks, chosen)))
    print("\n| embedding | language | condition | pairs | least | 25 % | median | 75 % | highest |")
    print("|---|---|---|--:|--:|--:|--:|--:|--:|")
    for each in embeddings:
        print("\n".join(quartiles(each, tasks)))
    print(
        "\n| embedding | tasks | a name holds | floor of each half | needed calls lost, on the other | others saved |"
    )
    print("|---|---|---|--:|--:|--:|")
    for each in embeddings:
        print("\n".join(floors(each, tasks)))


def main() -> None:
    """Measure with the models that were named."""
    options = parser_of("bench.experience", __doc__)
    options.add_argument("--replies", type=Path, help='a JSON file such as {"1": ["museum 1"], "2": []}')
    options.add_argument("--model", help="a model that is asked")
    given = options.parse_args()
    tasks = CASES[:8] if given.quick else CASES
    models: dict[str, Sequence[BaseChatModel | str]] = {LABELS: [naming(task.fits) for task in tasks]}
    if given.replies:
        replies = json.loads(given.replies.read_text("utf-8"))
        models[given.replies.stem] = [naming(replies[str(number)]) for number, _ in enumerate(tasks, 1)]
    if given.model:
        models[given.model] = [given.model] * len(tasks)
    embeddings = ["lexical"]
    if is_installed() and not given.quick:
        embeddings.append("minilm")
    asyncio.run(report(embeddings, tasks, models))


if __name__ == "__main__":
    main()
