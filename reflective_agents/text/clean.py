"""Text made clean once, where it comes in: from models, tools and users."""

import re
from typing import TypeVar, cast

_UNFIT = re.compile("[\ud800-\udfff]")

T = TypeVar("T")


def clean(text: str) -> str:
    """Replace what cannot be stored or sent: lone surrogates, and the null character that PostgreSQL refuses."""
    if text.isascii() and "\0" not in text:
        return text
    return _UNFIT.sub("�", text).replace("\0", "")


def clean_data(value: T) -> T:
    """Clean all texts of plain data: lists, tuples and dicts, which are copied."""
    if isinstance(value, str):
        return cast(T, clean(value))
    if isinstance(value, list):
        return cast(T, [clean_data(item) for item in value])
    if isinstance(value, tuple):
        items = [clean_data(item) for item in value]
        # A NamedTuple takes its fields one by one, and has `_make` for a list of them.
        return cast(T, getattr(value, "_make", tuple)(items))
    if isinstance(value, dict):
        return cast(T, {clean_data(key): clean_data(item) for key, item in value.items()})
    return value
