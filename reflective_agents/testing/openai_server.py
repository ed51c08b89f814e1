"""A local HTTP server that speaks OpenAI's chat completions: for tests over the wire, and to try things without a key.

    async with OpenAIServer(lambda request: "Paris", latency=0.1) as server:
        await ChatOpenAI(base_url=server.base_url, api_key="test").ainvoke("The capital of France?")

By hand, with a script that fills in whatever is forced:

    python -m reflective_agents.testing.openai_server --port 8000 --latency 0.1

or with a script of your own, a function in a file: `--script mine.py:reply`.
"""

import argparse
import asyncio
import errno
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias

from reflective_agents.state.errors import Misuse
from reflective_agents.state.extras import how_to_install

try:
    from aiohttp import web
except ModuleNotFoundError as missing:
    raise Misuse(f"a local server needs {missing.name}: {how_to_install('testing')}") from missing

from reflective_agents.state.loading import load_named
from reflective_agents.testing.completions import Json, chunks, completion, event, parse_request, usage_of
from reflective_agents.testing.faults import STATUS_ERRORS, Fault, fault_of, spoil
from reflective_agents.testing.meter import Latency, Meter, Metered, seconds
from reflective_agents.testing.responder import respond
from reflective_agents.testing.script import Choice, Request, Script, ask, first_error, to_choice
from reflective_agents.testing.serve import LocalServer, cut_in_half, reset
from reflective_agents.testing.wire import find_fault

Faults: TypeAlias = Callable[[Json, int], Fault | None]
"""Which fault a call shows: a function of its body and its number, from 0, in order of arrival."""

_UNANSWERED = ("timeout", *STATUS_ERRORS)


@dataclass
class Exchange:
    """One call as the server saw it. Times are seconds on `time.perf_counter`."""

    body: Json
    started: float
    ended: float | None = None
    """None while the call is being answered."""
    tokens: int = 0
    """Tokens of the call, prompt and all candidates; 0 if no completion was made."""
    fault: Fault | None = None


class OpenAIServer(Metered, LocalServer):
    """Answers POST /v1/chat/completions by a script, with tools, response formats, `n`, streaming, usage and faults."""

    def __init__(
        self,
        reply: Script,
        *,
        latency: Latency = 0.0,
        faults: Faults | None = None,
        retry_after: float = 0.0,
        model: str = "scripted",
        port: int = 0,
    ) -> None:
        """Describe the server; it listens once the `with` block is entered.

        Args:
            reply: what is answered: the same script that drives `FakeChatModel`.
            latency: seconds before each answer, or a function of the request.
            faults: which fault a call shows; None for no faults.
            retry_after: seconds that the Retry-After header of a "429" names.
            model: the one model that GET /v1/models lists.
            port: 0 takes any that is free.
        """
        super().__init__(port)
        self.requests: list[Exchange] = []
        self._script, self._latency, self._faults = reply, latency, faults
        self._retry_after, self._model = retry_after, model
        self._meter = Meter()

    @property
    def base_url(self) -> str:
        """What ChatOpenAI takes as its base_url."""
        return f"{self.address}/v1"

    @property
    def total_tokens(self) -> int:
        """Tokens of all calls so far."""
        return sum(exchange.tokens for exchange in self.requests)

    def routes(self) -> list[web.RouteDef]:
        """List the two paths served."""
        return [web.post("/v1/chat/completions", self._complete), web.get("/v1/models", self._models)]

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": self._model, "object": "model", "created": 0}]})

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        body = await http.json()
        with self._exchange(body) as exchange, self._meter.call(parse_request(body)) as request:
            await asyncio.sleep(seconds(self._latency, request))
            if refusal := find_fault(request.messages):
                return self._refuse("400", refusal)
            replies = ask(self._script, request) if exchange.fault not in _UNANSWERED else []
            if error := first_error(replies):
                exchange.fault, replies = fault_of(error), []
            if exchange.fault == "timeout":
                return await self.hang(http)
            if exchange.fault in STATUS_ERRORS:
                return self._refuse(exchange.fault)
            choices = [to_choice(reply, request, index) for index, reply in enumerate(replies)]
            return await self._answer(http, exchange, request, spoil(exchange.fault, choices, request))

    @contextmanager
    def _exchange(self, body: Json) -> Iterator[Exchange]:
        fault = self._faults(body, len(self.requests)) if self._faults else None
        exchange = Exchange(body, time.perf_counter(), fault=fault)
        self.requests.append(exchange)
        try:
            yield exchange
        finally:
            exchange.ended = time.perf_counter()

    async def _answer(
        self, http: web.Request, exchange: Exchange, request: Request, choices: list[Choice]
    ) -> web.StreamResponse:
        body, streamed = exchange.body, bool(exchange.body.get("stream"))
        if exchange.fault == "reset" and not streamed:
            return reset(http)
        exchange.tokens = usage_of(request, choices)["total_tokens"]
        if streamed:
            return await self._stream(http, exchange, [event(chunk) for chunk in chunks(body, request, choices)])
        text = json.dumps(completion(body, request, choices))
        return cut_in_half(text) if exchange.fault == "truncated_json" else web.json_response(text=text)

    async def _stream(self, http: web.Request, exchange: Exchange, events: list[str]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        broken = exchange.fault in ("reset", "truncated_json")
        half = len(events) // 2
        sent = events[:half] if broken else [*events, "data: [DONE]\n\n"]
        for text in sent:
            await response.write(text.encode())
        if exchange.fault == "reset":
            return reset(http)
        if exchange.fault == "truncated_json":
            await response.write(events[half][:40].encode() + b"\n\n")
        await response.write_eof()
        return response

    def _refuse(self, fault: Fault, text: str | None = None) -> web.Response:
        kind, message = STATUS_ERRORS[fault]
        error = {"message": text or message, "type": kind, "param": None, "code": kind}
        headers = {"Retry-After": f"{self._retry_after:g}"} if fault == "429" else {}
        return web.json_response({"error": error}, status=int(fault), headers=headers)


async def _serve(script: Script, port: int, latency: float) -> None:
    async with OpenAIServer(script, latency=latency, port=port) as server:
        # The settings are what this command has to say.
        print(f"OPENAI_BASE_URL={server.base_url} OPENAI_API_KEY=test", flush=True)  # noqa: T201
        await asyncio.Event().wait()


def main() -> None:
    """Serve a script, or the built-in responder, until interrupted; prints the settings that point a client here."""
    parser = argparse.ArgumentParser(prog="python -m reflective_agents.testing.openai_server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0, the default, takes any that is free")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer, default 0")
    words = "what answers: a function of the request, as FILE.py:function or package.module:function"
    parser.add_argument("--script", help=words)
    options = parser.parse_args()
    try:
        script = load_named(options.script, "--script") if options.script else respond
        with suppress(KeyboardInterrupt):
            asyncio.run(_serve(script, options.port, options.latency))
    except Misuse as error:
        parser.error(str(error))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        parser.error(f"--port: {options.port} is in use; choose another one, or 0 for any that is free")


if __name__ == "__main__":
    main()
