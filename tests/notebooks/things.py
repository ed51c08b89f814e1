"""Plays a notebook's cells with a change, as a reader does who tries something."""

import ast
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from notebooks.outputs import read

FOLDER = Path(__file__).parent.parent.parent / "notebooks"
LOOPS = (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.If, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


async def play(name: str, *until: str, **changes: tuple[str, str]) -> dict[str, Any]:
    """Run cells of a notebook in this process, with all that they rest on, and return the names that they define.

    Args:
        name: The notebook.
        until: The ids of the cells whose outcome is looked at.
        changes: What stands in a cell, and what the reader writes instead, by the cell's id with _ for -.
    """
    cells = {cell.id: cell.source for cell in read(FOLDER / f"{name}.ipynb").cells if cell.cell_type == "code"}
    for changed, (old, new) in changes.items():
        id = changed.replace("_", "-")
        assert old in cells[id]
        cells[id] = cells[id].replace(old, new)
    names: dict[str, Any] = {}
    for id in needed(cells, {*until, *(changed.replace("_", "-") for changed in changes)}):
        code = compile(cells[id], id, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, names)
        if inspect.iscoroutine(result):
            await result
    return names


def needed(cells: dict[str, str], wanted: set[str]) -> list[str]:
    """Return the cells that define what the wanted ones read, and these, in order."""
    kept: list[str] = []
    read: set[str] = set()
    for id in reversed(cells):
        reads, defines = names_of(ast.parse(cells[id]).body)
        if id in wanted or defines & read:
            kept.append(id)
            read |= reads
    return kept[::-1]


def names_of(body: Sequence[ast.stmt]) -> tuple[set[str], set[str]]:
    """Return which names of other cells a cell reads, and which it defines."""
    reads: set[str] = set()
    defines: set[str] = set()
    for statement in body:
        named = [part for part in ast.walk(statement) if isinstance(part, ast.Name)]
        loaded = {part.id for part in named if isinstance(part.ctx, ast.Load)}
        stored = {part.id for part in named if isinstance(part.ctx, ast.Store)}
        if isinstance(statement, ast.AugAssign):
            loaded |= stored
        reads |= loaded - defines - (stored if isinstance(statement, LOOPS) else set())
        defines |= stored
        if isinstance(statement, ast.Import | ast.ImportFrom):
            defines |= {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defines.add(statement.name)
    return reads, defines
