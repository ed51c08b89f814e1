"""In a product: however it is installed, it is whole, typed, and works beside files that are named like ours."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = ("state.py", "nodes.py", "prompts.py", "cli.py", *(f"{name}/__init__.py" for name in ("graphs", "tools")))
FOLDERS = ("models/__init__.py", "search/__init__.py", "memory/__init__.py", "evals/__init__.py")
OURS_AT_THE_TOP = ("graphs", "nodes", "prompts", "state", "tests", "bench", "notebooks")
PRODUCT = """
import json, sys
import state, nodes, prompts, cli, graphs, tools, models, search, memory
from reflective_agents.graphs.lats import graph
from reflective_agents.state.settings.lats import LatsContext

context = LatsContext(model="offline", search="local", n=2, max_expansions=1)
out = graph.invoke({"messages": [("user", "Why is reflection useful in AI?")]}, context=context)
own = [module.OWN for module in (state, nodes, prompts, cli, graphs, tools, models, search, memory)]
print(json.dumps({"answer": out["answer"], "own": own}))
"""
TYPED = """
from reflective_agents.state.context import Context
from reflective_agents.state.settings.lats import LatsContext

question = {"messages": [("user", "Why is reflection useful in AI?")]}
settings = {"model": "offline", "max_seconds": 60}
LatsContext(model="offline", search="local", max_expansions=5, temperature=0.7)
LatsContext(max_expansionz=5)  # wrong
LatsContext(max_expansions="five")  # wrong
"""
TYPED_CALLS = """
import {module}
from {settings} import {schema}
print({module}.graph.invoke(question, context={{"model": "offline", "max_seconds": 60}})["answer"])
{module}.graph.invoke(question, context=settings)
{module}.graph.invoke(question, context={{**settings, "max_cost": 0.1}})
{module}.graph.invoke(question, context={schema}(model="offline"))
{module}.graph.invoke(question, context=Context())  # wrong
{module}.builder.compile().invoke(question, context=settings)
"""

PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
OPTIONS = ["--no-deps", "--no-index", "--no-build-isolation", "--no-compile"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository of the project as it stands, with a tag `v1`."""
    folder: Path = tmp_path_factory.mktemp("checkouts") / "repository"
    left_out = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", "site", "tests", "notebooks")
    shutil.copytree(ROOT, folder, symlinks=True, ignore=left_out)
    by = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    for words in (["init", "--quiet"], ["add", "--all"], [*by, "commit", "--quiet", "-m", "All"], ["tag", "v1"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def without_links(repository: Path) -> Path:
    """Return a checkout in which text files stand in the place of symbolic links, as on Windows."""
    folder = repository.parent / "without_links"
    command = ["git", "clone", "--quiet", "-c", "core.symlinks=false", str(repository), str(folder)]
    subprocess.run(command, check=True)
    assert (folder / "reflective_agents" / "graphs").is_file()
    return folder


def packed(checkout: Path) -> Path:
    """Return the source distribution of a checkout."""
    folder = checkout.parent / "packed"
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder], cwd=checkout, check=True)
    [archive] = folder.iterdir()
    return archive


def fresh(folder: Path) -> Path:
    """Make a virtual environment that sees what is installed here, and return its `site-packages`."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    [packages] = (folder / "venv").glob("lib/*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return packages


def install(folder: Path, *source: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*PIP, "--python", folder / "venv/bin/python", "install", *OPTIONS, *source]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module", params=["wheel", "editable", "tag", "without links", "source distribution"])
def environment(
    request: pytest.FixtureRequest, repository: Path, without_links: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, set[str]]:
    """Return a fresh virtual environment with the project, and what its `site-packages` has gained."""
    folder: Path = tmp_path_factory.mktemp("environment")
    packages = fresh(folder)
    before = {path.name for path in packages.iterdir()}
    match request.param:
        case "wheel":
            done = install(folder, ROOT)
        case "editable":
            done = install(folder, "--editable", ROOT)
        case "tag":
            done = install(folder, f"git+file://{repository}@v1")
        case "without links":
            done = install(folder, without_links)
        case _:
            done = install(folder, packed(without_links))
    assert done.returncode == 0, done.stderr
    return folder / "venv/bin", {path.name for path in packages.iterdir()} - before


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """Return a folder with a product's own files."""
    for name in (*FILES, *FOLDERS):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"OWN = {name!r}\n")
    (tmp_path / "product.py").write_text(PRODUCT)
    return tmp_path


def run_in(folder: Path, *command: str | Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=True).stdout


