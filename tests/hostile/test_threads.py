"""Threads whose checkpoints hold data of other types than any run writes: refused in a sentence, whatever they are."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from reflective_agents.graphs import builder_of
from reflective_agents.nodes.damage import damage
from reflective_agents.state.errors import Misuse, WrongThread
from reflective_agents.testing.fake import FakeChatModel
from tests.strategies import ASK, Strategy, every_strategy, thread

pytestmark = pytest.mark.hostile

BEGUN, ENDED = "begun", "ended"


def saved(strategy: str, until: str) -> InMemorySaver:
    """The thread of a run that has begun, or has ended."""
    saver = InMemorySaver()
    graph = builder_of(strategy).compile(saver, interrupt_after=["begin"] if until == BEGUN else None)
    graph.invoke(ASK, thread(), context={"model": "offline", "max_model_calls": 4})
    return saver


def tampered(saver: InMemorySaver, channel: str, value: object) -> Any:
    """The same thread with another value in a channel; None if it holds none there."""
    other: Any = InMemorySaver()
    other.storage, other.writes, other.blobs = copy.deepcopy((saver.storage, saver.writes, saver.blobs))
    stored = saver.serde.dumps_typed(value)
    blobs = [key for key, (kind, _) in other.blobs.items() if key[2] == channel and kind != "empty"]
    writes = [(of, key) for of in other.writes.values() for key, write in of.items() if write[1] == channel]
    for key in blobs:
        other.blobs[key] = stored
    for of, key in writes:
        task, name, _, path = of[key]
        of[key] = (task, name, stored, path)
    return other if blobs or writes else None


def channels(strategy: str) -> Iterator[str]:
    """The channels of a strategy's state."""
    return (name for name in builder_of(strategy).channels if not name.startswith(("branch:", "__")))


@pytest.mark.crossed
@pytest.mark.matrix
@pytest.mark.parametrize("until", [BEGUN, ENDED])
@pytest.mark.parametrize("strategy", ["chain_of_thought", "best_of_n"])
def test_data_of_other_types(strategy: str, until: str) -> None:
    saver, refused = saved(strategy, until), 0
    for channel in channels(strategy):
        for value in ([1], {"a": 1}, 7.5):
            other = tampered(saver, channel, value)
            if other is None:
                continue
            graph, inputs = builder_of(strategy).compile(other), None if until == BEGUN else ASK
            try:  # a channel that is written before it is read may hold anything
                graph.invoke(inputs, thread(), context={"model": "offline", "max_model_calls": 4})
            except Misuse:
                refused += 1
    assert refused > 10


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(
    ("strategy", "channel", "value", "until"),
    [
        ("plan", "plans", {}, BEGUN),
        ("memory", "messages", [], BEGUN),
        ("reflection", "messages", [], BEGUN),
        ("best_of_n", "best", "x", BEGUN),
        ("plan", "reports", 0, ENDED),
    ],
)
def test_data_that_fits_badly(strategy: str, channel: str, value: object, until: str) -> None:
    graph = builder_of(strategy).compile(tampered(saved(strategy, until), channel, value))
    with pytest.raises(WrongThread):
        graph.invoke(None if until == BEGUN else ASK, thread(), context={"model": "offline", "max_model_calls": 4})


async def test_asynchronous_runs_refuse_it_as_well() -> None:
    saver = saved("chain_of_thought", BEGUN)
    for channel in ("usage", "outcome", "messages", "version"):
        graph = builder_of("chain_of_thought").compile(tampered(saver, channel, {"a": [1]}))
        with pytest.raises(WrongThread):
            await graph.ainvoke(None, thread())


@every_strategy
def test_what_runs_write_is_no_damage(strategy: Strategy) -> None:
    graph = strategy.with_memory(InMemorySaver())
    graph.invoke(ASK, thread(), context=strategy.make(model=FakeChatModel(reply=strategy.solving)))
    schema = graph.builder.state_schema
    assert [damage(schema, state.values) for state in graph.get_state_history(thread())].count(None) > 2
    assert not any(damage(schema, state.values) for state in graph.get_state_history(thread()))


@pytest.mark.parametrize("words", ["of the model's own", "chain_of_thought"])  # the second is what a channel holds
@pytest.mark.parametrize("defect", [TypeError, KeyError, ValueError])
def test_a_defect_of_ones_own_model_is_told_as_it_is(defect: type[Exception], words: str) -> None:
    def reply(_: Any) -> str:
        raise defect(words)

    graph = builder_of("chain_of_thought").compile(InMemorySaver())
    with pytest.raises(defect) as caught:
        graph.invoke(ASK, thread(), context={"model": FakeChatModel(reply=reply)})
    assert not isinstance(caught.value, Misuse)
