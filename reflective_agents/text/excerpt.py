"""What of a long text bears on something: the pieces that share most words with it."""

from collections import Counter

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
    holding = Counter(word for piece in found for word in piece)
    weights = {word: idf(holding[word], len(found)) for word in {*words(wanted)} & holding.keys()}
    worth = [sum(weight for word, weight in weights.items() if word in piece) for piece in found]
    order = sorted(range(1, len(found)), key=lambda number: -worth[number])
    kept = sorted([0, *order[: max(most // (PIECE + len(GAP)) - 1, 0)]])
    parts = [
        GAP * (number > 0 and number - 1 not in kept) + text[begins[number] : begins[number] + PIECE] for number in kept
    ]
    return "".join(parts)[:most]
