"""The live page's own requests on Aegra."""

import asyncio

import pytest

from tests.aegra.process import KEYS, Server
from tests.serve import live

pytestmark = [pytest.mark.aegra, pytest.mark.thorough, pytest.mark.timeout(900)]


async def test_requests_of_the_page(servers: list[Server]) -> None:
    async with live.browser(servers[0].address, KEYS["ann"]) as client:
        await asyncio.gather(
            live.early_and_late_hear_the_same(client),
            live.steered_by_two(client),
            live.the_list_tells_what_runs_are_and_a_question_is_edited(client),
        )
