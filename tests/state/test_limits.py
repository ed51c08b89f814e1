"""Limits as data: the one sentence that is made of them, and the outcomes that carry them."""

import pickle

import pytest

from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.limits import Limit, sentence
from reflective_agents.state.outcome import stopped


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ({"name": "max_rounds", "most": 3, "spent": 3}, "max_rounds=3 reached (rounds=3)"),
        ({"name": "max_seconds", "most": 0.25, "spent": 0.3}, "max_seconds=0.25 reached (seconds=0.3)"),
        ({"name": "max_seconds", "most": 900, "spent": 900.0178}, "max_seconds=900 reached (seconds=900)"),
        ({"name": "max_total_tokens", "most": 10**9, "spent": 999_999_990}, "(total_tokens=999999990)"),
        (
            {"name": "max_total_tokens", "most": 100, "spent": 90, "needed": 11},
            "max_total_tokens=100 reached (total_tokens=90, the next step may need 11)",
        ),
    ],
)
def test_the_sentence_names_the_setting_and_quotes_the_numbers(limit: Limit, text: str) -> None:
    assert sentence(limit).endswith(text)
    assert sentence(limit, "so").endswith(f"{text}; so")


def test_an_outcome_carries_the_limit_that_ended_the_run() -> None:
    limit = Context(max_model_calls=4).limit("max_model_calls", spent=4)
    assert stopped(LimitReached(limit, "so")) == {
        "status": "limit_reached",
        "reason": sentence(limit, "so"),
        "limit": {"name": "max_model_calls", "most": 4, "spent": 4},
    }
    assert stopped(ModelFailed("no route")) == {"status": "failed", "reason": "no route"}


def test_the_exception_survives_pickling() -> None:
    error = LimitReached({"name": "max_rounds", "most": 1, "spent": 1}, "so")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
