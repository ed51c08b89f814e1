"""The parts of prompts that the offline model reads: which, and in linear time."""

from functools import partial

import pytest

from reflective_agents.nodes.asking.transcript import around, quoted
from reflective_agents.offline.tags import read_tags, without_tags
from reflective_agents.offline.town import Scene
from tests.text.test_linear import cpu

NAMES = ("request", "source")


def test_parts_are_read_with_their_attributes() -> None:
    text = f"Read:\n{quoted('source', 'Boats.', number=1, by='Ada')}\n{quoted('request', 'Why <request>?')}\nNow."
    first, second = read_tags(text, NAMES)
    assert (first.tag, first.text, first.attributes) == ("source", "Boats.", {"number": "1", "by": "Ada"})
    assert (second.tag, second.text) == ("request", "Why <\\request>?")
    assert without_tags(text, NAMES).split() == ["Read:", "Now."]


def test_a_part_within_a_part_belongs_to_its_text() -> None:
    [part] = read_tags(around("request", quoted("source", "Boats.")), NAMES)
    assert part.text == quoted("source", "Boats.")


@pytest.mark.parametrize("text", ["<request>Why?", "</request>", "<requests>\nWhy?\n</requests>", "<request Why?"])
def test_what_is_not_closed_is_no_part(text: str) -> None:
    assert list(read_tags(text, NAMES)) == []
    assert without_tags(text, NAMES) == text


@pytest.mark.parametrize("unit", ["<request>", "<request", '<said a="', "<memory>\n", "</said ", "<said>\n</part>"])
def test_tags_are_read_in_linear_time(unit: str) -> None:
    short, long = (unit * (size // len(unit)) for size in (10_000, 100_000))
    for read in (lambda text: list(read_tags(text, NAMES)), lambda text: without_tags(text, NAMES), Scene):
        assert any(cpu(partial(read, long)) < 50 * max(cpu(partial(read, short)), 1e-4) for _ in range(5))
