"""What users may and may not do, on Aegra."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.aegra.conftest import Start
from tests.aegra.process import Server
from tests.serve import gate, live, rights, routes
from tests.support.needs import SERVE_PYTHON

pytestmark = [pytest.mark.aegra, pytest.mark.thorough, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def guarded(servers: list[Server], settings: dict[str, str], start: Start) -> Iterator[str]:
    """Start a process with keys, rules and a queue of its own, and return its address."""
    with TemporaryDirectory() as folder:
        server = start(**rights.settings(Path(folder)), REDIS_URL=settings["REDIS_URL"].replace("/0", "/1"))
        server.wait_until_ready()
        yield server.address
        server.end()


@pytest.fixture
async def clients(guarded: str) -> AsyncIterator[rights.Clients]:
    async with AsyncExitStack() as stack:
        made: dict[str, LangGraphClient] = {}
        for user, key in rights.KEYS.items():
            client = get_client(url=guarded, headers={"authorization": f"Bearer {key}"})
            made[user] = await stack.enter_async_context(client)
        yield lambda user: made[user]


async def test_nobody_sees_what_is_anothers_on_the_live_page(guarded: str) -> None:
    ann, bob = (live.browser(guarded, rights.KEYS[user]) for user in ("ann", "bob"))
    async with ann, bob:
        await live.nobody_sees_what_is_anothers(ann, bob)


async def test_nobody_writes_what_limits_rest_on(clients: rights.Clients, guarded: str) -> None:
    await gate.nobody_writes_what_limits_rest_on(clients("ann"), guarded)


async def test_who_goes_back_has_spent_what_he_has_spent(clients: rights.Clients) -> None:
    await gate.who_goes_back_has_spent_what_he_has_spent(clients("ann"))


async def test_a_thread_is_streamed_by_the_newest_protocol(guarded: str) -> None:
    await gate.a_thread_is_streamed_by_the_newest_protocol(guarded)


def test_every_route_is_known() -> None:
    assert routes.listed(SERVE_PYTHON, "aegra") == routes.all_routes(routes.AEGRA)


async def test_no_route_starts_what_is_not_offered(guarded: str) -> None:
    await gate.no_route_starts_what_is_not_offered(guarded, routes.of("start", routes.AEGRA))


async def test_nobody_is_answered_without_a_key(guarded: str) -> None:
    await routes.nobody_is_answered_without_a_key(guarded, routes.AEGRA)


async def test_what_is_closed_is_closed_with_a_key(guarded: str) -> None:
    await routes.what_is_closed_is_closed_with_a_key(guarded, routes.AEGRA)


async def test_nobody_reads_or_changes_the_thread_of_another(clients: rights.Clients, guarded: str) -> None:
    await routes.nobody_reads_or_changes_the_thread_of_another(clients, guarded, routes.AEGRA)


async def test_lessons_are_their_users(clients: rights.Clients) -> None:
    await rights.lessons_are_their_users(clients)


async def test_a_token_is_its_users(guarded: str) -> None:
    await rights.a_token_is_its_users(guarded)


async def test_nobody_spends_more_than_his_day(clients: rights.Clients) -> None:
    await rights.nobody_spends_more_than_his_day(clients)
