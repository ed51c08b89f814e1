"""Keep secrets out of messages: the values of the environment's secrets are cut out of every described fault.

A provider may quote the key that it refuses, and an address may hold a password; what describes a fault goes into
outcomes, logs and threads. A secret is what a variable holds whose name ends in a secret's word, such as
OPENAI_API_KEY. Numbers, words and settings of this package are none: outcomes are full of them.
"""

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import get_args
from urllib.parse import quote, unquote, urlsplit

from reflective_agents.state.outcome import Status
from reflective_agents.text.words import STOPWORDS

_NAMES = re.compile(
    r"(?:(?<![A-Za-z])(?i:key|pass)|(?<=[a-z])(?:Key|Pass)"
    r"|(?i:apikey|secret|token|password|passwd|passphrase|credential|authorization))[sS]?[\d_]*$"
)
"""What the names of secrets end in. A monkey and a compass hold none."""
_PAIR = re.compile(r"([\w.-]+)=([^&,;\s]+)")
"""A name and its value in an address, a list of headers, or what a database is told."""
_SHORTEST = 8
"""Characters of a value that is cut out; a shorter one would be found in the middle of words."""
_SHORTEST_PART = 16
"""Characters of a part of a value, such as one of several keys, or a line of a key; and of a key that is a number."""


def redacted(text: str) -> str:
    """Return a text with the name of a variable in place of each of the environment's secrets."""
    for value, name in _secrets(tuple(os.environ.items())):
        text = text.replace(value, f"[{name}]")
    return text


@lru_cache(maxsize=1)
def _secrets(environment: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """Return the secrets that an environment holds, as they may be written, each with the name of its variable; the
    longest first."""
    secrets: dict[str, str] = {}
    for name, value in environment:
        for secret in _secrets_in(name, value):
            forms = [form for form in _spellings(secret) if len(form) >= _SHORTEST]
            secrets |= dict.fromkeys(forms, name)
    # A shorter one may be part of a longer, of which it would leave the rest.
    return sorted(secrets.items(), key=lambda secret: -len(secret[0]))


def _secrets_in(name: str, value: str) -> Iterator[str]:
    """Yield the secrets in the value of a variable, and their longer parts."""
    secrets = [*_secrets_in_address(value)]
    if _NAMES.search(name) and not _is_setting(name):
        secrets.append(value.strip())
    for key, part in _pairs(value):
        if _NAMES.search(key):
            secrets.append(unquote(part))
    for secret in secrets:
        if _is_public(secret):
            continue
        yield secret
        for part in re.split(r"[\s,;]+", secret):
            if len(part) >= _SHORTEST_PART:
                yield part


def _is_setting(name: str) -> bool:
    """Tell whether a variable is a setting of a strategy."""
    return name.startswith("REFLECT_") and name.removeprefix("REFLECT_").lower() in _settings()


def _is_public(value: str) -> bool:
    """Tell whether a value is a short number, or a word or a name with which this package describes itself."""
    if value in _settings() or value.lower() in _words():
        return True
    return len(value) < _SHORTEST_PART and value.replace(".", "", 1).replace("_", "").isdecimal()


@cache
def _settings() -> dict[str, str]:
    """Return the names of all settings, with their descriptions."""
    from reflective_agents.state.settings import settings_of, strategy_names  # late: most environments name none

    descriptions: dict[str, str] = {}
    for strategy in strategy_names():
        fields = settings_of(strategy).model_fields
        descriptions |= {name: field.description or "" for name, field in fields.items()}
    return descriptions


@cache
def _words() -> frozenset[str]:
    texts = [*_settings().values(), *get_args(Status)]
    return STOPWORDS.union(re.findall(r"[a-z]+", " ".join(texts).lower()))


def _pairs(value: str) -> list[tuple[str, str]]:
    return _PAIR.findall(value) if "=" in value else []


def _secrets_in_address(value: str) -> Iterator[str]:
    """Yield the password of an address, also as it is sent with the user's name, or a key in the place of the name."""
    try:
        address = urlsplit(value) if "@" in value else urlsplit("")
    except ValueError:
        return
    user = address.username or ""
    password = address.password or ""
    if password:
        yield password
        yield unquote(f"{user}:{password}")
    elif len(user) >= _SHORTEST_PART:
        yield user


def _spellings(secret: str) -> Iterator[str]:
    """Yield a secret as it may stand in an address, in JSON, and in a header."""
    if secret:
        # Variables are bytes, which need not be UTF-8.
        encoded = secret.encode(errors="surrogateescape")
        yield from (
            secret,
            quote(encoded, safe=""),
            unquote(secret),
            json.dumps(secret)[1:-1],
            b64encode(encoded).decode(),
        )
