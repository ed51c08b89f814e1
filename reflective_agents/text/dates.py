"""The times that a question names: "last May", "two weeks before Christmas", "2023-05-08", relative to now.

Words are read in English, German and Chinese, dates in digits in any language. Days are those of UTC.
"""

import calendar
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from reflective_agents.text.date_words import in_english

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
HOLIDAYS = {
    "christmas eve": (12, 24),
    "christmas": (12, 25),
    "new year's eve": (12, 31),
    "new year": (1, 1),
    "valentine": (2, 14),
    "halloween": (10, 31),
}
NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "couple of": 2, "few": 3}
_NUMBER = rf"(?:{'|'.join(NUMBERS)}|\d{{1,3}})"
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)(?:[a-z]*)\b\.?"
_UNIT = r"(day|week|month|year)s?"
_SHIFT = re.compile(rf"\b(?:the )?(?:({_NUMBER}) )?{_UNIT} (before|after) (?:the )?", re.IGNORECASE)


class Span(NamedTuple):
    """Days from the first to the last, both included."""

    first: date
    last: date


def periods(text: str, now: float) -> list[tuple[float, float]]:
    """Find the times that a text names, as seconds from and to; none if `now` is outside the calendar.

    Args:
        text: A question.
        now: Seconds since 1970, to which "last May" or "yesterday" are relative.
    """
    try:
        today = datetime.fromtimestamp(now, UTC).date()
        return [_seconds(span) for span in _spans(in_english(text.lower(), today), today)]
    except (ValueError, OverflowError, OSError):  # beyond the years that dates know
        return []


def _seconds(span: Span) -> tuple[float, float]:
    return _midnight(span.first), _midnight(span.last + _days(1))


def _midnight(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _days(count: int) -> timedelta:
    return timedelta(days=count)


def _spans(text: str, today: date) -> Iterator[Span]:
    covered: list[tuple[int, int]] = []
    # From the most exact form to the vaguest: what one has read is not read again as a month or a year alone.
    for pattern, read in _PATTERNS:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in covered):
                continue
            span = read(match, today)
            if span is not None:
                covered.append(match.span())
                yield _shifted(span, text[: match.start()])


def _shifted(span: Span, before: str) -> Span:
    """Shift a span by what precedes it, such as "two weeks before"."""
    shifts = [match for match in _SHIFT.finditer(before) if match.end() == len(before)]
    if not shifts:
        return span
    number, unit, direction = shifts[-1].groups()
    if number is None:  # the week before: the whole of it
        length = {"day": 1, "week": 7, "month": 30, "year": 365}[unit]
        earlier = Span(span.first - _days(length), span.first - _days(1))
        return earlier if direction == "before" else Span(span.last + _days(1), span.last + _days(length))
    sign = -1 if direction == "before" else 1
    return _about(_moved(span.first, unit, sign * _count(number)), unit)


def _count(number: str) -> int:
    return NUMBERS.get(number) or int(number)


def _moved(day: date, unit: str, count: int) -> date:
    if unit in ("day", "week"):
        return day + _days(count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _about(day: date, unit: str) -> Span:
    """Return the day, or some days around one that is known only to the week, the month or the year."""
    slack = {"day": 0, "week": 3, "month": 15, "year": 180}[unit]
    return Span(day - _days(slack), day + _days(slack))


def _month(year: int, month: int, months: int = 1) -> Span:
    last = _moved(date(year, month, 1), "month", months) - _days(1)
    return Span(date(year, month, 1), last)


def _last_time(today: date, month: int, day: int = 1) -> int:
    """Return the year in which a day of the year last occurred."""
    return today.year if (month, day) <= (today.month, today.day) else today.year - 1


def _valid(year: int, month: int, day: int) -> Span | None:
    fits = 1 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]
    return Span(date(year, month, day), date(year, month, day)) if fits else None


def _digits(match: re.Match[str], _: date) -> Span | None:
    return _valid(*map(int, match.groups()))


def _digits_backwards(match: re.Match[str], _: date) -> Span | None:
    # Day before month, as in most countries: 12/31/2023 fits no calendar so, and counts as its year alone.
    day, month, year = map(int, match.groups())
    return _valid(year, month, day)


