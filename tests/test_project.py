"""The project itself: its pins, its rooms, its files."""

import ast
import importlib
import itertools
import json
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from langgraph.graph.state import CompiledStateGraph

from reflective_agents.state.context import Context

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGE = ROOT / "reflective_agents"
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
GRAPHS: dict[str, dict[str, str]] = json.loads((ROOT / "langgraph.json").read_text())["graphs"]
PINS = sorted((ROOT / "requirements").glob("*.txt"))

# What a room may import of the project; arrows point down only.
FLOOR = {"state", "prompts", "telemetry", "text"}
MODELS = {"models", "tools", "web_search", *FLOOR}
SEARCH = {"nodes", "environments", "memory", *MODELS}
MAY_IMPORT = {
    "state": {"text"},
    "prompts": set(),
    "text": set(),
    "telemetry": {"state"},
    "tools": FLOOR,
    "web_search": {"tools", *FLOOR},
    "offline": FLOOR,
    "models": {"offline", *FLOOR},
    "memory": {"models", *FLOOR},
    "testing": {"state"},
    "environments": {"tools", "web_search", "text", "state"},
    "nodes": {"environments", "memory", *MODELS},
    "tree_search": SEARCH,
    "graphs": {"town", "tree_search", *SEARCH},
    "middleware": {"graphs", "nodes", "prompts", "state"},
    "evals": {"graphs", "environments", "models", "nodes", "state", "text", "town", "viewer"},
    "viewer": {"tree_search", "state"},
    "town": {"viewer", *SEARCH},
    "serve": {"graphs", "town", "tree_search", "viewer", *SEARCH},
    "cli": set(ROOMS),
}


def sources(folder: str) -> list[Path]:
    return sorted((PACKAGE / folder).resolve().rglob("*.py"))


def module_name(folder: str, path: Path) -> str:
    parts = path.relative_to((PACKAGE / folder).resolve()).with_suffix("").parts
    return ".".join([PACKAGE.name, folder, *parts]).removesuffix(".__init__")


def room_of(module: str) -> str:
    return module.split(".")[1]


MODULES = {module_name(folder, path): path for folder in ROOMS for path in sources(folder)}


@cache
def imports(path: Path) -> set[str]:
    """Return the modules that a file imports, wherever in it, also by name: `import_module("reflective_agents...")`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value.partition(":")[0].rstrip(".")} & MODULES.keys()
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (names & MODULES.keys()) or {node.module}
    return found


@pytest.mark.parametrize("pins", PINS, ids=lambda path: path.name)
def test_pins_name_no_address(pins: Path) -> None:
    hosts = ["pypi" + ".org", "pythonhosted" + ".org", "github" + ".com"]
    forbidden = ["://", "file:", "git+", " @ ", "\n-", *hosts]
    assert [word for word in forbidden if word in pins.read_text()] == []


@pytest.mark.parametrize("pins", PINS, ids=lambda path: path.name)
def test_every_pin_is_exact_and_has_a_hash(pins: Path) -> None:
    lines = [line for line in pins.read_text().replace("\\\n", "").splitlines() if not line.startswith("#")]
    assert len(lines) > 50
    pin = re.compile(r"[a-z0-9-]+(\[[a-z, -]+\])?==\S+( ; .+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*")
    assert [line[:60] for line in lines if not pin.fullmatch(line)] == []


def test_development_pins_contain_the_basic_ones() -> None:
    base, dev = (
        set(re.findall(r"^([a-z0-9-]+)[^=\n]*==([^\s;]+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE))
        for name in ("base.txt", "dev.txt")
    )
    assert base <= dev


def test_every_module_is_documented() -> None:
    assert [name for name, path in MODULES.items() if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_every_room_has_its_line_for_who_contributes() -> None:
    table, *_ = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## How to run what")
    rooms = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    assert set(ROOMS) <= set(re.findall(r"`(\w+)/`", " ".join(rooms)))


@pytest.mark.parametrize("folder", ["graphs", "nodes", "prompts", "state"])
def test_the_rooms_at_the_top_are_those_of_the_package(folder: str) -> None:
    assert (PACKAGE / folder).is_symlink()
    assert (PACKAGE / folder).resolve() == ROOT / folder
    assert not (ROOT / folder).is_symlink()


@pytest.mark.thorough
def test_every_library_in_use_is_declared() -> None:
    project = PYPROJECT["project"]
    requirements = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    declared = {re.split(r"[^a-z0-9-]", requirement)[0] for requirement in requirements}
    owners = {
        name: {owner.lower().replace("_", "-") for owner in found} for name, found in packages_distributions().items()
    }
    used = {name.split(".")[0] for path in MODULES.values() for name in imports(path)}
    foreign = used - {PACKAGE.name} - sys.stdlib_module_names
    missing_here = {name: {name.replace("_", "-")} for name in foreign - owners.keys()}  # they need a newer Python
    assert {name for name in foreign if not declared & (owners | missing_here)[name]} == set()


def test_every_room_has_its_place() -> None:
    assert set(ROOMS) == MAY_IMPORT.keys()


@pytest.mark.parametrize("folder", ROOMS)
def test_imports_point_down(folder: str) -> None:
    allowed = MAY_IMPORT[folder] | {folder}
    upward = {
        (str(path.relative_to(ROOT)), name)
        for path in sources(folder)
        for name in imports(path) & MODULES.keys()
        if room_of(name) not in allowed
    }
    assert upward == set()


@pytest.mark.parametrize(
    "line",
    [
        "import reflective_agents.cli.main",
        "from reflective_agents.cli import main",
        "from reflective_agents.cli.main import app",
        "import_module('reflective_agents.cli.main')",
        "import_module(f'reflective_agents.cli.{name}')",
        "load('reflective_agents.cli.main:app')",
    ],
)
def test_imports_by_name_are_seen(line: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(f"def later(name):\n    {line}\n")
    assert {room_of(name) for name in imports(tmp_path / "module.py")} == {"cli"}


def test_no_module_imports_itself_in_a_circle() -> None:
    TopologicalSorter({name: (imports(path) & MODULES.keys()) - {name} for name, path in MODULES.items()}).prepare()


@pytest.mark.parametrize("name", GRAPHS)
def test_served_graph_imports(name: str) -> None:
    module, variable = GRAPHS[name]["path"].split(":")
    graph = getattr(importlib.import_module(module), variable)
    assert isinstance(graph, CompiledStateGraph)
    assert graph.checkpointer is None, "the server brings its own and refuses to start with ours"
    assert graph.name == name
    assert GRAPHS[name]["description"]


@pytest.mark.thorough
@pytest.mark.process
def test_client_of_openai_is_loaded_beside_the_event_loop_and_not_for_an_offline_run() -> None:
    program = """
