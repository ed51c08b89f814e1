"""How answers to questions are measured: exact match and F1, as HotpotQA's official evaluation has them."""

import re
import string
from collections import Counter

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED = frozenset({"yes", "no", "noanswer"})


def normalise_answer(text: str) -> str:
    """Return a text in lower case without punctuation, articles and superfluous blanks."""
    # Punctuation goes before the articles, as in the official script: "a.m." has become "am" by then.
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: str) -> float:
    """Return 1 if two answers are the same after normalisation, else 0."""
    return float(normalise_answer(answer) == normalise_answer(gold))


def f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall over words, from 0 to 1.

    Where one of the two is "yes", "no" or "noanswer", only the same word counts: 1 or 0.
    """
    return overlap(normalise_answer(answer), normalise_answer(gold))


def overlap(answer: str, gold: str) -> float:
    """Return F1 over the words of two answers in their normal forms."""
    if answer != gold and {answer, gold} & _CLOSED:
        return 0.0
    words, gold_words = answer.split(), gold.split()
    shared = (Counter(words) & Counter(gold_words)).total()
    return 2 * shared / (len(words) + len(gold_words)) if shared else 0.0
