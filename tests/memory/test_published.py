"""The first morning of Isabella Rodriguez as the published code of Generative Agents left it behind: what was perceived
when, how important it was, and when she reflected, with which insights.

Nodes 1 to 115 of her memory in the simulation July1_the_ville_isabella_maria_klaus-step-3-20, from
github.com/joonspk-research/generative_agents (Apache-2.0); of each the time, the kind and the rating.
"""

from typing import Any

from langgraph.store.memory import InMemoryStore

from reflective_agents.memory.rankings.base import Ranking
from reflective_agents.memory.rankings.hybrid import RANKING as HYBRID
from reflective_agents.memory.rankings.paper import RANKING as PUBLISHED
from reflective_agents.memory.rankings.paper import Paper
from reflective_agents.memory.reflection import THRESHOLD
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.nodes.remembering.remember import reflect
from reflective_agents.nodes.step import Step
from reflective_agents.state.context import Context
from reflective_agents.state.memories import Kind, Memory, new_memory
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from tests.memory.windows import open_window

OBSERVED = """
00:00:00 1 1 1 1 1 1
00:00:00 plan 5
00:00:10 1 1
00:00:20 fact 6 3 7 6 8
06:00:10 2 1 1 1 1 1 1
06:05:10 1
06:06:50 1 1 1
06:07:10 3
06:10:10 1
06:20:10 3
06:20:40 1 1 1 1
06:20:50 1
06:21:30 1
06:30:10 2
06:30:20 1
06:40:10 3 1
06:40:20 1
06:40:30 1 1 1
06:40:40 2
06:45:10 3
06:45:50 3
06:50:10 2 3 1 1 1 1
06:55:10 4 1
06:56:20 1 1 1 1 1 1
06:57:40 7 3
07:00:10 2 1
07:00:20 1
07:00:30 1 1
07:00:40 1
07:05:10 3
07:06:20 1
07:06:50 1
07:10:10 4 6 1 1 1 1 1 1
07:20:10 3 3
07:30:10 3 1 1
07:30:20 1 1 1 1
07:31:30 3
07:40:10 2
07:40:50 3 1
07:41:00 1 1 1
07:41:10 1
07:41:20 1
07:45:10 3
07:46:00 3
07:50:10 7 1
"""
"""What came at once, as the agent perceived it; events are observations where no other kind is named."""
RATED = [[7, 7, 4, 3, 6], [8, 7, 3, 7, 3], [7, 7, 7, 7, 3]]
"""The ratings of the insights, nodes 101 to 115, by the question that they answer."""
EQUAL = {(0, 2), (2, 1)}
"""Nodes 103 and 112 say the same in the same words."""


def perceived() -> list[list[Memory]]:
    """Make the nodes 1 to 100 again, a list for each time that something was perceived."""
    made: list[list[Memory]] = []
    for line in OBSERVED.split("\n")[1:-1]:
        at, *words = line.split()
        hours, minutes, seconds = map(int, at.split(":"))
        kind: Kind = "plan" if "plan" in words else "fact" if "fact" in words else "observation"
        start = sum(map(len, made)) + 1
        ratings = [float(word) for word in words if word != kind]
        created = 3600.0 * hours + 60 * minutes + seconds
        made.append(
            [
                new_memory(
                    f"Node {start + number}.", created=created, kind=kind, importance=rating, key=f"{number} {line}"
                )
                for number, rating in enumerate(ratings)
            ]
        )
    return made


def insightful(request: Request) -> Reply:
    """A model that asks three questions, and draws five insights for each, rated as they were."""
    if request.schema == "Questions":
        return {"questions": [f"Question {number}?" for number in range(3)]}
    number = int(request.last.rpartition("Question ")[2][0])
    return {
        "insights": [
            {
                "insight": "She is a friend." if (number, index) in EQUAL else f"Insight {number} {index}.",
                "evidence": [index + 1, index + 2],
                "importance": rating,
            }
            for index, rating in enumerate(RATED[number])
        ]
    }


async def relived(ranking: Ranking) -> tuple[MemoryStream, dict[int, list[Memory]], list[Any]]:
    """Live the morning again: the stream, what was drawn after which node, and the events."""
    stream = await open_window(InMemoryStore())
    events: list[Any] = []
    step: Step[Context] = Step(Context(model=FakeChatModel(reply=insightful)), {}, events.append)
    drawn, nodes = {}, 0
    for together in perceived():
        await stream.add(together)
        nodes += len(together)
        now = together[-1]["created"]
        if insights := await reflect(step, step.context.model, stream, now=now, ranking=ranking):
            drawn[nodes] = insights
    return stream, drawn, events


async def test_the_published_morning_is_reflected_on_where_it_was_with_as_many_insights() -> None:
    for ranking in (Paper(), PUBLISHED):
        stream, drawn, events = await relived(ranking)
        assert list(drawn) == [100]
        assert [memory["importance"] for memory in drawn[100]] == [rating for ratings in RATED for rating in ratings]
        assert len(drawn[100]) == 15
        assert await stream.count() == 115
        (reflected,) = events
        assert (reflected["importance"], reflected["insights"], reflected["refused"]) == (153, 15, 0)
        assert (await stream.pending()).importance == 0
        known = {memory["id"] for together in perceived() for memory in together}
        assert all(memory["evidence"] and known >= set(memory["evidence"]) for memory in drawn[100])


async def test_equal_insights_of_the_published_morning_are_merged_unless_the_paper_is_followed() -> None:
    _, drawn, _ = await relived(HYBRID)
    assert [len(insights) for insights in drawn.values()] == [14]


def test_the_threshold_was_passed_by_the_last_two_observations() -> None:
    *before, last = [
        sum(memory["importance"] for memory in together if memory["kind"] == "observation") for together in perceived()
    ]
    assert sum(before) == 145 <= THRESHOLD < sum(before) + last == 153
