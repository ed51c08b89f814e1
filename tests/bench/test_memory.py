"""What a memory costs that does not depend on the clock: it is linear, and within what the bench says is owed."""

import pytest

from bench.memory import measure_memory


@pytest.mark.thorough
def test_bytes_a_memory_do_not_grow_with_the_number_of_memories() -> None:
    few, many = ({row.what: row for row in measure_memory(count) if "bytes" in row.what} for count in (200, 800))
    assert len(few) == 2
    for what, row in many.items():
        assert row.holds, (what, row.value)
        assert row.value < 1.2 * few[what].value
