"""Nothing that reads a text of a model's, a tool's or a document's can be frozen by it: no function, and no pattern.

They are found here, and not listed: whoever writes another one is tested.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import cycle
from types import ModuleType

import pytest

import reflective_agents
from tests.text.test_linear import cpu

ROOMS = ("text", "environments", "nodes", "graphs", "tree_search", "models", "web_search", "tools", "memory", "offline")
METHODS = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
BEFORE = ["", "Action", "Answer:", "1. ", "[1]", "(", "<", "```python\n", "- ", "def f"]
AFTER = ["", "x", "!"]
UNITS = [
    " ",
    "1",
    "[",
    "\n",
    " \n",
    "\r\n",
    "</",
    "](",
    "ab\n",
    "##",
    "\n#",
    "\n-",
    "```\n",
    "[[1]] ",
    "é",
    "\u3000",
    "。",
    " and ",
    "a,",
    "1 ",
]
SHORT, LONG = 1_000, 4_000
LINEAR, QUADRATIC = 4, 16
"""How many times as long as the short one the long text takes, where reading is so."""
QUICK = 0.001
"""Seconds of processor time within which a short text is read by what need not be looked at more closely."""
Reader = Callable[[str], object]


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(reflective_agents.__path__, "reflective_agents."):
        if found.name.split(".")[1] in ROOMS:
            yield importlib.import_module(found.name)


def functions(module: ModuleType) -> Iterator[tuple[str, Reader]]:
    """Yield the functions of a module that take one text or two, each of which may be long."""
    for name, value in vars(module).items():
        function = inspect.unwrap(value) if callable(value) else None  # caches hide what they keep
        if not inspect.isfunction(function) or function.__module__ != module.__name__:
            continue
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            continue
        needed = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
        if 1 <= len(needed) <= 2 and all(map(takes_text, needed)):
            yield f"{module.__name__}.{name}", whole(function if len(needed) == 1 else partial(function, "x"))
            if len(needed) == 2:
                yield f"{module.__name__}.{name}", whole(first(function))


def takes_text(parameter: inspect.Parameter) -> bool:
    return parameter.annotation is str and parameter.kind != parameter.KEYWORD_ONLY


def first(function: Callable[[str, str], object]) -> Reader:
    return lambda text: function(text, "x")


def whole(function: Reader) -> Reader:
    """Read to the end; a text may be refused."""

    def read(text: str) -> None:
        with suppress(Exception):  # what no reader takes is refused in many ways
            result = function(text)
            if isinstance(result, Iterator):
                list(result)

    return read


def patterns(module: ModuleType) -> Iterator[tuple[str, Reader]]:
    """Yield the compiled patterns of a module, in the ways in which it uses them."""
    source = inspect.getsource(module)
    for name, pattern in vars(module).items():
        if isinstance(pattern, re.Pattern) and re.search(rf"^{name}\b.*=", source, re.MULTILINE):
            for method in set(re.findall(rf"\b{name}\.(\w+)\b", source)) & {*METHODS}:
                arguments = [""] if method.startswith("sub") else []
                yield f"{module.__name__}.{name}.{method}", whole(partial(getattr(pattern, method), *arguments))


@cache
def readers() -> list[tuple[str, Reader]]:
    return [reader for module in modules() for find in (functions, patterns) for reader in find(module)]


def test_they_are_found() -> None:
    names = {name for name, _ in readers()}
    assert {"reflective_agents.text.labels.bare", "reflective_agents.text.extract.sentences"} <= names
    assert "reflective_agents.text.sentences._SENTENCE_END.finditer" in names
    assert len(names) > 300


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.parametrize("unit", UNITS)
def test_every_reader_takes_linear_time(unit: str) -> None:
    around = [*zip(BEFORE, cycle(AFTER), strict=False)][UNITS.index(unit) % 2 :: 2]  # each beside half of the units
    slow = [
        (name, before, after)
        for before, after in around
        for name, read in readers()
        if is_slow(read, *(before + unit * (size // len(unit)) + after for size in (SHORT, LONG)))
    ]
    assert slow == []


def is_slow(read: Reader, short: str, long: str) -> bool:
    if cpu(partial(read, short)) < QUICK:
        return False
    # One measurement may be disturbed by whatever else the machine does, but hardly each of five; of a reader that is
    # slow but linear the first one mostly says so.
    growths = (cpu(partial(read, long)) / max(cpu(partial(read, short)), 1e-9) for _ in range(5))
    return all(growth > (LINEAR + QUADRATIC) / 2 - 2 for growth in growths)
