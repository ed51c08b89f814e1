"""What the check of an answer against its sources finds, and what it takes for an error: `python -m bench.support`.

Sentences that their passage supports, and the same ones altered (`bench.claims`), as answers that cite it. Code alone
flags a sentence; a checker, whose forms come from a server or from somebody who fills them in by hand, refuses it.

    python -m bench.support                                        code alone
    python -m bench.support --sample 60 --open > prompts.jsonl     the prompts, to fill in the forms by hand
    python -m bench.support --replies forms.jsonl --url http://127.0.0.1:8080/v1     a server, which can be resumed
"""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
from langchain_core.messages import convert_to_openai_messages
from pydantic import ValidationError

from bench.claims import ALTERED, LANGUAGES, SUPPORTED, Claim, claims, read_pages, thoughts
from bench.locomo import rows
from bench.options import parser_of
from bench.recorded import RECORDED
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.evidence.support import (
    Sentence,
    SupportCheck,
    assess,
    read_sentences,
    support_prompt,
    unsupported,
)

MAX_TOKENS = 600
"""Most tokens of a form: that of one long sentence with the words that support it."""
SECONDS = 600
"""Longest wait for one form."""


def passages(claim: Claim) -> dict[str, str]:
    """Return the passages shown with a claim by the marks that cite them."""
    return {str(number): text for number, text in enumerate(claim.passages, 1)}


def sentences(claim: Claim) -> list[Sentence]:
    """Return the sentences of a claim as the check reads them."""
    return read_sentences(claim.answer, passages(claim))


def is_flagged(claim: Claim) -> bool:
    """Tell whether code finds something in a claim that the passage it cites does not hold."""
    return any(sentence.flags for sentence in sentences(claim))


def is_refused(claim: Claim, form: str) -> bool:
    """Tell whether a claim is not fully supported by what a checker wrote; what does not fit the form is a refusal."""
    try:
        check = SupportCheck.model_validate_json(form)
    except ValidationError:
        return True
    support = assess(sentences(claim), check, passages(claim))
    return bool(unsupported(support)) or all(each["support"] == "no_fact" for each in support["sentences"])


def prompt(claim: Claim) -> list[dict[str, Any]]:
    """Return the messages that a checker of a claim is sent."""
    made = support_prompt(quoted("request", claim.question), sentences(claim), passages(claim))
    messages: list[dict[str, Any]] = convert_to_openai_messages(made)
    return messages


def key(claim: Claim) -> str:
    """Return a name of a claim that does not tell what it is."""
    return hashlib.sha256(repr((claim.question, claim.answer, claim.passages)).encode()).hexdigest()[:12]


def sample(made: Sequence[Claim], count: int) -> list[Claim]:
    """Draw claims with a fixed seed: half of them supported, all kinds and languages alike, no question twice."""
    drawn = {claim.question: claim for claim in random.Random(60).sample(made, len(made))}.values()
    seen: Counter[tuple[str, str]] = Counter()

    def turn(claim: Claim) -> int:
        seen[claim.kind, claim.language] += 1
        return seen[claim.kind, claim.language]

    by_turn = sorted(drawn, key=turn)
    supported = [claim for claim in by_turn if claim.supported]
    altered = [claim for claim in by_turn if not claim.supported]
    return list(chain.from_iterable(zip(supported, altered, strict=False)))[:count]


def fill_in(made: Iterable[Claim], url: str, replies: Path) -> None:
    """Ask a server for the forms that a file lacks, one after the other, and append each at once."""
    known = read_replies(replies)
    schema = {"name": SupportCheck.__name__, "schema": SupportCheck.model_json_schema(), "strict": True}
    for claim in made:
        if key(claim) not in known:
            body = {"model": "", "messages": prompt(claim), "temperature": 0, "max_tokens": MAX_TOKENS}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
            answer = httpx.post(f"{url}/chat/completions", json=body, timeout=SECONDS).raise_for_status().json()
            line = {"id": key(claim), "form": answer["choices"][0]["message"]["content"]}
            with replies.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read_replies(path: Path) -> dict[str, str]:
    """Read the forms of a file, as JSON, by the keys of their claims."""
    return {row["id"]: row["form"] for row in rows(path)} if path.exists() else {}


def table(title: str, made: Sequence[Claim], finds: Callable[[Claim], bool]) -> Iterator[str]:
    """Yield the rows of a table: how many sentences of each kind and language something is found in."""
    total = Counter((claim.kind, claim.language) for claim in made)
    count = Counter((claim.kind, claim.language) for claim in made if finds(claim))
    yield f"| {title} | " + " | ".join(LANGUAGES.values()) + " | all | of |"
    yield "|---|" + "--:|" * (len(LANGUAGES) + 2)
    kinds = {claim.kind for claim in made}
    for kind in (*SUPPORTED, *ALTERED):
        if kind in kinds:
            cells = [count[kind, language] if total[kind, language] else "" for language in LANGUAGES]
            found = sum(count[kind, language] for language in LANGUAGES)
            of = sum(total[kind, language] for language in LANGUAGES)
            yield f"| {SUPPORTED.get(kind, kind)} | " + " | ".join(map(str, [*cells, found, of])) + " |"


def main() -> None:
    """Print what code alone finds, and then what a checker does."""
    parser = parser_of("bench.support", __doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=RECORDED)
    parser.add_argument("--sample", type=int, help="take so many of the claims, half of them supported")
    parser.add_argument("--open", action="store_true", help="print the prompts as JSON lines, and nothing else")
    parser.add_argument("--replies", type=Path, help="a file with the forms of a checker")
    parser.add_argument("--url", help="a server of a model, which fills in what the file lacks")
    options = parser.parse_args()
    made = [*claims(read_pages(options.folder), 2 if options.quick else 10)]
    made = sample(made, options.sample) if options.sample else [*made, *thoughts(options.folder)]
    if options.open:
        for claim in sorted(made, key=key):
            print(json.dumps({"id": key(claim), "messages": prompt(claim)}, ensure_ascii=False))
        return
    print(*table("flagged by code", made, is_flagged), sep="\n")
    if options.url:
        fill_in(made, options.url, options.replies)
    if options.replies:
        forms = read_replies(options.replies)
        checked = [claim for claim in made if key(claim) in forms]
        print("", *table("refused", checked, lambda claim: is_refused(claim, forms[key(claim)])), sep="\n")


if __name__ == "__main__":
    main()
