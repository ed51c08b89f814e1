"""Recorded searches: their trees are found again, and their worlds answer what they answered."""

import re
from collections import Counter
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import pytest

from bench.replays import tot_hotpot, webshop
from bench.replays.records import Record, load, manifest
from bench.replays.tree_world import TreeWorld

WEBSHOP = "lats_webshop_traces"
TOT = "lats_tot_hotpot_trace"


def propose(*actions: str) -> Record:
    return {"role": "propose", "samples": [f"\nAction: {action}\n" for action in actions]}


def env(depth: int, action: str, reward: float = 0.0) -> Record:
    return {"role": "env", "depth": depth, "action": action, "observation": f"after {action}", "reward": reward}


def value(vote: float, text: str = "") -> Record:
    return {"role": "value", "samples": [text], "value": vote}


MARK: Record = {"role": "mark", "text": "end of evaluate_node; rollout starts from the argmax child"}
FIRST = [
    propose("search[a]", "search[b]", "search[a]", "fly"),
    *(env(1, "search[a]"), env(1, "search[b]"), env(1, "search[a]"), env(1, "fly", -1)),
    *(value(0.5), value(0.9), value(-1), MARK),
    propose("click[x]", "click[y]"),
    *(env(2, "click[x]"), env(2, "click[y]"), value(0.3), value(0.3)),
    propose("click[Buy Now]", "click[back]"),
    *(env(3, "click[Buy Now]", 0.5), env(3, "click[back]")),
]
SECOND = [
    propose("click[z]"),
    *(env(2, "click[z]"), value(0.2), MARK),
    propose("click[Buy Now]"),
    env(3, "click[Buy Now]", 1.0),
]


def search(*outputs: Any) -> list[webshop.Expansion]:
    return webshop.read_search({"id": "1", "task": {"instruction": "a pen"}, "outputs": list(outputs)})


def test_a_search_of_two_iterations_is_put_in_its_tree() -> None:
    steps = search(*FIRST, *SECOND)
    assert [(step.iteration, step.phase, step.path) for step in steps] == [
        (1, "expand", ()),
        (1, "simulate", ("search[b]",)),  # the highest vote
        (1, "simulate", ("search[b]", "click[x]")),  # the first of two
        (2, "expand", ("search[a]",)),  # not visited yet, where search[b] is and fly is worth less than nothing
        (2, "simulate", ("search[a]", "click[z]")),
    ]
    assert all(step.certain for step in steps)
    assert steps[0].actions == ("search[a]", "search[b]", "search[a]", "fly")
    assert [(child.action, child.vote) for child in steps[0].children] == [
        ("search[a]", 0.5),
        ("search[b]", 0.9),
        ("fly", -1),
    ]
    assert [(child.ended, child.vote) for child in steps[2].children] == [(True, None), (False, None)]


async def test_its_world_serves_what_it_saw_and_misses_are_errors() -> None:
    steps = search(*FIRST, *SECOND)
    world = webshop.world_of(steps)
    start = world.start(webshop.task_of({"id": "1", "task": {"instruction": "a pen"}}))
    assert world.public(start) == "a pen"
    found = await world.step(start, " search[b]")
    assert found[1:] == ("after search[b]", None, False, True)
    assert world.public(found.state) == "a pen\nafter search[b]"
    assert await world.step(start, "search[b]") == found
    half = await world.step((await world.step(found.state, "click[x]")).state, "click[Buy Now]")
    assert (half.reward, half.done) == (0.5, True)
    assert world.answer(half.state) == "search[b]\nclick[x]\nclick[Buy Now]"
    assert world.score(half.state["task"], world.answer(half.state)) == {"reward": 0.5}
    assert world.score(half.state["task"], "search[b]") == world.score(half.state["task"], "") == {"reward": 0}
    refused = await world.step(start, "fly")
    assert (refused.valid, refused.state["acts"]) == (False, ["fly"])
    with pytest.raises(LookupError, match="click"):
        await world.step(refused.state, "click[x]")
    assert world.misses == [("fly", "click[x]")]
    assert ("search[a]", "click[z]") in world.unserved
    assert ("search[b]", "click[x]") not in world.unserved


