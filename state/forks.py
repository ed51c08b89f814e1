"""What a forked process must not inherit: threads do not come along, and a lock that one of them held stays locked."""

import os
from collections.abc import Callable


def after_fork(forget: Callable[[], None]) -> None:
    """Call a function in every process that is forked from this one, where there is such a thing as forking."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)
