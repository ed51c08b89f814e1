"""What the tests of the environments share: the recorded runs."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Records = list[dict[str, Any]]
Load = Callable[[str], Records]


@pytest.fixture(scope="session")
def load(recorded: Path) -> Load:
    """Return a function that reads the records of a data set."""

    def read(name: str) -> Records:
        with gzip.open(recorded / f"{name}.dev.jsonl.gz", "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return read


@pytest.fixture(scope="session")
def expected(recorded: Path) -> Callable[[str], dict[str, Any]]:
    """Return a function that looks up the figures a data set is known to give."""
    manifest = json.loads((recorded / "MANIFEST.json").read_text(encoding="utf-8"))
    return lambda name: manifest[name]["expected"]["dev"]
