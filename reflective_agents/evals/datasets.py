"""Reads data sets: JSON, JSONL and CSV, compressed or not, told apart by what is in them."""

import csv
import gzip
import hashlib
import io
import json
import random
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from reflective_agents.environments.base import Environment, Task, check_task
from reflective_agents.evals.format_base import Format, Row, as_row
from reflective_agents.evals.formats import FORMATS
from reflective_agents.state.errors import Misuse, problems_of, reason_of
from reflective_agents.state.forks import CachedProperty

LARGEST = 1_000_000_000
"""Bytes of a data set, unpacked."""
EXPANSION = 100
"""How many times larger a packed data set may become; text becomes ten times larger."""
MOST_NAMED = 200
"""Characters of the names of columns that an error shows at most."""
_GZIP = b"\x1f\x8b"
_SEPARATORS = (",", ";", "\t")
"""What may stand between the columns of a table: spreadsheet programs of many languages write semicolons."""
_MORE = "\x00"
"""The name of cells that have no column: no column of a text is called so."""


@dataclass(frozen=True)
class Dataset:
    """Tasks of one environment.

    Attributes:
        name: The name of the file, without its suffixes.
        environment: The name of a shipped one, "plain" for open questions, or an environment of your own.
        tasks: The tasks, each with an id of its own.
    """

    name: str
    environment: str | Environment
    tasks: list[Task]

    def __post_init__(self) -> None:
        """Refuse tasks without an id or a question.

        Raises:
            Misuse: if there are any.
        """
        for number, task in enumerate(self.tasks, 1):
            if not task.get("id"):
                raise Misuse(f"data set {self.name}, task {number}: an id is missing, such as {{'id': '{number}'}}")
            check_task(task)

    @property
    def environment_name(self) -> str:
        """The name of the environment."""
        return self.environment if isinstance(self.environment, str) else self.environment.name

    @CachedProperty
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that are the same only for the same tasks in the same order."""
        # In ASCII: a lone surrogate, which JSON allows, cannot be encoded otherwise.
        text = json.dumps([self.environment_name, self.tasks], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_dataset(path: Path, *, form: str | None = None, limit: int | None = None, seed: int | None = None) -> Dataset:
    """Read a data set.

    Args:
        path: HotpotQA's JSON, FEVER's JSONL, HumanEval's JSONL, MBPP's JSONL or JSON, 24.csv, the JSON of the
            crosswords, RAP's lists of plans, GSM8K's JSONL, or CSV or JSONL with question and answer; each may be
            compressed with gzip.
        form: One of `FORMATS`; None to go by the first row.
        limit: Read so many tasks at most, from 1.
        seed: Shuffle the tasks by this seed before the limit is applied; None for the order of the file.

    Raises:
        Misuse: if the file cannot be read; the text names the line and what is expected there.
    """
    rows = list(_rows(path))
    if not rows:
        raise Misuse(f"{path} holds no task")
    kind = _choose(path, form, rows[0])
    tasks = [_task(kind, number, *row) for number, row in enumerate(rows, 1)]
    _check_ids(tasks, [where for where, _ in rows])
    if seed is not None:
        random.Random(seed).shuffle(tasks)
    return Dataset(path.name.partition(".")[0] or path.name, kind.environment, tasks[:limit])


def _choose(path: Path, form: str | None, first: tuple[str, Row]) -> type[Format]:
    if form is not None:
        if form not in FORMATS:
            raise Misuse(f"unknown format {form!r}: there are {', '.join(FORMATS)}")
        return FORMATS[form]
    where, row = first
    for kind in FORMATS.values():
        if kind.fits(row):
            return kind
    found = f" in {_names(row)}" if row and isinstance(row, dict) else ""
    raise Misuse(
        f"{where}: no known format{found}; expected are {', '.join(FORMATS)}, such as {FORMATS['plain'].expects}"
    )


def _names(columns: Iterable[str]) -> str:
    """Return the names of columns on one line, so that what differs from the expected ones can be seen."""
    names = " ".join(", ".join(columns).split())
    return f"({names if len(names) <= MOST_NAMED else f'{names[:MOST_NAMED]}...'})"


def _task(kind: type[Format], number: int, where: str, row: Row) -> Task:
    try:
        return kind.model_validate(as_row(row)).task(number)
    except ValidationError as error:
        raise Misuse(f"{where}: {problems_of(error)[0]}; expected is {kind.expects}") from error
    except Misuse as error:
        raise Misuse(f"{where}: {error}") from error


def _check_ids(tasks: list[Task], locations: list[str]) -> None:
    first: dict[str, str] = {}
    for task, where in zip(tasks, locations, strict=True):
        if task["id"] in first:
            raise Misuse(f"{where}: the id {task['id']} is there already ({first[task['id']]}); ids must differ")
        first[task["id"]] = where


def _rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield every row with its place in words."""
    text = _text(path)
    match text.lstrip()[:1]:
        case "[":
            for number, row in enumerate(_parse(path, text), 1):
                yield f"{path}, item {number}", row
        case "{":
            for number, line in enumerate(text.split("\n"), 1):
                if line.strip():
                    yield f"{path}, line {number}", _parse(path, line, number)
        case _:
            yield from _cells(path, text)


def _parse(path: Path, text: str, line: int = 1) -> Row:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f"{path}, line {line + getattr(error, 'lineno', 1) - 1}"
        why = getattr(error, "msg", error)
        raise Misuse(f"{where}: not valid JSON ({why}); expected is one object a line, or one list") from error


def _cells(path: Path, text: str) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a table. A column without a name, such as the index that pandas writes, holds nothing."""
    csv.field_size_limit(LARGEST)
    header = re.sub('"[^"]*"', "", text.partition("\n")[0])  # a quoted name may hold anything
    separator = max(_SEPARATORS, key=header.count)
    table = csv.DictReader(
        io.StringIO(text), restkey=_MORE, restval=None, strict=True, delimiter=separator, skipinitialspace=True
    )
    while True:
        try:
            row = next(table, None)
        except csv.Error as error:
            raise Misuse(f"{path}, line {table.line_num}: no CSV ({error}); expected is a header and rows") from error
        if row is None:
            return
        where = f"{path}, line {table.line_num}"
        if _MORE in row or None in row.values():
            columns = table.fieldnames or []
            raise Misuse(f"{where}: expected are {len(columns)} columns {_names(columns)}")
        cells = {name: value for name, value in row.items() if name}
        yield where, cells


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
        if data.startswith(_GZIP):
            # A small file may unpack to terabytes.
            most = min(LARGEST, EXPANSION * len(data) + 1_000_000)
            with gzip.open(path) as packed:
                data = packed.read(most + 1)
            if len(data) > most:
                raise Misuse(f"{path} cannot be read (it unpacks to more than {most:,} bytes): unpack it yourself")
    except (OSError, EOFError, zlib.error) as error:
        raise Misuse(f"{path} cannot be read ({reason_of(error)}): name a data set") from error
    if len(data) > LARGEST:
        raise Misuse(f"{path} cannot be read (it has more than {LARGEST:,} bytes): take a part of it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Misuse(f"{path}, line {line}: no text in UTF-8") from error
