"""Names that somebody may have meant."""

from reflective_agents.text.spelling import similar_names


def test_the_closest_names_come_first() -> None:
    assert similar_names("reflection_", ["lats", "reflexion", "reflection"], count=2) == ["reflection", "reflexion"]
    assert similar_names("zzz", ["lats"]) == []
    assert similar_names("lats" * 30, ["lats" * 30]) == []
