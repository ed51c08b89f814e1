"""The local corpus: what it finds, how it stays up to date, and what it refuses."""

import logging
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflective_agents.graphs.reflexion import graph as reflexion
from reflective_agents.state.errors import BadCorpus
from reflective_agents.web_search.corpus import PASSAGES_PER_DOCUMENT, Corpus, open_corpus


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "deep er").mkdir(parents=True)
    (folder / "trees.md").write_text("# Trees\n\n## Growth\n\nMonte Carlo trees grow by expansion.\n")
    (folder / "deep er" / "memory.txt").write_text("A memory stream keeps observations.")
    return folder


@pytest.fixture
def index_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with no other indexes."""
    monkeypatch.setenv("REFLECT_CACHE_DIR", str(tmp_path / "indexes"))
    return tmp_path / "indexes"


def urls(corpus: Corpus, query: str) -> list[str]:
    return [result["url"] for result in corpus.search(query)]


def test_result_is_a_passage_with_title_and_relative_address(folder: Path) -> None:
    assert open_corpus(str(folder)).search("how do trees grow?") == [
        {"title": "Trees — Growth", "url": "corpus:trees.md", "content": "Monte Carlo trees grow by expansion."}
    ]


def test_addresses_are_encoded_and_tell_nothing_of_the_machine(folder: Path) -> None:
    corpus = open_corpus(str(folder))
    assert urls(corpus, "stream") == ["corpus:deep%20er/memory.txt"]
    assert str(folder) not in str(corpus.search("trees memory"))


def test_words_are_found_in_other_forms_and_cases(folder: Path) -> None:
    assert urls(open_corpus(str(folder)), "EXPANDING") == []
    assert urls(open_corpus(str(folder)), "OBSERVATION") == ["corpus:deep%20er/memory.txt"]


def test_query_without_known_words_finds_nothing(folder: Path) -> None:
    assert urls(open_corpus(str(folder)), "zebra") == []


@pytest.mark.parametrize(
    "query",
    ["trees NOT grow", "trees AND zebra", "content:trees", "NEAR(trees, zebra)", "tre* OR trees", "^trees", 'trees"'],
)
def test_operators_in_a_query_are_words(folder: Path, query: str) -> None:
    assert "corpus:trees.md" in urls(open_corpus(str(folder)), query)


@pytest.mark.thorough
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text())
def test_no_query_raises(folder: Path, query: str) -> None:
    assert len(open_corpus(str(folder)).search(query, 1)) <= 1


def test_results_come_from_different_documents(folder: Path) -> None:
    (folder / "long.md").write_text("\n".join(f"## Part {i}\n\nZebra zebra zebra.\n" for i in range(9)))
    (folder / "other.txt").write_text("One zebra among very many other animals that live in the wide savanna.")
    found = urls(open_corpus(str(folder)), "zebra")
    assert found.count("corpus:long.md") == PASSAGES_PER_DOCUMENT
    assert "corpus:other.txt" in found


def test_common_words_do_not_outweigh_the_topic(folder: Path) -> None:
    (folder / "noise.txt").write_text("What is it and why is it the way that it is? " * 3)
    assert urls(open_corpus(str(folder)), "What is the memory of it?") == ["corpus:deep%20er/memory.txt"]
    assert urls(open_corpus(str(folder)), "what is it?") == ["corpus:noise.txt"]


def test_changes_show_in_the_next_search(folder: Path) -> None:
    corpus = open_corpus(str(folder))
    assert urls(corpus, "zebra") == []
    (folder / "new.txt").write_text("A zebra.")
    assert urls(corpus, "zebra") == ["corpus:new.txt"]
    (folder / "new.txt").write_text("A giraffe.")
    assert urls(corpus, "zebra giraffe") == ["corpus:new.txt"]
    assert [result["content"] for result in corpus.search("giraffe")] == ["A giraffe."]
    (folder / "new.txt").unlink()
    assert urls(corpus, "zebra giraffe") == []


def test_index_outlives_the_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert urls(Corpus(folder), "trees") == ["corpus:trees.md"]
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("an unchanged file was read again"))
    assert urls(Corpus(folder), "trees") == ["corpus:trees.md"]


def test_damaged_index_is_built_anew(folder: Path, index_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert urls(Corpus(folder), "trees") == ["corpus:trees.md"]
    (index,) = index_folder.iterdir()
    index.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    assert urls(Corpus(folder), "trees") == ["corpus:trees.md"]
    assert "is damaged" in caplog.text


def test_removed_index_is_built_anew(folder: Path, index_folder: Path) -> None:
    corpus = open_corpus(str(folder))
    assert urls(corpus, "trees") == ["corpus:trees.md"]
    (index,) = index_folder.iterdir()
    index.unlink()
    assert urls(corpus, "trees") == ["corpus:trees.md"]


def test_without_a_writable_cache_the_index_lives_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("REFLECT_CACHE_DIR", str(folder / "trees.md"))
    assert urls(open_corpus(str(folder)), "trees") == ["corpus:trees.md"]
    assert "No index can be kept" in caplog.text


@pytest.mark.process  # a PDF is read in one
def test_kinds_that_are_not_read_are_told_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a.docx", "b.DOCX", "c.xlsx", ".hidden.docx"):
        (folder / name).write_text("something")
    for _ in range(2):
        open_corpus(str(folder))
    [message] = [record.getMessage() for record in caplog.records if "Skipped files" in record.getMessage()]
    assert "2 .docx, 1 .xlsx" in message


@pytest.mark.process
def test_files_that_cannot_be_read_are_skipped_with_a_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 trees")
    (folder / "latin.txt").write_bytes("trees é".encode("latin-1"))
    (folder / "blank.md").write_text("\n\n")
    with caplog.at_level(logging.WARNING, "reflective_agents.web_search.corpus"):
        assert urls(open_corpus(str(folder)), "trees") == ["corpus:trees.md"]
    skipped = [record.getMessage() for record in caplog.records if record.name == "reflective_agents.web_search.corpus"]
    assert [Path(message.split(": ")[0]).name for message in skipped] == ["blank.md", "broken.pdf", "latin.txt"]


def test_hidden_files_other_kinds_and_pipes_are_left_out(folder: Path) -> None:
    (folder / ".git").mkdir()
    for name in [".git/trees.md", ".trees.md", "trees.py", "trees"]:
        (folder / name).write_text("trees")
    os.mkfifo(folder / "pipe.txt")
    (folder / "dangling.md").symlink_to("nowhere.md")
    assert urls(open_corpus(str(folder)), "trees") == ["corpus:trees.md"]


def test_name_that_is_not_unicode(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_text("zebra")
    assert urls(open_corpus(str(folder)), "zebra") == ["corpus:caf%E9.txt"]


def test_fifty_searches_at_once(folder: Path) -> None:
    corpus = open_corpus(str(folder))
    with ThreadPoolExecutor(50) as threads:
        found = list(threads.map(lambda _: urls(corpus, "trees"), range(50)))
    assert found == [["corpus:trees.md"]] * 50


def test_two_processes_share_an_index(folder: Path) -> None:
    first, second = Corpus(folder), Corpus(folder)
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(lambda corpus: urls(corpus, "trees"), [first, second])) == [["corpus:trees.md"]] * 2


def test_same_folder_is_the_same_corpus(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    assert open_corpus("docs") is open_corpus(str(folder)) is open_corpus("~/docs")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "There is no folder .*nowhere: name one that exists"),
        ("docs/trees.md", "trees.md is a file: name the folder"),
        ("empty", r"empty holds no document: put text into it \(.htm, .html, .markdown, .md, .pdf, .rst, .txt\)"),
    ],
)
def test_bad_folders_are_refused_at_once(folder: Path, name: str, message: str) -> None:
    (folder.parent / "empty").mkdir()
    with pytest.raises(BadCorpus, match=message) as caught:
        open_corpus(str(folder.parent / name))
    assert "\n" not in str(caught.value)


@pytest.mark.thorough
@pytest.mark.process  # a PDF is read in one
def test_folder_of_broken_files_is_refused_by_the_search(tmp_path: Path) -> None:
    (tmp_path / "broken.pdf").write_bytes(b"%PDF")
    with pytest.raises(BadCorpus, match="None of the files"):
        open_corpus(str(tmp_path)).search("trees")


def test_locked_index_is_reported_not_rebuilt(
    folder: Path, index_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Corpus(folder).search("trees")
    (path,) = index_folder.iterdir()
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: connect(*args, **{**kwargs, "timeout": 0}))
    (folder / "new.txt").write_text("zebra")
    lock = connect(path, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        Corpus(folder).search("zebra")
    lock.close()
    assert urls(Corpus(folder), "zebra") == ["corpus:new.txt"]


@pytest.mark.matrix(keep=5)
@pytest.mark.parametrize(
    ("question", "source"),
    [
        ("Why is reflection useful in AI?", "reflection.md"),
        ("Why is reflection useful?", "reflection.md"),
        ("benefits and limits of reflection", "reflection.md"),
        ("How does Reflexion remember failed trials?", "reflexion.md"),
        ("feedback and refinement by the same model", "self-refine.md"),
        ("How do thoughts and actions alternate?", "react.md"),
        ("majority vote over sampled chains of thought", "chain-of-thought.md"),
        ("How was the Game of 24 solved?", "tree-of-thoughts.md"),
        ("What are the steps of LATS?", "lats.md"),
        ("What does UCT stand for?", "mcts.md"),
        ("language model as a world model", "rap.md"),
        ("recency, importance and relevance of memories", "generative-agents.md"),
        ("invalid tool call arguments in JSON", "tool-use.md"),
        ("BM25 or dense retrieval?", "retrieval.md"),
        ("position bias of a judge", "llm-as-judge.md"),
        ("How is a budget enforced in parallel?", "budgets.md"),
        ("least-to-most prompting", "planning.md"),
    ],
)
def test_articles_that_come_with_the_project_answer(question: str, source: str) -> None:
    assert urls(open_corpus(None), question)[0] == f"corpus:{source}"


def test_articles_are_complete() -> None:
    articles = sorted(open_corpus(None).folder.glob("*.md"))
    assert len(articles) == 15
    for article in articles:
        title, sources, *rest = article.read_text(encoding="utf-8").split("\n\n")
        assert title.startswith("# ")
        assert sources.startswith("Sources: ")
        assert 2 <= sum(block.startswith("## ") for block in rest) <= 4
        assert 250 <= len(" ".join(rest).split()) <= 450


def test_an_answer_from_documents_holds_no_code(tmp_path: Path) -> None:
    code = "leaf = max(leaves, key=uct)  # LATS selects the leaf that UCT ranks highest."
    prose = "LATS selects a leaf by going down to the child whose UCT is the highest at each node."
    (tmp_path / "lats.md").write_text(f"# LATS\n\n```python\n{code}\n```\n\n{prose}\n")
    settings = {"model": "offline", "search": "local", "corpus": str(tmp_path)}
    out = reflexion.invoke({"messages": [("user", "How does LATS select a leaf?")]}, context=settings)
    answer = out["messages"][-1].text
    assert prose.rstrip(".") in answer
    assert "max(leaves" not in answer
