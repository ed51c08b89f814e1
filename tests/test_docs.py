"""The pages under docs: their examples run and print what stands below them, and their links lead somewhere."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from notebooks.site import build, notebook_text, settings_text, write_pages
from reflective_agents.state.settings import settings_of, strategy_names

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
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


@pytest.mark.matrix(keep=11)
@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")  # by langgraph-supervisor
@pytest.mark.parametrize(("example", "printed"), EXAMPLES)
def test_every_python_example_runs_and_prints_what_stands_below_it(
    example: str, printed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MODEL", "offline")
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "example", "exec"), {"__name__": "example"})
    output = capsys.readouterr().out
    assert not printed or output == printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()) if "://" not in link]
    assert [link for link in links if not (DOCS / link).exists()] == []


def test_the_page_of_the_notebooks_leads_to_each() -> None:
    linked = re.findall(r"\]\(\.\./notebooks/(\w+)\.ipynb\)", (DOCS / "notebooks.md").read_text())
    assert sorted(linked) == sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


def test_the_page_from_the_article_to_the_code_names_what_is_there() -> None:
    page = (DOCS / "from-article-to-code.md").read_text()
    rows = [line.strip("|").split(" | ") for line in page.splitlines() if line.startswith("| ") and "../" in line]
    assert len(rows) > 30
    missing = []
    for section, code, notebooks, _ in rows:
        files = re.findall(r"\]\(\.\./([^)]+)\)((?:[:,] `\w+`)*)", code)
        assert files, section
        assert "../notebooks/" in notebooks, section
        missing += [
            (file, name) for file, names in files for name in re.findall(r"\w+", names) if name not in defined(file)
        ]
    assert missing == []
    assert len(re.findall(r"^### ", page, re.MULTILINE)) == 5
    assert len({paper for section, *_ in rows for paper in re.findall(r"arxiv\.org/abs/[\d.]+", section)}) == 7


def defined(file: str) -> set[str]:
    """Return the names that a file defines: functions, classes, methods, constants."""
    parts = [*ast.walk(ast.parse((ROOT / file).read_text()))]
    named = {part.name for part in parts if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    return named | {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def test_the_new_names_that_a_page_lists_are_there() -> None:
    names = re.findall(r"^\| `.+` \| `(\w+\.[\w.]+)`", (DOCS / "names.md").read_text(), re.MULTILINE)
    assert len(names) > 200
    assert [name for name in names if not is_there(name)] == []


def is_there(name: str) -> bool:
    """Tell whether a name is a module's, or stands in the module, or the class of a module, that it begins with."""
    path = ROOT / "reflective_agents" / name.replace(".", "/")
    if path.is_dir() or path.with_name(f"{path.name}.py").is_file():
        return True
    for parent in path.parents[:2]:
        for file in (parent / "__init__.py", parent.with_name(f"{parent.name}.py")):
            if file.is_file() and re.search(rf"\b{path.name}\b", file.read_text()):
                return True
    return False


def test_every_test_that_a_page_names_is_there() -> None:
    named = {named for page in PAGES for named in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text())}
    assert len(named) > 40
    assert [test for test in named if f"def {test[1]}(" not in (ROOT / test[0]).read_text()] == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built site."""
    folder = tmp_path_factory.mktemp("built") / "site"
    build(folder)
    return folder


def test_every_page_of_the_site_is_in_its_menu(tmp_path: Path) -> None:
    settings = tomllib.loads((ROOT / "zensical.toml").read_text())
    named = [page for section in settings["project"]["nav"] for pages in section.values() for page in _listed(pages)]
    assert sorted(named) == sorted(write_pages(tmp_path / "docs"))
    files = {str(path.relative_to(tmp_path / "docs")) for path in (tmp_path / "docs").rglob("*.md")} - {*named}
    assert "files/graphs/lats.py.md" in files
    assert [file for file in files if not file.startswith("files/")] == []


def test_settings_are_listed_once_for_those_who_share_them() -> None:
    text = settings_text()
    anchors = re.findall(r"^### .* \{ #(\S+) \}$", text, re.MULTILINE)
    assert len(anchors) == len(set(anchors))
    assert anchors[0] == "all.model"
    assert set(re.findall(r"\]\(#(\S+?)\)", text)) <= set(anchors)
    named = {anchor.split(".")[1] for anchor in anchors}
    assert named == {name for strategy in strategy_names() for name in settings_of(strategy).model_fields}


def test_formulas_become_markup_and_code_stays(tmp_path: Path) -> None:
    words = "The mean $V$ of `$HOME`:\n\n$$\\frac{a}{b}$$\n\n```\ncost $1 or $2\n```"
    shown = new_output("stream", text="2 $ and 3 $\n")  # type: ignore[no-untyped-call]
    cells = [
        new_markdown_cell(words),  # type: ignore[no-untyped-call]
        new_code_cell("1 + 1", outputs=[shown]),  # type: ignore[no-untyped-call]
    ]
    notebook = new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    text = notebook_text(notebook, tmp_path / "page")
    assert text.count("<math ") == 2
    assert "<mfrac>" in text
    assert text.count('<div class="formula">') == 1, "a wide one is moved sideways on a phone, not the page"
    assert "`$HOME`" in text
    assert "cost $1 or $2" in text
    assert "2 $ and 3 $" in text


@pytest.mark.thorough
@pytest.mark.process
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = {str(path.relative_to(site)): path.read_text() for path in site.rglob("*.html")}
    assert "exploration_weight" in pages["reference/settings/index.html"]
    assert "<math " in pages["notebooks/lats/index.html"]
    assert 'href="../../site.css"' in pages["notebooks/lats/index.html"], "long lines of output are wrapped"
    assert 'class="md-nav__link"' in pages["notebooks/lats/index.html"]
    styles = [path.read_text() for path in site.rglob("*.css")]
    loaded = re.compile(
        r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="?(?:https?:)?//[^" >]*|<link\b[^>]*\bhref="?https?://[^" >]*"""
        r"""|url\(["']?(?:https?:)?//[^)]*|class="mermaid\b""",
        re.IGNORECASE,
    )
    found = {match for text in [*pages.values(), *styles] for match in loaded.findall(text)}
    assert {match for match in found if 'rel="canonical"' not in match} == set()


@pytest.mark.thorough
@pytest.mark.process
def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    dead = []
    for path in site.rglob("index.html"):
        for link in re.findall(r'\bhref="?([^"#>\s]+)', path.read_text()):
            target = path.parent / link
            if "://" not in link and not link.startswith(("mailto:", "data:")) and not target.exists():
                dead.append(f"{path.relative_to(site)}: {link}")
    assert dead == []


def _listed(pages: str | list[str]) -> list[str]:
    return [pages] if isinstance(pages, str) else pages
