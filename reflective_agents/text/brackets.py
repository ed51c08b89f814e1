"""Which brackets of a text may cite: `[1]`, `[2, 3]`, `【1】`, and `[s1]` or `[m1]` where a list has its own letter.

A citation stands behind a word or a sentence: take it out, and the sentence is whole. Numbers in code or formulas,
behind an operator, an opening bracket or the name of a variable are content, and so are several numbers after a word
that needs something to follow, as in "The list is [1, 2, 3]". Where both can be meant, the mark is not certain.
"""

import re
from typing import NamedTuple
from unicodedata import category

from reflective_agents.text.words import LETTERS, SYLLABLES

LARGEST = 999
"""Greatest number of a citation; [2024] is none."""
BEFORE, AFTER = 60, 40
"""Characters around a bracket that tell what it is."""
LONGEST = 500
"""Characters of a bracket that cites."""

_NAMES = r"[a-z]?\d{1,4}(?:\s{0,3}[,;，、；]\s{0,3}[a-z]?\d{1,4}){0,99}"
_BRACKET = re.compile(rf"\[{_NAMES}\]|【{_NAMES}】", re.IGNORECASE)
_BEGUN = re.compile(r"[\[【][\da-z,;，、；\s]*", re.IGNORECASE)
_BETWEEN = re.compile(r"\s{0,2}[,;，、；]?\s{0,2}(?:(?:and|or|und|oder|et|ou|y|o|e|och|en|и|или|和|与|與|及)\s)?")
_GAP = re.compile(r"[^\[\]【】]{12}")
"""What is too long to stand between brackets that belong together."""
_OPENERS = re.compile(r"\\.|`{1,3}|~{3}|\${1,2}")
_CLOSERS = {"\\(": "\\)", "\\[": "\\]"}
_UNSPACED = re.compile(rf"[{SYLLABLES}{LETTERS}]")
_LINE_START = re.compile(r"\s*(?:>\s*)*(?:[-+*•]\s+|#{1,6}\s+|\d{1,3}[.)、]\s*)?[*_]*")
_EMPHASIS_END = re.compile(r"(?<=\S)[*_~]{1,3}$")
_PROSE = re.compile(r"(?<![\w.$])(?:[^\W\d_][^\W\d_A-Z]{2,}|[A-Z]{3,}|\d+)$|\d\s?[^\W\d_]{1,3}$")
_TAG = re.compile(r"</?\w{1,20}>$")
_CONTENT = re.compile(r"[*_~]*(?:[({=\\]|[^\W_]|\[(?![a-z]?\d)|\.\w{1,30}\(|[ \t]+(?:[=+≤≥∈]|[*<>] ))", re.IGNORECASE)
"""What follows a bracket that is content: a link's address, a method, an operator."""
_ENDS_CLAUSE = re.compile(r"[*_~]*(?:$|[\n.,;:!?…。，；：！？、)）\]\"'”’»|\[【<])")
_GOES_ON = re.compile(r"[*_~]*[ \t]+[^\W\d_A-Z]")
_DECIDES = re.compile(
    r"[*_~]*(?:[^\s.*_~\[]|\[..|\.(?:\W|\w{1,30}\W|\w{31})|[ \t]+(?:[^\s*<>]|[*<>].))|.{40}", re.DOTALL
)
"""What has to follow a bracket before it can be told what it is."""
_PUNCTUATION = '()（）[]{}"“”„«»「」『』*_~-,;:'
_STOPS, _CLOSING, _COMMAS = ".!?…。！？।؟\u06d4\u104b\u17d4\u1362", ")）]】\"'”’»」』》%‰`", ",;，；、:：—–"
_UNITS = frozenset({"Sc", "So"})
"""Categories of signs that end the number or the word before them: "30 €", "Acme®". Others are operators."""
_MEASURED = re.compile(r"(?:\w|\d\s).$")
_SIGNED = re.compile(r"\w[+#]{1,2}$")
"""A word that ends with the sign of an operator: "C++", "18+"."""
_OPEN_WORDS = frozenset(
    """
    is are was were be been being become becomes equal equals return returns returned yield yields give gives print
    prints contain contains of in into to at by from with for between over than the a an and or on within list lists
    array vector tuple set sequence range interval index indices
    ist sind war waren wird werden ergibt lautet lauten gibt von vom im zu zum zur bei mit aus für auf der die das den
    dem ein eine einen einem und oder liste intervall vektor menge folge
    est sont était étaient sera donne renvoie vaut valent de du des dans à au aux par avec pour sur le la les un une et
    ou liste intervalle vecteur
    es son era eran será da devuelve contiene del en al por con para sobre el los las una y o lista intervalo
    é são eram dá retorna do dos das em no na ao com os as um uma e
    è sono erano sarà dà restituisce di della nel nella alla per su il lo gli
    zijn was waren wordt geeft van het een met voor op uit en lijst
    är blir ger och eller av i på med till listan er bliver og jest są w z i lub lista
    это равен равна равно равны есть был была было были будет возвращает в во из на с со к от для и или список
    """.split()  # noqa: RUF001, SIM905 - letters of other scripts; and the words are easier to read
)
"""Words that need something to follow: copulas, prepositions, articles, conjunctions, and names of lists."""
_OPEN_ENDS = (
    *("是", "为", "為", "于", "於", "在", "的", "成", "到", "从", "從", "和", "与", "與", "列表", "数组", "數組"),
    *("は", "が", "を", "に", "の", "と", "で", "คือ", "เป็น", "ของ", "ใน"),
    *("은", "는", "을", "를", "의", "에", "로", "와", "과"),
)
"""How a text ends that needs something to follow, where no blanks stand between words, and in Korean."""


