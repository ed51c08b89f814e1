"""Articles to answer questions with, from a folder, a JSONL file, or the task itself."""

import logging
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from pydantic import BaseModel, ValidationError

from reflective_agents.state.errors import BadCorpus, reason_of
from reflective_agents.text.validation import in_plain_words
from reflective_agents.text.words import words
from reflective_agents.web_search.documents import SUFFIXES, Unreadable, read_passages

log = logging.getLogger(__name__)

MAX_SIMILAR = 5
"""Most titles that are offered where an article is not found."""

_TITLE_WEIGHT = 3.0
# After a full stop and perhaps a quotation mark, but not after initials and the most common abbreviations.
_SENTENCE_END = re.compile(
    r"""(?:(?<=[.!?])|(?<=[.!?]["')\]]))(?<!\b[A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St|Jr|vs)\.)(?<!\bMrs\.)\s+(?=["'(\[]?[A-Z0-9])"""
)


class Article(NamedTuple):
    """An article: plain text, each paragraph on a line of its own."""

    title: str
    text: str

    def first_paragraph(self) -> str:
        """Return the first paragraph that is not empty; "" if the article is empty."""
        paragraphs = self.paragraphs()
        return paragraphs[0] if paragraphs else ""

    def paragraphs(self) -> list[str]:
        """Return the paragraphs that are not empty."""
        return [line.strip() for line in self.text.split("\n") if line.strip()]

    def sentences_with(self, keyword: str) -> list[str]:
        """Return the sentences that contain a keyword, in the order of the text. Case does not matter."""
        keyword = keyword.casefold()
        found: list[str] = []
        for paragraph in self.paragraphs():
            for sentence in _SENTENCE_END.split(paragraph):
                if keyword in sentence.casefold():
                    found.append(sentence)
        return found


class Docstore(Protocol):
    """Articles by title."""

    async def article(self, title: str) -> Article | None:
        """Return the article of this title, or None. Raises `SearchFailed` if it cannot be asked for."""
        ...

    async def similar(self, query: str) -> list[str]:
        """Return up to `MAX_SIMILAR` titles, the best first. Raises `SearchFailed` if they cannot be asked for."""
        ...


class LocalDocstore:
    """Articles in memory. Of two with the same title, the first counts."""

    def __init__(self, articles: Iterable[Article]) -> None:
        """Take the articles and index their words."""
        # Backwards, so that the first of two overwrites the second.
        self._articles = {_key(article.title): article for article in reversed(list(articles))}
        self._weights: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for key, article in self._articles.items():
            for word in words(article.text):
                self._weights[word][key] = 1.0
            for word in words(article.title):
                self._weights[word][key] = _TITLE_WEIGHT

    async def article(self, title: str) -> Article | None:
        """Return the article of this title; case, blanks and underscores do not matter."""
        return self._articles.get(_key(title))

    async def similar(self, query: str) -> list[str]:
        """Return the titles of articles that share words with a query; rare words, and words of titles, count more."""
        scores: Counter[str] = Counter()
        for word in dict.fromkeys(words(query)):
            weights = self._weights.get(word, {})
            for key, weight in weights.items():
                scores[key] += weight * math.log(1 + len(self._articles) / len(weights))  # type: ignore[assignment]
        best = sorted(scores, key=lambda key: (-scores[key], key))[:MAX_SIMILAR]
        return [self._articles[key].title for key in best]


class _Line(BaseModel):
    title: str
    text: str | list[str]


def folder_docstore(folder: str | Path) -> LocalDocstore:
    """Read a folder: each file is an article, titled as the document itself or else as the file. Blocks.

    Args:
        folder: A path, in which `~` may stand for the home directory. Text, Markdown, HTML and PDF are read, also in
            subfolders; files that cannot be read are skipped, with a warning.

    Raises:
        BadCorpus: if there is no such folder, or no article in it.
    """
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise BadCorpus(f"There is no folder {path}: name one that holds articles.")
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
    articles = [*filter(None, map(_read_file, files))]
    if not articles:
        raise BadCorpus(f"{path} holds no article that can be read: put text into it, or name another folder.")
    return LocalDocstore(articles)


def jsonl_docstore(file: str | Path) -> LocalDocstore:
    """Read a file with one article a line: {"title": "...", "text": "..." or a list of paragraphs}. Blocks.

    Raises:
        BadCorpus: if the file cannot be opened, or a line is no article.
    """
    try:
        lines = Path(file).expanduser().read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadCorpus(f"{file} cannot be read as UTF-8 text ({reason_of(error)}).") from error
    return LocalDocstore(_read_line(file, number, line) for number, line in enumerate(lines, 1) if line.strip())


def hotpot_docstore(context: Iterable[tuple[str, list[str]]]) -> LocalDocstore:
    """Take the paragraphs that HotpotQA's distractor files hold for each question: [title, [sentence, ...]]."""
    return LocalDocstore(Article(title, "".join(sentences)) for title, sentences in context)


def _read_line(file: str | Path, number: int, line: str) -> Article:
    try:
        article = _Line.model_validate_json(line)
    except ValidationError as error:
        what = in_plain_words(error.errors(include_url=False)[0]["msg"])
        raise BadCorpus(f"Line {number} of {file} is no article with title and text: {what}.") from error
    return Article(article.title, article.text if isinstance(article.text, str) else "\n".join(article.text))


def _read_file(file: Path) -> Article | None:
    try:
        passages = read_passages(file)
    except (Unreadable, OSError) as error:
        log.warning("Skipped %s: %s", file, error)
        return None
    if not passages:
        return None
    title, _, _ = passages[0].title.partition(" — ")
    text = "\n".join(passage.text for passage in passages)
    return Article(title, text)


def _key(title: str) -> str:
    return " ".join(title.casefold().replace("_", " ").split())
