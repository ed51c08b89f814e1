"""Whether a text answers, or only says that there is no answer."""

import re

LONGEST = 300
"""Characters up to which a text may say no more than that; a longer one has something to tell."""

_FIRST_PERSON = (
    r"\b(?:i|we) (?:do not|don't|did not|didn't|can ?not|can't|could not|couldn't|am unable to|was unable to) "
)
_DECLINING = re.compile(
    "|".join(
        [
            r"^\W*(?:unknown|none|n/?a|no answer|not enough info(?:rmation)?|impossible|无|未知|unbekannt)\W*$",
            rf"{_FIRST_PERSON}(?:know|answer|find|determine|say|tell)\b",
            r"\bfound nothing (?:to|that|which|on|about|relevant)\b",
            r"\bnothing (?:relevant |useful )?(?:was|could be) found\b",
            r"\b(?:question|this|it) (?:can ?not|could not) be (?:answered|determined)\b",
            r"\bno (?:answer|information|evidence|sources?) (?:was|were|is|are|could be) (?:found|available|given)\b",
            r"^\W*(?:the |these )?(?:documents|sources|results) (?:do not|don't) (?:say|tell|name|mention|state)\b"
            r"(?![^\n]*\b(?:but|however|yet)\b)",
            r"^\W*(?:die|in den|aus den) (?:unterlagen|dokumenten?|quellen) (?:\w+ ){1,4}(?:nicht|keine?)\b"
            r"(?![^\n]*\b(?:aber|doch|sondern)\b)",
            r"\bich weiß (?:es |das )?nicht\b",
            r"\bich (?:kann|konnte) (?:\w+ ){0,4}nicht (?:beantworten|finden|sagen|ermitteln)\b",
            r"\bnichts (?:dazu |darüber )?gefunden\b|\bkeine (?:antwort|angaben|informationen) gefunden\b",
            r"我不知道|无法(?:回答|确定)|無法(?:回答|確定)|没有找到|沒有找到|未找到|找不到",
            r"ไม่ทราบ|ไม่สามารถตอบ|ไม่พบข้อมูล",
        ]
    ),
    re.IGNORECASE,
)


def declines(text: str) -> bool:
    """Tell whether a text declares that there is no answer, in English, German, Chinese or Thai.

    Only a short text can: one that goes on after "I do not know" has something else to say. A list of references does
    not count.
    """
    statement = text.partition("\n\nReferences:\n")[0].strip().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return len(statement) <= LONGEST and _DECLINING.search(statement) is not None
