"""How real small models act in steps, for docs/small-models.md: `python -m bench.real_steps FOLDER --model qwen05`.

Strategies that act in steps stand beside a chain of thought, on questions of our own: word problems in the environment
`arithmetic`, and questions about a few made-up articles, with a search of them. The server, of OpenAI's protocol, is
the one at OPENAI_BASE_URL. Each result is a line of a file in the folder: a run that was broken off goes on with the
next question, and without --model only the table of all that is there is printed.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bench.options import parser_of
from bench.real_questions import ARTICLES, IN_TURN, PROBLEMS
from reflective_agents.environments.base import Task
from reflective_agents.environments.plain import Plain
from reflective_agents.evals.run import attempt
from reflective_agents.graphs import graph_of
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.state.settings import settings_of

LIMITS: dict[str, Any] = {"max_answer_tokens": 200, "call_timeout": 3600, "max_seconds": 36_000}
_SEARCHES: dict[str, dict[str, Any]] = {"react": {}, "best_of_n": {"n": 2}, "lats": {"n": 2, "max_expansions": 2}}
HEAD = (
    "| model, acting | at most | items | right: arithmetic | texts | without an answer | readable steps | tokens read "
    "| written |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
)


class Way(NamedTuple):
    """A strategy with its settings, and the most requests of a run."""

    strategy: str
    calls: int
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        """How a table calls it."""
        samples = self.settings.get("samples")
        return f"{self.strategy}, {samples} samples" if samples else self.strategy


WAYS = [
    Way("chain_of_thought", 1, {}),
    Way("chain_of_thought", 5, {"samples": 5}),
    *(Way(strategy, calls, _SEARCHES[strategy]) for strategy, calls in product(_SEARCHES, (5, 10))),
]


async def run_one(way: Way, task: Task, model: str, acting: str, corpus: str) -> dict[str, Any]:
    """Ask a question in one way, and return what came of it."""
    by_calculation = task in PROBLEMS
    world: dict[str, Any] = {}
    if way.strategy in _SEARCHES:
        world["acting"] = acting
    if by_calculation:
        world["environment"] = "arithmetic"
    elif way.strategy in _SEARCHES:
        world |= {"search": "local", "corpus": corpus}
    settings = settings_of(way.strategy)(model=model, max_model_calls=way.calls, **way.settings, **world, **LIMITS)
    done = await attempt(graph_of(way.strategy), "arithmetic" if by_calculation else "plain", task, settings)
    result = done.result
    return {
        "answer": result["answer"],
        "right": bool(result["correct"]) if by_calculation else holds(result["answer"], task["gold"]),
        "error": result["error"],
        "outcome": result["outcome"],
        "usage": result["usage"] or {},
    }


def holds(answer: str | None, gold: str) -> bool:
    """Tell whether the right name or number stands in an answer, without its references."""
    words = f" {Plain().normal(split_references(answer or '')[0])} "
    return f" {Plain().normal(gold)} " in words


async def measure(file: Path, model: str, name: str, acting: str, most: int, ways: list[Way]) -> None:
    """Ask each question in each way, unless it was asked before; and keep each result as it comes."""
    with TemporaryDirectory() as corpus:
        for title, text in ARTICLES.items():
            (Path(corpus) / f"{title}.md").write_text(text, "utf-8")
        for task in IN_TURN[:most]:
            for way in ways:
                by = acting if way.strategy in _SEARCHES else ""
                key = {"model": name, "acting": by, "way": way.name, "calls": way.calls, "task": task["id"]}
                if any(key.items() <= line.items() for line in lines_of(file)):
                    continue
                result = await run_one(way, task, model, acting, corpus)
                with file.open("a", encoding="utf-8") as out:
                    print(json.dumps(key | result, ensure_ascii=False), file=out)


def lines_of(file: Path) -> list[dict[str, Any]]:
    """Return the results so far."""
    return list(map(json.loads, file.read_text("utf-8").splitlines())) if file.exists() else []


def rows(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table: a step is readable if the environment, or a tool, could carry it out."""
    keys = dict.fromkeys((line["model"], line["acting"], line["way"], line["calls"]) for line in lines)
    for key in keys:
        own = [line for line in lines if key == (line["model"], line["acting"], line["way"], line["calls"])]
        right: list[str] = []
        for kind in ("arithmetic", "text"):
            some = [line for line in own if line["task"].startswith(kind)]
            right.append(f"{sum(line['right'] for line in some)} of {len(some)}" if some else "")
        spent = {name: sum(line["usage"].get(name, 0) for line in own) for name in _COUNTED}
        steps, tokens = spent["tool_calls"], [round(spent[name] / len(own)) for name in _COUNTED[2:]]
        readable = f"{steps - spent['tool_errors']} of {steps}" if steps else ""
        without = sum(not line["answer"] for line in own)
        names = " ".join(filter(None, [key[0], key[2], key[1]]))
        cells = [names, key[3], len(own), *right, without, readable, *(f"{count:,}" for count in tokens)]
        yield f"| {' | '.join(map(str, cells))} |"


_COUNTED = ("tool_calls", "tool_errors", "input_tokens", "output_tokens")


def main() -> None:
    """Ask what was not asked yet, and print the table."""
    parser = parser_of("bench.real_steps", __doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="where the results lie")
    parser.add_argument("--model", help="its name at the server; without one nothing is asked")
    parser.add_argument("--acting", default="schema", help="the way of acting, default schema")
    parser.add_argument("--items", type=int, default=16, help="so many of the questions, default all 16")
    parser.add_argument(
        "--only", nargs="*", default=[way.name for way in WAYS], help="ways, by their names in the table"
    )
    parser.add_argument("--calls", nargs="*", type=int, default=[1, 5, 10], help="most requests of a run")
    options = parser.parse_args()
    with TemporaryDirectory() as scratch:
        file = (options.folder or Path(scratch)) / "results.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        ways = [way for way in WAYS if way.name in options.only and way.calls in options.calls]
        if options.quick:
            asyncio.run(measure(file, "offline", "offline", options.acting, 1, WAYS[:3]))
        elif options.model:
            os.environ.setdefault("OPENAI_API_KEY", "none")
            model = f"openai:{options.model}"
            asyncio.run(measure(file, model, options.model, options.acting, options.items, ways))
        print(HEAD, *rows(lines_of(file)), sep="\n")


if __name__ == "__main__":
    main()