class Mark(NamedTuple):
    """Names between brackets that may cite sources.

    Attributes:
        begin: Where the bracket opens in the text.
        end: Where it has closed.
        names: The names, such as "1" or "s2".
        certain: Whether it stands where nothing but a citation does.
    """

    begin: int
    end: int
    names: tuple[str, ...]
    certain: bool


class Line(NamedTuple):
    """A line that was read.

    Attributes:
        marks: What may cite in it.
        closer: What closes the code or the formula that goes on after the line; empty if there is none.
        settled: How far the line is read for good, whatever comes after what is there of it.
    """

    marks: list[Mark]
    closer: str
    settled: int


class _Spans(NamedTuple):
    """Code and formulas in a line, what closes the last of them after it, and where one begins that may end yet."""

    spans: list[tuple[int, int]]
    closer: str
    pending: int


def marks(text: str) -> list[Mark]:
    """Return what may cite in a text."""
    found: list[Mark] = []
    begin = 0
    closer = ""
    for line in text.split("\n"):
        read = read_line(line, closer)
        found += [mark._replace(begin=mark.begin + begin, end=mark.end + begin) for mark in read.marks]
        begin += len(line) + 1
        closer = read.closer
    return found


def read_line(line: str, closer: str = "") -> Line:
    """Read a line, or as much of it as has come.

    Args:
        line: The line, without its end.
        closer: What closes the code or the formula in which it begins.
    """
    spans, closer, pending = _code_and_formulas(line, closer)
    found, settled = list[Mark](), _begun(line)
    last_end, run, certain = -1, 0, False
    content = False
    for bracket in _BRACKET.finditer(line):
        begin, end = bracket.span()
        while spans and spans[0][1] <= begin:
            spans.pop(0)
        if spans and spans[0][0] <= begin:
            continue
        names = tuple(re.findall(r"\w+", bracket[0].casefold()))
        after = line[end : end + AFTER]
        run = run if begin == last_end else begin
        if begin >= pending or not _DECIDES.match(after) or settled == end:
            settled = min(settled, run)
        # Brackets in a row, "[1][2]" or "[1] and [2]", are judged once, by what stands before the first.
        if last_end < 0 or not _BETWEEN.fullmatch(line, last_end, begin):
            citing = _could_cite(line, begin, after, len(names) > 1)
            content, certain = citing is None, bool(citing)
        last_end = end
        lettered = not all(map(str.isdecimal, names))
        stands_in_content = content and not lettered
        begins_content = _CONTENT.match(after) and not _UNSPACED.match(after)
        if _may_name(names) and not stands_in_content and not begins_content:
            found.append(Mark(begin, end, names, certain or lettered))
    return Line(found, closer, settled)


def restart(line: str, end: int, closer: str = "") -> int:
    """Return the last place from which a line can be read alone, if only the brackets behind its `end` matter.

    No code or formula is open there, and so much follows that no bracket behind the end is judged by what is before it.

    Args:
        line: The line.
        end: How far it is settled.
        closer: What closes the code or the formula in which it begins.

    Returns:
        The place; 0 if there is none but the beginning.
    """
    gaps = [gap.start() for gap in _GAP.finditer(line, 0, end)]
    begin = max(gaps, default=0) - BEFORE
    # Between words or within one, where no sign before it can change what a bracket is.
    while begin > 0 and not _is_in_words(line, begin):
        begin -= 1
    if begin <= 0:
        return 0
    read = _code_and_formulas(line[:begin], closer)
    return 0 if read.closer or read.pending < begin else begin


def _is_in_words(line: str, begin: int) -> bool:
    before = line[begin - 1]
    return line[begin].isalnum() and (before.isalnum() or before.isspace())


def _begun(line: str) -> int:
    """Return where a bracket opens at the end of a line that may go on to cite; the line's end if none does."""
    begin = max(line.rfind("[", -LONGEST), line.rfind("【", -LONGEST))
    return begin if begin >= 0 and _BEGUN.fullmatch(line, begin) else len(line)


