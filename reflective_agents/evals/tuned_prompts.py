"""The prompts that tuning begins with, and the files of those that it finds."""

import re
from itertools import starmap
from pathlib import Path

from langchain_core.prompts import ChatPromptTemplate, PromptTemplate, SystemMessagePromptTemplate

from reflective_agents.evals.runner import Words
from reflective_agents.nodes.asking.wording import replacements, templates
from reflective_agents.state.errors import Misuse
from reflective_agents.text.spelling import similar_names

PLACEHOLDER = r"\{[a-z_]+\}"
_ENDS = re.compile(rf"((?:{PLACEHOLDER}\s*)*)(.*?)((?:\s*{PLACEHOLDER})*\s*)", re.DOTALL)


def shipped(name: str) -> str:
    """Return the text of a template that a candidate replaces: of a chat its system message.

    Raises:
        Misuse: if there is no such template, or its text cannot be given as a prompt.
    """
    if name not in templates():
        similar = ", ".join(similar_names(name, templates(), 3, 0.4))
        hint = f"; similar: {similar}" if similar else ""
        raise Misuse(f"there is no prompt {name}: see docs/parts.md{hint}")
    text = _text_of(templates()[name])
    replacements({name: text})
    return text


def _text_of(template: object) -> str:
    match template:
        case ChatPromptTemplate(messages=[SystemMessagePromptTemplate(prompt=PromptTemplate() as system), *_]):
            return system.template
        case _:
            return str(template)


def without_ends(prompt: str) -> tuple[str, str, str]:
    """Part a prompt into the placeholders that it begins with, its text, and those that it ends with: an author need
    not know of these, and small models take them for parts of the task."""
    parts = _ENDS.fullmatch(prompt)
    if parts is None or not parts[2]:
        return "", prompt, ""
    return parts[1], parts[2], parts[3]


def _files(words: Words, folder: Path) -> dict[Path, bytes]:
    return {folder / f"{name}.txt": f"{text}\n".encode() for name, text in words.items()}


def are_written(words: Words, folder: Path) -> bool:
    """Tell whether a folder holds these prompts and no others."""
    wanted = _files(words, folder)
    return set(folder.glob("*.txt")) == set(wanted) and all(starmap(_holds, wanted.items()))


def _holds(file: Path, text: bytes) -> bool:
    """Tell whether a file holds a text; what is no file, or larger, is not read."""
    return file.is_file() and file.stat().st_size == len(text) and file.read_bytes() == text


def write_prompts(words: Words, folder: Path) -> None:
    """Write prompts as the files that the setting `prompts` reads, instead of those that are there."""
    for file in folder.glob("*.txt"):
        file.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in _files(words, folder).items():
        file.write_bytes(text)
