"""The embedding that needs nothing: hashed words and letter trigrams. It compares spelling, not meaning."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from zlib import crc32

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from models.extract import STOPWORDS

NOTE = "hashed words and letter trigrams: it compares spelling, not meaning"
DIMENSIONS = 384
WORD, TRIGRAM = 1.0, 0.5
"""What a word, and one of its trigrams, counts."""
_WORD = re.compile(r"[^\W_]+")


class LexicalEmbeddings(Embeddings):
    """Vectors of 384 numbers, of length 1, or 0 if a text has no words; the same in every process.

    Trigrams let inflected and misspelt words meet, and give scripts without spaces something to compare.
    """

    model = "lexical"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts."""
        return [_vector(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query, made as that of any text."""
        return self.embed_documents([text])[0]


def _vector(text: str) -> NDArray[np.float64]:
    vector = np.zeros(DIMENSIONS)
    for (feature, weight), count in Counter(_features(text)).items():
        hashed = crc32(feature.encode(errors="surrogatepass"))
        vector[(hashed >> 1) % DIMENSIONS] += (weight if hashed & 1 else -weight) * (1 + math.log(count))
    length = np.linalg.norm(vector)
    return np.asarray(vector / length if length else vector)


def _features(text: str) -> Iterator[tuple[str, float]]:
    words = [word.lower() for word in _WORD.findall(text)]
    for word in [word for word in words if word not in STOPWORDS] or words:
        yield word, WORD
        padded = f" {word} "
        yield from ((padded[start : start + 3], TRIGRAM) for start in range(len(padded) - 2))
