"""How real small models choose and merge answers, for docs/small-models.md.

    python -m bench.real_choice FOLDER --model qwen05

Sixteen word problems, each in four ways of at most 8 calls: one sample, the most frequent answer of several, the best
by pairs, and answers merged by aggregation. The server, of OpenAI's protocol, is the one at OPENAI_BASE_URL. Each
result is a line of a file in the folder: a run that was broken off goes on with the next question, and without --model
only the table of all that is there is printed.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bench.chance import Measured
from bench.options import parser_of
from bench.real_questions import MORE_PROBLEMS, PROBLEMS
from bench.real_steps import LIMITS, lines_of
from reflective_agents.environments.base import Task
from reflective_agents.evals.run import attempt
from reflective_agents.graphs import graph_of
from reflective_agents.state.settings import settings_of

CALLS = 8
HEAD = (
    "| model, way | calls | items | right | its interval (99%) | tokens read | written |\n|---|--:|--:|--:|---|--:|--:|"
)


class Way(NamedTuple):
    """A strategy with its settings, and the calls that it takes."""

    name: str
    strategy: str
    settings: dict[str, Any]
    calls: int


WAYS = [
    Way("one sample", "chain_of_thought", {}, 1),
    Way("most frequent of 8", "chain_of_thought", {"samples": CALLS}, CALLS),
    Way(
        "4 samples, by 2 pairs",
        "aggregation",
        {"population": 4, "rounds": 1, "choose": "pairs", "comparisons": 2},
        CALLS,
    ),
    Way(
        "RSA: 4 samples, one made of all",
        "aggregation",
        {"population": 4, "group": 4, "rounds": 2, "last": "single"},
        5,
    ),
]


async def run_one(way: Way, task: Task, model: str) -> dict[str, Any]:
    """Ask a question in one way, and return what came of it. No way knows what is right.

    Raises:
        SystemExit: The server answered nothing: that would be no figure of the model's.
    """
    given = {"search": "none", **way.settings, **LIMITS}
    settings = settings_of(way.strategy)(model=model, max_model_calls=CALLS, **given)
    result = (await attempt(graph_of(way.strategy), "arithmetic", task, settings)).result
    usage, outcome = result["usage"], result["outcome"]
    if not usage or not usage["total_tokens"]:
        raise SystemExit(f"The model answered nothing: {result['error'] or (outcome and outcome['reason'])}")
    return {
        "answer": result["answer"],
        "right": bool(result["correct"]),
        "error": result["error"],
        "outcome": outcome,
        "usage": usage,
    }


async def measure(file: Path, model: str, name: str, tasks: list[Task]) -> None:
    """Ask each question in each way, unless it was asked before; and keep each result as it comes."""
    for task in tasks:
        for way in WAYS:
            key = {"model": name, "way": way.name, "task": task["id"]}
            if any(key.items() <= line.items() for line in lines_of(file)):
                continue
            result = await run_one(way, task, model)
            with file.open("a", encoding="utf-8") as out:
                print(json.dumps(key | result, ensure_ascii=False), file=out)


def rows(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table: of each way, over the questions that were asked in all of them."""
    for name in dict.fromkeys(line["model"] for line in lines):
        lines_of_way: dict[str, list[dict[str, Any]]] = {way.name: [] for way in WAYS}
        for line in lines:
            if line["model"] == name and line["way"] in lines_of_way:
                lines_of_way[line["way"]].append(line)
        tasks = set.intersection(*({line["task"] for line in own} for own in lines_of_way.values()))
        for way in WAYS:
            own = [line for line in lines_of_way[way.name] if line["task"] in tasks]
            right = Measured(sum(line["right"] for line in own), len(own))
            low, high = right.interval
            usages = [line["usage"] or {} for line in own]
            tokens = [sum(usage.get(kind, 0) for usage in usages) // max(len(own), 1) for kind in _TOKENS]
            cells = [f"{name} {way.name}", way.calls, len(own), right.found, f"{low:.2f} to {high:.2f}", *tokens]
            yield f"| {' | '.join(map(str, cells))} |"


_TOKENS = ("input_tokens", "output_tokens")


def main() -> None:
    """Ask what was not asked yet, and print the table."""
    parser = parser_of("bench.real_choice", __doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="where the results lie")
    parser.add_argument("--model", help="its name at the server; without one nothing is asked")
    options = parser.parse_args()
    tasks = [*PROBLEMS, *MORE_PROBLEMS]
    with TemporaryDirectory() as scratch:
        file = (options.folder or Path(scratch)) / "choice.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        if options.quick:
            asyncio.run(measure(file, "offline", "offline", tasks[:1]))
        elif options.model:
            os.environ.setdefault("OPENAI_API_KEY", "none")
            asyncio.run(measure(file, f"openai:{options.model}", options.model, tasks))
        print(HEAD, *rows(lines_of(file)), sep="\n")


if __name__ == "__main__":
    main()
