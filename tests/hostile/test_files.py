"""Files that somebody else wrote: folders to be searched, data sets, results."""

import gzip
import json
import os
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.evals.datasets import EXPANSION, load_dataset
from reflective_agents.evals.results import read_run
from reflective_agents.nodes.asking.wording import replacements
from reflective_agents.state.errors import BadCorpus, BadPrompt, Misuse
from reflective_agents.web_search import documents
from reflective_agents.web_search.corpus import open_corpus
from reflective_agents.web_search.documents import read_passages

pytestmark = pytest.mark.hostile


def test_links_do_not_lead_out_of_the_corpus(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("The vault opens with heliotrope.")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "passwd.txt").symlink_to(tmp_path / "secret.txt")
    (corpus / "above.txt").symlink_to("../secret.txt")
    (corpus / "folder").symlink_to(tmp_path)
    with pytest.raises(BadCorpus, match="holds no document"):
        open_corpus(str(corpus))
    (corpus / "own.txt").write_text("The vault is in the cellar.")
    (corpus / "alias.txt").symlink_to("own.txt")
    found = open_corpus(str(corpus)).search("vault heliotrope")
    assert {result["url"] for result in found} == {"corpus:own.txt", "corpus:alias.txt"}


BOMBS = {
    "nested": ".html", "<div>": ".html", "<p>a</p>": ".html", "<!--": ".html", "<?x": ".html", "<![CDATA[": ".html",
    '<a b="': ".html", "<a <b ": ".html", "</": ".html", "<script>": ".html", "&lt": ".html", "|a": ".md", ">": ".md",
    "= ": ".txt", "word ": ".txt", "x": ".txt", "\n ": ".txt", "[": ".md", "*a **b ": ".md", "`": ".md",
}  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize(("piece", "suffix"), BOMBS.items(), ids=list(BOMBS))
def test_documents_are_read_in_time_that_grows_with_their_size(piece: str, suffix: str, tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        file = tmp_path / f"bomb{suffix}"
        file.write_text(piece * count)
        begun = time.process_time()
        read_passages(file)
        return time.process_time() - begun

    seconds(10)  # imports
    small, large = min(seconds(2_000) for _ in range(3)), min(seconds(20_000) for _ in range(2))
    assert large < 40 * max(small, 0.01)  # ten times as much; with its square it would be a hundred times


def packed_pdf(content: bytes) -> bytes:
    """Return a PDF of about a kilobyte whose only page is packed twice."""
    packed = zlib.compress(zlib.compress(content, 9), 9)
    fonts = b"/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]%s/Contents 4 0 R>>" % fonts,
        b"<</Length %d/Filter[/FlateDecode/FlateDecode]>>stream\n%s\nendstream" % (len(packed), packed),
    ]
    text = b"%PDF-1.4\n" + b"".join(b"%d 0 obj\n%s\nendobj\n" % numbered for numbered in enumerate(objects, 1))
    return text + b"trailer<</Size 5/Root 1 0 R>>\nstartxref\n0\n%%EOF"


def long_text(characters: int = 70_000_000) -> bytes:
    return b"BT /F 9 Tf (" + b"x" * characters + b") Tj ET"


PDF_BOMBS: dict[str, tuple[Callable[[], bytes], dict[str, int], str]] = {
    "zeros": (lambda: bytes(300_000_000), {}, "the PDF is broken or encrypted (LimitReachedError)"),
    "time": (
        long_text,
        {"PDF_SECONDS": 2},
        "reading the PDF takes more than 2 s",
    ),
    "memory": (
        long_text,
        {"PDF_MEMORY": 100_000_000},
        "the PDF unpacks to more than a document needs",
    ),
    "text": (lambda: long_text(999), {"PDF_CHARACTERS": 900}, "the PDF unpacks to more than"),
}


