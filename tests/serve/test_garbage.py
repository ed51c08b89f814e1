"""What a server holds for good is exempt from garbage collection, what comes later is not."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from reflective_agents.serve.garbage import YOUNG, spare_what_stays


class Node:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    thresholds, callbacks = gc.get_threshold(), [*gc.callbacks]
    gc.freeze()  # what the other tests have loaded would be looked through a dozen times
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks


@pytest.mark.thorough
def test_the_first_full_collections_alone_keep_what_they_leave() -> None:
    before, loaded = gc.get_freeze_count(), [Node() for _ in range(1_000)]
    spare_what_stays()
    kept = gc.get_freeze_count()
    assert kept >= before + len(loaded)
    loaded = [Node() for _ in range(1_000)]
    for _ in range(10):
        gc.collect()
    assert gc.get_freeze_count() >= kept + len(loaded)
    kept, later = gc.get_freeze_count(), [Node() for _ in range(1_000)]
    gc.collect()
    assert gc.get_freeze_count() <= kept
    gone = weakref.ref(later.pop())
    gc.collect()
    assert gone() is None


def test_new_objects_are_looked_through_in_large_parts() -> None:
    spare_what_stays()
    assert gc.get_threshold()[0] == YOUNG
