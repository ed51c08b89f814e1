"""Secrets of the environment never stand in what describes a fault."""

import pytest

from reflective_agents.state.secrets import redacted


def test_known_values_are_cut_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abc/def+123")
    monkeypatch.setenv("SOME_TOKEN", "sk-abc/def+123-and-more")
    monkeypatch.setenv("DATABASE_URL", "postgresql://user:p%40ssword@host/db")
    text = "refused sk-abc/def+123 and ?key=sk-abc%2Fdef%2B123 and sk-abc/def+123-and-more, p@ssword, p%40ssword"
    assert redacted(text) == (
        "refused [OPENAI_API_KEY] and ?key=[OPENAI_API_KEY] and [SOME_TOKEN], [DATABASE_URL], [DATABASE_URL]"
    )


def test_other_text_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")  # too short to be told from a word
    monkeypatch.setenv("KEY_OF_NOTHING", "")
    monkeypatch.setenv("ADDRESS", "someone@example.org and [::1")
    assert redacted("This is a test of KEY_OF_NOTHING.") == "This is a test of KEY_OF_NOTHING."
