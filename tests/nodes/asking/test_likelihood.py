"""How likely the lines of a reply are, by the log-probabilities that a provider tells."""

import math
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from reflective_agents.nodes.asking.likelihood import likelihood, lines
from reflective_agents.testing.script import likely


def message(text: str, *tokens: Any) -> AIMessage:
    return AIMessage(text, response_metadata={"logprobs": {"content": list(tokens)}})


def token(text: str, probability: float) -> dict[str, Any]:
    return {"token": text, "logprob": math.log(probability)}


def test_each_line_has_the_geometric_mean_of_its_tokens() -> None:
    reply = message("pick up\n\nput", token("pick", 0.5), token(" up\n", 0.125), token("\n", 0.1), token("put", 0.9))
    assert [(text, round(chance or 0, 9)) for text, chance in lines(reply)] == [("pick up", 0.25), ("put", 0.9)]
    likelihoods = lines(likely("one two\nthree", 0.5, 0.25))
    assert [(text, round(chance or 0, 9)) for text, chance in likelihoods] == [("one two", 0.5), ("three", 0.25)]


def test_a_long_step_is_as_likely_as_a_short_one_of_the_same_tokens() -> None:
    assert likelihood([token("a", 0.5)] * 9) == pytest.approx(likelihood([token("a", 0.5)]))
    assert likelihood([token("a", 1.0), {"token": "b", "logprob": 1e-9}]) == 1.0
    assert likelihood([{"token": "a", "logprob": -9999.0}]) == 0.0


@pytest.mark.parametrize(
    "reply",
    [
        AIMessage("a\nb"),
        AIMessage("a\nb", response_metadata={"logprobs": None}),
        AIMessage("a\nb", response_metadata={"logprobs": "none"}),
        AIMessage("a\nb", response_metadata={"logprobs": {"content": None}}),
        message("a\nb"),
        message("a\nb", "a", None),
        message("a\nb", token("a", 0.5)),
        message("a\nb", {"token": "a\nb"}),
        message("a\nb", {"token": "a\n", "logprob": math.nan}, {"token": "b", "logprob": "high"}),
        message("a\nb", token("a\n\nb", 0.5)),
    ],
)
def test_what_is_not_told_is_not_known(reply: AIMessage) -> None:
    assert lines(reply) == [("a", None), ("b", None)]
