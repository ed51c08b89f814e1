"""Search results on a path: numbered, and found once."""

import json
from typing import Any

from langchain_core.messages import ToolMessage

from reflective_agents.nodes.evidence.sources import numbered, sources_of, with_numbers


def results(*pairs: str) -> str:
    return json.dumps([{"title": pair[0], "url": f"https://{pair[0]}/", "content": pair} for pair in pairs])


def shown(text: str) -> list[tuple[int, str]]:
    found: list[dict[str, Any]] = json.loads(text)
    return [(source["number"], source["content"]) for source in found]


def test_a_page_has_one_number_whatever_passages_of_it_are_found() -> None:
    first, second = numbered(results("a1", "b1"), ()), numbered(results("b2", "c1"), [results("a1", "b1")])
    assert (shown(first), shown(second)) == ([(1, "a1"), (2, "b1")], [(2, "b2"), (3, "c1")])
    sources = sources_of([first, "no results", second])
    assert {number: source.url for number, source in sources.items()} == {
        1: "https://a/",
        2: "https://b/",
        3: "https://c/",
    }


def test_what_was_found_before_is_not_found_again() -> None:
    before = [numbered(results("a1", "b1"), ())]
    assert shown(numbered(results("b1", "c1"), before)) == [(3, "c1")]
    assert numbered(results("b1", "a1"), before).startswith("Nothing new was found: the results [1], [2]")


def test_other_observations_stay_as_they_are() -> None:
    for text in ("21 degrees", "[]", '[{"title": "no address"}]', '{"a": 1}', "[1, 2]", "[" * 10_000):
        assert numbered(text, ()) == text


def test_the_replies_to_one_message_are_numbered_in_their_order() -> None:
    replies = [ToolMessage(results(*pairs), tool_call_id=str(i)) for i, pairs in enumerate([("a1",), ("a1", "b1")])]
    assert [shown(reply.text) for reply in with_numbers(replies, ())] == [[(1, "a1")], [(2, "b1")]]
