"""Libraries that come with an extra: without them the error names it, and the graphs can be imported all the same."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from reflective_agents.state.errors import Misuse
from reflective_agents.state.extras import need

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
OPTIONAL = """
    aiosqlite bs4 filelock langgraph.cache.sqlite langgraph.checkpoint.postgres langgraph.checkpoint.sqlite markdown_it
    numkong numpy platformdirs psycopg pypdf rich tavily typer
""".split()  # noqa: SIM905 - the words are easier to read
"""What the extras of the command, of documents, memories, Postgres and Tavily bring."""
MOST = 50
"""Packages of an install without extras."""


def run(program: str) -> str:
    """Run a program in which what the extras bring is not installed; return its output."""
    hidden = f"import sys\nsys.modules.update(dict.fromkeys({OPTIONAL}))\n"
    command = [sys.executable, "-c", hidden + program]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_missing_libraries_are_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    need("json", extra="evals", purpose="this")
    for name in ("matplotlib", "scipy"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(Misuse, match=r"matplotlib, scipy: pip install 'reflective-agents\[evals\]'"):
        need("matplotlib", "json", "scipy", extra="evals", purpose="this")


def test_all_has_every_extra() -> None:
    [everything] = EXTRAS["all"]
    assert everything == f"reflective-agents[{','.join(sorted(EXTRAS.keys() - {'all'}))}]"


def test_an_install_without_extras_has_few_packages() -> None:
    packages: set[str] = set()
    more = {Requirement(line).name for line in PROJECT["dependencies"]}
    while more:
        packages |= more
        required = [Requirement(line) for name in more for line in distribution(name).requires or []]
        more = {each.name.lower().replace("_", "-") for each in required if applies(each)} - packages
    assert not packages & {"numpy", "rich", "typer", "pypdf", "psycopg", "tavily-python"}
    assert len(packages) + 1 <= MOST  # the project itself is one, too


def applies(requirement: Requirement) -> bool:
    """Whether a package needs another here, without extras."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


@pytest.mark.thorough
@pytest.mark.process
def test_graphs_can_be_imported_without_any_extra() -> None:
    names = sorted(f"reflective_agents.graphs.{path.stem}" for path in (ROOT / "graphs").glob("[a-z]*.py"))
    assert run(f"from importlib import import_module\nprint(len([*map(import_module, {names})]))") == f"{len(names)}\n"


@pytest.mark.thorough
@pytest.mark.process
def test_a_run_names_the_extra_it_lacks() -> None:
    contexts = {
        "documents": {"model": "offline", "search": "none"},
        "tavily": {"model": "openai:any", "search": "tavily"},
        "memory": {"model": "openai:any", "search": "none", "experience": "here"},
    }
    program = f"""
import os
os.environ |= {{"OPENAI_API_KEY": "sk-planted", "TAVILY_API_KEY": "planted"}}
from reflective_agents.graphs.reflexion import graph
from reflective_agents.state.errors import Misuse
for context in {[*contexts.values()]}:
    try:
        graph.invoke({{"messages": [("user", "?")]}}, context=context)
    except Misuse as error:
        print(" ".join(str(error).split()))
"""
    for extra, problem in zip(contexts, run(program).splitlines(), strict=True):
        assert f"pip install 'reflective-agents[{extra}]'" in problem


@pytest.mark.process
def test_the_command_names_its_extra() -> None:
    program = "import sys\nsys.stderr = sys.stdout\nfrom reflective_agents.cli.__main__ import main\nprint(main())"
    line, code = run(program).splitlines()
    assert "pip install 'reflective-agents[cli]'" in line
    assert code == "2"


@pytest.mark.thorough
@pytest.mark.process
def test_commands_on_memories_name_the_extra_they_lack(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text("")
    file = str(tmp_path / "items.jsonl")
    of_memory = [["list"], ["profile"], ["show", "1"], ["forget", "--all"], ["edit", "1", "So."], ["export"]]
    of_experience = [["list", "x"], ["show", "x", "1"], ["edit", "x", "1", "--title", "So"], ["forget", "x", "--all"]]
    commands = [["memory", *words] for words in [*of_memory, ["import", file]]]
    commands += [["experience", *words] for words in [*of_experience, ["export", "x"]]]
    commands += [["experience", name, "x", file] for name in ("import", "merge")]
    program = f"""
import sys
sys.modules.update(dict.fromkeys(["numpy", "numkong"]))
from reflective_agents.cli.main import main
sys.stderr = sys.stdout
for words in {commands}:
    print(main(words))
"""
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "REFLECT_HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    lines = done.stdout.splitlines()
    assert lines[1::2] == ["2"] * len(commands)
    assert all("pip install 'reflective-agents[memory]'" in line for line in lines[::2])
