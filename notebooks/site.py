"""Builds the documentation as a site, with the notebooks, CONTRIBUTING and the files that its pages name: `make docs`.

python -m notebooks.site FOLDER   into this folder, instead of site/
"""

import base64
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path, PurePosixPath

from latex2mathml.converter import convert
from nbformat import NotebookNode
from pydantic.fields import FieldInfo

from notebooks.outputs import read
from reflective_agents.cli.options import flag_of, metavar_of
from reflective_agents.state.context import Context
from reflective_agents.state.groups import grouped
from reflective_agents.state.settings import settings_of, strategy_names

ROOT = Path(__file__).parents[1]
PACKAGES = ("reflective_agents", "graphs", "nodes", "prompts", "state")
SETTINGS = "docs/reference/settings.md"
_LINK = re.compile(r"(?<![\w\])])\[(?P<text>[^\[\]]*)\]\((?![a-z]+:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", re.DOTALL)
_BLOCK = re.compile(r"^(?P<fence>`{3,}).*?^(?P=fence)$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(_BLOCK.pattern + r"|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def write_pages(folder: Path) -> list[str]:
    """Write the sources of the site: the pages under docs, and what is made of notebooks and linked files.

    Args:
        folder: Where they go; it is made, and must not exist.

    Returns:
        The paths of all pages in it that belong into the menu.
    """
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("*.md"))
    texts = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))}
    texts["CONTRIBUTING.md"] = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    texts[SETTINGS] += settings_text()
    (folder / "notebooks").mkdir()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        texts[str(path.relative_to(ROOT))] = notebook_text(read(path), folder / "notebooks" / path.stem)
    linked: set[str] = set()
    for source, text in texts.items():
        _write(folder / page_of(source), _with_links(text, source, linked))
    for source in sorted(linked - set(texts)):
        _write(folder / page_of(source), source_text(source))
    return [page_of(source) for source in texts]


def page_of(source: str) -> str:
    """Return which page of the site, or which picture, shows a file of the repository."""
    path = PurePosixPath(source)
    if path.parts[0] == "docs":
        return str(path.relative_to("docs"))
    if path.suffix == ".ipynb":
        return str(path.with_suffix(".md"))
    return "contributing.md" if source == "CONTRIBUTING.md" else f"files/{source}.md"


def _with_links(text: str, source: str, linked: set[str]) -> str:
    """Let the links of a page lead to pages of the site; those to folders, which it does not show, become text."""
    here = PurePosixPath(source).parent

    def to_page(match: re.Match[str]) -> str:
        target = os.path.normpath(here / match["path"])
        if (ROOT / target).is_dir():
            return match["text"]
        if not (ROOT / target).exists():  # a picture of a notebook, which lies beside its page
            return match[0]
        if not target.startswith("docs/"):
            linked.add(target)
        page = os.path.relpath(page_of(target), PurePosixPath(page_of(source)).parent)
        return f"[{match['text']}]({page}{match['anchor'] or ''})"

    return _without(_BLOCK, text, lambda part: _LINK.sub(to_page, part))


def source_text(source: str) -> str:
    """Return a file of the repository as a page of its own, which the search of the site leaves out."""
    kind = {".py": "python", ".json": "json"}.get(PurePosixPath(source).suffix, "text")
    text = (ROOT / source).read_text("utf-8").rstrip()
    return f"---\nsearch:\n  exclude: true\n---\n# `{source}`\n\n````{kind}\n{text}\n````\n"


def notebook_text(notebook: NotebookNode, pictures: Path) -> str:
    """Return a notebook as a page in Markdown, with what its cells have shown.

    Args:
        notebook: The notebook, as it is in its file.
        pictures: How the paths of its pictures begin; they are written.
    """
    return "\n\n".join(part for number, cell in enumerate(notebook.cells) for part in _cell(cell, pictures, number))


def _cell(cell: NotebookNode, pictures: Path, number: int) -> Iterator[str]:
    if cell.cell_type != "code":
        yield with_formulas(cell.source)
        return
    yield f"````python\n{cell.source}\n````"
    for index, output in enumerate(cell.outputs):
        data = output.get("data", {})
        if "image/png" in data:
            picture = pictures.with_name(f"{pictures.name}-{number}-{index}.png")
            picture.write_bytes(base64.b64decode(data["image/png"]))
            yield f"![What the cell draws]({picture.name})"
        elif "text/html" in data:
            yield f'<div class="output">{_embedded(data["text/html"])}</div>'
        else:
            text = output.get("text") or data.get("text/plain") or "\n".join(output.get("traceback", ()))
            yield f"````text\n{text.rstrip()}\n````"


