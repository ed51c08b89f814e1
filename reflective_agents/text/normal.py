"""Normal forms: what texts have in common that say the same in other signs, in any language.

Two answers are equal if their normal forms are. Numbers count by their value, however they are written; of all else,
case, punctuation, articles and blanks do not count.
"""

import re
import unicodedata
from fractions import Fraction

from reflective_agents.text.labels import without_answer_label

_LONGEST = 400
"""Digits that a number may have; a longer one is compared as text."""
# NFKC would make 102 of 10², and 11/2 of 1½: these are set apart before.
_SUPERSCRIPT = re.compile(r"(?<=\d)[\u00b2\u00b3\u00b9\u2070\u2074-\u207b]+")
_VULGAR = re.compile(r"(?<=\d)(?=[\u00bc-\u00be\u2150-\u215e\u2189])")
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-"),
        **dict.fromkeys("\u2044\u2215", "/"),
        **dict.fromkeys("\u2018\u2019\u02bc", "'"),
        **dict.fromkeys("\u066c\u3001", ","),
        "\u2014": " ",
        "\u066b": ".",
        "\u066a": "%",
    }
)
_LATIN = "A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff_"
_UNSPACED = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_CURRENCY = "$\u20ac\u00a3\u00a5\u20a9\u20b9\u20bd\u0e3f\u20ab"
_WHOLE = r"[1-9]\d{0,2}"
_FORMS = "|".join(
    [
        rf"{_WHOLE}(?:,\d{{3}})+(?![\d,])(?:\.\d+)?",  # 1,234.5
        r"[1-9]\d?(?:,\d{2})+,\d{3}(?![\d,])(?:\.\d+)?",  # 12,34,567, as in India
        rf"{_WHOLE}(?:\.\d{{3}}){{2,}}(?![\d.])(?:,\d+)?",  # 1.234.567
        rf"{_WHOLE}(?:\.\d{{3}})+,\d+",  # 1.234,5
        rf"{_WHOLE}(?:'\d{{3}})+(?![\d'])(?:[.,]\d+)?",  # 1'234.5
        rf"{_WHOLE}(?:[ ]\d{{3}})+(?!\d|[ ]?/)(?:[.,]\d+)?",  # 1 234,5
        r"\d+,\d+(?!,\d)",  # 1,5: where no thousands are meant, the comma is decimal
        r"\d+(?:\.\d+)?",
        r"\.\d+",
    ]
)
_NUMBER = re.compile(
    # Not within a name (H2O), nor a part of what has several (12:30, 1.2.3); in 5-3 the minus is no sign of the 3.
    rf"(?<![{_LATIN}\d])(?<!\d[.,:'/])(?P<sign>(?<![\w)%.])[-+])?(?P<currency>[{_CURRENCY}][ ]?)?"
    r"(?:(?P<mixed>\d+)[ ])?(?P<above>\d+)[ ]?/[ ]?(?P<below>0*[1-9]\d*)(?![\d/]|[.,]\d)"
    rf"|(?<![{_LATIN}\d])(?<!\d[.,:'/])(?P<minus>(?<![\w)%.])[-+])?(?P<unit>[{_CURRENCY}][ ]?)?"
    rf"(?P<digits>{_FORMS})(?![\d/]|[.,:']\d)"
    # 1.5e3, and 1.5 x 10^3; three digits, so that no power takes long to work out.
    r"(?:(?:[ ]?[x*\u00d7\u00b7][ ]?10\^|e)(?P<power>[-+]?\d{1,3})(?![\w.]))?",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"[ ]?(?:(?P<percent>%|per[ ]?cent\b|pro[zc]ent\b|pour[ ]?cent\b|por[ ]?ciento\b)|\u2030)", re.I)
_ARTICLES = re.compile(r"\b(?:a|an|the) (?=\S)")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[^\w\s](?=\d)")
_UNSPACED_GAP = re.compile(rf"(?<=[{_UNSPACED}]) (?=[{_UNSPACED}])")
_PLACEHOLDER = re.compile(r"[\s.\u2026]*")


def folded(text: str) -> str:
    """Return a text in which case and blanks no longer differ."""
    return " ".join(text.casefold().split())


