"""The notebooks: run from top to bottom in a fresh kernel, offline, they show what is committed with them."""

import base64
import re
import socket
from itertools import zip_longest
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode, validate
from nbformat.v4 import new_code_cell, new_notebook

from notebooks.outputs import execute, outputs, read
from reflective_agents.state.settings import settings_of, strategy_names

ROOT = Path(__file__).parent.parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

GUARD = """
import warnings
from pytest_socket import socket_allow_hosts

warnings.simplefilter("error")
socket_allow_hosts(["127.0.0.1"], allow_unix_socket=True)
"""
COST = """
import time

print(time.process_time())
"""

TELLING = {
    "lats": {
        "hand-second": ">0.575<",
        "paper-log": ">simulate<",
        "paper-table": ">Finish[Dublin]<",
        "settings-run": ">parallel=4<",
    },
    "react": {
        "gears-run": ">9336<",
        "unknown-run": "browse is not a valid tool",
        "environment-run": ">None of the actions can be read in this.",
        "limits-run": ">max_actions=1<",
        "own-run": "Eddystone",
    },
    "trials": {
        "strict-run": ">Coverage 82%, support 100%, citation 100%. Not covered: keep, lessons.<",
        "hop-run": ">London<",
        "modes-run": "The last attempt at this task, which failed:",
        "judge-run": ">0.9<",
        "experience-run": ">Dublin<",
        "actor-script": ">(13 - 9) * (10 - 4) = 24<",
    },
    "tree_of_thoughts": {
        "game-run": ">20 - 6 = 14 (left: 10 14)<",
        "beam-run": ">73.3<",
        "depth-visits": ">h3. abuse, h2. ashes<",
        "settings-run": ">12<",
        "limits-run": ">max_model_calls=2<",
    },
    "ab_mcts": {
        "hand-figures": ">3 scores, sum 2.2<",
        "arms-run": ">strong<",
        "limits-run": ">max_model_calls=4<",
    },
    "auto": {
        "turns-table": ">look_up<",
        "budget-run": ">sample, search<",
        "limits-run": ">max_model_calls=1<",
    },
    "aggregation": {"right-script": ">9336<", "verified-run": ">True<", "mixture-run": "as two of three say"},
    "best_of_n": {
        "alike-run": ">5<",
        "chance-run": ">0.684<",
        "limits-run": ">max_model_calls=3<",
    },
    "chain_of_thought": {"samples-table": ">3<", "reading-table": ">9336 yuan<", "vote-run": ">9,336 yuan<"},
    "little_prince": {"drafts": ">0.85<"},
    "lithium": {"nothing": ">limit_reached<"},
    "wallace_and_gromit": {"once": "Loaf and Death", "again": ">Creature Comforts<"},
    "gear_reducers": {"agent": "observation 9336", "vote": ">9,336 yuan<"},
    "town_on_ollama": {"talks": "garden party"},
    "chinese": {"gears": ">9336<"},
    "search_engines": {
        "retriever-run": ">The Eddystone lighthouse was first lit in 1698 [1].",
        "function-run": ">Lights, shelf:lights<",
        "searxng-run": ">Eddystone lighthouse first lit<",
    },
    "plan": {
        "needs-run": ">[&#x27;1&#x27;, &#x27;2&#x27;]<",
        "journey-script": ">dropped<",
        "replans-run": ">max_replans=0<",
        "waves-run": "10</td><td",
        "limits-run": ">1, 2<",
    },
    "team": {
        "artefact-table": ">critic<",
        "own-run": ">Twelve copies, 9000 yuan.<",
        "debate-agree": ">right<",
        "rounds-run": ">8<",
        "default-run": ">thinker<",
        "limits-run": ">max_model_calls=2<",
    },
    "town": {
        "spread-table": ">Anna &gt; Ben &gt; Clara<",
        "talks-table": ">I heard from Anna: ",
        "reflection-table": ">On ",
        "waves-run": ">10<",
        "limits-run": ">max_steps=4<",
    },
    "memory": {
        "artefact-table": ">My sister Clara lives in Turin and plays the cello.<",
        "users-run": ">bob</td>",
        "change-run": " UTC</td>",
        "reflection-run": ">12<",
        "tree-table": ">The tram was late.<",
        "rankings-run": ">The user cares about the tram.\nAs the user says: The tram was late.\n",
        "weights-run": ">As the user says: Clara played the cello.<",
        "limits-run": ">5<",
        "experience-run": ">(12 - 8) * (9 - 3) = 24<",
    },
}
"""What the tables of a notebook must show, for the text around them to be true."""