def _han(match: re.Match[str], today: date) -> Span | None:
    month, day = int(match[2]), int(match[3] or 0)
    if not 1 <= month <= 12:
        return None
    year = int(match[1]) if match[1] else _last_time(today, month, day or 1)
    return _valid(year, month, day) if day else _month(year, month)


def _named_day(match: re.Match[str], today: date) -> Span | None:
    month = MONTHS.index(match["month"][:3]) + 1
    day = int(match["day"])
    year = int(match["year"]) if match["year"] else _last_time(today, month, day)
    return _valid(year, month, day)


def _named_month(match: re.Match[str], today: date) -> Span | None:
    before, name, year = match["before"], match["month"], match["year"]
    if name in ("may", "mar") and not (before or year):
        return None  # the verbs
    month = MONTHS.index(name[:3]) + 1
    return _month(int(year) if year else _last_time(today, month), month)


def _season(match: re.Match[str], today: date) -> Span:
    month = SEASONS[match[1]]
    return _month(int(match[2]) if match[2] else _last_time(today, month), month, 3)


def _holiday(match: re.Match[str], today: date) -> Span | None:
    month, day = HOLIDAYS[match[1].replace("\u2019", "'")]
    return _valid(int(match[2]) if match[2] else _last_time(today, month, day), month, day)


def _ago(match: re.Match[str], today: date) -> Span:
    return _about(_moved(today, match[2], -_count(match[1])), match[2])


def _relative_day(match: re.Match[str], today: date) -> Span:
    back = {"today": 0, "tonight": 0, "yesterday": 1, "the day before yesterday": 2}[match[0]]
    return Span(today - _days(back), today - _days(back))


def _relative(match: re.Match[str], today: date) -> Span:
    back = 1 if match[1] == "last" else 0
    unit = match[2]
    if unit in ("month", "year"):
        start = _moved(today.replace(day=1, month=today.month if unit == "month" else 1), unit, -back)
        return _month(start.year, start.month, 1 if unit == "month" else 12)
    monday = today - _days(today.weekday() + 7 * back)
    return Span(monday + _days(5 if unit == "weekend" else 0), monday + _days(6))


def _weekday(match: re.Match[str], today: date) -> Span:
    # "Last Monday", on a Monday, is a week ago.
    back = (today.weekday() - DAYS.index(match[1][:3])) % 7 or 7
    return Span(today - _days(back), today - _days(back))


def _year(match: re.Match[str], _: date) -> Span:
    return _month(int(match[1]), 1, 12)


_IN = r"(?:in|of|during|since|until|by|last|this) (?:the )?"
_YEAR = r"(?:,?\s*(?P<year>(?:19|20)\d\d)\b)?"
_NAMED = _MONTH.replace("(jan", "(?P<month>jan", 1)
_PATTERNS: list[tuple[re.Pattern[str], Callable[[re.Match[str], date], Span | None]]] = [
    (re.compile(r"\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\b"), _digits),
    (re.compile(r"\b(\d{1,2})[./](\d{1,2})[./](\d{4})\b"), _digits_backwards),
    (re.compile("(?:(\\d{4})\u5e74)?(\\d{1,2})\u6708(?:(\\d{1,2})[\u65e5\u53f7\u865f])?"), _han),
    (re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s*(?:of\s+)?{_NAMED}{_YEAR}"), _named_day),
    (re.compile(rf"\b{_NAMED}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?!\d){_YEAR}"), _named_day),
    (re.compile(rf"\b(?P<before>{_IN}|(?:on|early|late|mid)[\s-])?{_NAMED}{_YEAR}"), _named_month),
    (re.compile(rf"\b{_IN}(spring|summer|autumn|fall|winter)\b(?:\s+(?:of\s+)?((?:19|20)\d\d))?"), _season),
    (re.compile(rf"\b({'|'.join(HOLIDAYS)})\b(?:\s+((?:19|20)\d\d))?".replace("'", "['\u2019]")), _holiday),
    (re.compile(rf"\b({_NUMBER}) {_UNIT} ago\b"), _ago),
    (re.compile(r"\b(?:the day before yesterday|yesterday|today|tonight)\b"), _relative_day),
    (re.compile(r"\b(last|this) (week|weekend|month|year)\b"), _relative),
    (re.compile(r"\b(?:last|on|this) (mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b"), _weekday),
    (re.compile(r"\b((?:19|20)\d\d)(?:\b|\u5e74)"), _year),
]
