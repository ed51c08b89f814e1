"""The language in which models are asked to write: that of the question, unless another one is set."""

import re
import textwrap
from collections.abc import Sequence

from langchain_core.messages import BaseMessage, SystemMessage

# Definitions, imports, a line that ends in a brace or semicolon, arrows and calls.
_CODE = re.compile(r"^[^\S\n]*+(?:def|class|import|from|return)\b.*[:(.\w]$|[{};]\s*$|->|==|\w\(\w*\)", re.MULTILINE)
_LETTER = re.compile(r"[^\W\d_]")
_FOREIGN = re.compile(r"[^\x00-\x7f\W\d_]")
_WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")
_ENGLISH = {
    "the", "were", "does", "did", "what", "which", "who", "whose", "when", "where", "why", "how", "and", "with", "this",
    "that", "these", "those", "you", "your", "from", "there", "write", "tell", "explain", "make", "translate", "today",
    "tonight", "tomorrow", "would", "could", "should", "they", "their", "them", "after", "before", "about",
}  # fmt: skip
"""Small words of English that are none in the languages around it."""
_SHARED = {
    "of", "is", "are", "for", "give", "find", "compare", "describe", "list", "not", "be", "have", "has", "had", "hat",
    "per", "con", "pour", "was", "in", "a", "an", "by", "on", "at", "as", "to", "it", "he", "she", "his", "her", "or",
}  # fmt: skip
"""Words of English that are some in another language, too: they count where nothing speaks against English."""
_QUOTES = re.compile(
    r"""(?<!")"[^"\n]{1,200}"(?!")|[\u201c\u201e][^\u201c\u201d]*[\u201c\u201d]|\u00ab[^\u00bb]*\u00bb|(?<![\w'])'[^'\n]{1,200}'(?![\w'])"""
)
"""Quoted words on one line, which may be of any language. What stands in three quotation marks is a program's text."""
_HAN, _KANA = re.compile(r"[\u3400-\u9fff]"), re.compile(r"[\u3040-\u30ff]")
_SCRIPTS = {
    "Korean": re.compile(r"[\uac00-\ud7af]"),
    "Thai": re.compile(r"[\u0e01-\u0e2e]"),
    "Greek": re.compile(r"[\u0370-\u03ff]"),
    "Hebrew": re.compile(r"[\u05d0-\u05ea]"),
}
"""Scripts in which one language is written today."""
_SMALL = {
    "German": {
        "und", "ist", "sind", "nicht", "eine", "einem", "einen", "wie", "wer", "warum", "welche", "welcher", "welches",
        "mit", "für", "auf", "wird", "viele", "das", "hat", "ich", "auch", "zum", "zur", "der", "dem", "des", "ein",
        "einer", "eines", "im", "von", "zu", "wurde", "wo", "wann", "wem", "wen", "bei", "nach", "aus", "sich", "als",
        "dass", "welchem", "welchen", "waren", "hatte",
    },
    "French": {
        "est", "sont", "une", "les", "des", "dans", "pour", "qui", "quel", "quelle", "quels", "quelles", "pourquoi",
        "avec", "combien", "où", "je", "tu", "elle", "nous", "vous", "pas", "et", "au", "cette",
    },
    "Spanish": {
        "qué", "quién", "cuál", "cuáles", "cuántos", "cuántas", "cómo", "dónde", "cuándo", "los", "las", "una", "por",
        "para", "con", "del", "el", "es", "está", "hay", "más",
    },
    "Portuguese": {
        "não", "são", "uma", "quem", "qual", "quais", "quantos", "quantas", "onde", "com", "para", "você", "dos", "por",
        "é", "um", "em", "está",
    },
    "Italian": {
        "della", "degli", "sono", "perché", "quale", "quali", "quanti", "quante", "che", "chi", "gli", "nella", "una",
        "con", "per", "di", "è", "nel",
    },
    "Dutch": {
        "wat", "wie", "waar", "waarom", "wanneer", "hoe", "hoeveel", "welke", "een", "het", "is", "zijn", "niet", "dat",
        "dit", "deze", "of", "met", "voor", "naar", "wordt", "heeft", "ik",
    },
    "Danish": {
        "hvad", "hvem", "hvor", "hvorfor", "hvordan", "hvilken", "hvilke", "er", "og", "ikke", "af", "det", "der",
        "for", "til", "mange", "som", "blev",
    },
    "Norwegian": {
        "hva", "hvem", "hvor", "hvorfor", "hvordan", "hvilken", "hvilke", "er", "og", "ikke", "av", "det", "for", "til",
        "mange", "som", "ble",
    },
    "Swedish": {
        "vad", "vem", "var", "varför", "hur", "vilken", "vilka", "är", "och", "inte", "av", "det", "för", "till",
        "många", "som", "blev",
    },
    "Romanian": {
        "cine", "unde", "când", "pentru", "sunt", "este", "și", "cât", "câte", "câți", "în", "are", "despre", "prin",
    },
}  # fmt: skip
"""Small words by which languages in the letters of English are known."""
_ENOUGH = 2
"""Different small words that name a language, if no other has half as many."""
_ENOUGH_ENGLISH = 3
"""Words by which English is known."""
_BEYOND_LATIN = "\u0250"
"""The first letter that is none of the Latin alphabet."""
_QUOTED = 80
"""Characters of a question that show its language."""


