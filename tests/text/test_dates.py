"""The times a question names."""

from datetime import UTC, datetime, timedelta

import pytest

from reflective_agents.text.dates import periods

NOW = datetime(2026, 8, 15, 12, tzinfo=UTC)  # a Saturday


def days(text: str) -> list[tuple[str, str]]:
    spans = [
        (datetime.fromtimestamp(a, UTC), datetime.fromtimestamp(b, UTC)) for a, b in periods(text, NOW.timestamp())
    ]
    return [(f"{first:%Y-%m-%d}", f"{after - timedelta(seconds=1):%Y-%m-%d}") for first, after in spans]


def test_a_time_is_read_relative_to_now() -> None:
    for text, first, last in [
        ("What did I say last May?", "2026-05-01", "2026-05-31"),
        ("in December", "2025-12-01", "2025-12-31"),
        ("December 2023", "2023-12-01", "2023-12-31"),
        ("two weeks before Christmas", "2025-12-08", "2025-12-14"),
        ("the week before 15 April, 2022", "2022-04-08", "2022-04-14"),
        ("on 8 May 2023", "2023-05-08", "2023-05-08"),
        ("May 9th, 2023", "2023-05-09", "2023-05-09"),
        ("the 3rd of July", "2026-07-03", "2026-07-03"),
        ("2023-05-08", "2023-05-08", "2023-05-08"),
        ("am 8.5.2023", "2023-05-08", "2023-05-08"),
        ("2023\u5e745\u67088\u65e5", "2023-05-08", "2023-05-08"),
        ("5\u6708", "2026-05-01", "2026-05-31"),
        ("in the summer of 2024", "2024-06-01", "2024-08-31"),
        ("three days ago", "2026-08-12", "2026-08-12"),
        ("2 weeks ago", "2026-07-29", "2026-08-04"),
        ("yesterday", "2026-08-14", "2026-08-14"),
        ("the day before yesterday", "2026-08-13", "2026-08-13"),
        ("last week", "2026-08-03", "2026-08-09"),
        ("last month", "2026-07-01", "2026-07-31"),
        ("last Monday", "2026-08-10", "2026-08-10"),
        ("back in 2022", "2022-01-01", "2022-12-31"),
        ("Was war letzten Mai?", "2026-05-01", "2026-05-31"),
        ("im Dezember", "2025-12-01", "2025-12-31"),
        ("im März letzten Jahres", "2025-03-01", "2025-03-31"),
        ("letztes Jahr im Oktober", "2025-10-01", "2025-10-31"),
        ("am 3. Juli", "2026-07-03", "2026-07-03"),
        ("8. Mai 2023", "2023-05-08", "2023-05-08"),
        ("zwei Wochen vor Weihnachten", "2025-12-08", "2025-12-14"),
        ("vor drei Tagen", "2026-08-12", "2026-08-12"),
        ("Was habe ich vorgestern gesagt?", "2026-08-13", "2026-08-13"),
        ("letzte Woche", "2026-08-03", "2026-08-09"),
        ("letztes Jahr", "2025-01-01", "2025-12-31"),
        ("am Montag", "2026-08-10", "2026-08-10"),
        ("im Sommer 2024", "2024-06-01", "2024-08-31"),
        ("我昨天说了什么", "2026-08-14", "2026-08-14"),
        ("去年五月", "2025-05-01", "2025-05-31"),
        ("去年发生了什么", "2025-01-01", "2025-12-31"),
        ("十二月", "2025-12-01", "2025-12-31"),
        ("三天前", "2026-08-12", "2026-08-12"),
        ("两个星期前", "2026-07-29", "2026-08-04"),
        ("上个月", "2026-07-01", "2026-07-31"),
        ("上周", "2026-08-03", "2026-08-09"),
        ("上星期一", "2026-08-10", "2026-08-10"),
        ("圣诞节前两周", "2025-12-08", "2025-12-14"),
        ("2024年夏天", "2024-06-01", "2024-08-31"),
    ]:
        assert days(text) == [(first, last)]


def test_what_names_no_time_is_none() -> None:
    for text in [
        "I may go",
        "they march on",
        "what fall did to me",
        "0\u6708",
        "room 2500",
        "Wie heißt mein Hund?",
        "Was steht vor dem Haus?",
        "一天到晚",
        "星星和月亮",
        "",
        "a" * 9999,
    ]:
        assert days(text) == []


def test_several_times_are_all_read() -> None:
    assert days("between May 1, 2023 and 3 June 2023") == [("2023-06-03", "2023-06-03"), ("2023-05-01", "2023-05-01")]


@pytest.mark.parametrize("now", [0.0, 540.0, 1e18, -1e18])
def test_a_clock_of_its_own_does_no_harm(now: float) -> None:
    assert isinstance(periods("yesterday, or last May", now), list)
