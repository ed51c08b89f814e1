"""Reducers of channels that grow: a node writes what is new or changed, and no checkpoint stores the rest again."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

T = TypeVar("T")
M = TypeVar("M", bound=Mapping[str, object])


def append(entries: list[T], writes: Sequence[list[T]]) -> list[T]:
    """Reduce a list that only grows by appending every write."""
    return [*entries, *chain.from_iterable(writes)]


def first_written(texts: dict[str, str], writes: Sequence[dict[str, str]]) -> dict[str, str]:
    """Reduce texts by name: the first that is written for a name stays."""
    merged = dict(texts)
    for write in writes:
        for name, text in write.items():
            merged.setdefault(name, text)
    return merged


def replaced_by(key: str) -> Callable[[list[M], Sequence[list[M]]], list[M]]:
    """Make the reducer of a list whose entries are told apart by `key`: one that is written takes the place of the
    earlier one, or comes last."""

    def reduce(entries: list[M], writes: Sequence[list[M]]) -> list[M]:
        by_key = {entry[key]: entry for entry in append(entries, writes)}
        return list(by_key.values())

    return reduce
