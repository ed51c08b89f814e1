"""What experience is worth with a real small model, for docs/memory.md.

    python -m bench.real_experience FOLDER --model qwen15

A stream of 24 questions of three kinds, in an order that mixes them. Each kind has a rule for the form of its answers,
which no question says: only a verifier knows it, and says it when an answer breaks it. Who remembers that needs one
draft. The server, of OpenAI's protocol, is the one at OPENAI_BASE_URL. Each result is a line of a file in the folder,
and the items lie beside it: a stream that was broken off goes on, and without --model only the table is printed.
"""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from bench.options import parser_of
from bench.real_steps import LIMITS, lines_of
from reflective_agents.graphs import builder_of

HEAD = (
    "| model | experience | kind | first draft accepted, first half | second half | accepted in the end | calls "
    "| tokens |\n|---|---|---|--:|--:|--:|--:|--:|"
)


class Kind(NamedTuple):
    """A kind of question: the form that its answers must have, and how that is said where one has another."""

    form: str
    rule: str
    questions: list[str]


KINDS = {
    "durations": Kind(
        r"\d+ minutes\.?",
        "Give a duration in minutes alone, without a sentence around it, such as: 12 minutes",
        [
            "A ferry leaves at 9:40 and arrives at 11:05. How long does it take?",
            "A film begins at 20:15 and ends at 22:00. How long is it?",
            "Dough rests from 7:20 to 8:35. How long does it rest?",
            "A lesson takes an hour and a half. How long are two lessons?",
            "The kiln heats from 13:10 to 15:30. How long does it heat?",
            "A tram needs a quarter of an hour a round. How long do six rounds take?",
            "A nap lasts from 12:55 to 13:40. How long is it?",
            "A choir rehearses for two hours and ten minutes. How long does it rehearse?",
        ],
    ),
    "dates": Kind(
        r"\d{4}-\d\d-\d\d\.?",
        "Write a date in digits, year first, with hyphens and nothing around it, such as: 1950-01-31",
        [
            "The library opened on the fourth of May 1987. When did it open?",
            "The bridge was closed on 3 November 2011, for good. When was that?",
            "The orchard was planted on the last day of March 1964. When was it planted?",
            "The mill burned down on Christmas Day 1902. When did it burn down?",
            "Ida was born on 9 July 1978. When is that?",
            "The clock was set going on New Year's Day 1899. When was that?",
            "The club was founded on the first of August 1933. When was it founded?",
            "The well was dug on 22 February 1859. When was it dug?",
        ],
    ),
    "amounts": Kind(
        r"EUR \d+\.\d\d",
        "Write an amount of money as EUR with two decimals and nothing around it, such as: EUR 7.50",
        [
            "Three pens cost 2.40 euros together. What does a pen cost?",
            "A ticket costs 4 euros and a half. What do two tickets cost?",
            "Ben pays with 20 euros for a book at 12.30 euros. How much does he get back?",
            "Five apples cost 3 euros. What does an apple cost?",
            "A room costs 61 euros a night. What do three nights cost?",
            "Two coffees at 2.80 euros: what do they cost together?",
            "A jar of honey costs 9 euros, less a third. What is to be paid?",
            "Four people share a bill of 50 euros. What does each pay?",
        ],
    ),
}
EACH = 8
"""Questions of each kind."""
STREAM = [(name, kind.questions[turn]) for turn in range(EACH) for name, kind in KINDS.items()]


def verifier(kind: Kind) -> Callable[[str, str], str | None]:
    """Return what accepts an answer of the right form, and else says the rule."""
    return lambda request, answer: None if re.fullmatch(kind.form, answer.strip()) else kind.rule


async def run_one(kind: str, question: str, model: str, experience: str | None, store: BaseStore) -> dict[str, Any]:
    """Ask a question, and return what came of it."""
    context: Any = {
        "model": model,
        "critic": "checks",
        "max_rounds": 3,
        "verifiers": [verifier(KINDS[kind])],
        "experience": experience,
        **LIMITS,
    }
    graph = builder_of("reflection").compile(store=store)
    result = await graph.ainvoke({"messages": [("user", question)]}, context=context)
    solved = result["outcome"]["status"] == "solved"
    return {
        "answer": result["answer"],
        "drafts": len(result["drafts"]),
        "first": solved and len(result["drafts"]) == 1,
        "solved": solved,
        "items": result.get("experience"),
        "usage": result["usage"],
    }


async def measure(folder: Path, model: str, name: str, most: int) -> None:
    """Ask each question without experience and with it, in turn, unless it was asked before."""
    file = folder / "results.jsonl"
    async with AsyncSqliteStore.from_conn_string(str(folder / "items.sqlite")) as store:
        await store.setup()
        for kind, question in STREAM[:most]:
            for experience in (None, f"stream-{name}"):
                key = {"model": name, "experience": bool(experience), "kind": kind, "question": question}
                if any(key.items() <= line.items() for line in lines_of(file)):
                    continue
                result = await run_one(kind, question, model, experience, store)
                with file.open("a", encoding="utf-8") as out:
                    print(json.dumps(key | result, ensure_ascii=False), file=out)


def rows(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table."""
    for model, experience in dict.fromkeys((line["model"], line["experience"]) for line in lines):
        own = [line for line in lines if (line["model"], line["experience"]) == (model, experience)]
        for kind in (*KINDS, "all"):
            some = [line for line in own if kind in (line["kind"], "all")]
            if not some:
                continue
            half = len(some) - len(some) // 2
            firsts = [_share(some[:half], "first"), _share(some[half:], "first")]
            calls = fmean(line["usage"]["model_calls"] for line in some)
            tokens = fmean(line["usage"]["total_tokens"] for line in some)
            cells = [model, "with" if experience else "without", kind, *firsts, _share(some, "solved")]
            yield f"| {' | '.join(cells)} | {calls:.1f} | {tokens:,.0f} |"


def _share(lines: list[dict[str, Any]], name: str) -> str:
    return f"{sum(line[name] for line in lines)} of {len(lines)}"


def main() -> None:
    """Ask what was not asked yet, and print the table."""
    parser = parser_of("bench.real_experience", __doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="where the results and the items lie")
    parser.add_argument("--model", help="its name at the server; without one nothing is asked")
    parser.add_argument("--items", type=int, default=len(STREAM), help="so many of the questions, default all")
    options = parser.parse_args()
    with TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if options.quick:
            asyncio.run(measure(folder, "offline", "offline", 3))
        elif options.model:
            os.environ.setdefault("OPENAI_API_KEY", "none")
            asyncio.run(measure(folder, f"openai:{options.model}", options.model, options.items))
        print(HEAD, *rows(lines_of(folder / "results.jsonl")), sep="\n")


if __name__ == "__main__":
    main()
