"""Local search on public question sets: is the paragraph a question was written for among the first 1, 5 results?

And what the lexical embedding finds alone: the sentences of the first forty paragraphs of a set are the memories.
"""

import random
import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bench.locomo import rows
from reflective_agents.models.lexical import LexicalEmbeddings
from reflective_agents.web_search.corpus import open_corpus

SETS = {
    "cmrc2018": "CMRC 2018, simplified Chinese",
    "drcd": "DRCD, traditional Chinese",
    "xquad_zh": "XQuAD Chinese",
    "xquad_th": "XQuAD Thai",
    "xquad_en": "XQuAD English",
    "xquad_de": "XQuAD German",
}
QUESTIONS = 500
PARAGRAPHS = 40
SENTENCES = ("xquad_zh", "cmrc2018", "drcd", "xquad_en")
"""The sets whose sentences are told apart by their marks, as Thai ones are not."""
_END = re.compile(r"(?<=[\u3002\uff01\uff1f\uff1b!?])\s*|(?<=[.!?])\s+")


def measure_search(folder: Path, most: int | None = None) -> None:
    """Print the table of the sets in a folder, each with at most so many paragraphs."""
    print("\n### Local search, a paragraph a file\n\n| | @1 | @5 | nothing found | questions |")
    print("|---|---:|---:|---:|---:|")
    for name, title in SETS.items():
        for path in sorted(folder.glob(f"{name}*.jsonl.gz")):
            with TemporaryDirectory() as work:
                print(f"| {title} | {search_row([*rows(path)][:most], Path(work))} |", flush=True)


def search_row(paragraphs: Sequence[Any], work: Path) -> str:
    """Measure recall@1, @5 and the share without a result, in %, of 500 questions drawn with a fixed seed."""
    for row in paragraphs:
        (work / f"{row['id']}.md").write_text(row["text"] + "\n", encoding="utf-8")
    corpus = open_corpus(str(work))
    questions: list[tuple[str, str]] = []
    for row in paragraphs:
        questions += [(f"corpus:{row['id']}.md", entry["question"]) for entry in row["questions"]]
    questions = random.Random(2018).sample(questions, min(QUESTIONS, len(questions)))
    first = five = nothing = 0
    for url, question in questions:
        urls = [result["url"] for result in corpus.search(question, 5)]
        first += url in urls[:1]
        five += url in urls
        nothing += not urls
    shares = " | ".join(f"{100 * count / len(questions):.1f}" for count in (first, five, nothing))
    return f"{shares} | {len(questions)}"


def measure_sentences(folder: Path, most: int | None = None) -> None:
    """Print what the cosine of the lexical embedding finds where each sentence is a memory."""
    print("\n### The lexical cosine alone, a sentence a memory\n\n| | @1 | @5 | @10 | sentences | questions |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in SENTENCES:
        for path in sorted(folder.glob(f"{name}*.jsonl.gz")):
            print(f"| {SETS[name]} | {sentences_row([*rows(path)][: most or PARAGRAPHS])} |", flush=True)


def sentences_row(paragraphs: Sequence[Any]) -> str:
    """Measure how often a sentence of the paragraph that holds the answer is among the first 1, 5, 10, in %."""
    sentences: list[str] = []
    questions: list[tuple[str, list[int]]] = []
    for row in paragraphs:
        parts = [part for part in _END.split(row["text"]) if part.strip()]
        for entry in row["questions"]:
            holding = [index for index, part in enumerate(parts, len(sentences)) if entry["answers"][0] in part]
            questions += [(entry["question"], holding)] if holding else []
        sentences += parts
    embed = LexicalEmbeddings().embed_documents
    scores = np.array(embed([question for question, _ in questions])) @ np.array(embed(sentences)).T
    order = np.argsort(-scores, axis=1, kind="stable")
    ranks = np.array([np.isin(row, places).argmax() for row, (_, places) in zip(order, questions, strict=True)])
    shares = " | ".join(f"{100 * (ranks < k).mean():.1f}" for k in (1, 5, 10))
    return f"{shares} | {len(sentences)} | {len(questions)}"
