"""Defects that once went unnoticed: each is put into a copy of the project, and tests of `make test` have to fail."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.test_contributing import COPIED, ROOT, run_in

pytestmark = [pytest.mark.process, pytest.mark.thorough]


class Defect(NamedTuple):
    """A line of a file, what it becomes, and the tests that notice it."""

    file: str
    line: str
    becomes: str
    tests: str


HYBRID, FINDING = "reflective_agents/memory/rankings/hybrid.py", "tests/memory/test_finding.py"
GUMBEL, ROUNDS = "reflective_agents/tree_search/algorithms/gumbel.py", "tests/tree_search/algorithms/test_gumbel.py"
WEIGHTS = "SESSION, SPEAKER, PERIOD = 1.2, 0.4, 0.5"
DEFECTS = {
    "memories: no session": Defect(HYBRID, WEIGHTS, "SESSION, SPEAKER, PERIOD = 0, 0.4, 0.5", FINDING),
    "memories: no speaker": Defect(HYBRID, WEIGHTS, "SESSION, SPEAKER, PERIOD = 1.2, 0, 0.5", FINDING),
    "memories: no time": Defect(HYBRID, WEIGHTS, "SESSION, SPEAKER, PERIOD = 1.2, 0.4, 0", FINDING),
    "memories: no neighbours": Defect(HYBRID, "NEAR = 0.7", "NEAR = 0.0", FINDING),
    "memories: no neighbours by words": Defect(HYBRID, "+= NEAR * normalise(near)", "+= 0", FINDING),
    "memories: no neighbours by meaning": Defect(HYBRID, "NEAR * normalise(line.around(cosines))", "0", FINDING),
    "memories: no substance": Defect(HYBRID, "SUBSTANCE = 0.4", "SUBSTANCE = 0.0", FINDING),
    "Gumbel: below the root by the policy alone": Defect(
        GUMBEL, "_visits(stats[child]) / (1 + tried) - policy[child]", "-policy[child]", ROUNDS
    ),
    "Gumbel: no sample counts": Defect(GUMBEL, 'log(get_extra(node, "samples", 1))', "0.0", ROUNDS),
    "Gumbel: no values below the root": Defect(
        GUMBEL, "{node: _logit(stats[node]) + _sigma(value(stats[node]), most)", "{node: _logit(stats[node])", ROUNDS
    ),
    "reflection: a score of 0 is accepted": Defect(
        "graphs/reflection.py",
        "accepts(critique.accept, critique.score)",
        "critique.accept",
        "tests/graphs/test_reflection.py",
    ),
    "reflexion: a problem is told twice": Defect(
        "graphs/reflexion.py",
        'problems = [*last["problems"], ',
        'problems = [*last["problems"], *last["problems"], ',
        "tests/graphs/test_reflexion.py",
    ),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project."""
    copy = tmp_path_factory.mktemp("defects")
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("old_data"))
    for name in ("pyproject.toml", "bench"):
        (copy / name).symlink_to(ROOT / name)
    return copy


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_noticed(name: str, project: Path) -> None:
    defect = DEFECTS[name]
    file = project / defect.file
    sound = file.read_text()
    assert sound.count(defect.line) == 1
    file.write_text(sound.replace(defect.line, defect.becomes))
    try:
        ran = run_in(project, "pytest", "-qx", "-p", "no:cacheprovider", "-m", "not thorough", defect.tests)
    finally:
        file.write_text(sound)
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stdout + ran.stderr
    assert "AssertionError" in ran.stdout, ran.stdout
