"""CONTRIBUTING.md: its walk-throughs are carried out on a copy of the project, as they stand there."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.process
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
SECTIONS = dict(re.findall(r"^## How to (.+)\n((?:(?!## ).*\n)+)", TEXT, re.MULTILINE))
LINKED = ("graphs", "nodes", "prompts", "state")
COPIED = (*LINKED, "reflective_agents", "tests")
SHARED = [f"tests/contract/test_{name}.py" for name in ("contract", "misuse", "every_setting")]


def files_of(section: str) -> dict[str, str]:
    """Return the files that a walk-through writes, by their paths."""
    return dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", SECTIONS[section], re.DOTALL))


def lines_of(section: str) -> dict[str, object]:
    """Return what a walk-through adds to the graphs of `langgraph.json`."""
    lines = re.findall(r'```json\n(".*?)```', SECTIONS[section], re.DOTALL)
    return {name: value for line in lines for name, value in json.loads(f"{{{line}}}").items()}


WALKS = [section for section in SECTIONS if files_of(section)]
STRATEGIES = [name for section in WALKS for name in lines_of(section)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project in which all walk-throughs have been carried out."""
    copy = tmp_path_factory.mktemp("project")
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("old_data"))
    for name in ("pyproject.toml", "requirements", "README.md", "Makefile", ".env.example", "LICENSE", "bench", "docs"):
        (copy / name).symlink_to(ROOT / name)
    config = json.loads((ROOT / "langgraph.json").read_text())
    for section in WALKS:
        config["graphs"] |= lines_of(section)
        for path, text in files_of(section).items():
            assert not (copy / path).exists(), f"{path}: a walk-through adds files, and changes none"
            (copy / path).write_text(text)
    (copy / "langgraph.json").write_text(json.dumps(config))
    return copy


def run_in(project: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(project)}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=project, env=environment, capture_output=True, text=True
    )


def failures(project: Path, *arguments: str) -> dict[str, list[str]]:
    """Run tests of the copy, and return what failed in each of their files, by its path."""
    report = project / "report.xml"
    options = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", "-o", "junit_family=xunit1"]
    run_in(project, "pytest", *options, *arguments)
    failed: dict[str, list[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        problems = [problem.text or "" for tag in ("failure", "error") for problem in case.findall(tag)]
        failed.setdefault(case.get("file", ""), []).extend(problems)
    return failed


def own_tests(section: str) -> list[str]:
    return [path for path in files_of(section) if Path(path).name.startswith("test_")]


@pytest.fixture(scope="module")
def results(project: Path) -> dict[str, list[str]]:
    """Return what failed in each file of tests that was written, and of the rules of the project."""
    written = [path for section in WALKS for path in own_tests(section)]
    named = " or ".join([*(Path(path).stem for path in written), "imports_point_down", "documented", *STRATEGIES])
    return failures(project, "-k", named, *written, "tests/test_project.py")


@pytest.mark.thorough
@pytest.mark.parametrize("section", WALKS)
def test_what_a_walk_through_writes_passes_its_tests(section: str, results: dict[str, list[str]]) -> None:
    assert own_tests(section), "each walk-through shows that it works"
    assert [problem for path in own_tests(section) for problem in results[path]] == []
    assert results["tests/test_project.py"] == []


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_a_new_strategy_passes_the_shared_tests(project: Path) -> None:
    results = failures(project, "-k", " or ".join(STRATEGIES), *SHARED)
    assert results == {path: [] for path in SHARED}


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_what_the_walk_throughs_write_is_typed(project: Path) -> None:
    written = [path for section in WALKS for path in files_of(section)]
    inside = [f"reflective_agents/{path}" if path.split("/")[0] in LINKED else path for path in written]
    done = run_in(project, "mypy", "--follow-imports=silent", *inside)
    assert done.returncode == 0, done.stdout


@pytest.mark.thorough
def test_the_command_knows_a_new_strategy(project: Path) -> None:
    shown = run_in(project, "reflective_agents.cli", "strategies").stdout
    assert STRATEGIES
    assert [name for name in STRATEGIES if name not in shown] == []


def test_what_is_written_keeps_the_style(project: Path) -> None:
    written = [path for section in WALKS for path in files_of(section)]
    assert run_in(project, "ruff", "check", *written).stdout.strip() == "All checks passed!"
    done = run_in(project, "ruff", "format", "--diff", *written)
    assert done.returncode == 0, done.stdout
