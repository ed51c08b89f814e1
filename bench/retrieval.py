"""How much of what was said is found again: the memory on LoCoMo, local search in several languages.

    python -m bench.retrieval [FOLDER] [--cache FOLDER] [--only locomo,later,search] [--longmemeval FILE]

No language model is asked, nothing is fetched. The folder holds `locomo*.jsonl.gz`, `locomo_corrections*.jsonl.gz` and
`{xquad_en,xquad_de,xquad_zh,xquad_th,cmrc2018,drcd}*.jsonl.gz`; what is missing is left out. Recall is the share of the
turns with a question's evidence that are among the first k retrieved; intervals are 95 %, by drawing conversations, and
questions within them, with replacement.
"""

import asyncio
import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore
from numpy.typing import NDArray

from bench.later import APART, ROUNDS, later_table
from bench.locomo import Conversation, read_locomo, read_longmemeval
from bench.options import parser_of
from bench.recorded import RECORDED, required
from bench.resampling import interval
from bench.searching import measure_search, measure_sentences
from reflective_agents.memory.rankings.base import Ranking
from reflective_agents.memory.rankings.hybrid import RANKING as HYBRID
from reflective_agents.memory.rankings.paper import RANKING as PUBLISHED
from reflective_agents.memory.scoring import normalise
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.models.embeddings import get_embeddings
from reflective_agents.models.lexical import LexicalEmbeddings
from reflective_agents.models.minilm import is_installed
from reflective_agents.text.stems import TOKENIZER
from reflective_agents.text.words import content_words, count_words

KS = (5, 10, 20)
Ranked = list[list[str]]
"""For each question of a conversation the ids found, the best first."""


class Cached(Embeddings):
    """Embeddings whose vectors are kept in a folder from one run to the next."""

    def __init__(self, inner: Embeddings, folder: Path | None) -> None:
        self.model = inner.model  # type: ignore[attr-defined]  # both of those measured have one
        self._inner, self._folder = inner, folder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts."""
        if self._folder is None:
            return self._inner.embed_documents(texts)
        file = self._folder / f"{hashlib.sha256(repr((self.model, texts)).encode()).hexdigest()[:24]}.npy"
        if not file.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            np.save(file, np.array(self._inner.embed_documents(texts), np.float32))
        vectors: list[list[float]] = np.load(file).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return self.embed_documents([text])[0]


def embedded(cache: Path | None, quick: bool = False) -> dict[str, Embeddings]:
    """Return the embeddings that are measured: the lexical ones, and all-MiniLM where it is installed."""
    known: dict[str, Embeddings] = {"lexical": LexicalEmbeddings()}
    if is_installed() and not quick:
        known["all-MiniLM"] = Cached(get_embeddings("minilm"), cache)
    return known


# What is compared


async def remembered(conversation: Conversation, embeddings: Embeddings, ranking: Ranking) -> Ranked:
    """Retrieve as the strategy does: one question a minute, renewing the memories that are found."""
    stream = await MemoryStream.open(InMemoryStore(), conversation.id, embeddings)
    await stream.add(conversation.turns)
    found = []
    for number, question in enumerate(conversation.questions):
        now = (question.asked_at or conversation.now) + 60.0 * number
        scored = await stream.retrieve(question.text, k=max(KS), now=now, ranking=ranking, renew=False)
        await stream.renew({match.memory["id"]: now for match in scored[:10]})
        found.append([match.memory["id"] for match in scored])
    return found


def ranked(conversation: Conversation, scores: Iterable[NDArray[np.float64]]) -> Ranked:
    """Rank the turns by their scores; among equals the later one comes first."""
    ids = [turn["id"] for turn in conversation.turns]
    times = np.array([turn["created"] for turn in conversation.turns])
    ranks: Ranked = []
    for each in scores:
        best = np.lexsort((-times, -each))[: max(KS)]
        ranks.append([ids[row] for row in best])
    return ranks


def texts_of(conversation: Conversation) -> list[str]:
    """Return the turns with their speakers, as a plain text search has them."""
    return [f"{turn.get('speaker')}: {turn['text']}" for turn in conversation.turns]


def bm25(conversation: Conversation) -> list[NDArray[np.float64]]:
    """Calculate SQLite's BM25 for each question."""
    table = sqlite3.connect(":memory:")
    table.execute(f'CREATE VIRTUAL TABLE turns USING fts5(text, tokenize = "{TOKENIZER}")')
    table.executemany("INSERT INTO turns (rowid, text) VALUES (?, ?)", enumerate(texts_of(conversation)))
    made = []
    for question in conversation.questions:
        scores = np.zeros(len(conversation.turns))
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(content_words(question.text)))
        for row, score in table.execute("SELECT rowid, -bm25(turns) FROM turns WHERE turns MATCH ?", (match,)):
            scores[row] = score
        made.append(scores)
    return made


