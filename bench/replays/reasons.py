"""Why a program fares otherwise here than in its log: rules on it, its tests, and what the log says of them."""

import ast
import builtins
import re
import typing
from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple

_REPLACED = re.compile(r"# output: (\w+)\(\) (?:missing|takes|got)")
_DEFINED = re.compile(r"^def (\w+)", re.MULTILINE)


class Program(NamedTuple):
    """A program with its surroundings.

    Attributes:
        text: The program.
        prompt: The source that the task gives.
        tests: The tests that were run, as one text.
        said: What the log says of them; empty where it says no more than the outcome.
    """

    text: str
    prompt: str
    tests: str
    said: str = ""


def explain(program: Program) -> str | None:
    """Say why a program fares otherwise here; None if no rule applies."""
    defined = names(program.text)
    if not defined.bound:
        return None
    if missing := next((name for name in defined.modules if find_spec(name) is None), None):
        return f"the program imports {missing}, which is not installed here"
    if replaced := next((name for name in _REPLACED.findall(program.said) if hasattr(builtins, name)), None):
        return f"in the log all programs ran in one process, where another one had replaced `{replaced}`"
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
    used = (node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    modules = (module.partition(".")[0] for node in nodes for module in _imported(node))
    bound, seen = (frozenset(name for node in part for name in _binds(node)) for part in (nodes, tree.body))
    return Names(bound, seen, frozenset(used), frozenset(modules))


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
