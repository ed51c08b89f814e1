"""Keep secrets out of messages: the values of the environment's secrets are cut out of every described fault.

A provider may quote the key that it refuses, and an address may hold a password; what describes a fault goes into
outcomes, logs and threads.
"""

import os
import re
from urllib.parse import quote, unquote, urlsplit

_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_SHORTEST = 6
"""Characters of a value that is cut out; a shorter one would be found in the middle of words."""


def redacted(text: str) -> str:
    """Return a text with the name of a variable in place of each of the environment's secrets."""
    for value, name in sorted(_secrets().items(), key=lambda secret: -len(secret[0])):
        text = text.replace(value, f"[{name}]")
    return text


def _secrets() -> dict[str, str]:
    """Return the secrets that the environment holds, each with the name of its variable."""
    found: dict[str, str] = {}
    for name, value in os.environ.items():
        for secret in (value.strip() if _NAMES.search(name) else "", _password(value)):
            for form in (secret, quote(secret, safe=""), unquote(secret)):
                if len(form) >= _SHORTEST:
                    found[form] = name
    return found


def _password(value: str) -> str:
    """Return the password of an address; empty if there is none."""
    try:
        return urlsplit(value).password or "" if "@" in value else ""
    except ValueError:
        return ""
