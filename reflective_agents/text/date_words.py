"""Words for times in German and Chinese, put into English: "vor drei Wochen" becomes "3 weeks ago".

English is left as it is: no rule matches what is English, too.
"""

import re
from datetime import date
from functools import partial

_NAMES = {
    **{"januar": "january", "jänner": "january", "februar": "february", "märz": "march", "mai": "may"},
    **{"juni": "june", "juli": "july", "oktober": "october", "dezember": "december"},
    **{"montag": "monday", "dienstag": "tuesday", "mittwoch": "wednesday", "donnerstag": "thursday"},
    **{"freitag": "friday", "samstag": "saturday", "sonnabend": "saturday", "sonntag": "sunday"},
    **{"frühling": "spring", "frühjahr": "spring", "sommer": "summer", "herbst": "autumn"},
    **{"heiligabend": "christmas eve", "weihnachten": "christmas", "silvester": "new year's eve"},
    **{"neujahr": "new year", "valentinstag": "valentine"},
}
_NUMBERS = {
    **{"einem": "1", "einer": "1", "ein": "1", "eine": "1", "zwei": "2", "drei": "3", "vier": "4", "fünf": "5"},
    **{"sechs": "6", "sieben": "7", "acht": "8", "neun": "9", "zehn": "10", "ein paar": "3", "einigen": "3"},
}
_UNITS = {"tag": "day", "woche": "week", "monat": "month", "jahr": "year", "wochenende": "weekend"}
_HAN_UNITS = {
    **{"天": "day", "日": "day", "周": "week", "週": "week", "星期": "week", "礼拜": "week", "禮拜": "week"},
    **{"月": "month", "年": "year", "周末": "weekend", "週末": "weekend"},
}
_HAN_FEASTS = {"圣诞节": "christmas", "聖誕節": "christmas", "平安夜": "christmas eve", "元旦": "new year"}
_HAN_SEASONS = {"春天": "spring", "夏天": "summer", "秋天": "autumn", "冬天": "winter"}
_HAN_DAYS = {"前天": "the day before yesterday", "昨天": "yesterday", "今天": "today"}
_WAYS = {"vor": "before", "nach": "after", "前": "before", "后": "after", "後": "after"}
_WHICH = {
    "letzt": "last",
    "vorig": "last",
    "vergangen": "last",
    "dies": "this",
    "上": "last",
    "这": "this",
    "這": "this",
}
_WEEKDAYS = {"一": "mon", "二": "tue", "三": "wed", "四": "thu", "五": "fri", "六": "sat", "日": "sun", "天": "sun"}
_DIGITS = {digit: number for number, digit in enumerate("〇一二三四五六七八九")} | {"两": 2, "兩": 2}
_ENGLISH = _NAMES | _NUMBERS | _UNITS | _HAN_UNITS | _HAN_FEASTS | _HAN_SEASONS | _HAN_DAYS | _WAYS | _WHICH


def _any(names: dict[str, str]) -> str:
    return f"({'|'.join(sorted(names, key=len, reverse=True))})"


_NUMBER, _UNIT = rf"({_any(_NUMBERS)[1:-1]}|\d{{1,3}})", r"(tag|woche|monat|jahr)(?:en|e|n)?"
_HAN_NUMBER, _HAN_UNIT = rf"([{''.join(_DIGITS)}十]{{1,3}}|\d{{1,3}})", f"[个個]?{_any(_HAN_UNITS)}"
_WEEK = "(?:周|週|星期|礼拜|禮拜)"
# Applied in this order: what consists of several words goes before the words that it holds.
_RULES = [
    (re.compile(pattern), english)
    for pattern, english in [
        (r"\bletzten jahres\b", "{last_year}"),
        (r"\bletztes jahr (?:im|an|zu) (\w+)", "in {0} {last_year}"),
        (rf"\bvor {_NUMBER} {_UNIT}\b", "{0} {1}s ago"),
        (rf"\b{_NUMBER} {_UNIT} (vor|nach) (?:dem |der )?", "{0} {1}s {2} "),
        (r"\bvorgestern\b", "the day before yesterday"),
        (r"\bgestern\b", "yesterday"),
        (r"\bheute\b", "today"),
        (rf"\b(letzt|vorig|vergangen|dies)e[nmrs]? {_any(_UNITS | _NAMES)}\b", "{0} {1}"),
        (rf"(\d)\. ?{_any(_NAMES)}\b", "{0} {1}"),
        (rf"\b(?:im|in der|seit) {_any(_NAMES)}\b", "in {0}"),
        (rf"\bam {_any(_NAMES)}\b", "on {0}"),
        (rf"\b{_any(_NAMES)}\b", "{0}"),
        # As a number with its sign, so that a month or a day behind it makes a date.
        ("前年", "{year_before}年"),
        ("去年", "{last_year}年"),
        ("今年", "{this_year}年"),
        (rf"{_HAN_NUMBER}(?=月|日|号|號)", "{number}"),
        (rf"{_any(_HAN_FEASTS)}(?:之|以)?(前|后|後){_HAN_NUMBER}{_HAN_UNIT}", " {number} {3}s {1} {0} "),
        (rf"{_HAN_NUMBER}{_HAN_UNIT}(?:之|以)?前", " {number} {1}s ago "),
        (rf"上个?個?{_WEEK}([一二三四五六日天])", " last {weekday} "),
        (rf"(上|这|這){_HAN_UNIT}", " {0} {1} "),
        (rf"(\d{{4}})年的?{_any(_HAN_SEASONS)}", " in {1} {0} "),
        (rf"{_any(_HAN_SEASONS)}", " in {0} "),
        (rf"{_any(_HAN_FEASTS | _HAN_DAYS)}", " {0} "),
    ]
]


def in_english(text: str, today: date) -> str:
    """Put the words for times in a text in lower case into English, "last year" into its number; all else stays.

    Args:
        text: A question in any language.
        today: The day to which "last year" is relative.
    """
    years = {"this_year": today.year, "last_year": today.year - 1, "year_before": today.year - 2}
    for pattern, english in _RULES:
        text = pattern.sub(partial(_filled, english, years), text)
    return text


def _filled(english: str, years: dict[str, int], match: re.Match[str]) -> str:
    """Fill the English of a rule with what its pattern has matched."""
    groups = match.groups("")
    numbers = [read for read in map(_han, groups) if read is not None]
    number = numbers[0] if numbers else ""
    weekday = _WEEKDAYS.get(groups[-1], "") if groups else ""
    return english.format(*(_ENGLISH.get(group, group) for group in groups), number=number, weekday=weekday, **years)


def _han(word: str) -> int | None:
    """Read a number in digits, or in Chinese up to 99."""
    if word.isascii() and word.isdecimal():
        return int(word)
    tens, ten, ones = word.rpartition("十")
    if not word or not {*tens, *ones} <= _DIGITS.keys() or len(tens) > 1 or len(ones) > 1:
        return None
    return (10 * _DIGITS.get(tens, 1) if ten else 0) + _DIGITS.get(ones, 0)
