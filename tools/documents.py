"""Reading local documents: text, Markdown, HTML and PDF become passages that can be searched and quoted."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = frozenset({".txt", ".md", ".markdown", ".rst", ".html", ".htm", ".pdf"})
"""Endings of the file names that can be read."""

PASSAGE_WORDS = 120
"""Words a passage aims at: a paragraph group of an answer's size, so that a few fit into a prompt."""

_HEADING = "\x1e"
_BLOCK = "\x1d"
_BLOCK_TAGS = ["p", "li", "dt", "dd", "td", "th", "tr", "pre", "blockquote", "div", "section", "article", "br"]
_HEADING_TAGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
_NOISE_TAGS = ["script", "style", "noscript", "template", "nav", "svg", "title"]


class Unreadable(Exception):
    """Raised when a file cannot be read as text; its message says why."""


@dataclass(frozen=True)
class Passage:
    """A piece of a document: `title` is "document — heading", `text` about 120 words of plain text."""

    title: str
    text: str


@dataclass(frozen=True)
class _Document:
    """A document as read: its title and its paragraphs, each beside the heading it stands under ("" for none)."""

    title: str
    paragraphs: list[tuple[str, str]]


def read_passages(path: Path) -> list[Passage]:
    """Read one file and split it into passages.

    Args:
        path: a file whose name ends in one of `SUFFIXES`.

    Returns:
        The passages in the order of the text; empty if the file holds no text.

    Raises:
        Unreadable: if the file is broken, encrypted, or not in a known encoding.
        OSError: if the file cannot be opened.
    """
    name = _clean(path.stem)
    match path.suffix.lower():
        case ".pdf":
            document = _read_pdf(path, name)
        case ".html" | ".htm":
            document = _read_html(path.read_bytes(), name)
        case ".md" | ".markdown":
            document = _read_markdown(_decode(path.read_bytes()), name)
        case _:
            document = _read_text(_decode(path.read_bytes()), name)
    return [
        Passage(" — ".join(filter(None, [document.title, heading])), text)
        for heading, group in _by_heading(document.paragraphs)
        for text in _pack(group)
    ]


def _clean(text: str) -> str:
    """Return `text` on one line, without control characters and halves of surrogate pairs."""
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", text.encode("utf-8", "ignore").decode()).split())


def _decode(data: bytes) -> str:
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not {encoding.removesuffix('-sig')} text; save it as UTF-8") from error
    if "\0" in text:
        raise Unreadable("it holds binary data, not text")
    return text


def _read_text(text: str, name: str) -> _Document:
    paragraphs: list[tuple[str, str]] = []
    heading = ""
    for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n")):
        lines = block.strip().split("\n")
        if len(lines) > 1 and re.fullmatch(r"([=\-~^*#+\"'`:.])\1{2,}", lines[1].strip()):  # underlined, as in reST
            heading = _clean(lines[0])
            lines = lines[2:]
        paragraphs.append((heading, _clean(" ".join(lines))))
    return _Document(name, paragraphs)


def _read_markdown(text: str, name: str) -> _Document:
    from markdown_it import MarkdownIt  # here and below: only who has such files pays for the import

    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)  # settings in front of the text
    return _read_html(MarkdownIt("commonmark").enable("table").render(text).encode(), name)


def _read_html(data: bytes, name: str) -> _Document:
    from bs4 import BeautifulSoup

    data = re.sub(rb"^\s*<\?xml[^>]*\?>", b"", data)  # read as HTML all the same, and no warning about it
    if b"<" not in data:
        return _read_text(_decode(data), name)
    soup = BeautifulSoup(data.replace(_HEADING.encode(), b" ").replace(_BLOCK.encode(), b" "), "html.parser")
    first = soup.find("title") or soup.find("h1")
    title = _clean(first.get_text(" ")) if first else ""
    for noise in soup.find_all(_NOISE_TAGS):
        noise.decompose()
    for block in soup.find_all(_HEADING_TAGS + _BLOCK_TAGS):
        block.insert_before(_BLOCK + (_HEADING if block.name in _HEADING_TAGS else ""))
        block.insert_after(_BLOCK)
    return _Document(title or name, list(_under_headings(soup.get_text().split(_BLOCK), title)))


def _under_headings(blocks: Iterable[str], title: str) -> Iterator[tuple[str, str]]:
    """Yield the paragraphs, each with the heading above it; the document's own title is no heading."""
    heading = ""
    for block in blocks:
        text = _clean(block)
        if block.startswith(_HEADING):
            heading = "" if text == title else text
        else:
            yield heading, text


def _read_pdf(path: Path, name: str) -> _Document:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = PdfReader(path)
        title = _clean(str((reader.metadata and reader.metadata.title) or "")) or name
        pages = [page.extract_text() for page in reader.pages]
    # Broken files also let errors of pypdf's own parsing through, as its documentation says.
    except (PyPdfError, DependencyError, ValueError, TypeError, AttributeError, LookupError, RuntimeError) as error:
        raise Unreadable(f"the PDF is broken or encrypted ({type(error).__name__})") from error
    blocks = [
        (f"page {number}" if len(pages) > 1 else "", _clean(block))
        for number, page in enumerate(pages, 1)
        for block in re.split(r"\n\s*\n", page)
    ]
    return _Document(title, blocks)


def _by_heading(paragraphs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Group neighbouring paragraphs that stand under the same heading; empty ones are left out."""
    current: tuple[str, list[str]] = ("", [])
    for heading, text in paragraphs:
        if heading != current[0]:
            yield current
            current = (heading, [])
        if text:
            current[1].append(text)
    yield current


def _pack(paragraphs: Iterable[str]) -> Iterator[str]:
    """Join short paragraphs and cut long ones at the ends of sentences, towards `PASSAGE_WORDS` words.

    A line break stays where a paragraph began.
    """
    words: list[str] = []
    for paragraph in paragraphs:
        for sentence in re.split(r"(?<=[.!?])\s+", f"\n{paragraph}"):
            new = sentence.split(" ")
            if words and len(words) + len(new) > PASSAGE_WORDS * 1.25:
                yield _join(words)
                words = []
            words += new
            while len(words) > PASSAGE_WORDS * 2:  # no end of a sentence in sight: tables, lists, code
                yield _join(words[:PASSAGE_WORDS])
                words = words[PASSAGE_WORDS:]
        if len(words) >= PASSAGE_WORDS * 0.75:
            yield _join(words)
            words = []
    if words:
        yield _join(words)


def _join(words: list[str]) -> str:
    return " ".join(words).replace(" \n", "\n").strip()
