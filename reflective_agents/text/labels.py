"""Labels in what models write: `Answer: 4`, `**Action 2:** search[x]`, `答案：北京`.

One reader for all of them: it sees through bold, stars, numbering, bullets, quotes, backticks, headings, tags
("<Answer: 4>", "<answer>4</answer>", "[Answer] 4") and full-width signs, knows the labels of the prompts in the
languages that models answer in, and takes linear time.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import cache
from itertools import chain
from typing import NamedTuple

NAMES: dict[str, tuple[str, ...]] = {
    "final": (
        "final answer", "the final answer", "最终答案", "最終答案", "endgültige antwort", "finale antwort",
        "คำตอบสุดท้าย", "réponse finale", "respuesta final", "resposta final", "risposta finale",
        "окончательный ответ", "최종 답변", "الإجابة النهائية",
    ),
    "answer": (
        "answer", "the answer", "答案", "答え", "回答", "解答", "antwort", "คำตอบ", "réponse", "respuesta", "resposta",
        "risposta", "ответ", "정답", "답변", "답", "الإجابة", "उत्तर",
    ),
    "action": (
        "action", "act", "行动", "行動", "动作", "操作", "aktion", "handlung", "การกระทำ", "acción", "ação", "azione",
        "действие", "행동",
    ),
    "input": ("action input", "行动输入", "动作输入", "输入", "aktionseingabe", "eingabe"),
    "thought": (
        "thought", "思考", "想法", "gedanke", "überlegung", "ความคิด", "pensée", "pensamiento", "pensamento", "pensiero",
        "мысль", "생각",
    ),
    "observation": (
        "observation", "观察", "觀察", "观测", "beobachtung", "การสังเกต", "ข้อสังเกต", "observación", "observação",
        "osservazione", "наблюдение", "관찰",
    ),
    "question": (
        "question", "sub-question", "subquestion", "问题", "問題", "子问题", "子問題", "frage", "teilfrage",
        "unterfrage", "คำถาม", "คำถามย่อย", "sous-question", "pregunta", "subpregunta", "pergunta", "domanda",
        "вопрос", "질문",
    ),
    "calculate": (
        "calculate", "calculation", "calculator", "计算", "計算", "berechne", "rechne", "คำนวณ", "calcule", "calcula",
        "calcular", "calcola", "вычислить", "вычисли", "계산",
    ),
    "done": ("done", "完成", "已完成", "fertig", "erledigt", "เสร็จ", "เสร็จสิ้น", "terminé", "hecho", "fatto"),
}  # fmt: skip
"""What the labels of the prompts are called, in the languages that models fall into."""

_MARKS = r"[\s<>#*_`~•·–—\"'“”「『《【\[(]"
_MARK = re.compile(rf"(?:{_MARKS}|[-+](?=\s)|\(?\d{{1,3}}[.):、．）](?=\s|[^\d\s]))*+")
_HALF = re.compile(r"([*_`]{1,3})")
_CLOSING = {")": "（(", "）": "(（", "]": "［[", "】": "【", ">": "<"}
"""What opens the brackets that close with a sign."""
_ARROWS = ("->", "=>")
_END_TAG = re.compile(r"</[^<>\n]{1,40}>")
_LONGEST_TAG = 60
_LIST_MARK = re.compile(r"\s*+(?:[-+*•·–—](?=\s)|#{1,6}(?=\s)|\(?\d{1,3}[.):、．）](?!\d))?+\s*+")
_WRAPS = ("**", "__", "*", "_", "`", '"', "“”", "「」", "『』")
_LANGUAGE = re.compile(r"[A-Za-z][\w+#-]*+[ \t]*+(?=\n|\Z)")
_LONGEST_LINE = 1_000
"""Characters of a last line that are read, from its end."""
_STATEMENT = re.compile(
    r"(?:\b(?:answer|antwort)\b(?:(?!\bwh)[^.:\n]){0,80}?(?:\b(?:is|lautet|ist)\b[ \t]*+:?|:)|答案是[:：]?)"
    r"[\s*_]{0,8}+([^\n]{1,500})",
    re.IGNORECASE,
)
_STATED = r"[*_ ]*+(?::|is\b:?|ist\b:?|lautet\b:?|\u662f|\u4e3a|\u70ba)\s*+"
# Tree of Thoughts' vote ends with "The best choice is {s}".
_CHOICE = re.compile(
    r"(?:best choice is|最[佳好]的?(?:选择|選擇)[是为為]?|beste wahl ist|ตัวเลือกที่ดีที่สุดคือ)\D{0,200}?(\d{1,9})",
    re.IGNORECASE,
)
# How models that are trained on mathematics mark their answer; groups of one level, as in \frac{1}{2}.
_BOXED = re.compile(r"\\boxed\{((?:[^{}\n]|\{[^{}\n]{0,99}\}){1,300}+)\}")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])")
# The mark of GSM8K's solutions, "#### 42", which models have learned.
_HASHES = re.compile(r"^####[ \t]++(\S[^\n]{0,500})", re.MULTILINE)


class Labelled(NamedTuple):
    """A part of a text that begins with a label. `name` is a key of NAMES, empty for what stands before the first.

    The label begins at `start`, the value at `begin`.
    """

    name: str
    value: str
    start: int
    begin: int


@cache
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    number = r"(?:\d{1,3}(?:\.\d{1,3})?)?+"
    named = any_of(*names).replace("\\ ", "[ _]")  # "final_answer", as tags have it
    return re.compile(rf"({named})[ \t]*+{number}([*_`\s)\]】>]*+)([:：﹕]?)", re.IGNORECASE)


def any_of(*names: str) -> str:
    """Return a pattern of all labels of these names, the longest first; also as NFKC writes them, which takes vowels
    of Thai apart."""
    labels = set[str]().union(*map(_forms, names))
    return "|".join(map(re.escape, sorted(labels, key=lambda label: (-len(label), label))))


def _nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _forms(name: str) -> set[str]:
    return {*NAMES[name], *map(_nfkc, NAMES[name])}


@cache
def _owners() -> dict[str, str]:
    owners: dict[str, str] = {}
    for name in NAMES:
        owners |= dict.fromkeys(map(str.casefold, _forms(name)), name)
    return owners


@cache
def _stated() -> re.Pattern[str]:
    return re.compile(rf"\W*+(?:the\s++)?(?:correct\s++)?(?:{any_of('final', 'answer')}){_STATED}", re.IGNORECASE)


def label_of(line: str, names: Collection[str] = tuple(NAMES)) -> tuple[str, int] | None:
    """Read the label that a line begins with.

    Args:
        line: One line.
        names: The labels looked for: keys of `NAMES`.

    Returns:
        Which label it is, and where its value begins; None if the line begins with none.
    """
    # No label stands behind more decoration, and a line of a hundred thousand stars need not be read.
    mark = _MARK.match(line[:60])
    begin = mark.end() if mark else 0
    match = _pattern(tuple(names)).match(line, begin)
    if match is None or not (match[3] or _is_closed(match[2], line[:begin]) or _is_heading(line, begin, match.end())):
        return None
    # "**Answer:** 4": the bold closes behind the colon.
    half = _HALF.match(line, match.end())
    closes = half and half[1][0] in line[:begin] and half[1][0] not in match[2]
    name = _owners()[match[1].casefold().replace("_", " ")]
    return name, half.end() if half and closes else match.end()


def _is_closed(after: str, before: str) -> bool:
    """Return whether brackets that open before a word close after it."""
    return any(_CLOSING[sign][-1] in before for sign in after if sign in "]】>")


def _is_heading(line: str, begin: int, end: int) -> bool:
    """Return whether a word that stands alone is written as a heading: otherwise it is no label."""
    return bool({"*", "#", "_"} & {*line[:begin]}) and not line[end:].strip()


def without_label(text: str, *names: str) -> str:
    """Strip one of the labels from the beginning of a text."""
    label = label_of(text.partition("\n")[0], names)
    return bare(text[label[1] :] if label else text)


def without_answer_label(text: str) -> str:
    """Strip from an answer what only says that it is one: "Answer: 4", "The answer is 4", "答案是4"."""
    stated = _stated().match(text)
    return text[stated.end() :] if stated else text


def sections(text: str, names: Collection[str] = tuple(NAMES)) -> Iterator[Labelled]:
    """Yield the parts of a text, each from its label to the next one; what stands before the first has no name."""
    name, start, begin, position = "", 0, 0, 0
    for line in text.splitlines(keepends=True):
        if not line.isspace() and (label := label_of(line, names)):
            yield Labelled(name, text[begin:position], start, begin)
            name, start, begin = label[0], position, position + label[1]
        position += len(line)
    yield Labelled(name, text[begin:], start, begin)


def labelled(text: str, *names: str) -> str | None:
    """Read the value that stands after one of the labels for the last time, up to the end of its line.

    Returns:
        The value without its decoration; the next line that holds something if the label stands alone; None if there
        is no such label.
    """
    value = None
    for part in sections(text, names):
        if part.name:
            value = part.value
    if value is None:
        return None
    for line in map(bare, value.splitlines()):
        if line:
            boxed = _BOXED.search(line)
            return bare(boxed[1]) if boxed else line
    return ""


def answer_in(text: str) -> str | None:
    """Read the answer that a text names: after the last label, else in the last sentence that says what it is.

    Returns:
        The answer without its decoration; None if the text names none, which does not say that it holds none.
    """
    value = labelled(text, "final", "answer")
    if value is not None:
        return value
    boxed = _BOXED.findall(text)
    if boxed:
        return bare(boxed[-1])
    found = chain(_STATEMENT.finditer(text), _HASHES.finditer(text))
    statements = [(match.start(), match[1]) for match in found]
    if not statements:
        return None
    return bare(_SENTENCE_END.split(max(statements)[1], maxsplit=1)[0]).rstrip(".。")


def choice_in(text: str) -> int | None:
    """Read the number that a vote names last as the best choice; None if it names none."""
    named = _CHOICE.findall(_nfkc(text))
    return int(named[-1]) if named else None


def bare(text: str) -> str:
    """Strip what only decorates a text: stars, backticks, quotes and fences around the whole of it, and half of a bold,
    a fence, a pair of brackets or of tags."""
    text = _unfenced(_without_end_tag(text.strip()))
    # Decoration is nested: "**`4`**".
    changed = True
    while changed and text:
        changed = False
        if _closes_nothing(text):
            text = text[:-1].rstrip()
        for wrap in _WRAPS:
            first, last = (wrap[0], wrap[1]) if len(wrap) == 2 and wrap[0] != wrap[1] else (wrap, wrap)
            inner = text[len(first) : -len(last)]
            if len(text) > len(first) + len(last) and text.startswith(first) and text.endswith(last):
                if first not in inner and last not in inner:
                    text, changed = inner.strip(), True
            elif wrap in ("**", "__") and text.count(wrap) == 1 and (text.startswith(wrap) or text.endswith(wrap)):
                text, changed = text.replace(wrap, "").strip(), True
    return text


def _closes_nothing(text: str) -> bool:
    """Return whether a text ends with a bracket that does not open in it; an arrow is none, nor the end of (0, 1]."""
    opening = _CLOSING.get(text[-1], "")
    is_interval = text[0] in "[(" and text[-1] in ")]" and "," in text
    opens = any(sign in text for sign in opening)
    return opening != "" and not is_interval and not opens and text[-2:] not in _ARROWS


def _without_end_tag(text: str) -> str:
    """Strip the tag that closes what was opened before the text."""
    tag = _END_TAG.search(text, max(len(text) - _LONGEST_TAG, 0)) if text.endswith(">") else None
    name = tag[0][2:-1] if tag and tag.end() == len(text) else ""
    return text[: tag.start()].rstrip() if tag and name and f"<{name}" not in text else text


def _unfenced(text: str) -> str:
    """Strip a fence around the whole of a text, and half of one. A whole one that names its language stays: that is a
    program."""
    parts = text.split("```")
    language = _LANGUAGE.match(parts[1]) if len(parts) > 1 else None
    if len(parts) == 2 and not (parts[0].strip() and parts[1].strip()):
        return (parts[0] or parts[1][language.end() if language else 0 :]).strip()
    if len(parts) == 3 and not (parts[0] or parts[2] or (language and language.end() < len(parts[1]))):
        return parts[1].strip() or text
    return text


def without_marker(line: str) -> str:
    """Strip the bullet, the number or the heading signs that a line of a list begins with, and its decoration."""
    mark = _LIST_MARK.match(line)
    return bare(line[mark.end() :] if mark else line)


def last_word(text: str, words: Collection[str]) -> str:
    """Read the judgement that a text ends with: the word that a sentence of its last line begins with.

    Decoration does not count, and neither does what follows as an aside: "**Sure** (it can be reached)".

    Args:
        text: What a judge wrote.
        words: The words that it may choose from, in lower case.

    Returns:
        The word; empty if there is none, or more than one. It is never looked for inside of a sentence: "It is not
        sure" does not say "sure".
    """
    lines = text.strip().splitlines()
    last = _nfkc(lines[-1][-_LONGEST_LINE:]).casefold() if lines else ""
    judgements = set(_judgement(tuple(words)).findall(last))
    return judgements.pop() if len(judgements) == 1 else ""


@cache
def _judgement(words: tuple[str, ...]) -> re.Pattern[str]:
    begins, mark = r"(?:^|[.!?:;=])", r"[\s>#*_`~\"'“”「」『』《》【】\[(){}\])•·–—-]"
    either = "|".join(map(re.escape, words))
    aside = r"(?=[*_`~\"'”」』》】\])]*+\s*+(?:$|[(\[,.;:!?]|[-–—]\s))"
    return re.compile(rf"{begins}{mark}*+(?:\d{{1,3}}[.):]{mark}*+)?({either}){aside}")
