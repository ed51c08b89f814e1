"""How actions are read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflective_agents.environments.actions import MAX_ARGUMENT, Action, parse_action


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("Search[Milhouse]", "search", "Milhouse"),
        ("  search [ Milhouse\n Van  Houten ]", "search", "Milhouse Van Houten"),
        ("Action 2: Lookup[named after]", "lookup", "named after"),
        ("act: FINISH[a [b] c]", "finish", "a [b] c"),
        ("Finish[yes]\nObservation 3: Right [I made this up]", "finish", "yes"),
        ("Finish[a [b]", "finish", "a [b"),
        ("Finish[]", "finish", ""),
        ("Compare[services]", "compare", "services"),
    ],
)
def test_actions(text: str, name: str, argument: str) -> None:
    assert parse_action(text) == Action(name, argument)


@pytest.mark.parametrize("text", ["", "Login", "Search", "Search[", "[x]", "I would Search[x]", "Search(x)"])
def test_what_is_no_action(text: str) -> None:
    assert parse_action(text) is None


def test_long_arguments_are_cut() -> None:
    action = parse_action(f"Search[{'x' * 10_000}]")
    assert action is not None
    assert len(action.argument) == MAX_ARGUMENT


@pytest.mark.thorough
@given(st.sampled_from(["Search", "Lookup", "Finish"]), st.text(alphabet=st.characters(exclude_characters="[]")))
def test_every_argument_without_brackets_is_read(name: str, argument: str) -> None:
    assert parse_action(f"{name}[{argument}]") == Action(name.lower(), " ".join(argument.split()))