@pytest.mark.thorough
@pytest.mark.process
def test_a_strategy_runs_beside_files_of_the_same_names(environment: tuple[Path, set[str]], product: Path) -> None:
    programs, _ = environment
    output = json.loads(run_in(product, programs / "python", "product.py"))  # importing prints nothing
    assert output["answer"]
    assert set(output["own"]) == {*FILES, *FOLDERS[:3]}
    assert "town" in run_in(product, programs / "reflect", "run", "--help")


@pytest.mark.thorough
@pytest.mark.process
@pytest.mark.parametrize("environment", ["tag"], indirect=True)
def test_the_command_answers_beside_them(environment: tuple[Path, set[str]], product: Path) -> None:
    programs, _ = environment
    output = json.loads(run_in(product, programs / "reflect", "run", "chain_of_thought", "What is 6 * 7?", "--json"))
    assert output["answer"]


def files(package: Path) -> set[Path]:
    found = (Path(folder, name) for folder, _, names in os.walk(package, followlinks=True) for name in names)
    return {path.relative_to(package) for path in found if "__pycache__" not in path.parts}


@pytest.mark.thorough
@pytest.mark.process
def test_the_whole_package_is_installed(environment: tuple[Path, set[str]], tmp_path: Path) -> None:
    programs, _ = environment
    where = run_in(tmp_path, programs / "python", "-c", "import reflective_agents as it; print(*it.__path__)").strip()
    assert files(Path(where)) == files(ROOT / "reflective_agents")


@pytest.mark.thorough
@pytest.mark.process
def test_one_name_is_installed(environment: tuple[Path, set[str]], tmp_path: Path) -> None:
    programs, gained = environment
    names = {name for name in gained if not name.endswith((".dist-info", ".pth"))}
    assert names <= {"reflective_agents"}
    find = f"from importlib.util import find_spec; print([name for name in {OURS_AT_THE_TOP} if find_spec(name)])"
    assert run_in(tmp_path, programs / "python", "-c", find).strip() == "[]"


@pytest.mark.thorough
@pytest.mark.process
def test_an_editable_install_without_links_is_refused_and_says_how_to_make_them(
    without_links: Path, tmp_path: Path
) -> None:
    packages = fresh(tmp_path)
    before = {*packages.iterdir()}
    done = install(tmp_path, "--editable", without_links)
    [command] = re.findall(r"`(git config .+?)`", done.stderr)
    assert (done.returncode, {*packages.iterdir()} - before) == (1, set())
    subprocess.run(command, cwd=without_links, shell=True, check=True)
    assert install(tmp_path, "--editable", without_links).returncode == 0
    assert run_in(tmp_path, tmp_path / "venv/bin/python", "-c", "import reflective_agents.graphs.reflection") == ""


def lines_with_errors(checker: str, folder: Path, python: Path) -> set[int]:
    """Return the lines in which a type checker finds something wrong with a product."""
    if checker == "mypy":
        options = ("--strict", "--output", "json", "--cache-dir", os.devnull, "--python-executable", python)
        reports = map(json.loads, run_checker("mypy", *options, "product.py", cwd=folder).splitlines())
        return {report["line"] for report in reports if report["severity"] == "error"}
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    report = json.loads(run_checker("basedpyright", "--outputjson", "--pythonpath", python, "product.py", cwd=folder))
    assert report["summary"]["filesAnalyzed"] == 1
    return {error["range"]["start"]["line"] + 1 for error in report["generalDiagnostics"]}


def run_checker(*command: str | Path, cwd: Path) -> str:
    return subprocess.run([sys.executable, "-m", *command], cwd=cwd, capture_output=True, text=True).stdout


@pytest.mark.thorough
@pytest.mark.process
@pytest.mark.timeout(600)
@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_type_checkers_find_what_is_wrong_with_a_product_and_nothing_else(checker: str, tmp_path: Path) -> None:
    fresh(tmp_path)
    assert install(tmp_path, ROOT).returncode == 0
    served = json.loads((ROOT / "langgraph.json").read_text())["graphs"].values()
    modules = [graph["path"].split(":")[0] for graph in served]
    schemas = [import_module(module).builder.context_schema for module in modules]
    calls = [
        TYPED_CALLS.format(module=module, settings=schema.__module__, schema=schema.__name__)
        for module, schema in zip(modules, schemas, strict=True)
    ]
    product = TYPED + "".join(calls)
    (tmp_path / "product.py").write_text(product)
    wrong = {number for number, line in enumerate(product.splitlines(), 1) if line.endswith("# wrong")}
    assert lines_with_errors(checker, tmp_path, tmp_path / "venv/bin/python") == wrong
    assert len(wrong) == 2 + len(modules)
