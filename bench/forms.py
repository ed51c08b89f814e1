"""Which forms a real small model fills in at the first try: `python -m bench.forms`, for docs/small-models.md.

The strategies run against a server whose model follows their scripts, but for one thing: the first try at each form is
SmolLM2's, with the schema in the request. The schemas and the checks are those of every run. A try that does not fit is
told to the model as always, and the script fills in the form then, so that the run goes on to the next one.
"""

import asyncio
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Collection

import httpx
from aiohttp import web

from bench.options import parser_of
from bench.smollm import INSTALL, serving_smollm, weights
from reflective_agents.models.providers import close_models
from reflective_agents.testing.completions import Json
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Script
from tests.strategies import STRATEGIES
from tests.strategies.base import Strategy

TRIES = 10
MAX_ANSWER_TOKENS = 400
MOST_RUNS = 10
QUESTIONS = (
    "Why does reflection help? [alpha]",
    "What is the capital of Italy? [beta]",
    "Anna reads 15 pages a day. How many pages does she read in 6 days? [gamma]",
    "Explain in two sentences how a rainbow forms. [delta]",
)
_AGAIN = "That does not fit: "


class Tally:
    """How many first tries there were at each form, and what did not fit."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.tries: Counter[str] = Counter()
        self.faults: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def accepted(self, form: str) -> float:
        """Return the share of the tries that fitted."""
        return 1 - self.faults[form].total() / self.tries[form]

    def row(self, form: str) -> str:
        """Return a line of the table."""
        why = "; ".join(f"{fault} ({count})" for fault, count in self.faults[form].most_common(3))
        return f"| `{form}` | {self.tries[form]} | {self.accepted(form):.0%} | {why} |"


class FirstTry(OpenAIServer):
    """Passes the first try at each form on to a real model, and answers all else by the script."""

    def __init__(self, reply: Script, real: str, tally: Tally) -> None:
        super().__init__(reply)
        self._real, self._tally = real, tally

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        body: Json = await http.json()
        form = (body.get("response_format") or {}).get("json_schema", {}).get("name")
        last = str(body["messages"][-1]["content"])
        if form and last.startswith(_AGAIN):
            problem = last.removeprefix(_AGAIN).partition("\n")[0]
            self._tally.faults[form][problem[:80]] += 1
            print(f"{form}: {problem}", file=sys.stderr, flush=True)
        elif form and self._tally.tries[form] < self._tally.most:
            self._tally.tries[form] += 1
            async with httpx.AsyncClient(timeout=300) as client:
                reply = await client.post(f"{self._real}/chat/completions", json=body)
            return web.json_response(reply.json(), status=reply.status_code)
        return await super()._complete(http)


async def fill_in(strategy: Strategy, question: str, real: str, tally: Tally) -> None:
    """Run a strategy once, with first tries by the real model."""
    async with FirstTry(strategy.solving, real, tally) as server:
        os.environ["OPENAI_BASE_URL"] = server.base_url
        settings = {"structured": "json_schema", "max_answer_tokens": MAX_ANSWER_TOKENS, "call_timeout": 300}
        context = strategy.make(model="openai:smollm2", max_seconds=3_000, **settings)
        await strategy.graph.ainvoke({"messages": [("user", question)]}, context=context)
    await close_models()


async def measure(real: str, most: int, names: Collection[str]) -> Tally:
    """Run strategies until each form they ask for was tried often enough, or they were run often enough."""
    tally = Tally(most)
    for strategy in (strategy for strategy in STRATEGIES if strategy.name in names or not names):
        for number in range(MOST_RUNS):
            before = tally.tries.total()
            print(strategy.name, dict(tally.tries), file=sys.stderr, flush=True)
            await fill_in(strategy, QUESTIONS[number % len(QUESTIONS)], real, tally)
            if tally.tries.total() == before:
                break
    return tally


def main() -> None:
    """Print the share of the first tries that fitted, form by form, and what did not fit."""
    parser = parser_of("bench.forms", __doc__)
    parser.add_argument("--tries", type=int, default=TRIES, help=f"first tries at each form, default {TRIES}")
    parser.add_argument("strategies", nargs="*", help="the strategies to run, by name; default: all of them")
    options = parser.parse_args()
    if options.quick:
        options.tries, options.strategies = 1, ["reflection"]
    path = weights()
    if path is None:
        parser.error(INSTALL)
    os.environ["OPENAI_API_KEY"] = "test"
    with serving_smollm(path) as real:
        tally = asyncio.run(measure(real, options.tries, options.strategies))
    print("| form | tries | accepted | what did not fit |\n|---|---|---|---|")
    print(*(tally.row(form) for form in sorted(tally.tries)), sep="\n")


if __name__ == "__main__":
    main()
