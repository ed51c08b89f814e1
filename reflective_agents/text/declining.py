"""Whether a text answers, or only declares that there is no answer."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any
from unicodedata import normalize

from reflective_agents.text.labels import without_label
from reflective_agents.text.references import split_list

LONGEST = 600
"""Characters up to which a text may say no more than that; a longer one has something to tell."""
_WORDS: dict[str, Any] = tomllib.loads((files("reflective_agents.text") / "refusals.toml").read_text("utf-8"))
_MARK, _STYLE = re.compile(r"\[\d{1,3}(?:, ?\d{1,3})*\]"), re.compile(r"[*_`#>]+")
_TURN = rf"\b(?:{_WORDS['turn']})\b"
_SENTENCE_END = re.compile(
    # No full stop after an initial or a title, but in what follows it ("J. ..."). The reading is linear: no run of
    # signs or blanks is tried from within.
    r"(?:(?<![!?;.])|(?<=\b\w\.)|(?<=\bMr\.)|(?<=\bDr\.)|(?<=\bSt\.)|(?<=\bMrs\.))"
    r"(?:[!?;]|(?<!\b\w)(?<!\bMr)(?<!\bDr)(?<!\bSt)(?<!\bMrs)\.)++(?=\s|$)"
    # A colon ends a clause only where at least four words follow.
    r"|:(?=(?:\s++\S++){4})|[。！？；：]+"
    # Words that turn to something else: what follows "but" may tell more than that there is no answer.
    rf"|(?:\n++|\s[-–—]\s)(?:\s++(?:{_TURN}|[-–—]\s)?)?|(?:,\s*+|(?<!\s)\s++){_TURN}"
    r"|,\s*+so\b|[，,](?:但是?|不过|不過|然而)|(?:しかし|ですが|だが)、",
    re.IGNORECASE,
)
_BEGINNING = re.compile(rf"(?:[\W_]|(?:{_WORDS['apology']})(?![a-zäöüßéèàç])|{_WORDS['introduction']})*", re.IGNORECASE)


def declines(text: str) -> bool:
    """Tell whether a text as a whole declares that there is no answer, in the languages of `refusals.toml`.

    Each of its sentences has to decline, or to tell nothing beside one that does; a list of references does not count.
    A name, a label, or a statement about the world ("None", "Impossible Foods makes it.") is an answer.
    """
    answer = without_label(split_list(text)[0].strip(), "final", "answer")
    # Citations and bold type stand between the words that the patterns know.
    statement = normalize("NFKC", _STYLE.sub("", _MARK.sub("", answer))).strip()
    if len(statement) > LONGEST or _is_name(statement):
        return False
    statement = statement.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    sentences = [sentence.strip() for sentence in _SENTENCE_END.split(statement)]
    telling = [sentence for sentence in sentences if not _refuses(sentence)]
    return len(telling) < len(sentences) and all(_tells_nothing(sentence) for sentence in telling)


def _is_name(text: str) -> bool:
    """Tell whether a text is a label in capitals, or a title that capitalises most of its words."""
    later = text.split()[1:]
    capitalised = sum(word[:1].isupper() for word in later)
    return text.isupper() or (len(later) > 1 and 2 * capitalised > len(later))


def _refuses(sentence: str) -> bool:
    bare = _BEGINNING.sub("", sentence, count=1)
    # As it is, too: some refusals consist of an apology alone.
    return any(_patterns("declines").match(form) for form in (sentence, bare))


def _tells_nothing(sentence: str) -> bool:
    bare = _BEGINNING.sub("", sentence, count=1)
    return not bare or _patterns("beside").match(bare) is not None


@cache
def _patterns(kind: str) -> re.Pattern[str]:
    """Join the patterns of all languages."""
    patterns: list[str] = []
    for language in _WORDS["language"].values():
        for pattern in language[kind]:
            filled = pattern.replace("<source>", language["source"]).replace("<fact>", language["fact"])
            patterns.append(f"(?:{filled})")
    return re.compile("|".join(patterns), re.IGNORECASE)
