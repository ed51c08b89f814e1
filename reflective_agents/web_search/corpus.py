"""Search in a folder of documents, embedded: an SQLite full-text index, ranked with BM25, kept up to date by itself.

The index lies in a file of the user's cache, because reading a folder of PDFs takes minutes and every command is a new
process. REFLECT_CACHE_DIR moves it. It holds nothing that cannot be rebuilt from the folder.
"""

import atexit
import hashlib
import logging
import os
import shutil
import sqlite3
import tempfile
import threading
from collections import Counter
from contextlib import closing
from functools import cache, lru_cache
from pathlib import Path
from urllib.parse import unquote_to_bytes

from reflective_agents.state.errors import BadCorpus
from reflective_agents.state.extras import need
from reflective_agents.state.forks import after_fork
from reflective_agents.text.stems import TOKENIZER
from reflective_agents.text.words import spaced, words
from reflective_agents.web_search.documents import SUFFIXES, Passage, Unreadable, read_passages
from reflective_agents.web_search.folder import Stamp, scan, visible_files
from reflective_agents.web_search.results import SearchResult

log = logging.getLogger(__name__)

MAX_FILE_BYTES = 50_000_000
"""Larger files are skipped: they are data rather than documents, and would be read into memory whole."""

PASSAGES_PER_DOCUMENT = 2
"""So many passages of one document stand in one list of results, so that the results differ."""

