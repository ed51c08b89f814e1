"""Any sequence of operations, by two processes, with writes that fail: compared with a plain dictionary."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from langgraph.store.memory import InMemoryStore

from reflective_agents.memory.rankings.paper import Paper
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.state.memories import KINDS, Memory, memory_id, new_memory
from tests.memory.windows import Letters, Window

keys = st.integers(0, 9).map(str)
views = st.integers(0, 1)


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.store = InMemoryStore()
        self.known: dict[str, Memory] = {}
        self.now = 0.0

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @initialize()
    def open_two_views(self) -> None:
        self.windows = [Window(self.store), Window(self.store)]
        self.views = [self.run(MemoryStream.open(window, "anna", Letters())) for window in self.windows]

    @rule(view=views)
    def drop_what_a_process_knows(self, view: int) -> None:
        self.windows[view] = Window(self.store)
        self.views[view] = self.run(MemoryStream.open(self.windows[view], "anna", Letters()))

    @rule(
        view=views, key=keys, kind=st.sampled_from(KINDS), evidence=st.sets(keys, max_size=3), fails=st.integers(0, 9)
    )
    def add(self, view: int, key: str, kind: Any, evidence: set[str], fails: int) -> None:
        self.now += 1
        below = [memory_id(number) for number in sorted(evidence) if number != key]
        memory = new_memory(f"text {key}", created=self.now, kind=kind, importance=3, evidence=below, key=key)
        self.windows[view].fails = {0: "before", 1: "after"}.get(fails, "")
        if memory["id"] in self.known or not self.windows[view].fails:
            self.run(self.views[view].add([memory]))
        else:
            with pytest.raises(ConnectionError):
                self.run(self.views[view].add([memory]))
        if self.windows[view].fails != "before":
            self.known.setdefault(memory["id"], memory)
        self.windows[view].fails = ""

    @rule(view=views, key=keys)
    def delete(self, view: int, key: str) -> None:
        gone = memory_id(key)
        derived = {memory["id"] for memory in self.run(self.views[view].delete(gone))}
        assert derived == self.above(gone) - {gone}
        self.known.pop(gone, None)

    @precondition(lambda self: self.known)
    @rule(view=views, k=st.integers(1, 4))
    def retrieve(self, view: int, k: int) -> None:
        self.now += 1
        found = self.run(self.views[view].retrieve("text", k=k, now=self.now, ranking=Paper(1, 0, 0)))
        active = [memory for memory in self.known.values() if not self.archived(memory)]
        active.sort(key=lambda memory: (-memory["accessed"], -memory["created"], memory["id"]))
        assert [scored.memory["id"] for scored in found] == [memory["id"] for memory in active[:k]]
        for memory in active[:k]:
            memory["accessed"] = self.now

    @rule(view=views)
    def forget_all(self, view: int) -> None:
        self.run(self.views[view].forget_all())
        self.known.clear()

    @invariant()
    def every_process_agrees_with_the_dictionary(self) -> None:
        expected = [{**memory, "archived": self.archived(memory)} for memory in self.known.values()]
        expected.sort(key=lambda one: (one["created"], one["id"]))
        for view in self.views:
            assert self.run(self.listed(view)) == expected
            for memory in expected:
                below = {each["id"] for each in self.run(view.evidence(str(memory["id"])))}
                assert below == self.below(str(memory["id"])) & self.known.keys() - {memory["id"]}

    @staticmethod
    async def listed(view: MemoryStream) -> list[Memory]:
        return [memory async for memory in view.everything()]

    def archived(self, memory: Memory) -> bool:
        above = [each for each in self.known.values() if memory["id"] in each["evidence"]]
        return memory["kind"] != "reflection" and any(each["kind"] == "reflection" for each in above)

    def below(self, start: str) -> set[str]:
        return reach(start, {memory["id"]: memory["evidence"] for memory in self.known.values()})

    def above(self, start: str) -> set[str]:
        ids = {*self.known, start}
        return reach(
            start,
            {
                memory_key: [other for other in self.known if memory_key in self.known[other]["evidence"]]
                for memory_key in ids
            },
        )

    def teardown(self) -> None:
        self.runner.close()


def reach(start: str, edges: dict[str, list[str]]) -> set[str]:
    found: set[str] = set()
    to_do = list(edges.get(start, []))
    while to_do:
        current = to_do.pop()
        if current not in found:
            found.add(current)
            to_do += edges.get(current, [])
    return found


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
