"""How each strategy answers at the end of a long thread: `python -m bench.long_threads` prints the tables of
docs/long-conversations.md.

A server refuses what does not fit into its context, or cuts it without a word, as Ollama does. The model behind it is
the strategy's own script, which solves the question within a few calls.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple

from aiohttp import web
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from tenacity import wait_none

from bench.options import parser_of
from reflective_agents.models import faults
from reflective_agents.models.capabilities import forget_capabilities
from reflective_agents.models.providers import close_models
from reflective_agents.nodes.asking.kept import forget_summaries
from reflective_agents.testing.awkward import AwkwardServer, TooLong
from reflective_agents.testing.completions import parse_request
from reflective_agents.testing.script import Reply, Request, Script, ask, count_tokens, to_choice
from tests.strategies import QUESTION, STRATEGIES, Result, Strategy

LENGTHS, WINDOWS = (10, 100, 1_000), (4_096, 8_192, 16_384, 131_072)
RECORD = "The user's dog is called Rex. [1] says so."
"""What the model behind the servers keeps of the oldest turns."""
TURN = (
    "In {number} we planned a journey of {number} miles to the lake near town {number}, and nobody objected to it. " * 4
)
"""What is said in each message: 400 characters."""


class SmallServer(AwkwardServer):
    """A server that refuses a prompt that is too long, or leaves out its oldest messages and does not say so.

    Args:
        reply: The script of its model.
        context: Tokens of its context.
        cuts: Whether it cuts.
        too_long: How it refuses.
    """

    def __init__(self, reply: Script, *, context: int, cuts: bool, too_long: TooLong = "size") -> None:
        super().__init__(reply, "small_context", context=context, too_long=too_long)
        self._cuts, self.cut = cuts, 0

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        if not self._cuts:
            return await super()._complete(http)
        body = await http.json()
        with self._exchange(body) as exchange, self._meter.call(parse_request(body)) as request:
            kept = _within(request, self.context)
            self.cut += kept is not request
            choices = [to_choice(reply, kept, index) for index, reply in enumerate(ask(self._script, kept))]
            return await self._answer(http, exchange, kept, choices)


def _within(request: Request, context: int) -> Request:
    kept = list(request.messages)
    while len(kept) > 2 and sum(count_tokens(len(message.text)) for message in kept) > context:
        del kept[1]  # the instructions stay
    return request if len(kept) == len(request.messages) else replace(request, messages=tuple(kept))


def recording(script: Script) -> Script:
    """Let a model keep the record of a conversation when it is to, and else do what it does."""

    def reply(request: Request) -> Reply | Sequence[Reply]:
        return RECORD if "Write the new record" in request.last else script(request)

    return reply


def long_thread(length: int, turn: str = TURN) -> list[AnyMessage]:
    """Return a conversation of so many messages, which comes before the question."""
    kinds = (HumanMessage, AIMessage)
    return [kinds[number % 2](turn.format(number=number)) for number in range(length)]


class Met(NamedTuple):
    """A run at the end of a long thread: its result, what it told, and the server."""

    result: Result
    events: list[dict[str, Any]]
    server: SmallServer

    @property
    def compactions(self) -> list[dict[str, Any]]:
        """What was compacted."""
        return [event for event in self.events if event["event"] == "compacted"]


async def meet(
    strategy: Strategy, length: int, window: int, *, cuts: bool = False, too_long: TooLong = "size", **settings: Any
) -> Met:
    """Ask a strategy at the end of a thread; nothing is known of the server yet."""
    forget_capabilities()
    forget_summaries()
    server = SmallServer(recording(strategy.solving), context=window, cuts=cuts, too_long=too_long)
    async with server:
        os.environ["OPENAI_BASE_URL"] = server.base_url
        given = {"messages": [*long_thread(length), HumanMessage(QUESTION)]}
        context, events, result = strategy.make(model="openai:test", **settings), [], {}
        streamed = strategy.graph.astream(given, context=context, stream_mode=["custom", "values"], subgraphs=True)
        async for within, kind, data in streamed:
            if kind == "custom" and (not within or data["event"] == "prompt_cut"):
                events.append(data)
            elif kind == "values" and not within:
                result = data
    return Met(result, events, server)


async def met_by_all(length: int, window: int) -> list[Met]:
    """Ask all strategies at the end of a thread."""
    try:
        return [await meet(strategy, length, window) for strategy in STRATEGIES]
    finally:
        await close_models()


def summary_row(length: int, window: int, runs: Sequence[Met]) -> str:
    """Return a line of the first table."""
    answered = sum(bool(run.result["answer"]) for run in runs)
    calls = [sum(event["calls"] for event in run.compactions) for run in runs]
    tokens = median(run.result["usage"]["total_tokens"] for run in runs)
    compacted = sum(map(bool, calls))
    return f"| {length:,} | {window:,} | {answered} of {len(runs)} | {compacted} | {max(calls)} | {tokens:,.0f} |"


def strategy_rows(runs: Sequence[Met]) -> Iterator[str]:
    """Yield the lines of the second table."""
    for strategy, run in zip(STRATEGIES, runs, strict=True):
        usage = run.result["usage"]
        calls = sum(event["calls"] for event in run.compactions)
        yield f"| `{strategy.name}` | {usage['model_calls']} | {calls} | {usage['total_tokens']:,} |"


def main() -> None:
    """Print both tables."""
    options = parser_of("bench.long_threads", __doc__).parse_args()
    faults.WAIT = wait_none()
    os.environ["OPENAI_API_KEY"] = "test"
    print("| messages | context | answered | compacted | most calls for that | tokens of a run, median |")
    print("|--:|--:|--:|--:|--:|--:|")
    runs: list[Met] = []
    for length in LENGTHS[:1] if options.quick else LENGTHS:
        for window in WINDOWS[:1] if options.quick else WINDOWS:
            met = asyncio.run(met_by_all(length, window))
            print(summary_row(length, window, met), flush=True)
            runs = met if (length, window) == (1_000, 16_384) else runs or met
    print("\n| strategy | calls | of these to compact | tokens |\n|---|--:|--:|--:|", *strategy_rows(runs), sep="\n")


if __name__ == "__main__":
    main()
