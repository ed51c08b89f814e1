"""The embedding that needs nothing: hashed words and their parts. It compares spelling, not meaning."""

import math
from collections import Counter
from collections.abc import Iterator
from zlib import crc32

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from reflective_agents.text.words import content_words, is_of_syllables

DIMENSIONS = 384
MEANING = 0.2
"""Weight of these vectors beside the words themselves: they help where a word is misspelt."""
WORD, TRIGRAM = 1.0, 0.5
"""What a word, or a character that may be one, counts, and what a trigram does."""


class LexicalEmbeddings(Embeddings):
    """Vectors of 384 numbers, of length 1, or 0 if a text has no words; the same in every process.

    Trigrams let inflected and misspelt words meet. Scripts without spaces are cut as for any search; where a character
    is a syllable or a word, single ones stand in the place of trigrams.
    """

    model = "lexical"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts."""
        return [_vector(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Embed a query, in the same way as any text."""
        return self.embed_documents([text])[0]


def _vector(text: str) -> NDArray[np.float64]:
    vector = np.zeros(DIMENSIONS)
    for (feature, weight), count in Counter(_features(text)).items():
        # Not `hash`, which differs from process to process: vectors are stored.
        hashed = crc32(feature.encode(errors="surrogatepass"))
        # The lowest bit is the sign, so that features that share a number cancel out on average (arXiv 0902.2206).
        vector[(hashed >> 1) % DIMENSIONS] += (weight if hashed & 1 else -weight) * (1 + math.log(count))
    length = np.linalg.norm(vector)
    return np.asarray(vector / length if length else vector)


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in content_words(text):
        yield word, WORD
        if is_of_syllables(word):
            yield from ((character, WORD) for character in word)
            continue
        # The blanks make the beginning and the end of a word features of their own.
        padded = f" {word} "
        for start in range(len(padded) - 2):
            yield padded[start : start + 3], TRIGRAM
