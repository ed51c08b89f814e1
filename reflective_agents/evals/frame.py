"""Results as a data frame: a Parquet file with one row per task, which pandas, Polars, DuckDB and R read."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from reflective_agents.evals.results import About, Attempt, Result
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.run import NOTHING_SPENT


class Exported(NamedTuple):
    """A run: its name, what was run, and what came of it."""

    name: str
    about: About
    results: Iterable[Result]


_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
_RUN = {"run": str, "strategy": str, "dataset": str, "environment": str, "model": str}
_TASK = {
    "id": str,
    "question": str,
    "gold": str,
    "answer": str,
    "extracted": str,
    "correct": bool,
    "seconds": float,
    "error": str,
}
_OUTCOME = {"status": str, "reason": str, "verified_by": str}
_USAGE = {name: type(spent) for name, spent in NOTHING_SPENT.items() if name != "seconds"}
_ATTEMPT = {"answer": str, "solved": bool, "correct": bool, "best_correct": bool}


def write_frame(file: Path, runs: Iterable[Exported]) -> None:
    """Write runs into one file, of which the column `run` tells them apart.

    The columns are the same for every run, save `score_<name>` for each measure of its environment.

    Raises:
        Misuse: if it cannot be written.
    """
    rows = list(chain.from_iterable(map(_rows, runs)))
    names = set().union(*rows)
    scores = sorted(name for name in names if name.startswith("score_"))
    flat = _RUN | _TASK | _OUTCOME | _USAGE | {"cached_calls": int} | dict.fromkeys(scores, float)
    fields = [pa.field(name, _TYPES[kind]) for name, kind in flat.items()]
    attempt = pa.struct([pa.field(name, _TYPES[kind]) for name, kind in _ATTEMPT.items()])
    table = pa.Table.from_pylist(rows, schema=pa.schema([*fields, pa.field("trials", pa.list_(attempt))]))
    try:
        pq.write_table(table, file)
    except OSError as error:
        raise Misuse(f"--export: {file} cannot be written ({error.strerror or error})") from error


def _rows(run: Exported) -> Iterator[JsonObject]:
    about = run.about
    fixed = {name: about.get(name) for name in ("strategy", "dataset", "environment")}
    model = about["settings"].get("model")
    for result in run.results:
        row: JsonObject = {"run": run.name, **fixed, "model": None if model is None else str(model)}
        row.update(result["outcome"] or {})
        row.update(result["usage"] or {})
        row.update((name, result.get(name)) for name in _TASK)  # after the usage: it has seconds of its own
        row.update((f"score_{name}", score) for name, score in result["scores"].items())
        row["cached_calls"] = result.get("cached_calls", 0)
        row = _plain(row)
        row["trials"] = list(map(_trial, result["trials"]))
        yield row


def _trial(trial: Attempt) -> JsonObject:
    return _plain({name: trial.get(name) for name in _ATTEMPT})


def _plain(row: JsonMapping) -> JsonObject:
    """Replace lone surrogates, which no file can hold."""
    plain = dict(row)
    for name, value in row.items():
        if isinstance(value, str):
            plain[name] = value.encode("utf-8", "replace").decode()
    return plain
