"""What users may and may not do over HTTP: checked alike on both servers, which are given KEYS, SECRET and POLICY."""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

KEYS = {name: f"a key of {name}'s" for name in ("ann", "bob", "eve")}
SECRET = "a secret of at least thirty-two bytes"
DAY = 40
OFFERED = ["chain_of_thought", "lats", "plan", "react", "reflection"]
POLICY = {"day": {"max_model_calls": DAY}, "models": ["offline"], "strategies": OFFERED}
OFFLINE: dict[str, Any] = {"model": "offline", "search": "none"}
OFFLINE_DRAFTS: dict[str, Any] = {"model": "offline"}
Clients = Callable[[str], LangGraphClient]


def settings(folder: Path) -> dict[str, str]:
    """Return the environment of a server that asks for keys."""
    lines = [f"{user} {hashlib.sha256(key.encode()).hexdigest()}" for user, key in KEYS.items()]
    (folder / "keys").write_text("\n".join(lines))
    (folder / "policy.json").write_text(json.dumps(POLICY))
    return {
        "REFLECT_KEYS": str(folder / "keys"),
        "REFLECT_JWT_KEY": SECRET,
        "REFLECT_POLICY": str(folder / "policy.json"),
        "MODEL": "offline",
    }


def asking(text: str = "What is reflexion?") -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def status(attempt: Any) -> int:
    """Return the HTTP status that an attempt is refused with."""
    with pytest.raises(APIStatusError) as refused:
        await attempt
    return refused.value.status_code


async def lessons_are_their_users(clients: Clients) -> None:
    learning: dict[str, Any] = {"model": "offline", "experience": "seas", "max_rounds": 3}

    async def recalled(user: str) -> int:
        question = asking("What is reflexion, and who pulls the sea?")
        parts = clients(user).runs.stream(None, "reflection", input=question, context=learning, stream_mode=["custom"])
        events = [part.data async for part in parts if part.event == "custom"]
        return next(int(event["lessons"]) for event in events if event["event"] == "recalled")

    counts = [await recalled(user) for user in ("ann", "ann", "bob")]
    assert counts == [0, 1, 0]


async def a_token_is_its_users(address: str) -> None:
    def token(user: str, secret: str = SECRET, lasts: float = 60) -> str:
        return jwt.encode({"sub": user, "exp": time.time() + lasts}, secret, algorithm="HS256")

    async with httpx.AsyncClient(base_url=address) as client:

        async def code(method: str, path: str, key: str, body: Any = None) -> int:
            answer = await client.request(method, path, json=body, headers={"authorization": f"Bearer {key}"})
            return answer.status_code

        for wrong in (token("dan", "another secret of thirty-two bytes"), token("dan", lasts=-60), "no token"):
            assert await code("GET", "/v1/models", wrong) == 401
            assert await code("POST", "/threads/search", wrong, {}) == 401
        assert await code("GET", "/v1/models", token("dan")) == 200
        headers = {"authorization": f"Bearer {token('dan')}"}
        thread = (await client.post("/threads", json={}, headers=headers)).json()["thread_id"]
        assert await code("GET", f"/threads/{thread}", token("dan")) == 200
        assert await code("GET", f"/threads/{thread}", token("ann")) == 404
        assert await code("GET", f"/threads/{thread}", KEYS["ann"]) == 404


async def nobody_spends_more_than_his_day(clients: Clients) -> None:
    eve = clients("eve")

    async def ask(number: int) -> int:
        """Return the calls of a run; none if it was refused."""
        wish: Any = {"input": asking(f"Question {number}"), "context": OFFLINE_DRAFTS}
        try:
            values: Any = await eve.runs.wait(None, "reflection", **wish)
        except APIStatusError as refused:
            return 0 if refused.status_code == 429 else 10_000
        usage, outcome = values["usage"], values["outcome"]
        assert outcome["status"] != "failed" or outcome["limit"]["name"] == "max_model_calls_a_day"
        return int(usage["model_calls"])

    calls = sum(await asyncio.gather(*map(ask, range(DAY))))
    # A run that another worker takes over, on a busy machine, has paid for a call that its answer does not count.
    assert DAY - 2 <= calls <= DAY
    assert await status(eve.runs.create(None, "reflection", input=asking(), context=OFFLINE_DRAFTS)) == 429
    await clients("bob").runs.wait(None, "reflection", input=asking(), context=OFFLINE_DRAFTS)
