"""LangGraph's own clients on the development server."""

from collections.abc import Awaitable, Callable

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.serve import sdk

pytestmark = [pytest.mark.studio, pytest.mark.xdist_group("studio")]


@pytest.mark.matrix
@pytest.mark.parametrize(
    "work",
    [
        sdk.the_sdk_works,
        sdk.a_run_goes_on_without_an_input,
        sdk.a_remote_graph_has_a_state,
        sdk.langgraphs_server_copies_and_waits,
    ],
)
async def test_it_works(client: LangGraphClient, work: Callable[[LangGraphClient], Awaitable[None]]) -> None:
    await work(client)
