"""Steering a tree search on Aegra."""

import pytest

from tests.aegra.process import Server
from tests.serve import steering

pytestmark = [pytest.mark.aegra, pytest.mark.thorough, pytest.mark.timeout(900)]


async def test_the_tree_is_the_same_as_in_python(servers: list[Server]) -> None:
    await steering.the_same_tree_as_in_python(servers[0].client())


async def test_a_run_is_stopped_steered_and_goes_on(servers: list[Server]) -> None:
    slow = {"n": 2, "max_expansions": 4, "search": "none"}
    await steering.a_run_is_stopped_steered_and_goes_on(servers[0].client(), slow, "A slow and unsolvable question")
