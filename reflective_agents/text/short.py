"""What short answers to one question have in common, in whatever words they are given."""

from functools import lru_cache

from reflective_agents.text.normal import normal_form, read_number
from reflective_agents.text.stems import stem
from reflective_agents.text.words import STOPWORDS, cut

_BOUNDS = {
    "above", "after", "before", "below", "between", "more", "most", "no", "not", "over", "under", "until", "without",
}  # fmt: skip
"""Frequent words that change what the number beside them says."""
_SENTENCE = {
    "also", "altogether", "currently", "exactly", "finally", "hence", "left", "now", "per", "remain", "remaining",
    "remains", "still", "therefore", "thus", "total",
    "am", "das", "dem", "den", "der", "die", "du", "ende", "er", "es", "genau", "hat", "ich", "ihm", "ihr", "im",
    "insgesamt", "ist", "je", "jetzt", "noch", "nun", "pro", "sie", "sind", "somit", "wir",
}  # fmt: skip
"""Words that turn a number into a sentence, in English and German, beside the stop words."""
_FREQUENT = STOPWORDS - _BOUNDS | _SENTENCE
_STEM, _ENDING = 4, 2
"""Letters that two forms of one word share at least, and in which they may differ at their ends."""


@lru_cache(maxsize=1024)
def short_form(answer: str, question: str) -> str:
    """Return what equal answers to a question have in common; empty for an answer that cannot be read.

    It is the normal form. Beside a single number, the words of the question and the most frequent words do not count:
    to "How many pages does Tom read?" the answers "42", "42 pages" and "Tom reads 42 pages now." are the same, and "42
    books" is another one.

    Args:
        answer: A number, a name, a few words.
        question: What it answers.
    """
    parts = normal_form(answer).split()
    figures = [read_number(part) is not None for part in parts]
    if sum(figures) != 1:
        return " ".join(parts)
    question_form = normal_form(question)
    telling = []
    for part, is_figure in zip(parts, figures, strict=True):
        if is_figure or not (part in _FREQUENT or _repeats_question(question_form, part)):
            telling.append(part)
    return " ".join(telling)


def _repeats_question(question_form: str, part: str) -> bool:
    """Whether a part of an answer consists of words of the question, in whatever form."""
    of_question, words = set(cut(question_form)), cut(part)
    stems = {*map(stem, of_question)}

    def is_in_question(word: str) -> bool:
        if word in question_form and not word.isascii():
            return True
        return stem(word) in stems or any(_inflected(word, other) for other in of_question)

    return bool(words) and all(map(is_in_question, words))


def _inflected(first: str, second: str) -> bool:
    """Whether two words differ only in their endings."""
    shared = max(len(first), len(second)) - _ENDING
    return shared >= _STEM and first[:shared] == second[:shared]
