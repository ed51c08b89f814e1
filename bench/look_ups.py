"""What look-ups that a chat model formulates find more of than the question alone (`memory_queries`), on LoCoMo.

`python -m bench.look_ups [FOLDER] [--replies FILE]` prints the questions, so many of each category, chosen by their
place; or, with a file of replies, a table. A reply is a line of JSON with `conversation`, `question` and `queries`,
written by whoever plays the model, from the question alone.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore

from bench.locomo import Conversation, Question, read_locomo, rows
from bench.options import parser_of
from bench.recorded import RECORDED, required
from bench.resampling import interval
from bench.retrieval import embedded
from reflective_agents.graphs._memory.looking_up import best_ranks
from reflective_agents.memory.stream import MemoryStream, Scored

EACH = 16
"""Questions of each category."""
AT = 10
"""Memories among which the evidence is looked for."""
FOUND = 30
"""Memories that each look-up finds, as in `graphs.memory`."""
Chosen = list[tuple[Conversation, Question]]


def chosen(conversations: Sequence[Conversation], each: int) -> Chosen:
    """Return so many questions of each category but the adversarial one, evenly spread over the conversations."""
    by_category: dict[str, Chosen] = {}
    for conversation in conversations:
        for question in conversation.questions:
            by_category.setdefault(question.category, []).append((conversation, question))
    by_category.pop("adversarial", None)
    return list(chain.from_iterable(part[:: max(len(part) // each, 1)][:each] for part in by_category.values()))


Recall = tuple[str, str, float, float]
"""Of a question: its conversation, its category, and its recall without look-ups and with them."""


async def recalls(questions: Chosen, replies: Mapping[tuple[str, str], list[str]], by: Embeddings) -> list[Recall]:
    """Measure the recall of each question for which there is a reply."""
    streams: dict[str, MemoryStream] = {}
    made = []
    for conversation, question in questions:
        queries = replies.get((conversation.id, question.text))
        if queries is None:
            continue
        if conversation.id not in streams:
            streams[conversation.id] = await MemoryStream.open(InMemoryStore(), conversation.id, by)
            await streams[conversation.id].add(conversation.turns)
        ranked = await streams[conversation.id].retrieve_each(
            [question.text, *queries], k=FOUND, now=conversation.now, renew=False
        )
        alone, together = _recall(question, ranked[0]), _recall(question, best_ranks(ranked))
        made.append((conversation.id, question.category, alone, together))
    return made


def _recall(question: Question, found: Sequence[Scored]) -> float:
    """Return the share of the evidence among the first memories."""
    ids = {scored.memory["id"] for scored in found[:AT]}
    return len(question.evidence & ids) / len(question.evidence)


def table(name: str, made: Sequence[Recall]) -> Iterable[str]:
    """Yield a row for each category and one for all."""
    for category in [*dict.fromkeys(category for _, category, _, _ in made), "all"]:
        mine = [each for each in made if category in (each[1], "all")]
        alone, together = np.array([each[2] for each in mine]), np.array([each[3] for each in mine])
        low, high = interval([together - alone])
        yield (
            f"| {name}, {category} | {100 * alone.mean():.1f} | {100 * together.mean():.1f} "
            f"| {100 * low:+.1f} to {100 * high:+.1f} | {int((together > alone).sum())} "
            f"| {int((together < alone).sum())} | {len(mine)} |"
        )


def main() -> None:
    """Print the questions, or what the replies find."""
    ask = parser_of("bench.look_ups", __doc__)
    ask.add_argument("folder", type=Path, nargs="?", default=RECORDED)
    ask.add_argument("--replies", type=Path, help="a file of replies")
    ask.add_argument("--each", type=int, default=EACH, help="questions of each category")
    ask.add_argument("--cache", type=Path, help="a folder that keeps the vectors from one run to the next")
    given = ask.parse_args()
    required(given.folder)
    corrections = sorted(given.folder.glob("locomo_corrections*.jsonl.gz"))
    files = [path for path in sorted(given.folder.glob("locomo*.jsonl.gz")) if path not in corrections]
    conversations = list(chain.from_iterable(read_locomo(path, corrections) for path in files))
    questions = chosen(conversations, 1 if given.quick else given.each)
    if given.replies is None:
        for conversation, question in questions:
            print(json.dumps({"conversation": conversation.id, "question": question.text, "queries": []}))
        return
    replies = {(row["conversation"], row["question"]): row["queries"] for row in rows(given.replies)}
    print(f"| recall@{AT} | question alone | with look-ups | 95 % of the gain | better | worse | questions |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, by in embedded(given.cache, given.quick).items():
        print("\n".join(table(name, asyncio.run(recalls(questions, replies, by)))), flush=True)


if __name__ == "__main__":
    main()
