"""Local search on public question sets: is the paragraph a question was written for among the first 1, 5 results?"""

import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.locomo import rows
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


def measure_search(folder: Path) -> None:
    """Print the table of the sets in a folder."""
    print(
        "\n### Local search, a paragraph a file\n\n| | @1 | @5 | nothing found | questions |\n|---|---:|---:|---:|---:|"
    )
    for name, title in SETS.items():
        for path in sorted(folder.glob(f"{name}*.jsonl.gz")):
            with TemporaryDirectory() as work:
                print(f"| {title} ({path.name}) | {search_row([*rows(path)], Path(work))} |", flush=True)


def search_row(paragraphs: Sequence[Any], work: Path) -> str:
    """Measure recall@1, @5 and the share without a result, in %, of 500 questions drawn with a fixed seed."""
    for row in paragraphs:
        (work / f"{row['id']}.md").write_text(row["text"] + "\n", encoding="utf-8")
    corpus = open_corpus(str(work))
    asked = [(f"corpus:{row['id']}.md", one["question"]) for row in paragraphs for one in row["questions"]]
    asked = random.Random(2018).sample(asked, min(QUESTIONS, len(asked)))
    found = [[one["url"] for one in corpus.search(question, 5)] for _, question in asked]
    first, five = (sum(url in urls[:k] for (url, _), urls in zip(asked, found, strict=True)) for k in (1, 5))
    nothing = sum(not urls for urls in found)
    shares = " | ".join(f"{100 * count / len(asked):.1f}" for count in (first, five, nothing))
    return f"{shares} | {len(asked)}"
