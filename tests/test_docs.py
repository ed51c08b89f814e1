"""The pages under docs: their examples run, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.glob("*.md"))
APART = ("observability.md",)
"""Pages whose examples have tests of their own, because they change the whole process."""
EXAMPLES = [
    pytest.param(example, id=f"{page.stem}-{number}")
    for page in PAGES
    if page.name not in APART
    for number, example in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_python_example_runs(example: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MODEL", "offline")
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "example", "exec"), {"__name__": "example"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()) if "://" not in link]
    assert [link for link in links if not (DOCS / link).exists()] == []
