"""The user who sends a request: the owner of a key in the file REFLECT_KEYS, or of a JSON web token.

    REFLECT_KEYS          file of lines `<user> <SHA-256 of the key>`; made by `printf %s "$KEY" | sha256sum`
    REFLECT_JWT_KEY       secret, or public key in PEM, that tokens are signed with; the user is their `sub`
    REFLECT_JWT_ALGORITHM algorithm of the signature; HS256 if not given
    REFLECT_JWT_AUDIENCE  the `aud` that tokens must have; not checked if not given

With none of them all requests come from the same user: for a server that only its own machine can reach.
"""

import hashlib
import hmac
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import jwt

from reflective_agents.nodes.users import ANYBODY
from reflective_agents.state.errors import Misuse


class UnknownKey(Exception):
    """Raised when a request has no key, or one that is no user's."""


def keys_required() -> bool:
    """Tell whether requests need a key."""
    return bool(os.environ.get("REFLECT_KEYS") or os.environ.get("REFLECT_JWT_KEY"))


def user_of(headers: Mapping[str, str] | Mapping[bytes, bytes]) -> str:
    """Return the user who sends a request.

    Args:
        headers: Its headers, as text or as bytes.

    Raises:
        UnknownKey: if it has no key of a user.
    """
    if not keys_required():
        return ANYBODY
    texts = {_text(name).lower(): _text(value) for name, value in headers.items()}
    key = texts.get("authorization", "").removeprefix("Bearer ").strip() or texts.get("x-api-key", "").strip()
    if not key:
        raise UnknownKey("a key is needed: send it as 'Authorization: Bearer <key>'")
    user = _user_of_key(key) or _user_of_token(key)
    if user is None:
        raise UnknownKey("this key is nobody's")
    return user


def _user_of_key(key: str) -> str | None:
    path = os.environ.get("REFLECT_KEYS")
    if not path:
        return None
    digest = hashlib.sha256(key.encode()).hexdigest()
    entries = _read(path, Path(path).stat().st_mtime_ns)
    # All are compared, in constant time: how long it takes tells nothing of a key.
    users = [user for user, user_digest in entries if hmac.compare_digest(user_digest, digest)]
    return users[0] if users else None


@lru_cache(maxsize=1)
def _read(path: str, _: int) -> list[tuple[str, str]]:
    """Return users and digests; the second argument makes the cache miss when the file has changed."""
    users = [line.split() for line in Path(path).read_text().splitlines() if line.strip() and line[0] != "#"]
    if wrong := [number for number, parts in enumerate(users, 1) if len(parts) != 2 or len(parts[1]) != 64]:
        raise Misuse(f"{path}: entry {wrong[0]} is not '<user> <SHA-256 of the key>'")
    return [(user, digest.lower()) for user, digest in users]


def _user_of_token(token: str) -> str | None:
    key = os.environ.get("REFLECT_JWT_KEY")
    if not key:
        return None
    audience = os.environ.get("REFLECT_JWT_AUDIENCE") or None
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=[os.environ.get("REFLECT_JWT_ALGORITHM") or "HS256"],
            audience=audience,
            # A token that never expires could not be taken back.
            options={"require": ["sub", "exp"], "verify_aud": audience is not None},
        )
    except jwt.InvalidTokenError:
        return None
    return str(claims["sub"])


def _text(value: str | bytes) -> str:
    # How HTTP encodes headers (ASGI).
    return value.decode("latin-1") if isinstance(value, bytes) else value
