"""Reading documents: what becomes of each kind of file, and of those that are broken."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflective_agents.text.words import count_words
from reflective_agents.web_search.documents import Unreadable, read_passages
from reflective_agents.web_search.packing import PASSAGE_WORDS


def pdf(*pages: str) -> bytes:
    """Build a PDF by hand, one line of text a page."""
    streams = [f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET" for text in pages]
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ]
    for i, stream in enumerate(streams):
        box = "/MediaBox[0 0 600 200]/Resources<</Font<</F1 3 0 R>>>>"
        objects.append(f"<</Type/Page/Parent 2 0 R{box}/Contents {5 + 2 * i} 0 R>>")
        objects.append(f"<</Length {len(stream)}>>\nstream\n{stream}\nendstream")
    text, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(text))
        text += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"trailer <</Size {size}/Root 1 0 R>>\nstartxref\n{len(text)}\n%%EOF\n"
    return f"{text}xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()


def read(folder: Path, name: str, content: str | bytes) -> list[tuple[str, str]]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [(passage.title, passage.text) for passage in read_passages(path)]


def test_markdown_carries_its_headings_and_loses_its_markup(tmp_path: Path) -> None:
    text = "---\nkind: a\n---\n# Agents\n\nThey **act**.\n\n## Tools\n\nSee [here](https://x.org).\n\n- one\n- two\n"
    assert read(tmp_path, "a.md", text) == [("Agents", "They act."), ("Agents — Tools", "See here.\none\ntwo")]


def test_code_in_markdown_keeps_its_lines_and_its_fences(tmp_path: Path) -> None:
    code = "```\n# install\nif a < b:\n    make()\n```"
    text = f"# Agents\n\nRun it.\n\n{code.replace('```', '```sh', 1)}\n\nThat is all.\n"
    assert read(tmp_path, "a.md", text) == [("Agents", f"Run it.\n{code}\nThat is all.")]


def test_fences_are_longer_than_those_in_the_code(tmp_path: Path) -> None:
    text = "````md\n```py\nmake()\n```\n````\n"
    assert read(tmp_path, "a.md", text) == [("a", "````\n```py\nmake()\n```\n````")]


def test_long_code_is_cut_between_its_lines(tmp_path: Path) -> None:
    lines = [f"    value_{number} = compute(value_{number - 1}, {number})" for number in range(100)]
    code = "\n".join(["def long():", *lines])
    passages = [text for _, text in read(tmp_path, "a.md", f"```\n{code}\n```")]
    assert len(passages) > 2
    assert all(text.startswith("```\n") and text.endswith("\n```") for text in passages)
    assert "\n".join(text.removeprefix("```\n").removesuffix("\n```") for text in passages) == code
    assert all(count_words(text) <= 1.25 * PASSAGE_WORDS for text in passages)


@pytest.mark.parametrize("words", [240, 2 * PASSAGE_WORDS + 119, 3 * PASSAGE_WORDS])
def test_a_long_line_of_code_is_cut_and_fenced(tmp_path: Path, words: int) -> None:
    passages = [text for _, text in read(tmp_path, "a.md", f"```\n{'w ' * words}\n```")]
    assert all(text.startswith("```\n") and text.endswith("\n```") for text in passages)
    assert " ".join(passages).count("w") == words


@pytest.mark.parametrize(
    "page",
    [
        "<p>Run:</p><pre><code>if a &lt; b:\n    make()\n</code></pre><p>Done.</p>",
        "<p>Run:</p><pre><span>if</span> a &lt; b:<br>    make()</pre>Done.",
        "<p>Run:</p><pre><div>if a &lt; b:</div><div>    make()</div></pre><p>Done.</p>",
        "<p>Run:</p><pre>\n\n  if a &lt; b:\n      make()\n\n</pre><p>Done.</p>",
        "<p>Run:</p><pre>if a &lt; b:\n\tmake()</pre><p>Done.</p>",
    ],
)
def test_code_in_html_keeps_its_lines(tmp_path: Path, page: str) -> None:
    assert read(tmp_path, "a.html", page) == [("a", "Run:\n```\nif a < b:\n    make()\n```\nDone.")]


def test_a_heading_ends_code_that_is_left_open(tmp_path: Path) -> None:
    assert read(tmp_path, "a.html", "<pre>make()<h2>Then</h2><p>It grows.</p>") == [
        ("a", "```\nmake()\n```"),
        ("a — Then", "It grows."),
    ]


@pytest.mark.parametrize(
    "opening", ["Run this::", "::", ".. note::\n   Run this::", ".. code-block:: python\n   :linenos:"]
)
def test_code_in_restructured_text_keeps_its_lines(tmp_path: Path, opening: str) -> None:
    text = f"Search\n======\n\n{opening}\n\n    if a:\n        b()\n\n    c()\n\nDone.\n"
    [(_, found)] = read(tmp_path, "a.rst", text)
    assert found.endswith("\n```\nif a:\n    b()\n\nc()\n```\nDone.")


@pytest.mark.parametrize(
    ("before", "margin"), [("", "    "), (".. note::\n\n    See this.\n\n", "    "), ("1. ", "   ")]
)
def test_code_in_restructured_text_ends_where_less_is_indented(tmp_path: Path, before: str, margin: str) -> None:
    first = "" if before == "1. " else margin * bool(before)
    text = f"{before}{first}Run this::\n\n{margin}    a()\n\n{margin}    b()\n\n{margin * bool(before)}It ends.\n"
    [(_, found)] = read(tmp_path, "a.rst", text)
    assert found.endswith("Run this::\n```\na()\n\nb()\n```\nIt ends.")


def test_what_is_indented_below_other_directives_is_text(tmp_path: Path) -> None:
    assert read(tmp_path, "a.rst", ".. note::\n\n   It grows.\n") == [("a", ".. note::\nIt grows.")]


def test_a_row_of_a_table_is_a_line(tmp_path: Path) -> None:
    text = "| | days | note |\n|---|--:|---|\n| paid | 30 | a *fee* |\n| late |  | none |\n"
    assert read(tmp_path, "a.md", text) == [("a", "| days | note\npaid | 30 | a fee\nlate |  | none")]


def test_a_cell_may_be_a_paragraph(tmp_path: Path) -> None:
    page = "<table><tr><th><p>fee</p></th>\n<td>\n<p>30 <b>days</b></p>\n</td></tr><tr><td>x<td><p>y</p></td></table>"
    assert read(tmp_path, "a.html", page) == [("a", "fee | 30 days\nx | y")]


def test_cells_that_hold_paragraphs_are_paragraphs(tmp_path: Path) -> None:
    page = "<table><tr><td>Menu<td><p>It grows.</p><p>It ends.</p></table>Then."
    assert read(tmp_path, "a.html", page) == [("a", "Menu\nIt grows.\nIt ends.\nThen.")]


def test_html_keeps_the_text_only(tmp_path: Path) -> None:
    page = (
        '<?xml version="1.0"?><html><head><title>Trees &amp; search</title><style>p {}</style></head><body>'
        "<nav>Menu</nav><h1>Trees &amp; search</h1><p>A <b>tree</b> grows.</p><script>alert('x')</script>"
        "<h2>UCT</h2><div>Explore.</div>"
    )
    assert read(tmp_path, "a.html", page) == [
        ("Trees & search", "A tree grows."),
        ("Trees & search — UCT", "Explore."),
    ]


def test_html_in_its_declared_encoding(tmp_path: Path) -> None:
    page = '<html><head><meta charset="iso-8859-1"><title>Caf\xe9</title></head><body><p>d\xe9j\xe0 vu</p>'
    assert read(tmp_path, "a.htm", page.encode("iso-8859-1")) == [("Café", "déjà vu")]


def test_html_without_markup_is_text(tmp_path: Path) -> None:
    assert read(tmp_path, "a.html", "just/a/path.txt") == [("a", "just/a/path.txt")]


def test_deeply_nested_html(tmp_path: Path) -> None:
    page = "<title>T</title>" + "<div>" * 1500 + "<p>Deep.</p>"
    assert read(tmp_path, "a.html", page) == [("T", "Deep.")]


def test_text_takes_its_title_from_the_file_name(tmp_path: Path) -> None:
    assert read(tmp_path, "My notes.txt", "One\r\nline.\r\n\r\nTwo.") == [("My notes", "One line.\nTwo.")]


def test_restructured_text_has_underlined_headings(tmp_path: Path) -> None:
    assert read(tmp_path, "a.rst", "Search\n======\n\nWide.\n\nDepth\n-----\nDeep.") == [
        ("a — Search", "Wide."),
        ("a — Depth", "Deep."),
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_with_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    assert read(tmp_path, "a.txt", "Größe".encode(encoding)) == [("a", "Größe")]


@pytest.mark.process  # a PDF is read in one
def test_pdf_names_the_page(tmp_path: Path) -> None:
    assert read(tmp_path, "paper.pdf", pdf("First page.", "Second page.")) == [
        ("paper — page 1", "First page."),
        ("paper — page 2", "Second page."),
    ]


@pytest.mark.matrix(keep=2)
@pytest.mark.process  # a PDF is read in one
@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"\xff\xfa\x00", "it is not utf-8 text; save it as UTF-8"),
        ("a.md", b"PK\x03\x04\x00", "it holds binary data, not text"),
        ("a.pdf", b"no PDF at all", "the PDF is broken or encrypted"),
        ("a.pdf", pdf("Text.")[:200], "the PDF is broken or encrypted"),
    ],
)
def test_broken_files_say_why(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        read(tmp_path, name, content)


def test_empty_text_has_no_passages(tmp_path: Path) -> None:
    assert read(tmp_path, "a.txt", " \n\n ") == []


def test_missing_file_raises_what_the_system_says(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_passages(tmp_path / "gone.txt")


@given(st.lists(st.lists(st.integers(1, 400), min_size=1, max_size=5), min_size=1, max_size=8))
def test_passages_keep_every_word_in_order(tmp_path_factory: pytest.TempPathFactory, lengths: list[list[int]]) -> None:
    number = iter(range(100_000))
    sentences = [[" ".join(f"w{next(number)}" for _ in range(n)) + "." for n in paragraph] for paragraph in lengths]
    text = "\n\n".join(" ".join(paragraph) for paragraph in sentences)
    texts = [text for _, text in read(tmp_path_factory.mktemp("words"), "a.txt", text)]
    assert " ".join(texts).split() == text.split()
    assert all(len(text.split()) <= 2 * PASSAGE_WORDS for text in texts)


def test_a_script_without_blanks_is_cut_at_its_sentence_marks(tmp_path: Path) -> None:
    sentence = "\u6211\u4eec\u6bcf\u5929\u5728\u56fe\u4e66\u9986\u5b66\u4e60\u5f88\u591a\u4e1c\u897f\u3002"
    passages = [text for _, text in read(tmp_path, "a.txt", sentence * 60)]
    assert "".join(passages) == sentence * 60
    assert len(passages) > 2
    assert all(text.endswith("\u3002") and len(text) <= 2.5 * PASSAGE_WORDS for text in passages)


def test_what_has_neither_blanks_nor_sentence_marks_is_cut_all_the_same(tmp_path: Path) -> None:
    text = "\u6c34" * 3000
    passages = [text for _, text in read(tmp_path, "a.txt", text)]
    assert "".join(passages) == text
    assert max(map(len, passages)) <= 4 * PASSAGE_WORDS
