"""A summary without a model: the sentences that hold most names, numbers and questions, as they are."""

import re
from collections.abc import Iterable
from itertools import chain

from reflective_agents.text.sentences import split
from reflective_agents.text.words import STOPWORDS, cut

_TAG = re.compile(r"</?(?:turn|summary)\b[^>\n]*>")
_LONGEST = 60
"""Words of a sentence above which its end is left out."""


def digest(texts: Iterable[str], most: int) -> str:
    """Return the sentences of texts that say most, in order, with so many words together at most.

    Args:
        texts: What is summarised; tags around a text are left out.
        most: Most words.
    """
    lines = _TAG.sub("\n", "\n".join(texts)).splitlines()
    parts = chain.from_iterable(map(split, lines))
    sentences = [_shortened(part) for part in dict.fromkeys(parts)]
    # Of two that weigh the same the later one, which is nearer to what the conversation is about now.
    ranked = sorted(range(len(sentences)), key=lambda index: (-_weight(sentences[index]), -index))
    chosen: list[int] = []
    left = most
    for index in ranked:
        length = len(cut(sentences[index]))
        if length <= left:
            chosen.append(index)
            left -= length
    return "\n".join(sentences[index] for index in sorted(chosen))


def _shortened(sentence: str) -> str:
    words = sentence.split()
    return sentence if len(words) <= _LONGEST else " ".join([*words[:_LONGEST], "..."])


def _weight(sentence: str) -> float:
    """Weigh a sentence by its numbers, its names and whether it asks, for its length."""
    words = cut(sentence)
    if not words:
        return 0.0
    # The first word has a capital letter whatever it is.
    telling = [word for word in words[1:] if word.lower() not in STOPWORDS]
    figures = sum(any(map(str.isdigit, word)) for word in words)
    names = sum(word[:1].isupper() for word in telling)
    asks = sentence.rstrip().endswith(("?", "\uff1f"))
    # Five more words, or a sentence of two words would outweigh all others.
    return (2 * (figures + names) + len(telling) / 4 + asks) / (len(words) + 5)