# A query may be a whole question with its context; SQLite takes time and memory for each term.
_MAX_TERMS = 256
# In a small folder these outweigh the words that matter: they are left out of a query that has others.
_COMMON = frozenset(
    """
    a an and are as at be by can did do does for from had has have how i if in into is it its me of on or our should so
    than that the their them there these they this to was we were what when where which who why will with you your
    """.split()  # noqa: SIM905 - a list of 64 quoted words is harder to read
)
# Passages as they are shown, and beside them an index of their words, which keeps no text of its own.
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, size INTEGER, mtime INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS passages (id INTEGER PRIMARY KEY, path TEXT, title TEXT, text TEXT);
CREATE INDEX IF NOT EXISTS passages_path ON passages (path);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(
    title, text, content = '', tokenize = "{TOKENIZER}"
);
"""
_SCHEME = "corpus:"
_FORMAT = 3  # raise it when the schema or the splitting changes: older index files are then left alone


class Corpus:
    """The documents below one folder. Made by `open_corpus`; `search` may be called from any thread."""

    def __init__(self, folder: Path) -> None:
        """Represent `folder`; nothing is read yet."""
        self.folder = folder
        self._lock = threading.Lock()
        self._seen: tuple[Path, dict[str, Stamp]] | None = None

    def search(self, query: str, max_results: int = 5) -> list[SearchResult]:
        """Find the passages that fit best. Blocks: call it from a thread. Files that changed are read again first.

        Args:
            query: plain words. Operators of the index's query language have no meaning in it.
            max_results: how many passages at most.

        Returns:
            The passages, the best first, at most two of one document; empty if no word of the query occurs.

        Raises:
            BadCorpus: if the folder has gone, or not one file in it could be read.
        """
        terms = terms_of(query)
        path = self._refreshed()
        if not terms:
            return []
        with closing(_connect(path, "rw")) as index:
            rows = index.execute(
                "SELECT p.title, p.path, p.text FROM words JOIN passages p ON p.id = words.rowid WHERE words MATCH ? "
                "ORDER BY bm25(words, 2, 1), p.id LIMIT ?",
                # More rows than are wanted, since `_spread` drops some.
                (any_of(terms), max_results * 10),
            ).fetchall()
        return _spread(rows)[:max_results]

    def document(self, url: str) -> list[str]:
        """Return the passages of one document, in its order. Blocks: call it from a thread.

        Args:
            url: its address, as in the results of a search.

        Returns:
            The passages; none if there is no such document.

        Raises:
            BadCorpus: as `search`.
        """
        with closing(_connect(self._refreshed(), "rw")) as index:
            rows = index.execute("SELECT text FROM passages WHERE path = ? ORDER BY id", (url.removeprefix(_SCHEME),))
            return [text for (text,) in rows]

    def _refreshed(self) -> Path:
        """Return the file of the index, brought up to date with the folder."""
        path = _index_file(self.folder)
        with self._lock:
            self._refresh(path)
        return path

    def _refresh(self, path: Path) -> None:
        """Bring the index up to date with the folder."""
        stamps = dict(scan(self.folder))
        # REFLECT_CACHE_DIR may have changed, or somebody have cleared the cache, since the last search.
        if (path, stamps) == self._seen and path.exists():
            return
        try:
            self._update(path, stamps)
        except sqlite3.OperationalError:  # locked, or the disk is full: the index itself is sound
            raise
        except sqlite3.DatabaseError as error:
            log.warning("The index of %s is damaged and is built anew: %s", self.folder, error)
            path.unlink(missing_ok=True)
            self._update(path, stamps)
        self._seen = path, stamps

    def _update(self, path: Path, stamps: dict[str, Stamp]) -> None:
        with closing(_connect(path, "rwc")) as index:
            index.execute("PRAGMA synchronous = OFF")  # what a power failure damages is built anew
            index.executescript(_SCHEMA)
            rows = index.execute("SELECT path, size, mtime FROM files")
            indexed = {name: (size, mtime) for name, size, mtime in rows}
            for name in indexed.keys() - stamps.keys():
                _replace(index, name, None, [])
            for name, stamp in stamps.items():
                if indexed.get(name) != stamp:
                    _replace(index, name, stamp, _read(self.folder, name))
            if not index.execute("SELECT 1 FROM passages LIMIT 1").fetchone():
                raise BadCorpus(f"None of the files in {self.folder} could be read: {_ADVICE}")


_READ = f"only {', '.join(sorted(SUFFIXES))} are read."
_ADVICE = f"put text into it ({', '.join(sorted(SUFFIXES))}), or name another folder."


def open_corpus(folder: str | None) -> Corpus:
    """Open a folder of documents, or the articles on agent methods that come with this project.

    Looks only at the folder, reads no file: fit for refusing early. The index is built by the first search.

    Args:
        folder: a path, in which `~` may stand for the home directory; None or "" for the articles.

    Returns:
        The corpus; the same object for the same folder.

    Raises:
        BadCorpus: if there is no such folder, or no file in it that can be read.
    """
    path = Path(folder).expanduser() if folder else Path(__file__).with_name("corpus_articles")
    if not path.exists():
        raise BadCorpus(f"There is no folder {path}: name one that exists.")
    if not path.is_dir():
        raise BadCorpus(f"{path} is a file: name the folder that it lies in.")
    if next(scan(path), None) is None:
        raise BadCorpus(f"{path} holds no document: {_ADVICE}")
    return _corpus(path.resolve())


@cache
def _corpus(folder: Path) -> Corpus:
    skipped = Counter(path.suffix.lower() for path in visible_files(folder))
    for suffix in SUFFIXES:
        del skipped[suffix]
    if skipped:
        kinds = ", ".join(f"{count} {suffix or 'without an ending'}" for suffix, count in skipped.most_common(5))
        log.warning("Skipped files of %s (%s): %s", folder, kinds, _READ)
    return Corpus(folder)


after_fork(_corpus.cache_clear)


def _read(folder: Path, path: str) -> list[Passage]:
    """Read a file by its path as `scan` yields it. One that cannot be read has no passages, and a warning says why."""
    file = folder / os.fsdecode(unquote_to_bytes(path))
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise Unreadable(f"it is larger than {MAX_FILE_BYTES:,} bytes")
        passages = read_passages(file)
        if not passages:
            raise Unreadable("it holds no text")
    except (Unreadable, OSError) as error:
        log.warning("Skipped %s: %s", file, error)
        return []
    return passages


def _replace(index: sqlite3.Connection, path: str, stamp: Stamp | None, passages: list[Passage]) -> None:
    """Put the passages of one file in the place of its old ones, in one transaction.

    A file without passages is not recorded: it is tried again, and warned of again, by the next process.
    """
    with index:
        # Takes the write lock at once: another process may bring the same index up to date.
        index.execute("BEGIN IMMEDIATE")
        if index.execute("DELETE FROM files WHERE path = ?", (path,)).rowcount:
            old = index.execute("SELECT id, title, text FROM passages WHERE path = ?", (path,)).fetchall()
            # An index without content of its own has to be told what it forgets.
            index.executemany("INSERT INTO words (words, rowid, title, text) VALUES ('delete', ?, ?, ?)", _cut(old))
            index.execute("DELETE FROM passages WHERE path = ?", (path,))
        if stamp and passages:
            index.execute("INSERT INTO files VALUES (?, ?, ?)", (path, *stamp))
            (last,) = index.execute("SELECT coalesce(max(id), 0) FROM passages").fetchone()
            new = [(number, passage.title, passage.text) for number, passage in enumerate(passages, last + 1)]
            rows = [(number, path, title, text) for number, title, text in new]
            index.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", rows)
            index.executemany("INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)", _cut(new))


def _cut(rows: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """Return rows in the form that the index of words takes."""
    return [(number, spaced(title), spaced(text)) for number, title, text in rows]


def terms_of(query: str) -> list[str]:
    """Return the distinct words of a query; those that every text is full of only if there are no others."""
    terms = list(dict.fromkeys(words(query)))[:_MAX_TERMS]
    return [word for word in terms if word not in _COMMON] or terms


def any_of(terms: list[str]) -> str:
    """Return a search of an index for any of these words. In quotation marks none is an operator."""
    return " OR ".join(f'"{term}"' for term in terms)


def _spread(rows: list[tuple[str, str, str]]) -> list[SearchResult]:
    """Turn rows, the best first, into results, with so many passages of one document at most."""
    shown: Counter[str] = Counter()
    results = []
    for title, path, text in rows:
        shown[path] += 1
        if shown[path] <= PASSAGES_PER_DOCUMENT:
            results.append(SearchResult(title=title, url=f"{_SCHEME}{path}", content=text))
    return results


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open the index: "rw" one that exists, "rwc" also a new one. A connection serves one thread, and one search."""
    return sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=30, isolation_level=None)


def _index_file(folder: Path) -> Path:
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return _cache_folder(os.environ.get("REFLECT_CACHE_DIR")) / f"corpus-{_FORMAT}-{name}.sqlite"


def _user_cache() -> Path:
    need("platformdirs", extra="documents", purpose="a search in documents")
    from platformdirs import user_cache_path

    return user_cache_path("reflective-agents")


@lru_cache(maxsize=8)
def _cache_folder(chosen: str | None) -> Path:
    """Return the folder of the indexes; one for this process alone where none can be written to."""
    path = Path(chosen).expanduser().resolve() if chosen else _user_cache()
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        log.warning("No index can be kept in %s (%s); it is built again in each process.", path, error)
        path = Path(tempfile.mkdtemp(prefix="reflective-agents-"))
        atexit.register(shutil.rmtree, path, ignore_errors=True)
        return path