import asyncio, sys, threading
import reflective_agents.cli.main
from reflective_agents.graphs import lats
from reflective_agents.graphs.reflection import graph

class Spy:
    def find_spec(self, name, path, target=None):
        if name in ("openai", "openai.resources.chat", "langchain_openai"):
            print(name, threading.current_thread() is threading.main_thread())

async def begin():
    run = graph.astream({"messages": [("user", "?")]}, context={"model": "openai:test"}, stream_mode="custom")
    async for event in run:
        print(event["event"])
        break

sys.meta_path.insert(0, Spy())
state = lats.graph.invoke({"messages": [("user", "What is 6 * 7?")]}, context={"model": "offline", "search": "none"})
print(bool(state["answer"]), {"openai", "langchain_openai"} & sys.modules.keys())
asyncio.run(begin())
"""
    environment = {**os.environ, "OPENAI_API_KEY": "sk-planted"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    offline, *loaded, event = done.stdout.splitlines()
    assert offline == "True set()"
    assert {*loaded} == {f"{name} False" for name in ("openai", "openai.resources.chat", "langchain_openai")}
    assert event == "begin"


@pytest.mark.process
def test_make_help_lists_every_target() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^make ([a-z-]+) +\S", shown, re.MULTILINE) == targets


def test_example_environment_sets_nothing_and_names_real_settings() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == [], "an empty value would hide a real one"
    shown = dict(re.findall(r"^# ([A-Z_]+)=(.*)$", "\n".join(lines), re.MULTILINE))
    assert shown.keys() >= {"MODEL", "JUDGE_MODEL", "CRITIC_MODEL", "OPENAI_API_KEY", "TAVILY_API_KEY", "DATABASE_URL"}
    limits = {name[8:].lower(): value for name, value in shown.items() if name.startswith("REFLECT_MAX_")}
    assert limits == {name: str(Context.model_fields[name].default) for name in limits}


def test_license_is_there() -> None:
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")


def test_the_citation_names_this_version() -> None:
    cited = dict(re.findall(r"^([\w-]+): (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert cited["version"] == project["version"]
    assert cited["license"] == project["license"]


LOADED = {"dotenv", "jinja2", "markupsafe", "pydantic_settings", "yaml"}
"""What importing the graphs may load beside what LangChain's `create_agent` does: the rest is loaded when used."""


@pytest.mark.process
def test_importing_the_graphs_loads_no_more_than_this() -> None:
    program = """
import sys
from importlib import import_module
from langchain.agents import create_agent

before = set(sys.modules)
for name in sys.argv[1:]:
    import_module(name)
print(*{name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names)
"""
    graphs = [f"reflective_agents.graphs.{path.stem}" for path in (ROOT / "graphs").glob("[a-z]*.py")]
    command = [sys.executable, "-c", program, *graphs]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = {name for name in done.stdout.split() if not name.startswith("_")}
    ours = {"reflective_agents", "langchain", "langchain_core", "langgraph"}
    assert loaded - ours <= LOADED


@pytest.mark.thorough
@pytest.mark.process
def test_importing_a_strategy_makes_neither_environments_nor_settings_of_others() -> None:
    program = """
import sys
from reflective_agents.graphs import lats
from reflective_agents.state.settings.react import ReactContext

print(*{"programming", "questions", "registry"} & {name.rpartition(".")[2] for name in sys.modules})
print(ReactContext.__pydantic_complete__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "\nFalse\n"
