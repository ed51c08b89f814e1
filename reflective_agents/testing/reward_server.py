"""A local HTTP server that scores texts as vLLM does with a reward model.

async with RewardServer(lambda answer: 2.0 if "honey" in answer else -2.0) as server:
    verifiers = [{"reward": server.address, "threshold": 0.5}]
"""

import asyncio
import json
import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from aiohttp import web

from reflective_agents.state.json_types import JsonObject
from reflective_agents.testing.serve import LocalServer, cut_in_half, reset

Logits: TypeAlias = Callable[[str], float | Sequence[float]]
"""What the model says of a text: one logit, or one for each label. A process reward is asked for each step."""
RewardFault: TypeAlias = Literal["401", "500", "timeout", "reset", "truncated_json", "nan", "flood", "no_data"]


class RewardServer(LocalServer):
    """Answers POST /pooling with the logits of the last message; without `use_activation` false, with probabilities."""

    def __init__(
        self,
        logits: Logits,
        *,
        step_tag: str = "\n\n",
        key: str = "",
        fault: RewardFault | None = None,
        latency: float = 0.0,
        port: int = 0,
    ) -> None:
        """Describe the server; it listens once the `with` block is entered.

        Args:
            logits: what the model says.
            step_tag: what ends a step, for a process reward.
            key: the key that requests have to bring; empty for none.
            fault: what every request meets.
            latency: seconds before each answer.
            port: 0 takes any that is free.
        """
        super().__init__(port)
        self.requests: list[JsonObject] = []
        """The bodies of all requests, in order of arrival."""
        self._logits, self._tag, self._key, self._fault, self._latency = logits, step_tag, key, fault, latency

    def routes(self) -> list[web.RouteDef]:
        """List the one path served."""
        return [web.post("/pooling", self._pool)]

    async def _pool(self, http: web.Request) -> web.StreamResponse:
        body = await http.json()
        self.requests.append(body)
        await asyncio.sleep(self._latency)
        if self._fault == "timeout":
            return await self.hang(http)
        if self._fault == "reset":
            return reset(http)
        if self._fault == "401" or (self._key and http.headers.get("Authorization") != f"Bearer {self._key}"):
            return web.json_response({"error": {"message": "Unauthorized"}}, status=401)
        if self._fault == "500":
            return web.json_response({"error": {"message": "Internal Server Error"}}, status=500)
        if self._fault == "flood":
            return web.Response(body=b" " * 30_000_000)
        text = json.dumps(self._reply(body))
        return cut_in_half(text) if self._fault == "truncated_json" else web.json_response(text=text)

    def _reply(self, body: JsonObject) -> JsonObject:
        answer = body["messages"][-1]["content"]
        is_process = body["task"] == "token_classify"
        steps = [step for step in answer.split(self._tag) if step] if is_process else [answer]
        rows = [self._row(step, raw=body.get("use_activation") is False) for step in steps]
        data = {"index": 0, "object": "pooling", "data": rows if is_process else rows[0]}
        about = {"id": "pool-local", "object": "list", "created": 0, "model": body.get("model") or "reward"}
        return {
            **about,
            "data": [] if self._fault == "no_data" else [data],
            "usage": {"total_tokens": len(answer) // 4},
        }

    def _row(self, text: str, *, raw: bool) -> list[float]:
        found = self._logits(text)
        logits = [float(found)] if isinstance(found, int | float) else list(found)
        if self._fault == "nan":
            return [math.nan] * len(logits)
        return logits if raw else _probabilities(logits)


def _probabilities(logits: Sequence[float]) -> list[float]:
    """Return what vLLM makes of logits by default: the sigmoid of one, the softmax of several."""
    if len(logits) == 1:
        return [1 / (1 + math.exp(-logits[0]))]
    powers = [math.exp(logit - max(logits)) for logit in logits]
    return [power / sum(powers) for power in powers]
