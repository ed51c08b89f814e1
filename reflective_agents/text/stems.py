"""Stems of words, by Porter's rules: what BM25 counts, and what two forms of one word have in common."""

import sqlite3
import threading
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from reflective_agents.text.words import content_words, spaced

TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'"
"""Words in lower case, without accents, stemmed by Porter's rules; the marks of scripts such as Thai belong to them."""
_TABLES = f"""
CREATE VIRTUAL TABLE texts USING fts5(text, content = '', tokenize = "{TOKENIZER}");
CREATE VIRTUAL TABLE stems USING fts5vocab(texts, 'instance');
"""
# SQLite's connections belong to the thread that opens them.
_of_this_thread = threading.local()


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """Return the stem of a word in lower case. In Python, so that an event loop may call it; for many words and whole
    texts `stems` is ten times as fast."""
    from snowballstemmer import stemmer  # here, since few runs need it

    stemmed: str = stemmer("porter").stemWord(word)
    return stemmed


def stems(texts: Sequence[str]) -> list[Counter[str]]:
    """Count each stem in each text, in any script. Blocks for about 20 microseconds per text."""
    database = _database()
    # Lone surrogates, which SQLite refuses, are left out.
    rows = [(index, spaced(text.encode(errors="ignore").decode())) for index, text in enumerate(texts)]
    counts: list[Counter[str]] = [Counter() for _ in texts]
    with database:
        database.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", rows)
        for stem, index in database.execute("SELECT term, doc FROM stems"):
            counts[index][stem] += 1
        database.execute("INSERT INTO texts (texts) VALUES ('delete-all')")
    return counts


def query_stems(query: str) -> set[str]:
    """Return the stems of a query, without the most common English words unless it has no others."""
    return set(stems([" ".join(content_words(query))])[0])


def _database() -> sqlite3.Connection:
    if not hasattr(_of_this_thread, "database"):
        _of_this_thread.database = sqlite3.connect(":memory:")
        _of_this_thread.database.executescript(_TABLES)
    connection: sqlite3.Connection = _of_this_thread.database
    return connection
