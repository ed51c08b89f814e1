"""What single verifiers find: what a function returns, and what code measures."""

import math
from typing import Any

import pytest

from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers.finding import LONGEST, Case, Finding, NoVerdict
from reflective_agents.nodes.verifiers.function import read_reply
from reflective_agents.nodes.verifiers.verdict import VERIFY
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.state.verifiers import VerifiedRun, arguments, read_verifier


@pytest.mark.parametrize(
    ("reply", "finding"),
    [
        (True, Finding(1)),
        (False, Finding(0)),
        (0.25, Finding(0.25)),
        (1, Finding(1)),
        (None, Finding(1)),
        ("", Finding(1)),
        ("Too cold.", Finding(0, "Too cold.")),
        ({"score": 0.5, "feedback": "Warm it."}, Finding(0.5, "Warm it.")),
        ({"score": True}, Finding(1)),
        ("a\0b\ud800", Finding(0, "ab\ufffd")),
    ],
)
def test_what_a_function_may_return(reply: object, finding: Finding) -> None:
    assert read_reply(reply) == finding


@pytest.mark.parametrize(
    "reply", [math.nan, math.inf, -0.1, 1.1, 10**400, [], object(), {}, {"score": 1, "feedback": 3}]
)
def test_what_is_no_verdict(reply: object) -> None:
    with pytest.raises(NoVerdict):
        read_reply(reply)


def test_feedback_is_cut() -> None:
    assert len(read_reply("x" * 10_000_000).feedback) == LONGEST


def test_a_function_takes_two_or_three_arguments() -> None:
    assert arguments(lambda request, answer: True) == 2
    assert arguments(lambda request, answer, run=None: True) == 3
    assert arguments(lambda *given: True) == 3
    assert arguments(lambda answer: True) is None


@pytest.mark.parametrize(
    ("verifier", "answer", "accepted"),
    [
        ({"min_words": 3}, "One two three", True),
        ({"min_words": 4}, "One two three", False),
        ({"max_words": 2}, "One two three", False),
        ({"min_characters": 3, "max_characters": 3}, "abc", True),
        ({"max_characters": 2}, "abc", False),
        ({"pattern": "^[A-Z]"}, "Abc", True),
        ({"pattern": "^[A-Z]"}, "abc", False),
        ({"pattern": "(a*)*$b"}, "a" * 5_000, False),
        ({"schema": {"type": "object", "required": ["a"]}}, '{"a": 1}', True),
        ({"schema": {"type": "object", "required": ["a"]}}, '{"b": 1}', False),
        ({"schema": {"type": "object"}}, "[1]", False),
        ({"schema": {"type": "object"}}, "[" * 100_000, False),
        ({"schema": {"type": "object"}}, "So: {}", False),
    ],
)
async def test_what_code_measures(verifier: dict[str, Any], answer: str, accepted: bool) -> None:
    form = read_verifier(verifier)
    step = Step(ReactContext(), {}, lambda _: None)
    case = Case("Why?", answer, VerifiedRun(messages=[], sources={}))
    found = await VERIFY[type(form)](step, form, case)
    assert (found.score == 1) is accepted
    assert bool(found.feedback) is not accepted
