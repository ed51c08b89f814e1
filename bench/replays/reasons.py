"""Why a program fares otherwise here than in its log: rules on it, its tests, and what the log says of them."""

import ast
import builtins
import re
import typing
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import chain
from typing import NamedTuple

_REPLACED = re.compile(r"# output: (\w+)\(\) (?:missing|takes|got)")
_DEFINED = re.compile(r"^def (\w+)", re.MULTILINE)


class Program(NamedTuple):
    """A program with its surroundings.

    Attributes:
        text: The program.
        prompt: The source that the task gives.
        tests: The tests that were run, as one text.
        feedback: What the log says of them; empty where it says no more than the outcome.
    """

    text: str
    prompt: str
    tests: str
    feedback: str = ""


def explain(program: Program) -> str | None:
    """Say why a program fares otherwise here; None if no rule applies."""
    defined = names(program.text)
    if not defined.bound:
        return None
    for module in defined.modules:
        if find_spec(module) is None:
            return f"the program imports {module}, which is not installed here"
    for name in _REPLACED.findall(program.feedback):
        if hasattr(builtins, name):
            return f"in the log all programs ran in one process, where another one had replaced `{name}`"
    tests, helpers = names(program.tests), set(_DEFINED.findall(program.prompt)) - defined.bound
    if helpers & tests.used:
        return "our tests can call the functions that the prompt defines, the log's knew the program alone"
    given = {*dir(builtins), *typing.__all__, *helpers}
    if (defined.used - defined.bound - given) | (tests.used - tests.bound - defined.seen - given):
        return "a name is defined nowhere, which in the log another program had left in the process"
    return None


class Names(NamedTuple):
    """The names of a source: those that it binds, those of them that others see, those that it reads, and the modules
    that it imports."""

    bound: frozenset[str]
    seen: frozenset[str]
    used: frozenset[str]
    modules: frozenset[str]


def names(source: str) -> Names:
    """Read the names of a source; none of one that cannot be parsed."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return Names(frozenset(), frozenset(), frozenset(), frozenset())
    nodes = [*ast.walk(tree)]
    used = frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    modules = frozenset(module.partition(".")[0] for module in chain.from_iterable(map(_imported, nodes)))
    bound = frozenset(chain.from_iterable(map(_binds, nodes)))
    seen = frozenset(chain.from_iterable(map(_binds, tree.body)))
    return Names(bound, seen, used, modules)


def _binds(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.ExceptHandler(name=str(name)):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in aliases)


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
