"""The tests' side: they call the program from afar, and decide."""

import ast
import builtins
import importlib
import sys
from collections.abc import Iterator
from typing import Any, TypeVar

from reflective_agents.tools.inside.plain import (
    Caught,
    Channel,
    Examination,
    Objects,
    ProgramEnded,
    cut,
    describe,
    ending,
)
from reflective_agents.tools.inside.program import prepare

T = TypeVar("T")


class ProgramError(Exception):
    """Raised in a test for what the program raised, if that is not one of Python's own exceptions."""


class Remote(Objects):
    """What the tests know of the program."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel
        self._proxies: dict[int, Proxy] = {}

    def encode(self, value: Any) -> Any:
        """Return a value as JSON; an object of the program's as its number."""
        if isinstance(value, Proxy):
            return {"object": value.__dict__["_number"], "type": ""}
        return super().encode(value)

    def number(self, value: Any) -> int:
        """Refuse a value that only the tests have."""
        raise TypeError(f"a {type(value).__name__} cannot be handed to the program")

    def object(self, number: int, kind: str) -> "Proxy":
        """Return what stands for an object of the program's."""
        return self._proxies.setdefault(number, Proxy(self, number, kind))

    def ask(self, proxy: "Proxy", operation: str, arguments: tuple[Any, ...] = (), named: Any = None) -> Any:
        """Let the program carry something out. Raises what it raised; what it changed in its arguments is changed."""
        request = {"operation": operation, "target": self.encode(proxy), "arguments": self.encode(list(arguments))}
        self._channel.send({**request, "named": self.encode(named or {})})
        match self._channel.receive():
            case {"result": result, "arguments": changed}:
                for old, new in zip(arguments, self.decode(changed or []), strict=False):
                    overwrite(old, new)
                return self.decode(result)
            case {"raised": str(kind), "text": str(text)}:
                raise as_exception(kind, text)
            case {"ended": int(status)}:
                raise ProgramEnded(f"the program ended its process ({ending(status)})")
        raise ValueError("the program's answer cannot be read")


class Proxy:
    """Stands for an object of the program's. Equal to itself only: the program has no part in a comparison."""

    def __init__(self, remote: Remote, number: int, kind: str) -> None:
        self.__dict__.update(_remote=remote, _number=number, _kind=kind)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Let the program call it."""
        return self._remote.ask(self, "call", arguments, named)

    def __getattr__(self, name: str) -> Any:
        # Python looks special methods up for copying and the like, which are no business of the program's.
        if name.startswith("__"):
            raise AttributeError(name)
        return self._remote.ask(self, "get", (name,))

    def __setattr__(self, name: str, value: Any) -> None:
        self._remote.ask(self, "set", (name, value))

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._remote.ask(self, "items")))

    def __len__(self) -> int:
        return int(self._remote.ask(self, "length"))

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{self._kind} object>"


def overwrite(old: Any, new: Any) -> None:
    """Give a container the contents of another of its type."""
    if type(old) is not type(new) or old == new:
        return
    if isinstance(old, list):
        old[:] = new
    elif isinstance(old, dict | set):
        old.clear()
        old.update(new)


def as_exception(kind: str, text: str) -> Exception:
    """Return the exception of Python's own that has this name, or a ProgramError that quotes it.

    One that ends an iteration would end a test's own loops, and skip what they have yet to compare.
    """
    named = getattr(builtins, kind, None)
    unfit = (UnicodeError, StopIteration, StopAsyncIteration)  # the first takes more than a text
    if isinstance(named, type) and issubclass(named, Exception) and not issubclass(named, unfit):
        return named(text)
    return ProgramError(f"{kind}: {text}")


class Watch(ast.NodeTransformer):
    """Notes in each assertion the value that is compared, so that a failure can show it."""

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        """Wrap the left side of a comparison, or else the whole condition."""
        if isinstance(node.test, ast.Compare):
            node.test.left = self._noted(node.test.left)
        else:
            node.test = self._noted(node.test)
        return node

    @staticmethod
    def _noted(value: ast.expr) -> ast.expr:
        call = ast.Call(ast.Name("__note__", ast.Load()), [value], [])
        return ast.copy_location(call, value)


def judge(channel: Channel, report: Channel, job: Examination) -> None:
    """Carry out tests one after another and report each verdict: {"passed", "output", "last"}."""
    greeting = channel.receive()
    if "failed" in greeting:
        return report.send({"failed": cut(str(greeting["failed"]))})
    setup_names = prepare(job)
    report.send({"failed": None})
    for test in job["tests"]:
        remote = Remote(channel)
        channel.send("begin")
        lent = borrowed(test, job["entry_point"], greeting["names"], remote)
        verdict = carry_out(test, {**lent, **setup_names})
        with Caught() as farewell:
            channel.send("end")
            while "ended" not in channel.receive():
                pass
        report.send({**verdict, "last": farewell.error is not None})
        if farewell.error is not None:  # no program is left for the other tests
            break
    return None


def borrowed(test: str, entry_point: str, offered: dict[str, Any], remote: Remote) -> dict[str, Any]:
    """Return what a test needs of the program's names: the entry point, and others that the test reads.

    Python's own names are not the program's to give, and its modules come from Python, although a program offers them.
    """
    with Caught():
        named = {node.id for node in ast.walk(ast.parse(test)) if isinstance(node, ast.Name)}
        lent: dict[str, Any] = {}
        for name in named & offered.keys():
            if name in sys.stdlib_module_names:
                lent[name] = importlib.import_module(name)
            elif name[:2] != "__" and not hasattr(builtins, name):
                lent[name] = remote.decode(offered[name])
        if entry_point in offered:
            lent[entry_point] = remote.decode(offered[entry_point])
        return lent
    return {}


def carry_out(test: str, names: dict[str, Any]) -> dict[str, bool | str]:
    """Carry out one test with the names that it may use."""
    noted: list[Any] = []

    def note(value: T) -> T:
        noted[:] = [value]
        return value

    with Caught() as run:
        tree = ast.fix_missing_locations(Watch().visit(ast.parse(test)))
        exec(compile(tree, "<test>", "exec"), {**names, "__name__": "__main__", "__note__": note})
    if run.error is None:
        return {"passed": True, "output": ""}
    with Caught():
        shown = repr(noted[0]) if noted and isinstance(run.error, AssertionError) else describe(run.error)
        return {"passed": False, "output": cut(shown)}
    return {"passed": False, "output": type(run.error).__name__}
