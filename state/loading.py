"""Loads what a user names on the command line: a class or a function of their own."""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from reflective_agents.state.errors import Misuse


def load_named(path: str, what: str) -> Any:
    """Load what a path names. Only a command loads code by name: its user may run any code anyway.

    Args:
        path: `FILE.py:name` or `package.module:name`; a module is looked for in the working directory, too.
        what: What it is, to begin an error with.

    Raises:
        Misuse: if there is no such module, or no such name in it. What the code itself raises is raised as it is.
    """
    module, _, name = path.rpartition(":")
    try:
        return getattr(_file(Path(module)) if module.endswith(".py") else _module(module), name)
    except (ImportError, AttributeError, FileNotFoundError, SyntaxError, ValueError) as error:
        form = "FILE.py:name or package.module:name"
        raise Misuse(f"{what} {path!r}: {error}; name it as {form}") from error


def _module(name: str) -> ModuleType:
    # The command `reflect` has its own folder there instead. Last, so that no file of the user's hides a library.
    if "" not in sys.path:
        sys.path.append("")
    return import_module(name)


def _file(file: Path) -> ModuleType:
    spec = spec_from_file_location(file.stem, file) if file.is_file() else None
    if spec is None or spec.loader is None:
        raise FileNotFoundError("No such file")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
