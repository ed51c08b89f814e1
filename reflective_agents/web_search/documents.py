"""Reading local documents: text, Markdown, HTML and PDF become passages that can be searched and quoted."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from reflective_agents.state.extras import need
from reflective_agents.web_search.packing import fenced, pack

SUFFIXES = frozenset({".txt", ".md", ".markdown", ".rst", ".html", ".htm", ".pdf"})
"""Endings of the file names that can be read."""

PDF_SECONDS = 120
"""Seconds that reading one PDF may take."""
PDF_MEMORY = 1_000_000_000
"""Bytes of memory that reading one PDF may take."""
PDF_CHARACTERS = 20_000_000
"""Characters that a PDF may hold."""

# Marks within the text of a page; `_clean` takes control characters out of what is kept.
_HEADING = "\x1e"
_BLOCK = "\x1d"
_CODE = "\x1c"
_CELL = "\x1f"
_CELL_END = "\x1b"
_BLOCK_TAGS = ["p", "li", "dt", "dd", "tr", "table", "pre", "blockquote", "div", "section", "article", "br"]
_CELL_TAGS = ["td", "th"]
# A cell that is one paragraph, as tables of reST become in HTML.
_PARAGRAPH_CELL = re.compile("\x1f[ \t\r\n]*\x1d([^\x1b-\x1f]*)\x1d[ \t\r\n]*\x1b")
_HEADING_TAGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
# A directive, or the last line of a reST paragraph, below which what is indented is code.
_CODE_FOLLOWS = re.compile(r"\.\. (?:code|code-block|sourcecode)::|(?s:.*\n)?(?!\s*\.\. ).*::\Z")
_TAG = re.compile(r"(/?[a-zA-Z][a-zA-Z0-9]*+)[^>]*+>")
_NOISE_TAGS = ["script", "style", "noscript", "template", "nav", "svg", "title"]


class Unreadable(Exception):
    """Raised when a file cannot be read as text; its message says why."""


@dataclass(frozen=True)
class Passage:
    """A piece of a document: `title` is "document — heading", `text` about 120 words of plain text; code is fenced."""

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
        Misuse: if what reads such files is not installed.
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
    passages = []
    for heading, group in _by_heading(document.paragraphs):
        title = " — ".join(filter(None, [document.title, heading]))
        passages += [Passage(title, text) for text in pack(group)]
    return passages


def _need(library: str) -> None:
    need(library, extra="documents", purpose="a search in documents")


def _clean(text: str) -> str:
    """Return `text` on one line, without control characters and halves of surrogate pairs."""
    whole = text.encode("utf-8", "ignore").decode()
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", whole).split())


def _decode(data: bytes) -> str:
    # By their mark: files that Windows' editor has saved.
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
    for block, is_code in _blocks(text.replace("\r\n", "\n")):
        if is_code:
            paragraphs.append((heading, fenced(block)))
            continue
        lines = block.strip().split("\n")
        if len(lines) > 1 and re.fullmatch(r"([=\-~^*#+\"'`:.])\1{2,}", lines[1].strip()):  # underlined, as in reST
            heading = _clean(lines[0])
            lines = lines[2:]
        paragraphs.append((heading, _clean(" ".join(lines))))
    return _Document(name, paragraphs)


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Yield what blank lines divide, and whether it is code: in reST, what is indented below "::"."""
    code: list[str] = []
    before = ""
    for block in re.split(r"\n\s*\n", text):
        is_deeper = _indent(block) >= _indent(code[0]) if code else _indent(block) > _indent(before)
        if is_deeper and (code or _CODE_FOLLOWS.match(before.strip())):
            code.append(block)
            continue
        if code:
            yield "\n\n".join(code), True
            code = []
        yield block, False
        before = block
    if code:
        yield "\n\n".join(code), True


def _indent(block: str) -> int:
    margin = re.match("[ \t]*", block)
    return len(margin[0].expandtabs()) if margin else 0


def _read_markdown(text: str, name: str) -> _Document:
    _need("markdown_it")
    from markdown_it import MarkdownIt  # here and below: only who has such files pays for the import

    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)  # settings in front of the text
    return _read_html(MarkdownIt("commonmark").enable("table").render(text).encode(), name)


