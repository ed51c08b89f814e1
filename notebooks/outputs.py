"""Run the notebooks offline, from top to bottom in a fresh kernel, and write their outputs into them: `make outputs`.

python -m notebooks.outputs            all of them
python -m notebooks.outputs lats town  some of them
"""

import base64
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from PIL import Image

FOLDER = Path(__file__).parent
KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")
"""Of the environment, all that a kernel gets: nothing is configured, so the offline model runs."""


def read(path: Path) -> NotebookNode:
    """Read a notebook as it stands in its file."""
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call,no-any-return]


def execute(notebook: NotebookNode, folder: Path) -> None:
    """Run all cells of a notebook, as if it lay among the others.

    Args:
        notebook: The notebook, whose outputs are replaced.
        folder: Where the kernel may write.

    Raises:
        CellExecutionError: if a cell fails.
    """
    settings = {
        "PYTHONPATH": str(FOLDER.parent),
        "TZ": "UTC",
        "LANGGRAPH_STRICT_MSGPACK": "true",
        "IPYTHONDIR": str(folder / "ipython"),
        "REFLECT_CACHE_DIR": str(folder / "cache"),
    }
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    client = NotebookClient(
        notebook, timeout=200, record_timing=False, coalesce_streams=True, resources={"metadata": {"path": str(FOLDER)}}
    )
    client.execute(env=kept | settings)


def outputs(notebook: NotebookNode) -> Iterator[NotebookNode]:
    """Iterate over what the cells of a notebook show."""
    for cell in notebook.cells:
        yield from cell.get("outputs", [])


def tidy(notebook: NotebookNode) -> None:
    """Leave nothing of this machine in a notebook, and draw its pictures in sixteen colours: they are grey."""
    notebook.metadata.language_info = {"name": "python"}
    for output in outputs(notebook):
        if picture := output.get("data", {}).get("image/png"):
            output["data"]["image/png"] = _smaller(picture)


def _smaller(picture: str) -> str:
    drawn, written = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB"), io.BytesIO()
    drawn.quantize(16).save(written, "PNG", optimize=True)
    return base64.b64encode(written.getvalue()).decode()


def main(names: list[str]) -> None:
    """Run the notebooks of these names, or all, and write what they show."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not names or path.stem in names:
            notebook = read(path)
            with tempfile.TemporaryDirectory() as folder:
                execute(notebook, Path(folder))
            tidy(notebook)
            path.write_text(nbformat.writes(notebook, version=4) + "\n")  # type: ignore[no-untyped-call]
            print(f"{path.name}: {path.stat().st_size // 1024} kB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
