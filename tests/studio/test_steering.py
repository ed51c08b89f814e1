"""Steering a tree search on the development server."""

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.serve import steering

pytestmark = [pytest.mark.studio, pytest.mark.matrix, pytest.mark.xdist_group("studio")]


@pytest.mark.thorough
async def test_the_tree_is_the_same_as_in_python(client: LangGraphClient) -> None:
    await steering.the_same_tree_as_in_python(client)


@pytest.mark.thorough
async def test_a_run_is_stopped_steered_and_goes_on(client: LangGraphClient) -> None:
    slow = {"n": 2, "max_expansions": 2, "search": "none"}
    await steering.a_run_is_stopped_steered_and_goes_on(client, slow, "A slow and unsolvable question")
