"""Joining texts of which some may be missing."""

from collections.abc import Iterable


def joined(texts: Iterable[str | None], between: str = "\n") -> str:
    """Join the texts that are not empty."""
    return between.join(filter(None, texts))
