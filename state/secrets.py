"""Keep secrets out of messages: the values of the environment's secrets are cut out of every described fault.

A provider may quote the key that it refuses, and an address may hold a password; what describes a fault goes into
outcomes, logs and threads.
"""

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import quote, unquote, urlsplit

_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTHORIZATION", re.IGNORECASE)
_PAIR = re.compile(r"([\w.-]+)=([^&,;\s]+)")
"""A name and its value in an address, a list of headers, or what a database is told."""
_SHORTEST = 6
"""Characters of a value that is cut out; a shorter one would be found in the middle of words."""
_SHORTEST_PART = 16
"""Characters of a part of a value, such as one of several keys, or a line of a key."""


def redacted(text: str) -> str:
    """Return a text with the name of a variable in place of each of the environment's secrets."""
    for value, name in _secrets(tuple(os.environ.items())):
        text = text.replace(value, f"[{name}]")
    return text


@lru_cache(maxsize=1)
def _secrets(environment: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """Return the secrets that an environment holds, as they may be written, each with the name of its variable; the
    longest first."""
    secrets = {
        form: name
        for name, value in environment
        for secret in _held(name, value)
        for form in _forms(secret)
        if len(form) >= _SHORTEST
    }
    return sorted(secrets.items(), key=lambda secret: -len(secret[0]))


def _held(name: str, value: str) -> Iterator[str]:
    """Yield the secrets in the value of a variable, and their longer parts."""
    whole = [value.strip()] if _NAMES.search(name) else []
    for secret in (*whole, *_of_address(value), *(unquote(told) for key, told in _pairs(value) if _NAMES.search(key))):
        yield secret
        yield from (part for part in re.split(r"[\s,;]+", secret) if len(part) >= _SHORTEST_PART)


def _pairs(value: str) -> list[tuple[str, str]]:
    return _PAIR.findall(value) if "=" in value else []


def _of_address(value: str) -> Iterator[str]:
    """Yield the password of an address, also as it is sent with the user's name, or a key in the place of the name."""
    try:
        address = urlsplit(value) if "@" in value else urlsplit("")
    except ValueError:
        return
    user, password = address.username or "", address.password or ""
    if password:
        yield from (password, unquote(f"{user}:{password}"))
    elif len(user) >= _SHORTEST_PART:
        yield user


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret as it may stand in an address, in JSON, and in a header."""
    if secret:
        encoded = secret.encode(errors="surrogateescape")
        yield from (
            secret,
            quote(encoded, safe=""),
            unquote(secret),
            json.dumps(secret)[1:-1],
            b64encode(encoded).decode(),
        )
