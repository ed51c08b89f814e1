"""The environments by name, as settings and data sets name them."""

from functools import lru_cache
from pathlib import Path
from typing import get_args

from environments.arithmetic import Arithmetic
from environments.base import Environment
from environments.blocksworld import Blocksworld
from environments.crosswords import Crosswords
from environments.docstore import Docstore, folder_docstore, jsonl_docstore
from environments.fever import FactChecking
from environments.game24 import Game24
from environments.programming import Programming
from environments.questions import Questions
from environments.wikipedia import Wikipedia
from state.context import EnvironmentName
from state.errors import Misuse

_FINISH = {
    "questions": "Finish[{}]",
    "fever": "Finish[{}]",
    "game24": "Answer: {}",
    "programming": "{}",
    "blocksworld": "Plan:\n{}",
    "arithmetic": "Answer: {}",
}


def get_environment(name: str, docstore: str | None = None, *, unsafe_code: bool = False) -> Environment:
    """Make the environment of this name.

    Args:
        name: one of `EnvironmentName`.
        docstore: where articles come from: "wikipedia", a folder, a JSONL file, or None for those a task brings. Files
            are read at once, which blocks.
        unsafe_code: whether programs may run as plain processes where there is no sandbox.

    Raises:
        Misuse: if there is no such environment.
        BadCorpus: if the docstore cannot be read.
    """
    match name:
        case "questions":
            return Questions(_docstore(docstore))
        case "fever":
            return FactChecking(_docstore(docstore))
        case "game24":
            return Game24()
        case "crosswords":
            return Crosswords()
        case "programming":
            return Programming(unsafe_subprocess=unsafe_code)
        case "blocksworld":
            return Blocksworld()
        case "arithmetic":
            return Arithmetic()
    raise Misuse(f"unknown environment {name!r}: choose one of {', '.join(get_args(EnvironmentName))}")


def final_action(name: str, answer: str) -> str | None:
    """The action that gives an answer in this environment; None where an answer is built of many actions."""
    form = _FINISH.get(name)
    return form.format(answer) if form else None


@lru_cache(maxsize=8)
def _docstore(where: str | None) -> Docstore | None:
    if where is None:
        return None
    if where == "wikipedia":
        return Wikipedia()
    return jsonl_docstore(Path(where)) if where.endswith(".jsonl") else folder_docstore(Path(where))