def cosines(conversation: Conversation, embeddings: Embeddings) -> list[NDArray[np.float64]]:
    """Calculate the cosine of each turn for each question."""
    turns = np.array(embeddings.embed_documents(texts_of(conversation)))
    questions = np.array(embeddings.embed_documents([question.text for question in conversation.questions]))
    return [turns @ vector for vector in questions]


def hybrid(conversation: Conversation, embeddings: Embeddings) -> list[NDArray[np.float64]]:
    """Calculate the plain hybrid: the sum of both scores, each scaled to 0..1."""
    both = zip(bm25(conversation), cosines(conversation, embeddings), strict=True)
    return [np.asarray(normalise(words) + normalise(meaning)) for words, meaning in both]


# Figures


class Hit(NamedTuple):
    """What a system found for one question: its conversation and category, and for each k the share of the evidence."""

    conversation: str
    category: str
    recall: tuple[float, ...]


def hits(conversations: Sequence[Conversation], found: Sequence[Ranked], audited: bool) -> list[Hit]:
    """Calculate the recall of every question."""
    made = []
    for conversation, ranks in zip(conversations, found, strict=True):
        for question, ids in zip(conversation.questions, ranks, strict=True):
            wanted = question.audited if audited else question.evidence
            recall = tuple(len(wanted & set(ids[:k])) / len(wanted) for k in KS)
            made.append(Hit(conversation.id, question.category, recall))
    return made


def line(name: str, made: Sequence[Hit]) -> str:
    """Format a row of a table: mean recall at each k, the interval at 10, any and all of the evidence at 10."""
    counted = [finding for finding in made if finding.category != "adversarial"] or list(made)
    at = np.array([finding.recall for finding in counted])
    groups: dict[str, list[float]] = {}
    for finding in counted:
        groups.setdefault(finding.conversation, []).append(finding.recall[1])
    low, high = interval([np.array(values) for values in groups.values()])
    ten = at[:, 1]
    means = " | ".join(f"{100 * value:.1f}" for value in at.mean(axis=0))
    spread = f"{100 * low:.1f} to {100 * high:.1f}"
    return f"| {name} | {means} | {spread} | {100 * (ten > 0).mean():.1f} | {100 * (ten == 1).mean():.1f} | {len(at)} |"


HEAD = "| @5 | @10 | @20 | 95 % of @10 | any @10 | all @10 | questions |\n|---|---:|---:|---:|---:|---:|---:|---:|"