@pytest.mark.thorough
@pytest.mark.process
@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize(("content", "bounds", "why"), PDF_BOMBS.values(), ids=list(PDF_BOMBS))
def test_packed_pdfs_are_skipped_in_bounded_time_and_memory(
    content: Callable[[], bytes],
    bounds: dict[str, int],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name, value in bounds.items():
        monkeypatch.setattr(documents, name, value)
    (tmp_path / "own.txt").write_text("The vault is in the cellar.")
    (tmp_path / "bomb.pdf").write_bytes(packed_pdf(content()))
    assert (tmp_path / "bomb.pdf").stat().st_size < 2_000
    assert [found["url"] for found in open_corpus(str(tmp_path)).search("vault")] == ["corpus:own.txt"]
    (message,) = caplog.messages
    assert message.startswith(f"Skipped {tmp_path / 'bomb.pdf'}: {why}")


@pytest.mark.thorough
def test_a_packed_data_set_cannot_fill_the_memory(tmp_path: Path) -> None:
    file = tmp_path / "bomb.jsonl.gz"
    with gzip.open(file, "wb") as packed:
        for _ in range(300):
            packed.write(bytes(1_000_000))
    assert file.stat().st_size * EXPANSION < 300_000_000
    with pytest.raises(Misuse, match="it unpacks to more than"):
        load_dataset(file)


def test_archives_are_not_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("vault.txt", "The vault is in the cellar. " * 100_000)
    with pytest.raises(BadCorpus, match="holds no document"):
        open_corpus(str(tmp_path))


ABOUT = {
    "strategy": "react", "settings": {}, "dataset": "d", "environment": "", "fingerprint": "f", "tasks": 1,
    "versions": {}, "started": "now",
}  # fmt: skip
LINE: dict[str, Any] = {
    "id": "1", "question": "Why?", "gold": None, "answer": "7", "correct": True, "scores": {"em": 1.0},
    "outcome": None, "usage": None, "trials": [], "seconds": 1.0, "error": None,
}  # fmt: skip
TAMPERED: list[dict[str, Any]] = [
    {"id": []}, {"id": {}}, {"id": None}, {"correct": "yes"}, {"scores": None}, {"scores": {"em": "1"}},
    {"outcome": 7}, {"outcome": {"status": "won", "reason": ""}}, {"usage": [1]}, {"usage": {"model_calls": "many"}},
    {"trials": [7]}, {"seconds": None}, {"seconds": "1"},
]  # fmt: skip


@pytest.mark.parametrize("change", TAMPERED, ids=str)
def test_a_tampered_result_is_named(change: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(ABOUT))
    (tmp_path / "results.jsonl").write_text(json.dumps(LINE) + "\n" + json.dumps(LINE | change) + "\n")
    with pytest.raises(Misuse, match=rf"results\.jsonl, line 2: {next(iter(change))}.*remove the line"):
        read_run(tmp_path)


@pytest.mark.parametrize("change", [{"settings": 7}, {"strategy": None}, {"tasks": "many"}], ids=str)
def test_a_tampered_run_is_named(change: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(ABOUT | change))
    with pytest.raises(Misuse, match=rf"does not say what was run \({next(iter(change))}"):
        read_run(tmp_path)


def test_results_of_before_are_read(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(ABOUT))
    older = {"status": "solved", "reason": "said so"}
    (tmp_path / "results.jsonl").write_text(json.dumps(LINE | {"outcome": older, "usage": {"model_calls": 1}}) + "\n")
    assert read_run(tmp_path)[1]["1"]["outcome"] == older


KINDS = ["huge", "pipe", "link", "nowhere", "folder"]
NAME = "reflection.CRITIQUE"


def put(kind: str, file: Path, outside: Path) -> None:
    """Put something in the place of a small file."""
    outside.write_text("a secret")
    if kind == "huge":
        file.touch()
        os.truncate(file, 10**10)
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to(outside if kind == "link" else outside.with_name("nowhere"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_prompts(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    put(kind, folder / f"{NAME}.txt", tmp_path / "secret.txt")
    with pytest.raises(BadPrompt):
        replacements(str(folder))


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_prompts_that_were_tuned(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    put(kind, folder / f"{NAME}.txt", tmp_path / "secret.txt")
    pytest.importorskip("gepa")
    from reflective_agents.evals.tuned_prompts import are_written

    assert not are_written({NAME: "Look closely."}, folder)


@pytest.mark.parametrize(
    "lines",
    [
        '{"%s": 1}' % ("k" * 100_000),
        json.dumps({f"column {number}": "x" for number in range(50_000)}),
        json.dumps({"question": "?", "answer": "#### " + "x" * 790_000}),
        json.dumps({"id": "i" * 100_000, "question": "?", "answer": "1"}) * 2,
    ],
    ids=["name", "columns", "answer", "id"],
)
def test_a_refusal_of_a_data_set_is_short(lines: str, tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(lines.replace("}{", "}\n{"))
    with pytest.raises(Misuse) as caught:
        load_dataset(path)
    assert len(str(caught.value)) <= 1_000