def _code_and_formulas(line: str, closer: str) -> _Spans:
    spans, position, pending = list[tuple[int, int]](), 0, len(line)
    if closer:
        if (end := line.find(closer)) < 0:
            return _Spans([(0, len(line))], closer, pending)
        spans, position = [(0, end + len(closer))], end + len(closer)
    # What did not close once does not close later in the line either: to look again each time would take
    # quadratic time.
    unclosed = set[str]()
    while opener := _OPENERS.search(line, position):
        begin, position = opener.span()
        closing = _CLOSERS.get(opener[0], opener[0])
        if closing[0] == "\\" and opener[0] not in _CLOSERS:
            continue  # a sign that is escaped
        if opener[0] == "$" and not _opens_formula(line, position):
            continue
        end = -1 if closing in unclosed else line.find(closing, position)
        if end < 0:
            unclosed.add(closing)
            if _goes_on(line, begin, opener[0]):
                return _Spans([*spans, (begin, len(line))], closing, pending)
            pending = min(pending, begin)
        elif opener[0] != "$" or not line[end - 1].isspace():
            spans.append((begin, end + len(closing)))
            position = end + len(closing)
    return _Spans(spans, "", pending)


def _opens_formula(line: str, position: int) -> bool:
    """Tell whether a dollar sign opens a formula: "$5" is money."""
    return position < len(line) and not line[position].isspace() and not line[position].isdecimal()


def _goes_on(line: str, begin: int, opener: str) -> bool:
    """Tell whether code or a formula goes on after its line; a formula does only where it has begun the line."""
    if opener == "```":
        return True
    return opener in ("~~~", "$$", "\\[") and not line[:begin].strip() and "]" not in line[begin:]


def _may_name(names: tuple[str, ...]) -> bool:
    numbers = [int(name.lstrip("abcdefghijklmnopqrstuvwxyz")) for name in names]
    return all(1 <= number <= LARGEST for number in numbers) and len({*names}) == len(names)


def _could_cite(line: str, begin: int, after: str, several: bool) -> bool | None:
    """Tell whether a bracket stands where only a citation does (True), where one may (False), or where none does."""
    before = line[max(begin - BEFORE, 0) : begin]
    unless_several = None if several else False
    if begin <= BEFORE and _LINE_START.fullmatch(before):
        # An item of a list of references; "[1]: https://..." defines a link of Markdown.
        return unless_several if line[begin] == "[" and not after.startswith(":") else None
    # Within other brackets: a list of lists, or a set of LaTeX.
    if before.rfind("[") > before.rfind("]") or before.rfind("{") > before.rfind("}"):
        return None
    stem = before.rstrip("*_~") if before.rstrip("*_~") else before
    plain = _EMPHASIS_END.sub("", stem.rstrip())
    spaced, last = stem[-1:].isspace(), plain[-1:]
    if last in _STOPS:
        # Behind the blank after a full stop it may begin the next sentence, which then goes on in small letters.
        return not spaced or (not several and not _GOES_ON.match(after))
    is_unit = category(last) in _UNITS
    if last in _CLOSING or (is_unit and _MEASURED.search(plain)):
        return _behind_closing(plain, after, spaced)
    if last in _COMMAS:
        return unless_several
    if last in "(（":
        # f([1]) is a call, "(see [1])" and "([1])" cite.
        called = not spaced and plain[-2:-1].isalnum()
        if called:
            return None
        return not several if after.startswith((")", "）")) else unless_several
    # A cell of a table, in Markdown or HTML.
    if last == "|" or (last == ">" and _TAG.search(plain)):
        return False
    if spaced and (is_unit or _SIGNED.search(plain)):
        return unless_several
    # An operator or another sign that is no letter, number or mark.
    if category(last)[0] not in "LNM":
        return None
    if line[begin] == "【" or spaced or _UNSPACED.match(last):
        return True if not _is_open(plain) else unless_several
    # Glued to a word: "prose[1]." may cite, where "x[1]" and "array_a[1]" are indexed.
    return False if _PROSE.search(plain) and _ENDS_CLAUSE.match(after) else None


def _behind_closing(plain: str, after: str, spaced: bool) -> bool | None:
    """Tell the same of a bracket behind a quotation, another bracket or a unit: `f(x)[0]`, and `"[1]"`, may be code."""
    if spaced:
        return True
    opened = plain.rfind("(")
    called = plain[-1] == ")" and opened > 0 and plain[opened - 1].isalnum()
    opens = plain[-1] in "\"'`" and not plain[-2:-1].strip()
    if called or opens or plain[-1] == "]":
        return None
    return False if _ENDS_CLAUSE.match(after) else None


def _is_open(plain: str) -> bool:
    """Tell whether a text ends with a word that needs something to follow."""
    if _UNSPACED.match(plain[-1]):
        return plain.endswith(_OPEN_ENDS)
    word = plain.split()[-1].replace("’", "'").rpartition("'")[2]
    return word.strip(_PUNCTUATION).casefold() in _OPEN_WORDS
