"""What of a long text bears on something."""

import pytest

from reflective_agents.text.excerpt import excerpt

FILLER = "The harbour has boats, and the boats have names. " * 400


@pytest.mark.parametrize(
    ("fact", "wanted"),
    [
        ("The Petrel was launched in 2004 by Varde Verft.", "Varde Verft launched the Petrel."),
        ("海燕号于2004年下水。", "海燕号是2004年下水的。"),
    ],
)
@pytest.mark.parametrize("begin", [0, 7_777, 15_000, len(FILLER)])
def test_what_bears_on_it_is_kept_wherever_it_stands(fact: str, wanted: str, begin: int) -> None:
    kept = excerpt(f"{FILLER[:begin]} {fact} {FILLER[begin:]}", 3_000, wanted)
    assert fact in kept
    assert len(kept) <= 3_000


def test_a_short_text_stays_and_one_without_shared_words_is_cut() -> None:
    assert excerpt("Short.", 6, "anything") == "Short."
    assert FILLER.startswith(excerpt(FILLER, 2_000, "珊瑚"))


@pytest.mark.parametrize("most", [0, 1, 300, 505, 1_100])
def test_no_more_is_kept_than_is_allowed(most: int) -> None:
    assert len(excerpt(FILLER, most, "harbour")) <= most