def by_category(systems: dict[str, list[Hit]], evidence: str) -> list[str]:
    """Format a table of recall@10 by category, one system per row; `evidence` says whose it is."""
    first = next(iter(systems.values()))
    count = Counter(hit.category for hit in first)
    heads = [f"{name} ({number})" for name, number in count.items()]
    table = [f"| @10 by category, {evidence} | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for system, made in systems.items():
        cells = []
        for name in count:
            values = np.array([finding.recall[1] for finding in made if finding.category == name])
            low, high = interval([values])
            cells.append(f"{100 * values.mean():.1f} ({100 * low:.0f} to {100 * high:.0f})")
        table.append(f"| {system} | {' | '.join(cells)} |")
    return table


def least_gain(ours: Sequence[Hit], theirs: Sequence[Hit]) -> tuple[float, str]:
    """Return our least gain in recall@10 over all but one conversation, and which one was left out."""
    gains = {}
    for left_out in dict.fromkeys(hit.conversation for hit in ours):
        mine, others = [], []
        for own, other in zip(ours, theirs, strict=True):
            if own.conversation != left_out and own.category != "adversarial":
                mine.append(own.recall[1])
                others.append(other.recall[1])
        gains[left_out] = float(np.mean(mine) - np.mean(others)) if mine else 0.0
    worst = min(gains, key=gains.__getitem__)
    return 100 * gains[worst], worst


async def measure(conversations: Sequence[Conversation], known: dict[str, Embeddings]) -> dict[str, list[Ranked]]:
    """Collect what every system finds, conversation by conversation."""
    plain: dict[str, Callable[[Conversation], Ranked]] = {"BM25 (FTS5, Porter)": lambda one: ranked(one, bm25(one))}
    minilm = known.get("all-MiniLM")
    if minilm:
        plain["all-MiniLM"] = lambda one: ranked(one, cosines(one, minilm))
        plain["plain hybrid: BM25 + all-MiniLM"] = lambda one: ranked(one, hybrid(one, minilm))
    found = {name: list(map(search, conversations)) for name, search in plain.items()}
    rankings: dict[str, Ranking] = {"memory, {}": HYBRID, '`ranking="paper"`, {}': PUBLISHED}
    for (how, ranking), (name, embeddings) in product(rankings.items(), known.items()):
        found[how.format(name)] = [await remembered(each, embeddings, ranking) for each in conversations]
    return found


def report(title: str, conversations: Sequence[Conversation], known: dict[str, Embeddings]) -> None:
    """Print the tables of one set of conversations."""
    found = asyncio.run(measure(conversations, known))
    audits = {"published": False, "audited": True}
    questions = chain.from_iterable(conversation.questions for conversation in conversations)
    if all(question.evidence == question.audited for question in questions):
        del audits["audited"]
    for name, audited in audits.items():
        systems = {system: hits(conversations, ranks, audited) for system, ranks in found.items()}
        print(f"\n### {title}\n\n| {name} evidence {HEAD}")
        for system, made in systems.items():
            print(line(system, made))
        words = [sum(map(count_words, texts_of(conversation))) for conversation in conversations]
        print(f"| the whole conversation: {np.mean(words):,.0f} words | 100 | 100 | 100 | | 100 | 100 | |")
        print("\n" + "\n".join(by_category(systems, name)))
        for system, made in systems.items():
            if system.startswith("memory, ") and len(conversations) > 1:
                gain, left_out = least_gain(made, systems["BM25 (FTS5, Porter)"])
                print(f"\n{system}: at least {gain:.1f} points above BM25, leaving out one conversation ({left_out})")


def main() -> None:
    """Measure what the folder holds."""
    ask = parser_of("bench.retrieval", __doc__)
    ask.add_argument("folder", type=Path, nargs="?", default=RECORDED)
    ask.add_argument("--cache", type=Path, help="a folder that keeps the vectors from one run to the next")
    ask.add_argument("--only", default="locomo,later,search", help="locomo, later, search: some of them, with commas")
    ask.add_argument("--longmemeval", type=Path, help="a file of LongMemEval, such as longmemeval_s.json")
    given = ask.parse_args()
    required(given.folder)
    known = embedded(given.cache, given.quick)
    corrections = sorted(given.folder.glob("locomo_corrections*.jsonl.gz"))
    locomo = [path for path in sorted(given.folder.glob("locomo*.jsonl.gz")) if path not in corrections]
    if "locomo" in given.only:
        for path in locomo:
            report(f"LoCoMo ({path.name})", read_locomo(path, corrections)[: 1 if given.quick else None], known)
    if given.longmemeval:
        report(f"LongMemEval ({given.longmemeval.name})", read_longmemeval(given.longmemeval), known)
    if "later" in given.only:
        distances, rounds = (["two weeks"], 1) if given.quick else ([*APART], ROUNDS)
        print("\n### Later statements\n\n" + "\n".join(asyncio.run(later_table(known, distances, rounds))))
    if "search" in given.only:
        most = 20 if given.quick else None
        measure_search(given.folder, most)
        measure_sentences(given.folder, most)


if __name__ == "__main__":
    main()
