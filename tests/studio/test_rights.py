"""What users may and may not do, on a development server that asks for keys."""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.serve import live, rights
from tests.studio.conftest import free_port, running, wait_until_ready

pytestmark = [pytest.mark.studio, pytest.mark.thorough, pytest.mark.xdist_group("studio")]


@pytest.fixture(scope="module")
def guarded(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server that asks for keys, and return its address."""
    folder, port = tmp_path_factory.mktemp("guarded"), free_port()
    quiet = {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "true", "LANGSMITH_TRACING": "false"}
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    command += ["--n-jobs-per-worker", "20", "--port", str(port)]
    log = folder / "server.log"
    with (
        log.open("wb") as output,
        running(command, checkout, quiet | rights.settings(folder), output.fileno()) as process,
    ):
        wait_until_ready(process, f"http://127.0.0.1:{port}", log)
        yield f"http://127.0.0.1:{port}"


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


async def test_nobody_writes_what_a_run_has_spent(clients: rights.Clients) -> None:
    await rights.nobody_writes_what_a_run_has_spent(clients)


async def test_lessons_are_their_users(clients: rights.Clients) -> None:
    await rights.lessons_are_their_users(clients)


async def test_a_token_is_its_users(guarded: str) -> None:
    await rights.a_token_is_its_users(guarded)


async def test_nobody_spends_more_than_his_day(clients: rights.Clients) -> None:
    await rights.nobody_spends_more_than_his_day(clients)
