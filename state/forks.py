"""What a forked process must not inherit: threads do not come along, and a lock that one of them held stays locked."""

import functools
import os
import sys
from collections.abc import Callable
from threading import RLock
from typing import Any, TypeVar

T = TypeVar("T", covariant=True)


def after_fork(forget: Callable[[], None]) -> None:
    """Call a function in every process that is forked from this one, where there is such a thing as forking."""
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=forget)


class CachedProperty(functools.cached_property[T]):
    """A property that is calculated once. Until Python 3.12 it takes a lock for that, which a forked process renews."""

    def __init__(self, calculate: Callable[[Any], T]) -> None:
        super().__init__(calculate)
        if hasattr(self, "lock"):
            after_fork(self._renew)

    def _renew(self) -> None:
        self.lock = RLock()