def tidy(text: str) -> str:
    """Return a text in its usual signs: full-width letters and marks, digits of other scripts, kinds of dashes,
    fractions in one sign ("1\u00bd" becomes "1 1/2"); without signs that cannot be seen."""
    text = _VULGAR.sub(" ", _SUPERSCRIPT.sub(lambda match: f"^{match[0]}", text))
    text = unicodedata.normalize("NFKC", text.replace("\u2014", " ")).translate(_SIGNS)
    if text.isascii():
        return text
    # Cf: marks of direction, zero-width joiners and soft hyphens.
    return "".join(_usual(sign) for sign in text if unicodedata.category(sign) != "Cf")


def _usual(sign: str) -> str:
    digit = unicodedata.decimal(sign, None)
    return sign if digit is None else str(digit)


def read_number(text: str) -> Fraction | None:
    """Return the number that a text is, such as "-1,234.5", "1 1/2", "12,5", "15 %" or "\uff11\uff12"; None if it is
    none, or more than a number.

    A comma or a point that can be both is read as in English: "1,500" is fifteen hundred, and "1.500" is one and a
    half.
    """
    plain = " ".join(tidy(text).split()).rstrip(" .")
    match = _NUMBER.match(plain)
    value = _value(match) if match else None
    if match is None or value is None or (match["currency"] or match["unit"] or "$").strip() != "$":
        return None
    share = _PERCENT.match(plain, match.end())
    if (share or match).end() < len(plain):
        return None
    return value / _per(share) if share else value


def numbers(text: str) -> list[Fraction]:
    """Return the numbers that stand in a text, in their order; a percent sign is not looked at."""
    values = [_value(match) for match in _NUMBER.finditer(" ".join(tidy(text).split()))]
    return [value for value in values if value is not None]


def normal_form(text: str) -> str:
    """Return what equal answers have in common; empty if a text says nothing ("...").

    Numbers are there by their exact value: "1.50 km" and "1,5km" have the form "3/2 km". The rest is in lower case,
    without punctuation, articles, a label such as "Answer:", and blanks in scripts that are written without any.
    """
    if _PLACEHOLDER.fullmatch(text):
        return ""
    plain = " ".join(tidy(text).split())
    joined = " ".join(" ".join(_parts(without_answer_label(plain))).split())
    form = _UNSPACED_GAP.sub("", _ARTICLES.sub("", joined))
    # A text of punctuation alone, such as "+", is still an answer.
    return form or folded(plain)


def equal(first: str, second: str) -> bool:
    """Return whether two answers say the same: as numbers if both are, else as text."""
    return normal_form(first) == normal_form(second)


def _parts(text: str) -> list[str]:
    """Split a text into its numbers, by their value, and the text between them without punctuation."""
    parts: list[str] = []
    position = 0
    for match in _NUMBER.finditer(text):
        value = _value(match)
        if value is None:
            continue
        share = _PERCENT.match(text, match.end())
        currency = (match["currency"] or match["unit"] or "").strip().strip("$")
        parts += [_words(text[position : match.start()]), str(value / _per(share) if share else value), currency]
        position = (share or match).end()
    return [*parts, _words(text[position:])]


def _per(share: re.Match[str]) -> int:
    return 100 if share["percent"] else 1000


def _value(match: re.Match[str]) -> Fraction | None:
    """Return the value of a matched number; None if it has too many digits."""
    if len(match[0]) > _LONGEST:
        return None
    if match["below"]:
        value = Fraction(int(match["above"]), int(match["below"])) + int(match["mixed"] or 0)
    else:
        value = Fraction(_with_point(match["digits"])) * Fraction(10) ** int(match["power"] or 0)
    return -value if "-" in (match["sign"], match["minus"]) else value


def _with_point(digits: str) -> str:
    """Rewrite a number without thousands separators and with a decimal point."""
    plain = digits.replace("'", "").replace(" ", "")
    comma, point = plain.rfind(","), plain.rfind(".")
    thousands = re.fullmatch(r"[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d?(?:,\d{2})+,\d{3}", plain.partition(".")[0])
    if comma > point and not thousands:
        return plain.replace(".", "").replace(",", ".")
    return plain.replace(",", "") if plain.count(".") < 2 else plain.replace(".", "")


def _words(text: str) -> str:
    parted = _BETWEEN_DIGITS.sub(" ", text.casefold())
    return "".join(sign for sign in parted if sign not in "`$" and not unicodedata.category(sign).startswith("P"))