def in_language(messages: Sequence[BaseMessage], language: str | None, question: str) -> Sequence[BaseMessage]:
    """Add to a prompt the language to write in, where that is not obvious: the prompts themselves are English.

    Args:
        messages: The prompt.
        language: The language that is set; None for that of the question.
        question: What the run is asked.
    """
    target = language or language_of(question)
    if target is None:
        return messages
    instruction = f"Write in {target}; keep the labels, field names and tool names of these instructions as they are."
    if messages and isinstance(messages[0], SystemMessage):
        return [SystemMessage(f"{messages[0].text}\n\n{instruction}"), *messages[1:]]
    return [SystemMessage(instruction), *messages]


def language_of(question: str) -> str | None:
    """Return the language of a question, in words for a model that may not be shown it; None for English."""
    if is_english(question):
        return None
    # A quotation mark would end the sample, and what follows would read as an instruction.
    plain = " ".join(question.replace('"', "'").split())
    # Chinese and Thai have no blanks at which `shorten` could cut: it would leave nothing but the dots.
    spaced = len(plain) <= _QUOTED or " " in plain[:_QUOTED]
    cut = textwrap.shorten(plain, _QUOTED, placeholder=" ...") if spaced else plain[:_QUOTED]
    return name_of(question) or f'the language of "{cut}"'


def name_of(text: str) -> str | None:
    """Name the language of a text by its script or its small words; None where these do not decide."""
    text = text[:2_000]
    letters = len(_LETTER.findall(text))
    han, kana = _HAN.findall(text), _KANA.findall(text)
    # Names of products stay in Latin letters: half of the letters decide.
    if 2 * (len(han) + len(kana)) > letters:
        # Japanese is written with kanji too, but never a sentence without kana.
        return "Japanese" if kana else _chinese("".join(han))
    for name, script in _SCRIPTS.items():
        if 2 * len(script.findall(text)) > letters:
            return name
    words = {word.casefold() for word in _WORD.findall(text)}
    matches = sorted((len(words & small), name) for name, small in _SMALL.items())
    second, _ = matches[-2]
    most, name = matches[-1]
    return name if most >= _ENOUGH and most > 2 * second else None


def is_in(text: str, language: str) -> bool | None:
    """Tell whether a text is in a language, such as "German"; None where neither script nor small words decide."""
    text = text[:2_000]
    named = name_of(text)
    if len(_WORD.findall(text)) >= _ENOUGH_ENGLISH and is_english(text):
        named = "English"
    if named:
        return named.endswith(language)  # "simplified Chinese" is Chinese
    letters = _LETTER.findall(text)
    latin = [letter for letter in letters if letter < _BEYOND_LATIN]
    is_latin = 2 * len(latin) > len(letters)
    in_latin = language in _SMALL or language == "English"
    return False if letters and is_latin is not in_latin else None


def _chinese(han: str) -> str:
    """Name the kind of Chinese by the character set that all of a text is in."""
    simplified = han.encode("gb2312", "ignore").decode("gb2312") == han
    traditional = han.encode("big5", "ignore").decode("big5") == han
    if simplified == traditional:
        return "Chinese"
    return "simplified Chinese" if simplified else "traditional Chinese"


def is_english(text: str) -> bool:
    """Tell whether a text is English, judging by its letters and by its small words outside quotation marks. A text
    without words is, and so is code in the letters of English."""
    text = text[:2_000]
    letters = len(_LETTER.findall(text))
    if letters == 0:
        return True
    # A fifth of foreign letters is more than the names in an English question bring.
    if 5 * len(_FOREIGN.findall(text)) > letters:
        return False
    if text.isascii() and _CODE.search(text):
        return True
    listed = _WORD.findall(_QUOTES.sub(" ", text))
    words = {word.casefold() for word in listed}
    english = len(words & _ENGLISH)
    common = _without_names(listed)
    foreign = max(len(common & small - _SHARED) for small in _SMALL.values())
    nothing_foreign = foreign == 0 and all(word.isascii() for word in common)
    # Words that languages share decide only where nothing else is foreign; one or two words, such as a name,
    # decide nothing.
    return len(listed) < 3 or english >= max(foreign, 1) or (nothing_foreign and bool(words & _SHARED))


def _without_names(words: Sequence[str]) -> set[str]:
    """Return the words of a text in small letters, without those after the first that are capitalised: "Los Angeles"
    is no Spanish in an English question."""
    return {word.casefold() for index, word in enumerate(words) if index == 0 or not word.istitle()}