def test_what_was_proposed_and_voted_is_found_by_the_path() -> None:
    steps = search(*FIRST, *SECOND)
    assert webshop.proposals_of(steps)[("search[b]",)] == [("click[x]", "click[y]")]
    assert webshop.votes_of(steps)[("search[b]", "click[y]")] == (0.3, "")
    assert ("search[a]", "click[z]", "click[Buy Now]") not in webshop.votes_of(steps)


def test_a_node_that_the_program_would_not_have_chosen_is_marked() -> None:
    poor = [*SECOND[:-1], env(3, "click[Buy Now]", 0.2)]
    third = [propose("click[q]"), env(2, "click[q]"), value(0.1), MARK, propose("think[so]")]
    steps = search(*FIRST, *poor, *third)
    assert [(step.path, step.certain) for step in steps[-2:]] == [
        (("search[b]",), True),  # its reward was 0.5
        (("search[b]", "click[q]"), True),
    ]
    deeper = [{**output, "depth": 3} if output["role"] == "env" else output for output in third]
    steps = search(*FIRST, *poor, *deeper)
    assert [(step.path, step.certain) for step in steps[-2:]] == [
        (("search[a]", "click[z]"), False),
        (("search[a]", "click[z]", "click[q]"), False),
    ]


@pytest.mark.parametrize(
    ("outputs", "why"),
    [
        ([*FIRST, *SECOND, propose("click[x]")], "output 23: the search had ended"),
        ([*FIRST, propose("click[x]"), env(5, "click[x]")], "output 17: no node at depth 4 is left"),
        ([*FIRST[:9], propose("click[x]"), env(3, "click[x]")], "output 9: expected is depth 2, not 3"),
        ([*FIRST[:5], *FIRST[7:]], "output 0: 1 values for 3 nodes"),
        ([*FIRST[:13], value(0.1), *FIRST[13:]], "output 9: 3 values for 2 nodes"),
        ([*FIRST[:12], MARK], "output 9: a simulation is followed by the mark"),
    ],
)
def test_what_the_program_cannot_have_done_is_an_error(outputs: list[Record], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        search(*outputs)


def test_a_record_may_be_cut_off() -> None:
    assert [len(step.children) for step in search(*FIRST[:12])] == [3, 2]
    assert [child.vote for child in search(*FIRST[:13])[1].children] == [0.3, None]


def test_an_action_ends_at_the_next_colon() -> None:
    assert webshop.action_of("\nAction: think[one: two]\nAction: fly\n") == "think[one"
    assert webshop.action_of("nothing") == ""
    assert webshop.stated("A perfect 10? No: the correctness score is 9.") == 0.9
    assert webshop.stated("The score is unknown.") is None


def thought(depth: int, number: int, action: str, answer: str | None = None, **fields: Any) -> Record:
    feedback = str({"steps": number, "answer": answer, **fields})
    return {
        "role": "env",
        "depth": depth,
        "thought": f"t{number}",
        "action": action,
        "observation": f"o{number}",
        "feedback": feedback,
    }


def taken(depth: int) -> Record:
    return {"role": "mark", "text": f"DFS at node depth {depth}..."}


def proposal(*actions: str) -> Record:
    return {"role": "propose", "samples": [f"Thought 1: t\nAction 1: {action}: or so\n" for action in actions]}


DFS = [
    *(taken(0), proposal("Search[a]", "Search[b]"), thought(1, 1, "Search[a]"), thought(1, 2, "Search[b]")),
    *(taken(1), proposal("Finish[c]"), thought(2, 3, "Finish[c]", "c", em=False)),
    *(taken(2), proposal("Search[a]"), thought(3, 4, "Search[a]")),
    taken(3),
    *(taken(1), proposal("Search[a]", "Search[a]"), thought(2, 5, "Search[a]"), thought(2, 6, "Search[a]")),
]


async def test_a_depth_first_search_is_put_in_its_tree() -> None:
    steps = tot_hotpot.read_search({"outputs": DFS})
    assert [step.actions for step in steps] == [(), ("Search[a]",), ("Search[a]", "Finish[c]"), ("Search[b]",)]
    assert steps[1].children[0].reward == 0
    assert steps[0].steps == (("t", "Search[a]"), ("t", "Search[b]"))
    world = tot_hotpot.world_of(steps)
    state = world.start({"id": "1", "question": "Which?"})
    first = await world.step((await world.step(state, "Search[b]")).state, "Search[a]")
    assert first.observation == "o5"
    with pytest.raises(ValueError, match=r"output 4: 'DFS at node depth 2\.\.\.', but the next node lies at 1"):
        tot_hotpot.read_search({"outputs": [*DFS[:4], taken(2)]})
    with pytest.raises(ValueError, match="no node is left"):
        tot_hotpot.read_search({"outputs": [taken(0), taken(0)]})


async def gone(world: TreeWorld, state: Any, path: tuple[str, ...]) -> Any:
    for action in path:
        state = (await world.step(state, action)).state
    return state


def known(figures: dict[str, Any], **counted: int) -> None:
    """Compare with the published figures, as far as there are any."""
    assert {name: number for name, number in counted.items() if name in figures} == {
        name: figures[name] for name in counted if name in figures
    }


async def test_recorded_searches_in_the_shop(recorded: Path) -> None:
    records = load(recorded, WEBSHOP)
    searches = [webshop.read_search(record) for record in records]
    outputs = [output for record in records for output in record["outputs"]]
    roles = Counter(output["role"] for output in outputs)
    known(
        manifest(recorded)[WEBSHOP]["expected"]["dev"],
        n=len(records),
        solved=sum(any(child.reward == 1 for step in made for child in step.children) for made in searches),
        propose_calls=roles["propose"],
        sampled_actions=sum(len(output["samples"]) for output in outputs if output["role"] == "propose"),
        nodes=roles["env"],
        value_calls=roles["value"],
    )
    steps = list(chain.from_iterable(searches))
    assert len(steps) == roles["propose"]
    assert sum(child.vote is not None for step in steps for child in step.children) == roles["value"]
    for record, made in zip(records, searches, strict=True):
        world = webshop.world_of(made)
        start = world.start(webshop.task_of(record))
        for step in made:
            state = await gone(world, start, step.path)
            for child in step.children:
                came = await world.step(state, child.action)
                assert came.observation == child.observation
                if child.action.startswith("think[") and step.path and step.certain:
                    assert child.observation == state["observation"], "a thought leaves the page as it is"
        assert world.unserved == []


async def test_the_actions_of_the_record_are_those_of_its_samples(recorded: Path) -> None:
    for record in load(recorded, WEBSHOP):
        actions: list[str] = []
        for role, outputs in groupby(record["outputs"], key=lambda output: output["role"]):
            if role == "propose":
                actions = [
                    action
                    for output in outputs
                    for sample in output["samples"]
                    if (action := webshop.action_of(sample))
                ]
            if role == "env":
                assert [output["action"] for output in outputs] == actions


async def test_recorded_depth_first_search(recorded: Path) -> None:
    for record in load(recorded, TOT):
        made = tot_hotpot.read_search(record)
        marks = [output["text"] for output in record["outputs"] if output["role"] == "mark"]
        depths = [int(depth) for mark in marks for depth in re.findall(r"DFS at node depth (\d+)", mark)]
        assert [len(step.path) for step in made] == [depth for depth in depths if depth < 7]
        world = tot_hotpot.world_of(made)
        start = world.start(tot_hotpot.task_of(record))
        for step in made:
            state = await gone(world, start, step.actions)
            firsts = {child.step.action: child for child in reversed(step.children)}
            for action, child in firsts.items():
                assert (await world.step(state, action)).observation == child.observation
            assert {child.step for child in step.children} <= set(step.steps)
