"""Every script of `bench` runs: each in its quick form, on the way that its figures are made."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.game24.its_hub import PEER
from bench.peers.environments import folder
from bench.smollm import INSTALL, weights
from tests.support.forking import RunModule, forking
from tests.support.needs import SERVE_PYTHON
from tests.test_attack import Refusing

ROOT = Path(__file__).parents[1]
SCRIPTS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__"): path.read_text("utf-8")
    for path in sorted((ROOT / "bench").rglob("*.py"))
    if not path.is_relative_to(ROOT / "bench" / "peers" / "drivers")  # run by those that need them
}
SCRIPTS = {name: text for name, text in SCRIPTS.items() if '__name__ == "__main__"' in text}
PREPARED = (folder(PEER) / "complete").exists()
MARKS = {
    "bench.faults": [
        pytest.mark.aegra,
        pytest.mark.timeout(900),
        pytest.mark.skipif(not SERVE_PYTHON.exists(), reason="make .venv-serve/stamp"),
    ],
    "bench.forms": [pytest.mark.realmodel, pytest.mark.skipif(weights() is None, reason=INSTALL)],
    "bench.game24.its_hub": [pytest.mark.skipif(not PREPARED, reason="python -m bench.game24.its_hub installs it")],
    "bench.mixed": [
        pytest.mark.aegra,
        pytest.mark.timeout(600),
        pytest.mark.skipif(not SERVE_PYTHON.exists(), reason="make .venv-serve/stamp"),
    ],
    "bench.programs": [pytest.mark.sandbox],
    "bench.serving": [
        pytest.mark.aegra,
        pytest.mark.skipif(not SERVE_PYTHON.exists(), reason="make .venv-serve/stamp"),
    ],
}
RECORDED = re.compile(r"\b(RECORDED|recorded_games)\b")


@pytest.fixture
def arguments() -> Iterator[dict[str, list[str]]]:
    """What a script has to be told beside --quick."""
    with Refusing().threaded() as server:
        yield {"bench.attack": ["--url", server.address]}


@pytest.fixture(scope="module")
def run_module() -> Iterator[RunModule]:
    """Return what runs a script, without importing all libraries anew."""
    with forking(ROOT) as run:
        yield run


@pytest.mark.thorough
@pytest.mark.process
@pytest.mark.wire
@pytest.mark.timeout(300)
@pytest.mark.parametrize("script", [pytest.param(name, marks=MARKS.get(name, [])) for name in SCRIPTS])
def test_a_script_runs(
    script: str, arguments: dict[str, list[str]], run_module: RunModule, request: pytest.FixtureRequest
) -> None:
    if RECORDED.search(SCRIPTS[script]):
        request.getfixturevalue("recorded")
    done = run_module(script, *arguments.get(script, []), "--quick")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
