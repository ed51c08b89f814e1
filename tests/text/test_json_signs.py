"""How much structure a JSON text has."""

import pytest

from reflective_agents.text.json_signs import signs_outside_texts


@pytest.mark.parametrize(
    ("body", "signs"),
    [
        (b'{"a": "b, [c]"}', 6),
        (rb'{"a": "\\"}', 6),
        (rb'["a\", b"]', 4),
        (b'["a", "b"]', 7),
        (b"[1, 2, {}]", 6),
    ],
)
def test_texts_are_not_counted(body: bytes, signs: int) -> None:
    assert signs_outside_texts(body, 100) == signs


def test_of_too_many_texts_only_the_marks_are_counted() -> None:
    assert signs_outside_texts(b'["a", "b"]', 3) == 4
