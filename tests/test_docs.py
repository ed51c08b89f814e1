"""The pages under docs: their examples run and print what stands below them, and their links lead somewhere."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ROOMS = ("reflective_agents", "graphs", "nodes", "prompts", "state")
PAGES = sorted(DOCS.glob("*.md"))
APART = ("observability.md", "serving.md")
"""Pages whose examples have tests of their own, because they change the whole process or ask a server."""
SERVER = "http://localhost:2024"
"""Named in single examples that ask a server: `tests/studio/test_remote.py` runs them."""
EXAMPLE = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)
EXAMPLES = [
    pytest.param(*found, id=f"{page.stem}-{number}", marks=[pytest.mark.wire] if "Server(" in found[0] else [])
    for page in PAGES
    if page.name not in APART
    for number, found in enumerate(EXAMPLE.findall(page.read_text()))
    if SERVER not in found[0]
]


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")  # by langgraph-supervisor
@pytest.mark.parametrize(("example", "printed"), EXAMPLES)
def test_every_python_example_runs_and_prints_what_stands_below_it(
    example: str, printed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MODEL", "offline")
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "example", "exec"), {"__name__": "example"})
    told = capsys.readouterr().out
    assert not printed or told == printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()) if "://" not in link]
    assert [link for link in links if not (DOCS / link).exists()] == []


def test_the_page_of_the_notebooks_leads_to_each() -> None:
    linked = re.findall(r"\]\(\.\./notebooks/(\w+)\.ipynb\)", (DOCS / "notebooks.md").read_text())
    assert sorted(linked) == sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


def test_every_test_that_a_page_names_is_there() -> None:
    named = {named for page in PAGES for named in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text())}
    assert len(named) > 40
    assert [test for test in named if f"def {test[1]}(" not in (ROOT / test[0]).read_text()] == []


@pytest.mark.thorough
@pytest.mark.process
def test_the_site_is_built_without_a_warning_and_has_every_page(tmp_path: Path) -> None:
    settings = tomllib.loads((ROOT / "zensical.toml").read_text())
    named = {page for section in settings["project"]["nav"] for pages in section.values() for page in _listed(pages)}
    assert named == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    for name in ROOMS:
        (tmp_path / name).symlink_to(ROOT / name)
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    built = (tmp_path / "site" / "reference" / "settings" / "index.html").read_text()
    assert "exploration_weight" in built
    pages = {page: page.read_text() for page in (tmp_path / "site").rglob("*.html")}
    assert {page.name: found for page, text in pages.items() if (found := _ELSEWHERE.findall(text))} == {}


_ELSEWHERE = re.compile(
    r"""<(?:script|link(?=[^>]*stylesheet)|img|iframe|source|object|embed)\b[^>]*(?:src|href|data)=["']?(?:https?:)?//[^>]*"""
    r"""|class=["'][^"']*\bmermaid\b|@import[^;]*//[^;]*""",
)
"""What a page loads from another host; the theme would fetch the program that draws with Mermaid."""


def _listed(pages: str | list[str]) -> list[str]:
    return [pages] if isinstance(pages, str) else pages
