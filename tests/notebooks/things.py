"""Plays a notebook's cells with a change, as a reader does who tries something."""

import ast
import inspect
from pathlib import Path
from typing import Any

from notebooks.outputs import read

FOLDER = Path(__file__).parent.parent.parent / "notebooks"


async def play(name: str, until: str, **changes: tuple[str, str]) -> dict[str, Any]:
    """Run the code cells of a notebook in this process, and return the names that they define.

    Args:
        name: The notebook.
        until: The id of the last cell that runs.
        changes: What stands in a cell, and what the reader writes instead, by the cell's id with _ for -.
    """
    names: dict[str, Any] = {}
    for cell in read(FOLDER / f"{name}.ipynb").cells:
        if cell.cell_type == "code":
            old, new = changes.pop(cell.id.replace("-", "_"), ("", ""))
            assert old in cell.source
            code = compile(cell.source.replace(old, new), cell.id, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, names)
            if inspect.iscoroutine(result):
                await result
            if cell.id == until:
                break
    assert not changes
    return names