def _read_html(data: bytes, name: str) -> _Document:
    _need("bs4")
    from bs4.dammit import UnicodeDammit

    data = re.sub(rb"^\s*<\?xml[^>]*\?>", b"", data)  # read as HTML all the same
    if b"<" not in data:
        return _read_text(_decode(data), name)
    markup = UnicodeDammit(data, is_html=True).unicode_markup or ""
    for begin, end in ("<!--", "-->"), ("<!", ">"), ("<?", ">"):
        markup = _without(markup, begin, end)
    # A page must not bring marks of its own.
    title, text = _strip(re.sub("[\x1b-\x1f]", " ", markup))
    return _Document(title or name, list(_under_headings(text.split(_BLOCK), title)))


def _without(markup: str, begin: str, end: str) -> str:
    """Leave out comments and the like. Where one has no end, Python's parser would look for it from each beginning."""
    first, *pieces = markup.split(begin)
    parts = [piece.partition(end) for piece in pieces]
    marked = [rest for _, mark, rest in parts if mark]
    return first + "".join(marked)


def _tags(markup: str) -> Iterator[tuple[str, str]]:
    """Yield each tag's name, with a slash in front if it closes, and the text behind it; first the text before all."""
    first, *pieces = markup.split("<")
    yield "", unescape(first)
    for piece in pieces:
        tag = _TAG.match(piece)
        if tag:
            yield tag[1].lower(), unescape(piece[tag.end() :])
        else:
            yield "", unescape(f"<{piece}")


def _strip(markup: str) -> tuple[str, str]:
    """Return a page's title, and its text with marks between its blocks, and before its headings, code and cells.

    One pass without a tree: pages may be nested, or left open, to keep a reader busy.
    """
    title, text = "", [_BLOCK]
    heading: list[str] = []
    noise, depth, in_heading, in_code = "", 0, False, False
    for tag, data in _tags(markup):
        if noise:
            # Tags of one kind may be nested: a `nav` within a `nav` does not end the first.
            depth += (tag == noise) - (tag == f"/{noise}")
            if depth:
                continue
            noise = ""
        elif tag in _NOISE_TAGS:
            noise, depth = tag, 1
            if tag == "title" and not title:
                title = _clean(data)
            continue
        in_code = tag == "pre" or (in_code and tag not in ("/pre", *_HEADING_TAGS))
        if tag == "pre":
            text.append(_BLOCK + _CODE)
        elif in_code and tag in _BLOCK_TAGS:
            text.append("\n")
        elif not in_code and tag.strip("/") in _HEADING_TAGS + _BLOCK_TAGS:
            text.append(_BLOCK)
        if tag.strip("/") in _CELL_TAGS:
            text.append(_CELL if tag in _CELL_TAGS else _CELL_END)
        if tag in _HEADING_TAGS:
            text.append(_HEADING)
        if tag in ("h1", "/h1"):
            in_heading = tag == "h1" and not heading
        if in_heading:
            heading.append(data)
        text.append(data)
    return title or _clean("".join(heading)), _PARAGRAPH_CELL.sub(rf"{_CELL}\1", "".join(text))


def _under_headings(blocks: Iterable[str], title: str) -> Iterator[tuple[str, str]]:
    """Yield the paragraphs, each with the heading above it; the document's own title does not count as one."""
    heading = ""
    for block in blocks:
        text = _clean(block)
        if block.startswith(_HEADING):
            heading = "" if text == title else text
        elif block.startswith(_CODE):
            yield heading, fenced(block.strip(_CODE))
        elif _CELL in block:
            cells = block.strip(" \t\r\n").removeprefix(_CELL).split(_CELL)
            yield heading, " | ".join(map(_clean, cells)).rstrip(" |")
        else:
            yield heading, text


def _read_pdf(path: Path, name: str) -> _Document:
    _need("pypdf")
    bounds = (str(PDF_MEMORY), str(PDF_CHARACTERS))
    # -P: modules beside the program must not hide the standard library's.
    program = [sys.executable, "-P", str(Path(__file__).with_name("pdf.py")), *bounds]
    try:
        with path.open("rb") as file:
            done = subprocess.run(program, stdin=file, capture_output=True, timeout=PDF_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise Unreadable(f"reading the PDF takes more than {PDF_SECONDS} seconds") from error
    if done.returncode:
        raise Unreadable(done.stdout.decode().strip() or f"the PDF is broken (exit code {done.returncode})")
    title, pages = json.loads(done.stdout)
    paragraphs = []
    for number, page in enumerate(pages, 1):
        heading = f"page {number}" if len(pages) > 1 else ""
        paragraphs += [(heading, _clean(block)) for block in re.split(r"\n\s*\n", page)]
    return _Document(_clean(title) or name, paragraphs)


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
