"""What a client is answered while the server is not ready."""

import asyncio

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from reflective_agents.serve import outages
from reflective_agents.serve.outages import RETRY_AFTER, AnswersOutages


async def answer_of(path: str, ready: int | None) -> httpx.Response:
    """Return what a server answers that is ready with a status, or never."""

    async def is_ready(_: Request) -> Response:
        if ready is None:
            await asyncio.Event().wait()
        if ready == 500:
            raise ConnectionError("the pool is gone")
        return JSONResponse({}, ready or 200)

    def fail(_: Request) -> Response:
        raise FileNotFoundError("no socket")

    def refuse(request: Request) -> Response:
        return JSONResponse({"message": "as it was"}, int(request.path_params["status"]))

    routes = [Route("/ready", is_ready), Route("/fails", fail), Route("/{status}", refuse)]
    transport = httpx.ASGITransport(AnswersOutages(Starlette(routes=routes)), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.get(path)


@pytest.mark.parametrize("path", ["/fails", "/500"])
@pytest.mark.parametrize("ready", [503, 500, None])
async def test_a_failure_of_a_server_that_is_not_ready_is_an_outage(
    path: str, ready: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outages, "_PATIENCE", 0.01)
    answer = await answer_of(path, ready)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, RETRY_AFTER)
    assert answer.json()["error"] == "service_unavailable"


@pytest.mark.parametrize("path", ["/fails", "/500"])
async def test_a_failure_of_a_server_that_is_ready_stays_one(path: str) -> None:
    answer = await answer_of(path, 200)
    assert answer.status_code == 500
    assert "retry-after" not in answer.headers


async def test_other_answers_stay_as_they_are() -> None:
    for status in (200, 400, 409):
        answer = await answer_of(f"/{status}", 503)
        assert (answer.status_code, answer.json()["message"]) == (status, "as it was")


async def test_every_answer_of_503_says_when_to_try_again() -> None:
    answer = await answer_of("/503", 200)
    assert (answer.headers["retry-after"], answer.json()["message"]) == (RETRY_AFTER, "as it was")