ATTACK = """
import sys

sys.path.insert(0, {folder!r})
import views

from reflective_agents.graphs.best_of_n import graph
from reflective_agents.testing.fake import FakeChatModel

said = '</td></table><img src=x onerror="alert(1)"><script>alert(2)</script> $\\\\frac{{$ \\x1b]0;owned\\x07 \\u202e'
judged = {{"score": 5, "reason": said, "critique": said}}
model = FakeChatModel(reply=lambda request: judged if request.schema else said)
out = await graph.ainvoke({{"messages": [("user", said)]}}, context={{"model": model, "n": 2}})
views.draw_tree(out["tree"], out["stats"])
views.Table([{{said: out["answer"], "reason": out["outcome"]["reason"]}}, *out["tree"].values()])
"""
"""A model whose every word is markup, shown as the notebooks show things."""

VARYING = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ][\d:.+]+)?|\b\d\d:\d\d(?::\d\d)?\b"  # dates, and times of the day
    r"|(?<=>)\d{3,}(?=<)|\d+ tokens"  # tokens, and other large numbers
)
"""What differs from run to run, or with any wording of a prompt."""

TOPICS = {path.stem for path in NOTEBOOKS} - set(strategy_names())
"""Notebooks about something that is no strategy: the seeds of this project, and search engines."""
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def run(path: Path, folder: Path) -> NotebookNode:
    """Return the notebook with the outputs of a fresh kernel, in which warnings and the network are errors.

    A cell is added at the end, which prints how many seconds of processor time all of it took.
    """
    notebook = read(path)
    for index, source in ((0, GUARD), (len(notebook.cells) + 1, COST)):
        notebook.cells.insert(index, new_code_cell(source))  # type: ignore[no-untyped-call]
    import matplotlib.font_manager  # noqa: F401 - builds its cache here, where it may say so

    execute(notebook, folder)
    return notebook


def shows(notebook: NotebookNode, kind: str) -> list[str]:
    """Return the notebook's outputs of one MIME type, in order."""
    found = [output.get("data", {}) for output in outputs(notebook)]
    return [data[kind] for data in found if kind in data]


def constant(text: str) -> list[str]:
    """Return the lines of an output without times, in one order: what happens at once has none."""
    return sorted(VARYING.sub("", line) for line in re.sub("<tbody>|</tr>", "\n", text).splitlines())


def picture_size(picture: str) -> tuple[int, int]:
    """Return width and height, as a PNG begins with them."""
    begin = base64.b64decode(picture[:64])
    return int.from_bytes(begin[16:20]), int.from_bytes(begin[20:24])


def differences(committed: NotebookNode, fresh: NotebookNode) -> list[str]:
    """Name the cells that show something else than what is committed, with the first line of each that differs.

    Of a cell with the tag `varies`, whose figures depend on the clock, only what kinds of outputs it has counts.
    """
    shown = {cell.id: cell for cell in fresh.cells}
    found = []
    for cell in committed.cells:
        of = _kinds if "varies" in cell.metadata.get("tags", []) else _constants
        before, after = (of(each.get("outputs", [])) for each in (cell, shown[cell.id]))
        found += [f"{cell.id}: {line} | {other}" for line, other in zip_longest(before, after) if line != other][:1]
    return found


def _kinds(shown: list[NotebookNode]) -> list[str]:
    return [" ".join([output["output_type"], *sorted(output.get("data", {}))]) for output in shown]


def _constants(shown: list[NotebookNode]) -> list[str]:
    """Everything that one cell shows, as lines to compare. Of pictures it is the size: what is in them, tables show."""
    lines: list[str] = []
    for output in shown:
        data = output.get("data", {})
        if picture := data.get("image/png"):
            width, height = picture_size(picture)
            lines.append(f"picture {round(width, -2)} x {round(height, -2)}")
        else:
            lines += constant(output.get("text") or data.get("text/html") or data.get("text/plain", ""))
    return lines


def printed(notebook: NotebookNode, stream: str) -> str:
    parts = [part for part in outputs(notebook) if part["output_type"] == "stream" and part["name"] == stream]
    return "".join(part["text"] for part in parts)


def shown(notebook: NotebookNode, cell_id: str) -> str:
    """Return the table that one cell shows."""
    found = next(cell for cell in notebook.cells if cell.id == cell_id)
    return str(found.outputs[-1]["data"]["text/html"])


def test_every_strategy_has_a_notebook() -> None:
    assert set(strategy_names()) - {path.stem for path in NOTEBOOKS} == set()


