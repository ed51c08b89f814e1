"""Whose a request is."""

import hashlib
import time
from pathlib import Path
from typing import Any

import jwt
import pytest

from reflective_agents.nodes.users import ANYBODY
from reflective_agents.serve.keys import UnknownKey, user_of
from reflective_agents.state.errors import Misuse

SECRET = "a secret of at least thirty-two bytes"


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "keys"
    path.write_text(f"# users\nann {digest('of ann')}\n\nbob {digest('of bob')}\nann {digest('anns second')}\n")
    monkeypatch.setenv("REFLECT_KEYS", str(path))
    return path


def test_without_keys_everybody_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REFLECT_KEYS", raising=False)
    monkeypatch.delenv("REFLECT_JWT_KEY", raising=False)
    assert user_of({}) == user_of({"authorization": "Bearer whatever"}) == ANYBODY


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("headers", "user"),
    [
        ({"authorization": "Bearer of ann"}, "ann"),
        ({"authorization": "Bearer anns second"}, "ann"),
        ({"Authorization": "Bearer of bob"}, "bob"),
        ({b"authorization": b"Bearer of bob"}, "bob"),
        ({"x-api-key": "of bob"}, "bob"),
    ],
)
def test_a_key_is_its_users(headers: dict[Any, Any], user: str) -> None:
    assert user_of(headers) == user


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("sent", ["", "Bearer ", "Bearer nobody's", "Basic of ann", f"Bearer {digest('of ann')}"])
def test_anything_else_is_nobodys(sent: str) -> None:
    with pytest.raises(UnknownKey):
        user_of({"authorization": sent})


def test_a_changed_file_counts_at_once(keys: Path) -> None:
    assert user_of({"authorization": "Bearer of ann"}) == "ann"
    keys.write_text(f"eve {digest('of eve')}\n")
    assert user_of({"authorization": "Bearer of eve"}) == "eve"
    with pytest.raises(UnknownKey):
        user_of({"authorization": "Bearer of ann"})


def test_a_file_that_is_none_is_refused(keys: Path) -> None:
    keys.write_text("ann plain-text-key\n")
    with pytest.raises(Misuse, match="entry 1"):
        user_of({"authorization": "Bearer plain-text-key"})


def token(**claims: Any) -> dict[str, str]:
    return {"authorization": "Bearer " + jwt.encode({"exp": time.time() + 60, **claims}, SECRET, "HS256")}


def test_a_token_is_its_subjects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_JWT_KEY", SECRET)
    assert user_of(token(sub="ann")) == "ann"
    monkeypatch.setenv("REFLECT_JWT_AUDIENCE", "agents")
    assert user_of(token(sub="ann", aud="agents")) == "ann"
    for wrong in (token(sub="ann"), token(sub="ann", aud="mail"), token(aud="agents")):
        with pytest.raises(UnknownKey):
            user_of(wrong)


@pytest.mark.parametrize(
    "text",
    [
        jwt.encode({"sub": "ann", "exp": 1}, SECRET, "HS256"),
        jwt.encode({"sub": "ann"}, SECRET, "HS256"),
        jwt.encode({"sub": "ann", "exp": 9e9}, SECRET + "!", "HS256"),
        jwt.encode({"sub": "ann", "exp": 9e9}, "", "none"),
        "no.token.atall",
    ],
)
def test_a_token_that_does_not_hold_is_nobodys(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_JWT_KEY", SECRET)
    with pytest.raises(UnknownKey):
        user_of({"authorization": f"Bearer {text}"})
