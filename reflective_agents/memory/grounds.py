"""What rests on what: reflections rest on memories, and on other reflections."""

from collections.abc import Collection, Iterable, Mapping


class Grounds:
    """The evidence of memories by their ids, followed both ways."""

    def __init__(self) -> None:
        self._below: dict[str, tuple[str, ...]] = {}
        self._above: dict[str, set[str]] = {}

    def add(self, memory_id: str, evidence: Iterable[str]) -> tuple[str, ...]:
        """Note what a memory rests on, and return it: nothing rests on itself."""
        below = tuple(other for other in evidence if other != memory_id)
        if below:
            self._below[memory_id] = below
        for other in below:
            self._above.setdefault(other, set()).add(memory_id)
        return below

    def remove(self, memory_id: str) -> tuple[str, ...]:
        """Forget what a memory rests on, and return it."""
        below = self._below.pop(memory_id, ())
        for other in below:
            self._above[other].discard(memory_id)
            if not self._above[other]:
                del self._above[other]
        return below

    def below(self, memory_id: str) -> tuple[str, ...]:
        """Return what a memory rests on itself."""
        return self._below.get(memory_id, ())

    def above(self, memory_id: str) -> Collection[str]:
        """Return what itself rests on a memory."""
        return self._above.get(memory_id, ())

    def all_below(self, memory_id: str) -> list[str]:
        """Return all that a memory rests on, level by level, without repetitions."""
        return _reach(memory_id, self._below)

    def all_above(self, memory_id: str) -> list[str]:
        """Return all that rests on a memory, level by level, without repetitions."""
        return _reach(memory_id, self._above)


def _reach(start: str, edges: Mapping[str, Collection[str]]) -> list[str]:
    """Return everything that can be reached, nearest first, and by id within a level."""
    seen, level, reached = {start}, [start], list[str]()
    while level:
        neighbours = set[str]()
        for memory_id in level:
            neighbours.update(edges.get(memory_id, ()))
        level = sorted(neighbours - seen)
        seen.update(level)
        reached += level
    return reached
