"""What of a long text bears on something: the pieces that share most words with it."""

from collections import Counter
from itertools import chain

from reflective_agents.text.bm25 import idf
from reflective_agents.text.words import words

PIECE, EDGE = 500, 50
"""Characters of a piece, and of its neighbours in which its words are looked for: a word may stand in two pieces."""
GAP = " ... "


def excerpt(text: str, most: int, wanted: str) -> str:
    """Return a text of `most` characters at most: its first piece and those that bear most on what is wanted, in order.

    Rare words count more than those that stand everywhere. Where no word is shared, it is how the text begins.
    """
    if len(text) <= most:
        return text
    begins = range(0, len(text), PIECE)
    found = [frozenset(words(text[max(begin - EDGE, 0) : begin + PIECE + EDGE])) for begin in begins]
    holding = Counter(chain.from_iterable(found))
    weights = {word: idf(holding[word], len(found)) for word in {*words(wanted)} & holding.keys()}

    def worth(number: int) -> float:
        return sum(weight for word, weight in weights.items() if word in found[number])

    order = sorted(range(1, len(found)), key=worth, reverse=True)
    further = max(most // (PIECE + len(GAP)) - 1, 0)
    kept = sorted([0, *order[:further]])
    shown = ""
    for number in kept:
        follows = number == 0 or number - 1 in kept
        shown += ("" if follows else GAP) + text[begins[number] : begins[number] + PIECE]
    return shown[:most]