@pytest.mark.thorough
@each_notebook
class TestCommitted:
    """What is in the repository is what a person wrote, and what came of it: GitHub shows both."""

    def test_with_outputs_of_one_run_from_top_to_bottom(self, path: Path) -> None:
        code = [cell for cell in read(path).cells if cell.cell_type == "code"]
        assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "make outputs"
        assert any(cell.outputs for cell in code)

    def test_without_a_trace_of_the_machine(self, path: Path) -> None:
        text = re.sub(r'"image/png": "[^"]*"', "", path.read_text())
        traces = (str(ROOT), str(Path.home()), "/tmp/", r"\\u001b", rf"\b{re.escape(socket.gethostname())}\b")
        assert [trace for trace in traces if re.search(trace, text)] == []
        assert path.stat().st_size < 500_000

    def test_begins_with_the_figure_and_the_file_and_ends_with_three_things_to_try(self, path: Path) -> None:
        first, *_, last = (cell.source for cell in read(path).cells)
        assert path.stem in TOPICS or re.search(r"^\*\*The (paper's )?figure\b.*in words:\*\* ", first, re.MULTILINE)
        links = re.findall(r"\]\((\.\./[^)]+)\)", first)
        assert links
        assert [link for link in links if not (path.parent / link).exists()] == []
        assert last.startswith("## Three things to try\n")
        assert re.findall(r"^(\d)\. ", last, re.MULTILINE) == ["1", "2", "3"]

    def test_names_settings_that_exist(self, path: Path) -> None:
        known = set(settings_of(path.stem).model_fields) if path.stem not in TOPICS else None
        text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
        named = {name for span in re.findall(r"`([^`\n]+)`", text) for name in re.findall(r"^([a-z_]+)=", span)}
        assert known is None or named - known == set()

    def test_valid_with_ids_that_say_something(self, path: Path) -> None:
        notebook = read(path)
        validate(notebook)
        assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
        assert notebook.metadata.kernelspec.name == "python3"
        assert [cell.id for cell in notebook.cells if not cell.id.replace("-", "").isalpha()] == []

    def test_explained_in_short_cells(self, path: Path) -> None:
        cells = read(path).cells
        assert [cell.id for cell in cells if cell.source.count("\n") > 30] == []
        assert sum(cell.cell_type == "markdown" for cell in cells) >= len(cells) / 3
        assert cells[0].source.startswith("# ")
        assert "arxiv.org/abs/" in cells[0].source or path.stem in TOPICS


@pytest.mark.thorough
@pytest.mark.notebook
@pytest.mark.hostile
def test_what_a_model_says_is_never_read_as_markup(tmp_path: Path) -> None:
    written = tmp_path / "attack.ipynb"
    cell = new_code_cell(ATTACK.format(folder=str(ROOT / "notebooks")))  # type: ignore[no-untyped-call]
    nbformat.write(new_notebook(cells=[cell]), written)  # type: ignore[no-untyped-call]
    notebook = run(written, tmp_path)
    (table,) = shows(notebook, "text/html")
    assert "&lt;script&gt;" in table
    assert "<img" not in table
    assert "<script" not in table
    assert table.count("</table>") == 1
    assert len(shows(notebook, "image/png")) == 1


def assert_shows_a_strategy(notebook: NotebookNode) -> None:
    """Check that a notebook draws a graph, and shows the events of a run."""
    kinds = {output["output_type"] for output in outputs(notebook)}
    assert kinds == {"stream", "display_data", "execute_result"}
    assert "graph TD;" in printed(notebook, "stdout")
    assert len(shows(notebook, "image/png")) >= 3
    assert len(shows(notebook, "text/html")) >= 4
    events = shown(notebook, "events-table")
    assert "model offline" in events
    assert "status " in events


@pytest.mark.notebook
@pytest.mark.thorough
@pytest.mark.timeout(900)
@each_notebook
def test_runs_from_top_to_bottom_with_nothing_configured(path: Path, tmp_path: Path) -> None:
    notebook = run(path, tmp_path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert printed(notebook, "stderr") == ""
    assert "'failed'" not in printed(notebook, "stdout")
    if path.stem not in TOPICS:
        assert_shows_a_strategy(notebook)
    assert differences(read(path), notebook) == [], "make outputs"
    expected = TELLING.get(path.stem, {})
    assert [cell_id for cell_id, text in expected.items() if text not in shown(notebook, cell_id)] == []
    assert float(code[-1].outputs[0]["text"]) < 60, "too many seconds of processor time"


class TestTable:
    """What a cell shows of its rows; the views bring matplotlib, which takes a second of whoever only collects."""

    def test_shows_model_text_as_text(self) -> None:
        from notebooks.views import Table

        shown = Table([{"text": "<script>alert(1)</script> & more"}])._repr_html_()
        assert "<script>" not in shown
        assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in shown

    def test_is_written_the_same_in_each_run(self) -> None:
        from notebooks.views import Table

        assert repr(Table([])) == repr(Table([{"a": 1}]))

    def test_has_a_column_for_every_key(self) -> None:
        from notebooks.views import Table

        shown = Table([{"a": 1}, {"b": 0.12345, "a": None}])._repr_html_()
        assert shown.count("<th ") == 2
        assert shown.count("<td ") == 4
        assert ">0.123<" in shown
