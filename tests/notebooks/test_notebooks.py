"""The notebooks: committed without outputs, and run from top to bottom in a fresh kernel, offline."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode, validate
from nbformat.v4 import new_code_cell

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
        "environment-run": ">Invalid action. Legal actions: ",
        "limits-run": ">max_actions=1 reached (actions=1)<",
        "own-run": "Eddystone",
    },
    "trials": {
        "strict-run": ">Coverage 82%, support 100%, citation 100%. Not covered: keep, lessons.<",
        "hop-run": ">solved: finished after 3 actions with a reward of 1<",
        "modes-run": "The last attempt at this task, which failed:",
        "judge-run": ">exhausted: finished after 2 actions with a reward of 0<",
        "experience-run": ">Dublin<",
        "actor-script": ">(13 - 9) * (10 - 4) = 24<",
    },
    "tree_of_thoughts": {
        "game-run": ">10 + 14 = 24 (left: 24)<",
        "beam-run": ">74.7<",
        "depth-visits": ">h3. abuse, h2. ashes<",
        "settings-run": ">12<",
        "limits-run": ">max_model_calls=3 leaves no room for another expansion<",
    },
    "ab_mcts": {
        "hand-figures": ">3 scores, sum 2.2<",
        "arms-run": ">strong<",
        "limits-run": ">max_model_calls=8 leaves no room for another expansion<",
    },
    "best_of_n": {
        "alike-run": ">5<",
        "chance-run": ">0.684<",
        "limits-run": ">max_model_calls=3 leaves no room for another expansion<",
    },
    "chain_of_thought": {"samples-table": ">3<", "reading-table": ">9336 yuan<", "vote-run": ">9,336 yuan<"},
    "plan": {
        "needs-run": ">[&#x27;1&#x27;, &#x27;2&#x27;]<",
        "journey-script": ">dropped<",
        "replans-run": ">max_replans=0 reached; sub-goal boat has failed: IMPOSSIBLE: no boat sails in winter<",
        "waves-run": "10</td><td",
        "limits-run": ">1, 2<",
    },
    "team": {
        "artefact-table": ">critic<",
        "own-run": ">Twelve copies, 9000 yuan.<",
        "debate-agree": ">right<",
        "rounds-run": ">8<",
        "default-run": ">thinker<",
        "limits-run": ">max_model_calls=2 reached (model_calls=2)<",
    },
    "town": {
        "spread-table": ">Anna &gt; Ben &gt; Clara<",
        "talks-table": ">I heard from Anna: ",
        "reflection-table": ">On ",
        "waves-run": ">15<",
        "limits-run": ">max_steps=4 reached (steps=4)<",
    },
    "memory": {
        "artefact-table": ">The user said: My sister Clara lives in Turin and plays the cello.<",
        "users-run": ">bob</td>",
        "reflection-run": ">21<",
        "tree-table": ">The user said: The tram was late.<",
        "experience-run": ">(12 - 8) * (9 - 3) = 24<",
    },
}
"""What the tables of a notebook must show, for the text around them to be true."""

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call,no-any-return]


def execute(path: Path, folder: Path) -> NotebookNode:
    """Return the notebook with the outputs of a fresh kernel, in which warnings and the network are errors.

    A cell is added at the end, which prints how many seconds of processor time all of it took.
    """
    notebook = read(path)
    for place, source in ((0, GUARD), (len(notebook.cells) + 1, COST)):
        notebook.cells.insert(place, new_code_cell(source))  # type: ignore[no-untyped-call]
    import matplotlib.font_manager  # noqa: F401 - builds its cache here, where it may say so

    client = NotebookClient(notebook, timeout=100, resources={"metadata": {"path": str(path.parent)}})
    settings = {
        "PYTHONPATH": str(ROOT),
        "LANGGRAPH_STRICT_MSGPACK": "true",
        "IPYTHONDIR": str(folder / "ipython"),
        "REFLECT_CACHE_DIR": str(folder / "cache"),
    }
    client.execute(env={**os.environ, **settings})
    return notebook


def outputs(notebook: NotebookNode, kind: str) -> list[str]:
    """Return the notebook's outputs of one MIME type, in order."""
    found = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    return [data[kind] for data in found if kind in data]


def printed(notebook: NotebookNode, stream: str) -> str:
    parts = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(part["text"] for part in parts if part["output_type"] == "stream" and part["name"] == stream)


def shown(notebook: NotebookNode, cell_id: str) -> str:
    """Return the table that one cell shows."""
    found = next(cell for cell in notebook.cells if cell.id == cell_id)
    return str(found.outputs[-1]["data"]["text/html"])


def test_every_strategy_has_a_notebook() -> None:
    assert {path.stem for path in NOTEBOOKS} == {path.stem for path in (ROOT / "graphs").glob("[!_]*.py")}


@each_notebook
class TestCommitted:
    """What is in the repository is what a person wrote."""

    def test_without_outputs(self, path: Path) -> None:
        code = [cell for cell in read(path).cells if cell.cell_type == "code"]
        assert [cell.id for cell in code if cell.outputs or cell.execution_count] == []

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
        assert "arxiv.org/abs/" in cells[0].source


@pytest.mark.notebook
@each_notebook
def test_runs_from_top_to_bottom_with_nothing_configured(path: Path, tmp_path: Path) -> None:
    notebook = execute(path, tmp_path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    kinds = {output["output_type"] for cell in code for output in cell.outputs}
    assert kinds == {"stream", "display_data", "execute_result"}
    assert printed(notebook, "stderr") == ""
    assert "graph TD;" in printed(notebook, "stdout")
    assert "'failed'" not in printed(notebook, "stdout")
    assert len(outputs(notebook, "image/png")) >= 3
    assert len(outputs(notebook, "text/html")) >= 4
    events = shown(notebook, "events-table")
    assert ">offline<" in events
    assert ">solved<" in events
    told = TELLING.get(path.stem, {})
    assert [cell_id for cell_id, text in told.items() if text not in shown(notebook, cell_id)] == []
    assert float(code[-1].outputs[0]["text"]) < 60, "too many seconds of processor time"


class TestTable:
    """What a cell shows of its rows; the views bring matplotlib, which takes a second of whoever only collects."""

    def test_shows_model_text_as_text(self) -> None:
        from notebooks.views import Table

        shown = Table([{"text": "<script>alert(1)</script> & more"}])._repr_html_()
        assert "<script>" not in shown
        assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in shown

    def test_has_a_column_for_every_key(self) -> None:
        from notebooks.views import Table

        shown = Table([{"a": 1}, {"b": 0.12345, "a": None}])._repr_html_()
        assert shown.count("<th ") == 2
        assert shown.count("<td ") == 4
        assert ">0.123<" in shown
