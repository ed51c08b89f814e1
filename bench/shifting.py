"""A server that changes its manners from call to call: it refuses, recovers, cuts streams, and reports its usage in
one form and then in another. It counts by itself what each run has cost."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Literal

from aiohttp import web

from reflective_agents.testing.awkward import MANNERS, AwkwardServer, Manner
from reflective_agents.testing.completions import Json, chunks, completion, event, usage_of
from reflective_agents.testing.meter import Meter
from reflective_agents.testing.openai_server import Exchange
from reflective_agents.testing.script import Choice, Request, Script, count_tokens
from reflective_agents.testing.serve import cut_in_half, reset

ServerFault = Literal["429", "500", "unlucky", "reset", "half", "no_end", "error_event"]
FORMS = ("plain", "each_piece", "last_piece", "beside", "zero", "none")
"""How usage is reported: once, in each piece anew, with the last piece, thoughts beside the output, as 0, or not."""
FAULTS: tuple[ServerFault, ...] = ("429", "500", "unlucky", "reset", "half", "no_end", "error_event")
OUTAGE, PERIOD = 8, 150
"""So many calls in a row out of so many are refused, whatever they ask for."""
FREQUENCY = 0.12
"""How likely a call shows a fault otherwise."""
UNLUCKY: tuple[Json, ...] = (
    {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<function=search>"},
    {"message": "The prompt was filtered: see the policy of tools, functions and thinking.", "code": "content_filter"},
    {"message": "The thinking of this request has failed in function n.", "code": "invalid_request_error"},
)
"""Refusals of one request, from which nothing follows for the next."""


@dataclass
class Account:
    """What a run has cost by the server's own count; `unseen` are calls of which it reported no tokens."""

    calls: int = 0
    tokens: int = 0
    unseen: int = 0
    faults: int = 0
    streamed: int = 0


class ShiftingServer(AwkwardServer):
    """A server whose models are called after the manners that they never change, such as `refuses_tools`.

    Args:
        reply: The script of its models.
        run_of: Tells which run a request belongs to, by its text.
        seed: Of the faults and forms of usage.
    """

    def __init__(self, reply: Script, run_of: Callable[[str], str], seed: int = 0) -> None:
        super().__init__(reply, "thinks")
        self.accounts: defaultdict[str, Account] = defaultdict(Account)
        self.is_calm = False
        """Whether no faults are shown any more."""
        self._run_of, self._random, self._number = run_of, Random(seed), count()

    def forget(self) -> None:
        """Forget the requests and the accounts. No call may be under way."""
        self.requests.clear()
        self.accounts.clear()
        self._meter = Meter()

    def manner_of(self, body: Json) -> Manner | None:
        """Return the manner that the model is called after."""
        return next((manner for manner in MANNERS if manner == body["model"]), None)

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        self.accounts[self._run_of(await http.text())].calls += 1
        return await super()._complete(http)

    async def _answer(
        self, http: web.Request, exchange: Exchange, request: Request, choices: list[Choice]
    ) -> web.StreamResponse:
        account = self.accounts[self._run_of(await http.text())]
        fault = None if self.is_calm else self._fault()
        account.faults += fault is not None
        if fault == "429" or fault == "500":
            return self._refuse(fault)
        if fault == "unlucky":
            return web.json_response({"error": self._random.choice(UNLUCKY)}, status=400)
        form = self._random.choice(FORMS)
        usage = _usage(request, choices, form)
        account.tokens += usage["total_tokens"]
        streamed = bool(exchange.body.get("stream"))
        account.streamed += streamed
        account.unseen += form in ("zero", "none") or fault in (FAULTS if streamed else ("reset", "half"))
        if streamed:
            events = _reported(list(chunks(exchange.body, request, choices)), form, usage)
            return await self._send(http, fault, list(map(event, events)))
        if fault == "reset":
            return reset(http)
        body = completion(exchange.body, request, choices) | {"usage": _shown(form, usage)}
        return cut_in_half(json.dumps(body)) if fault == "half" else web.json_response(body)

    def _fault(self) -> ServerFault | None:
        if next(self._number) % PERIOD >= PERIOD - OUTAGE:
            return "500"
        return self._random.choice(FAULTS) if self._random.random() < FREQUENCY else None

    async def _send(self, http: web.Request, fault: str | None, events: list[str]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        ends = {
            "half": events[-1][:20] + "\n\n",
            "error_event": event({"error": {"message": "Bad gateway", "code": 502}}),
        }
        kept = events[: len(events) // 2] if fault else events
        for text in [*kept, ends.get(fault or "", "data: [DONE]\n\n")]:
            await response.write(text.encode())
        if fault == "reset":
            return reset(http)
        await response.write_eof()
        return response


def _usage(request: Request, choices: Sequence[Choice], form: str) -> Json:
    """Return what a call has cost, with a thought that nobody is shown where it is reported beside the output."""
    usage: Json = usage_of(request, choices)
    if form == "beside":
        spare = sum((request.max_tokens or 0) - count_tokens(choice.size) for choice in choices)
        thought = max(min(40, spare), 0)
        usage |= {"completion_tokens_details": {"reasoning_tokens": thought}}
        usage["total_tokens"] += thought
    return usage


def _shown(form: str, usage: Json) -> Json | None:
    return {"zero": dict.fromkeys(usage, 0), "none": None}.get(form, usage)


def _reported(pieces: list[Json], form: str, usage: Json) -> Iterator[Json]:
    """Yield the pieces of a reply with its usage, which the last of them has as OpenAI sends it."""
    *pieces, last = pieces
    for number, piece in enumerate(pieces, 1):
        if form == "each_piece":
            output = usage["completion_tokens"] * number // len(pieces)
            grown = {"completion_tokens": output, "total_tokens": usage["prompt_tokens"] + output}
            yield piece | {"usage": usage | grown}
        elif form == "last_piece" and number == len(pieces):
            yield piece | {"usage": usage}
        else:
            yield piece
    if form in ("plain", "beside", "zero"):
        yield last | {"usage": _shown(form, usage)}
