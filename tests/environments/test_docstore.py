"""Articles from folders, files and tasks."""

import logging
from pathlib import Path

import pytest

from reflective_agents.environments.docstore import (
    Article,
    LocalDocstore,
    folder_docstore,
    hotpot_docstore,
    jsonl_docstore,
)
from reflective_agents.state.errors import BadCorpus

PARIS = Article("Paris", "\n Paris is the capital of France.\nIt lies on the Seine.")


async def test_titles_are_found_whatever_their_case_and_blanks() -> None:
    docstore = LocalDocstore([PARIS, Article("Paris", "another"), Article("New York", "A city.")])
    assert await docstore.article(" paris") == PARIS
    assert await docstore.article("new_york") == Article("New York", "A city.")
    assert await docstore.article("Berlin") is None


async def test_similar_titles_best_first() -> None:
    cities = [Article(f"City {n}", "a city on the river") for n in range(9)]
    docstore = LocalDocstore([*cities, Article("River", "water"), Article("Seine", "the river of Paris"), PARIS])
    assert (await docstore.similar("the river Seine"))[0] == "Seine"
    assert (await docstore.similar("river water"))[0] == "River"
    assert len(await docstore.similar("city")) == 5
    assert await docstore.similar("?!") == []


def test_paragraphs_and_sentences() -> None:
    text = 'Dr. A. Smith lives here. He said "No!" He left in 1990.\n\nSmith et al. agree. 42 is a number.'
    article = Article("Smith", text)
    assert article.first_paragraph() == 'Dr. A. Smith lives here. He said "No!" He left in 1990.'
    assert article.sentences_with("SMITH") == ["Dr. A. Smith lives here.", "Smith et al. agree."]
    assert article.sentences_with("said") == ['He said "No!"']
    assert article.sentences_with("number") == ["42 is a number."]
    assert Article("Empty", " \n").first_paragraph() == ""


async def test_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "Seine.txt").write_text("A river in France.\n\nIt is 777 km long.")
    (tmp_path / "page.html").write_text("<title>Paris</title><p>The capital.</p><h2>History</h2><p>It is old.</p>")
    (tmp_path / "broken.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "picture.png").write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        docstore = folder_docstore(tmp_path)
    assert await docstore.article("seine") == Article("Seine", "A river in France.\nIt is 777 km long.")
    assert await docstore.article("paris") == Article("Paris", "The capital.\nIt is old.")
    assert "broken.txt" in caplog.text


def test_folders_that_hold_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCorpus, match="name one that holds articles"):
        folder_docstore(tmp_path / "missing")
    with pytest.raises(BadCorpus, match="no article"):
        folder_docstore(tmp_path)


async def test_jsonl(tmp_path: Path) -> None:
    file = tmp_path / "articles.jsonl"
    file.write_text('{"title": "Seine", "text": "A river."}\n\n{"title": "Paris", "text": ["One.", "Two."]}\n')
    docstore = jsonl_docstore(file)
    assert await docstore.article("Seine") == Article("Seine", "A river.")
    assert await docstore.article("Paris") == Article("Paris", "One.\nTwo.")


def test_broken_files_are_refused_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "articles.jsonl"
    file.write_text('{"title": "Seine", "text": "A river."}\n{"title": "Paris"}\n')
    with pytest.raises(BadCorpus, match=r"Line 2 of .*articles\.jsonl"):
        jsonl_docstore(file)
    with pytest.raises(BadCorpus, match="cannot be read"):
        jsonl_docstore(tmp_path / "missing.jsonl")


async def test_distractor_paragraphs() -> None:
    docstore = hotpot_docstore([("Seine", ["The Seine is a river.", " It flows to the sea."])])
    assert await docstore.article("Seine") == Article("Seine", "The Seine is a river. It flows to the sea.")
