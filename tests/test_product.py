"""In a product: the wheel and an editable install work beside files that are named like our rooms."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
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


def tagged(folder: Path) -> Path:
    """Make a repository of the project as it stands, with a tag `v1`."""
    left_out = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", "site", "tests", "notebooks")
    shutil.copytree(ROOT, folder, symlinks=True, ignore=left_out)
    by = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    for words in (["init", "--quiet"], ["add", "--all"], [*by, "commit", "--quiet", "-m", "All"], ["tag", "v1"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module", params=["wheel", "editable", "tag"])
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """Return a fresh virtual environment with the project, and what its `site-packages` has gained."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    [packages] = (folder / "venv").glob("lib/*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    before = {path.name for path in packages.iterdir()}
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "venv/bin/python"), "--quiet"]
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    sources = {"wheel": [str(ROOT)], "editable": ["--editable", str(ROOT)]}
    source = sources[request.param] if request.param in sources else [f"git+file://{tagged(folder / 'repository')}@v1"]
    subprocess.run([*pip, "install", *options, *source], check=True)
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
    told = json.loads(run_in(product, programs / "python", "product.py"))
    assert told["answer"]
    assert set(told["own"]) == {*FILES, *FOLDERS[:3]}
    answered = json.loads(run_in(product, programs / "reflect", "run", "chain_of_thought", "What is 6 * 7?", "--json"))
    assert answered["answer"]


@pytest.mark.thorough
@pytest.mark.process
def test_one_name_is_installed(environment: tuple[Path, set[str]], tmp_path: Path) -> None:
    programs, gained = environment
    names = {name for name in gained if not name.endswith((".dist-info", ".pth"))}
    assert names <= {"reflective_agents"}
    find = f"from importlib.util import find_spec; print([name for name in {OURS_AT_THE_TOP} if find_spec(name)])"
    assert run_in(tmp_path, programs / "python", "-c", find).strip() == "[]"
    assert run_in(tmp_path, programs / "python", "-c", "import reflective_agents.graphs.reflection") == ""
