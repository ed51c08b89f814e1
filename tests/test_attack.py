"""The attacks on servers: they see a server that breaks its word, and only such a one."""

import asyncio
import time
from random import Random

import pytest
from aiohttp import web

from bench.attack import sending, target
from bench.attack.campaign import ATTACKS, attack, campaign
from reflective_agents.testing.serve import LocalServer

pytestmark = [pytest.mark.wire, pytest.mark.hostile]
KEYS = ("ann", "bob")


class Refusing(LocalServer):
    """A server that refuses everything, or breaks down."""

    def __init__(self, status: int = 400, held: float = 0) -> None:
        super().__init__()
        self.status, self.held, self.bodies = status, held, list[bytes]()

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/ok", self.ok), web.route("*", "/{path:.*}", self.answer)]

    async def ok(self, _: web.Request) -> web.Response:
        return web.json_response({"ok": True})

    async def answer(self, http: web.Request) -> web.Response:
        self.bodies.append(await http.read())
        await asyncio.sleep(0.01)
        time.sleep(self.held)  # noqa: ASYNC251 - holds the event loop, as is to be seen
        return web.json_response({}, status=self.status)


SENDING = [
    "items_without_end",
    "doubling_schemas",
    "prompts_that_grow",
    "halves_of_characters",
    "nested_bodies",
    "nearly_right_requests",
]


@pytest.mark.thorough
@pytest.mark.parametrize("name", SENDING)
async def test_who_refuses_keeps_the_rules(name: str) -> None:
    async with Refusing() as server:
        assert await attack(server.address, KEYS, name, Random(1)) == ""
        assert server.bodies


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("name", ATTACKS)
async def test_who_breaks_down_is_seen(name: str) -> None:
    async with Refusing(500) as server:
        assert "was answered with 500" in await attack(server.address, KEYS, name, Random(1))


async def test_who_takes_what_is_too_large_is_seen() -> None:
    async with Refusing(200) as server:
        assert "was answered with 200" in await attack(server.address, KEYS, "doubling_schemas", Random(1))


@pytest.mark.thorough
def test_who_lets_others_wait_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "OK_SECONDS", 0.3)

    async def run(address: str) -> str:
        return await attack(address, KEYS, "closed_routes", Random(1))

    with Refusing(held=0.6).threaded() as server:
        assert "/ok was answered after" in asyncio.run(run(server.address))


def test_a_seed_gives_the_same_requests() -> None:
    body = sending.chat(settings={"samples": 2})
    first, second = ([repr(sending.mutated(body, Random(seed))) for seed in range(50)] for _ in range(2))
    assert first == second
    assert len(set(first)) > 30


@pytest.mark.thorough
async def test_a_campaign_names_what_it_saw_and_how_to_see_it_again() -> None:
    async with Refusing(500) as server:
        breaches = await campaign(server.address, KEYS, seed=1, seconds=0.5)
        (name, breach), *_ = breaches.items()
        assert name in ATTACKS
        assert f"--only {name} --seed " in breach
