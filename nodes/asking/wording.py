"""Prompts in other words: what the setting `prompts` gives takes the place of a template for the nodes of a run.

A template is named as it stands in `prompts/`: `lats.ACT`. Its placeholders have to stay: without them a model would
not be shown what the prompt is about. Modules of prompts look their templates up here, so that nothing else need know.
"""

import json
import pkgutil
import string
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from langchain_core.prompts import ChatPromptTemplate
from pydantic import JsonValue

from reflective_agents import prompts
from reflective_agents.state.errors import BadPrompt, reason_of
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.text.spelling import similar_names

Template = str | ChatPromptTemplate
LONGEST = 200_000
"""Characters of all prompts that a run may have given."""
MOST_MESSAGES = 10
"""Messages of one of them."""
MOST_PLACEHOLDERS = 50
"""Placeholders of one of them: each may stand for all that a user wrote."""
_PREFIX = f"{prompts.__name__}."
_MODULES = [module.name for module in pkgutil.iter_modules(prompts.__path__)]
_replacements: ContextVar[Mapping[str, Template] | None] = ContextVar("prompts", default=None)
_used: ContextVar[set[str] | None] = ContextVar("used", default=None)


class _Prompts(ModuleType):
    """A module of prompts, whose templates a run may replace."""

    def __getattribute__(self, name: str) -> Any:
        shipped = super().__getattribute__(name)
        replaced, used = _replacements.get(), _used.get()
        if not name.isupper() or (replaced is None and used is None):
            return shipped
        whole = f"{super().__getattribute__('__name__').removeprefix(_PREFIX)}.{name}"
        if used is not None:
            used.add(whole)
        return replaced.get(whole, shipped) if replaced else shipped


@cache
def templates() -> Mapping[str, Template]:
    """Return all templates by name, as they are shipped; without the parts that several of them are made of."""
    templates: dict[str, Template] = {}
    owners = Counter[tuple[str, int]]()
    for module in _MODULES:
        loaded = import_module(f"{_PREFIX}{module}")
        for name, value in vars(loaded).items():
            if name.isupper() and not name.startswith("_") and isinstance(value, Template):
                templates[f"{module}.{name}"] = value
                owners[name, id(value)] += 1
        sys.modules[loaded.__name__].__class__ = _Prompts
    # The same object under the same name in two modules is a part that both import.
    own: dict[str, Template] = {}
    for whole, template in templates.items():
        _, _, name = whole.partition(".")
        if owners[name, id(template)] == 1:
            own[whole] = template
    return own


@contextmanager
def use_prompts(setting: JsonMapping | str | None) -> Iterator[None]:
    """Let a node speak in the words of the setting `prompts`.

    Raises:
        BadPrompt: if they do not fit.
    """
    if not setting:
        yield
        return
    token = _replacements.set(replacements(setting))
    try:
        yield
    finally:
        _replacements.reset(token)


@contextmanager
def noting_prompts() -> Iterator[set[str]]:
    """Note the names of the templates that runs in the body make use of, in tasks and threads that it starts, too."""
    templates()
    used: set[str] = set()
    token = _used.set(used)
    try:
        yield used
    finally:
        _used.reset(token)


def replacements(setting: JsonMapping | str) -> Mapping[str, Template]:
    """Return the templates that a setting gives, checked.

    Args:
        setting: Texts by the names of templates, or a folder with a file `<name>.txt` for each.
    """
    given = _read_folder(Path(setting)) if isinstance(setting, str) else setting
    texts = json.dumps(given, sort_keys=True)
    if len(texts) > LONGEST:
        raise BadPrompt(f"the prompts have {len(texts)} characters together; at most {LONGEST} can be read")
    return _parse(texts)


def _read_folder(folder: Path) -> dict[str, str]:
    try:
        files = [path for path in sorted(folder.iterdir()) if path.suffix == ".txt"]
        for path in files:
            if not (path.is_file() and path.resolve().is_relative_to(folder.resolve())):
                raise BadPrompt(f"{path} is no file of this folder: put a copy there, or take it away")
        if sum(path.stat().st_size for path in files) > 4 * LONGEST:
            raise BadPrompt(f"the prompts in {folder} have more than {4 * LONGEST} bytes together: shorten them")
        return {path.stem: path.read_text().rstrip("\n") for path in files}
    except (OSError, UnicodeDecodeError) as error:
        raise BadPrompt(f"the prompts in {folder} cannot be read: {reason_of(error)}") from error


@lru_cache(maxsize=64)
def _parse(texts: str) -> Mapping[str, Template]:
    return {name: _replacement(name, setting) for name, setting in json.loads(texts).items()}


def _replacement(name: str, setting: Any) -> Template:
    shipped = templates().get(name)
    if shipped is None:
        close = similar_names(name, templates(), count=3, cutoff=0.3)
        raise BadPrompt(f"there is no prompt {name!r}; did you mean {', '.join(close) or 'another one'}?")
    try:
        new, (needed, given) = _adapted(shipped, setting)
    except (ValueError, TypeError) as error:
        raise BadPrompt(
            f"the prompt {name} cannot be used ({error}); braces that are meant as such are doubled"
        ) from error
    problems: list[str] = []
    if missing := needed - given:
        problems.append(f"lacks {_in_braces(missing)}")
    if unknown := given - needed:
        problems.append(f"has the unknown {_in_braces(unknown)}")
    if problems:
        raise BadPrompt(f"the prompt {name} {' and '.join(problems)}")
    return new


def _in_braces(placeholders: set[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(placeholders))


def _adapted(shipped: Template, setting: Any) -> tuple[Template, tuple[set[str], set[str]]]:
    """Return a template with the placeholders of the shipped one, and with its own. A text takes the place of a chat's
    first message, a list of messages that of all."""
    if isinstance(shipped, str):
        fields = _fields(shipped)
        return _plain(setting) if fields else str(setting), (fields, _fields(str(setting)))
    if not isinstance(setting, str) and len(setting) > MOST_MESSAGES:
        raise ValueError(f"it has {len(setting)} messages; at most {MOST_MESSAGES} can be read")
    before = ChatPromptTemplate(shipped.messages)
    if isinstance(setting, str):
        role = "system" if type(shipped.messages[0]).__name__.startswith("System") else "human"
        new = ChatPromptTemplate([(role, _plain(setting)), *shipped.messages[1:]])
    else:
        new = ChatPromptTemplate([(role, _plain(text)) for role, text in setting])
    return new.partial(**shipped.partial_variables), (_variables(before), _variables(new))


def _plain(text: JsonValue) -> str:
    """Return a text whose placeholders are filled in as they are: a width of ten digits would fill the memory.

    Raises:
        ValueError: if one is formatted, or its braces do not fit.
        TypeError: if it is no text.
    """
    if not isinstance(text, str):
        raise TypeError("a message is a role and a text")
    if text.count("{") - 2 * text.count("{{") > MOST_PLACEHOLDERS:
        raise ValueError(f"a message may have at most {MOST_PLACEHOLDERS} placeholders")
    for _, name, width, conversion in string.Formatter().parse(text):
        if width or conversion:
            raise ValueError(f"{{{name}}} stands for itself, without ! or :")
    return text


def _variables(template: ChatPromptTemplate) -> set[str]:
    return {*template.input_variables, *template.optional_variables}


def _fields(text: str) -> set[str]:
    """Return the placeholders of a text; one that is never filled in may have braces."""
    try:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}
    except ValueError:
        return set()
