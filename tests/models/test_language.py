"""Which language a question is in: small words decide, and English shares some of them with others."""

import gzip
import json
from pathlib import Path

import pytest

from reflective_agents.evals.datasets import load_dataset
from reflective_agents.models.language import is_english, language_of

ENGLISH = [
    "Is Paris larger than London?",
    "Are cats mammals?",
    "Find the capital of France.",
    "List five animals.",
    "Describe photosynthesis for children.",
    "Compare Dante, Goethe and Cervantes.",
    "Calls per task for each model?",
    "Who wrote Das Kapital and Der Ring?",
    "Translate 'ich bin auch hier und das ist gut' for me.",
    'Give an example of "hvad er det for en".',
    "Where is the Hague, and what is made there?",
    "Is Las Vegas larger than Los Angeles?",
    "Compare Los Angeles and Las Vegas",
    "Has Das Boot won an Oscar?",
    "Shane Black was born in 1961.",
    "def area(a, b):\n    '''\n    Multiply two numbers.\n    '''",
    'def area(a, b):\n    """Multiply two numbers a and b (1 ≤ a)."""',
]
FOREIGN = {
    "Wat is de hoofdstad van Nederland en waarom is dat zo?": "Dutch",
    "Hoe werkt dit of dat?": "Dutch",
    "Hoeveel mensen wonen er in Amsterdam, en is dat veel?": "Dutch",
    "Wie schreef The Lord of the Rings, en voor wie is het?": "Dutch",
    "Hvad er prisen for en billet?": None,
    "Hvor mange mennesker bor der i Danmark for tiden?": None,
    "Hvad er hovedstaden for Danmark?": None,
    "Hvor mange bor i Oslo, og hva er det for en by?": None,
    "Vad är huvudstaden i Sverige och hur många bor där?": "Swedish",
    "Cine are dreptate?": "Romanian",
    "Cine este autorul, unde are casa?": "Romanian",
    "Wie ist das Wetter in Berlin?": "German",
    "Wer war Not Vital?": None,
    "Quelle est la capitale de la France?": "French",
    "On a gagné le match": None,
    "Ik was in Amsterdam": None,
}


def test_english_is_english() -> None:
    for question in ENGLISH:
        assert is_english(question)


def test_what_shares_words_with_english_is_not() -> None:
    for question in FOREIGN:
        assert language_of(question) == (FOREIGN[question] or f'the language of "{question}"')


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("file", "english"),
    [("bench_hotpot_dev", 1.0), ("bench_humaneval", 1.0), ("bench_mbpp", 1.0), ("bench_fever_dev", 0.95)],
)
def test_english_tasks_of_benchmarks_are_english(file: str, english: float, recorded: Path) -> None:
    texts = [task["question"] for task in load_dataset(recorded / f"{file}.dev.jsonl.gz").tasks]
    assert sum(map(is_english, texts)) >= english * len(texts)


def test_german_questions_are_not_english(recorded: Path) -> None:
    lines = gzip.decompress((recorded / "xquad_de.dev.jsonl.gz").read_bytes()).splitlines()
    questions = [question["question"] for row in map(json.loads, lines) for question in row["questions"]]
    assert sum(map(is_english, questions)) <= 0.03 * len(questions)
