"""Secrets of the environment never stand in what describes a fault."""

import json
from base64 import b64encode

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


HELD = {
    "in the query of an address": ("DATABASE_URL", "postgresql://db/x?user=u&password=p%40ss-w0rd", "p@ss-w0rd"),
    "in what a database is told": ("DATABASE_DSN", "host=db password=p@ss-w0rd user=u", "p@ss-w0rd"),
    "in a list of headers": ("OTLP_HEADERS", "authorization=Bearer%20abcdefgh12345678,n=1", "abcdefgh12345678"),
    "in the place of a user": ("MIRROR", "https://ghp_abcdefgh12345678@host/", "ghp_abcdefgh12345678"),
    "under a short name": ("DB_PASS", "p@ss-w0rd", "p@ss-w0rd"),
    "one of several": ("OPENAI_API_KEYS", "sk-abcdefgh12345678,sk-ijklmnop12345678", "sk-ijklmnop12345678"),
    "with its lines joined": ("SIGNING_KEY", "-----BEGIN KEY-----\nMIIabcdefgh12345678\n---", "MIIabcdefgh12345678"),
    "as JSON": ("SOME_PASSWORD", 'p"ss\\w\u00f6rd', json.dumps('p"ss\\w\u00f6rd')[1:-1]),
    "as a header has it": ("SERVER", "https://me:p%40ss@host/", b64encode(b"me:p@ss").decode()),
    "in base 64": ("SOME_KEY", "p@ss-w0rd", b64encode(b"p@ss-w0rd").decode()),
}


@pytest.mark.hostile
@pytest.mark.parametrize(("name", "value", "cut"), HELD.values(), ids=list(HELD))
def test_no_form_of_a_secret_passes(name: str, value: str, cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert redacted(f"refused: {cut}!") == f"refused: [{name}]!"


def test_names_and_hosts_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://postgres@database.example.org/threads?sslmode=require")
    text = "postgres at database.example.org: threads, sslmode=require"
    assert redacted(text) == text


ORDINARY = {
    "REFLECT_MAX_TOTAL_TOKENS": "100000",
    "MAX_TOKENS": "10_000_000",
    "KEYBOARD_LAYOUT": "deutsch-qwertz",
    "GNOME_KEYRING_CONTROL": "/run/user/1000/keyring",
    "KEYCLOAK_REALM": "master-realm",
    "KEYMAP": "arrangement",
    "TOKENIZERS_PARALLELISM": "automatic",
    "MONKEY": "bananabanana",
    "COMPASS": "north-by-northwest",
    "PASSENGERS": "four-and-twenty",
    "SOME_KEY": "max_model_calls",
    "OTHER_KEY": "answered",
    "SHORT_PASSWORD": "seven77",
}


@pytest.mark.parametrize(("name", "value"), ORDINARY.items())
def test_what_is_no_secret_stays(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    text = f"max_total_tokens=100000 reached; {value}, {value.upper()}"
    assert redacted(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "PGPASSWORD",
        "MY_PASS",
        "STRIPE_APIKEY",
        "GITHUB_TOKEN",
        "KEY",
        "OPENAI_API_KEY_2",
        "API_KEYS",
        "REFLECT_JWT_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "GOOGLE_CREDENTIALS",
        "accountKey",
    ],
)
def test_names_of_secrets_end_in_a_secrets_word(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "correcthorse")
    assert redacted("correcthorse, correct") == f"[{name}], correct"


def test_a_long_number_may_be_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "1234567890123456")
    assert redacted("1234567890123456") == "[SOME_KEY]"
