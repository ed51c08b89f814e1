"""What the live page shows of a thread."""

from typing import Any

import pytest

from reflective_agents.serve.thread_view import thread_view


@pytest.mark.parametrize("tree", [{}, None])
def test_it_shows_what_each_sentence_rests_on(tree: Any) -> None:
    sentence = {"text": "It costs 6.40.", "cites": ["1", "2"], "support": "full", "words": "costs 6.40 crowns"}
    support = {"answered": "yes", "sentences": [sentence], "left_out": ""}
    state: Any = {"values": {"strategy": "react", "support": support, "tree": tree}, "next": [], "tasks": []}
    assert thread_view(state, None)["lists"]["support"] == [{**sentence, "cites": "1, 2"}]


def test_where_nothing_was_checked_there_is_no_such_list() -> None:
    state: Any = {"values": {"strategy": "react", "support": None}, "next": [], "tasks": []}
    assert "support" not in thread_view(state, None)["lists"]


def test_the_lessons_of_earlier_runs_are_shown_with_whether_they_were_used() -> None:
    shown = [{"id": "a", "title": "Length"}, {"id": "b", "title": "Donors"}]
    experience = {"shown": shown, "used": ["b"], "drawn": []}
    state: Any = {"values": {"strategy": "react", "experience": experience}, "next": [], "tasks": []}
    assert [row["used"] for row in thread_view(state, None)["lists"]["experience"]] == ["no", "yes"]
    state["values"]["experience"] = None
    assert "experience" not in thread_view(state, None)["lists"]