def _embedded(html: str) -> str:
    """Return HTML for the middle of a page: without empty lines, behind which Markdown would begin again."""
    plain = html.replace(" class='tex2jax_ignore'", "")  # a word to Jupyter; tables with a class have no style here
    return re.sub(r"\n(?=\s*\n)", "\n&#8203;", plain)


def with_formulas(text: str) -> str:
    """Return a text in Markdown with its formulas in MathML, which browsers show without a script."""
    return _without(_CODE, text, lambda part: _FORMULA.sub(_formula, part))


def _without(pattern: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    """Change a text in Markdown, but not the code in it."""
    parts: list[str] = []
    end = 0
    for code in pattern.finditer(text):
        parts += [change(text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, change(text[end:])])


def _formula(match: re.Match[str]) -> str:
    if match[2]:
        return convert(match[2])
    return f'<div class="formula">{convert(match[1], display="block")}</div>'


def settings_text() -> str:
    """Return all settings in Markdown: those of every strategy, each strategy's own, and what several share."""
    takers: dict[tuple[str, str], list[str]] = {}
    for strategy in strategy_names():
        for name, field in settings_of(strategy).model_fields.items():
            takers.setdefault(_same(name, field), []).append(strategy)
    general = {_same(name, field) for name, field in Context.model_fields.items()}
    shared: dict[str, str] = {}
    parts = ["\n## Of every strategy\n"]
    for group, fields in grouped(Context).items():
        parts += [f"**{group}**\n", *(_setting(name, field, "all") for name, field in fields.items())]
    for strategy in strategy_names():
        parts.append(f"\n## {strategy}\n\nUse it when {settings_of(strategy).use_when}.\n")
        for group, fields in grouped(settings_of(strategy)).items():
            own = {name: field for name, field in fields.items() if _same(name, field) not in general}
            parts += _group(group, own, takers, shared)
    return "\n".join([*parts, "\n## Of several strategies\n", *(shared[name] for name in sorted(shared))])


def _group(
    group: str, fields: Mapping[str, FieldInfo], takers: Mapping[tuple[str, str], list[str]], shared: dict[str, str]
) -> Iterator[str]:
    """Yield a group of a strategy's settings; what others share is only linked, and added to what is shared."""
    links: list[str] = []
    whole: list[str] = []
    for name, field in fields.items():
        users = takers[_same(name, field)]
        if len(users) == 1:
            whole.append(_setting(name, field, users[0]))
        else:
            links.append(f"[`{name}`](#{users[0]}.{name})")
            shared[f"{name} {users[0]}"] = _setting(name, field, users[0], users)
    if fields:
        yield f"**{group}**{': ' if links else ''}{', '.join(links)}\n"
    yield from whole


def _same(name: str, field: FieldInfo) -> tuple[str, str]:
    """Return what is equal for two strategies that share a setting."""
    return name, _setting(name, field, "")


def _setting(name: str, field: FieldInfo, owner: str, users: Sequence[str] = ()) -> str:
    """Return one setting as a heading, its description and its facts."""
    facts = ["from Python only"] if field.exclude else [f"`{flag_of(name)}`"]
    if not field.exclude and field.annotation is not bool:
        facts.append(f"`{metavar_of(field)}`")
    if field.default is not None and not field.is_required():
        facts.append(f"default `{field.default}`")
    if users:
        facts.append(f"of {', '.join(users)}")
    return f"### {name} {{ #{owner}.{name} }}\n\n{escape(field.description or '', quote=False)}\n\n{'; '.join(facts)}\n"


def build(target: Path) -> None:
    """Build the site.

    Args:
        target: Where it goes; what is there is replaced.

    Raises:
        subprocess.CalledProcessError: if a page has an error or a warning, which is on stderr.
    """
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_pages(work / "docs")
        shutil.copy(ROOT / "zensical.toml", work)
        for package in PACKAGES:
            (work / package).symlink_to(ROOT / package)
        subprocess.run([Path(sys.executable).with_name("zensical"), "build", "--strict"], cwd=work, check=True)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(work / "site", target)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site")
