"""What pydantic has against a value, in the words of this project: `must be at least 1`."""

import re

_OWN = "Value error, "
"""How pydantic begins what a check of ours has raised, which is in plain words already."""
_TYPES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "list": "a list",
    "dictionary": "an object",
}
_WORDS = (
    (r"^Field required$", "is missing"),
    (r"^Extra inputs are not permitted", "is not known"),
    (r"^Input should be greater than or equal to ", "must be at least "),
    (r"^Input should be less than or equal to ", "must be at most "),
    (r"^\w+ should have at (least|most) (\d+) (\w+).*$", r"must have at \1 \2 \3"),
    (r"^\w+ should ", "must "),
)
_TYPE = re.compile(rf"^Input should be a valid ({'|'.join(_TYPES)})(?:, | or |$)")


def in_plain_words(message: str) -> str:
    """Return the message of a validation error in plain words, to stand behind the name of the value.

    Args:
        message: The `msg` of one of `ValidationError.errors()`, or what Typer says of a value.
    """
    if message.startswith(_OWN):
        return message.removeprefix(_OWN)
    if kind := _TYPE.match(message):
        return f"must be {_TYPES[kind[1]]}"
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message)
    return message
