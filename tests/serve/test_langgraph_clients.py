"""What LangGraph's clients are answered where a request of theirs makes no sense."""

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from reflective_agents.serve.langgraph_clients import LangGraphClients

THREADS = [{"thread_id": "a", "status": "idle"}]


@pytest.fixture
def client() -> httpx.AsyncClient:
    found = Route("/threads/search", lambda request: JSONResponse(THREADS), methods=["POST"])
    state = Route("/threads/a/state/checkpoint", lambda request: JSONResponse({}, 422), methods=["POST"])
    transport = httpx.ASGITransport(LangGraphClients(Starlette(routes=[found, state])))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


async def test_threads_are_cut_to_the_fields_that_are_selected(client: httpx.AsyncClient) -> None:
    answer = await client.post("/threads/search", json={"select": ["thread_id", "unknown"]})
    assert answer.json() == [{"thread_id": "a"}]


@pytest.mark.parametrize("names", [[["thread_id"]], [{}], "thread_id", 7, {"thread_id": True}])
async def test_what_is_no_list_of_fields_is_refused(client: httpx.AsyncClient, names: object) -> None:
    answer = await client.post("/threads/search", json={"select": names})
    assert answer.status_code == 422
    assert answer.json()["error"]["param"] == "select"


@pytest.mark.parametrize("checkpoint", ["x", [1], 7, True, {"checkpoint_id": [1]}])
async def test_what_is_no_checkpoint_is_left_to_aegra(client: httpx.AsyncClient, checkpoint: object) -> None:
    answer = await client.post("/threads/a/state/checkpoint", json={"checkpoint": checkpoint})
    assert answer.status_code == 422
