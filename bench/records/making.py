"""Which records come from which logs, and how a folder of them is written."""

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from bench.records import programs, questions, texts, thoughts
from bench.records.sources import SOURCES, Clones, Unusable, digest, published
from bench.replays.records import Record

Logs = list[bytes]
Made = Mapping[str, list[Record]]
Maker = Callable[[Logs], Iterable[Record]]

WHOLE, BODY = "full function", "body (append to prompt)"
_LATS = partial(programs.attempts, style=WHOLE)
_BODIES = partial(programs.attempts, style=BODY)

FORMS: dict[str, Maker] = {
    "bench_game24": thoughts.puzzles,
    "tot_game24_bfs": thoughts.beams,
    "tot_game24_cot100": thoughts.samples,
    "tot_game24_io100": thoughts.samples,
    "bench_crosswords": thoughts.crosswords,
    "tot_crosswords_dfs": thoughts.depth_first,
    "tot_crosswords_cot_io10": thoughts.boards,
    "tot_text_votes": thoughts.texts,
    "bench_hotpot_dev": questions.questions,
    "bench_fever_dev": questions.facts,
    "react_fever_gpt3": questions.claims,
    "bench_hotpot100_distractor": questions.distractors,
    "bench_humaneval": programs.tasks,
    "bench_humaneval_multipl_e": programs.tasks,
    "bench_mbpp": programs.tasks,
    "codet_humaneval": programs.sampled,
    "reflexion_humaneval_gpt4": _BODIES,
    "simple_humaneval_gpt4": _BODIES,
    "simple_humaneval_gpt4_b": _LATS,
    "reflexion_mbpp_gpt4": _LATS,
    "simple_mbpp_gpt4": _LATS,
    "lats_humaneval_gpt4_new": partial(_LATS, most=12),
    "lats_humaneval_gpt35_4tst": partial(_LATS, most=8),
    "lats_cot_humaneval_gpt35": _LATS,
    "lats_cot_mbpp_gpt35": _LATS,
}
"""Sets that come from their own logs alone, of which the tasks drawn by `published` are kept."""

TRIALS = (
    "reflexion_hotpot_react_davinci003",
    "react_hotpot_base_davinci003",
    "reflexion_hotpot_react_claude",
    "reflexion_hotpot_cotgt_gpt4",
    "cotgt_hotpot_base_gpt4",
    "reflexion_hotpot_cotgt_gpt35",
    "reflexion_hotpot_cotgt_davinci003",
    "reflexion_hotpot_cot_davinci003",
    "cot_hotpot_base_davinci003",
)
"""Attempts at the questions of `bench_hotpot100_distractor`."""

DRAWN: dict[str, Maker] = {
    "locomo": texts.conversations,
    **{name: partial(texts.paragraphs, name=name) for name in ("cmrc2018", "drcd")},
    **{f"xquad_{language}": partial(texts.paragraphs, name="xquad") for language in ("en", "zh", "th", "de")},
}
"""Sets that draw what is published in a way of their own."""

CACHE = "game24_llm_cache"


def make(name: str, clones: Clones, made: Made) -> list[Record]:
    """Make the records of a set.

    Args:
        name: The set, one of `SOURCES`.
        clones: The logs.
        made: The sets that have been made before, on which some build.

    Raises:
        Unusable: if a log is missing or another one, or a set that this one needs was not made.
    """
    if name == CACHE:
        return [*thoughts.by_numbers(_needed("tot_game24_bfs", made))]
    if name in TRIALS:
        return [*questions.trials(clones.read(SOURCES[name]), _needed("bench_hotpot100_distractor", made))]
    logs = clones.read(SOURCES[name])
    if name in DRAWN:
        return [*DRAWN[name](logs)]
    return [record for record in FORMS[name](logs) if published(record["id"])]


def _needed(name: str, made: Made) -> list[Record]:
    if name not in made:
        raise Unusable(f"{name} is needed, and was not made")
    return made[name]


def write(folder: Path, name: str, records: list[Record]) -> None:
    """Write the records of a set, compressed, the same bytes each time."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records)
    (folder / f"{name}.dev.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))


def write_manifest(folder: Path) -> None:
    """Write what is known of the sets: source, licence, model and published figures."""
    manifest = {
        name: {
            "source": f"{source['repository']} at {source['commit']}",
            "licence": source["licence"],
            "model": source["model"],
            "expected": {"dev": source["expected"]},
        }
        for name, source in SOURCES.items()
    }
    (folder / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def differs(name: str, records: list[Record]) -> str | None:
    """Say how records differ from the published ones; None if they are the same."""
    source, found = SOURCES[name], digest(records)
    if found == source["sha256"]:
        return None
    return (
        f"{len(records)} records of SHA-256 {found}, not the {source['records']} published ones of {source['sha256']}"
    )
