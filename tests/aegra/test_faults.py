"""One process of two, cut off for a moment: nothing of what is under way is lost, or there twice."""

import pytest

from bench.faults import measure

pytestmark = [pytest.mark.aegra, pytest.mark.thorough, pytest.mark.timeout(900)]


async def test_a_process_that_is_cut_off_loses_nothing() -> None:
    assert await measure(6, 5.0, quick=True)
