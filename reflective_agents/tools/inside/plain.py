"""Plain data between a program and its tests: messages, values, and what can go wrong with them."""

import json
import os
from typing import Any, TypedDict

MAX_MESSAGE = 16_000_000
"""Bytes of one call or answer."""
MAX_OUTPUT = 500
"""Most characters in the report of one test."""


class Caught:
    """Stops whatever is raised in its block, also the exit of the interpreter: foreign code may raise anything."""

    error: BaseException | None = None

    def __enter__(self) -> "Caught":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self.error = error
        return True


class ProgramEnded(Exception):
    """Raised in a test when the program's process has ended in the middle of it."""


class Job(TypedDict):
    """A program, the function that it is to define, and the statements carried out before it."""

    program: str
    entry_point: str
    setup: str


class Examination(Job):
    """What the tests' side is told; it never sees the program."""

    tests: list[str]


class Channel:
    """Messages of JSON, each preceded by its length in four bytes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, message: object) -> None:
        """Send one message. Raises ValueError if it is too long."""
        text = json.dumps(message).encode()
        if len(text) > MAX_MESSAGE:
            raise ValueError(f"a value of {len(text)} bytes is too large to be handed over")
        rest = len(text).to_bytes(4, "big") + text
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def receive(self) -> Any:
        """Return the next message. Raises ProgramEnded at the end of the stream, ValueError for anything else."""
        length = int.from_bytes(self._read(4), "big")
        if length > MAX_MESSAGE:
            raise ValueError("the program's answer is too large")
        return json.loads(self._read(length))

    def _read(self, count: int) -> bytes:
        parts = []
        while count:
            part = os.read(self._descriptor, min(count, 1 << 20))
            if not part:
                raise ProgramEnded("the program's process has ended")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


class Objects:
    """The program's objects that are no plain data: the tests hold their numbers only."""

    def __init__(self) -> None:
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}

    def encode(self, value: Any) -> Any:
        """Return a value as JSON. Subclasses of plain types become the plain type."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list):
            return [self.encode(item) for item in value]
        for kind in (tuple, set, frozenset):
            if isinstance(value, kind):
                return {kind.__name__: [self.encode(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
        if isinstance(value, bytes | bytearray):
            return {"bytes": value.hex()}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        return self.handle(value)

    def handle(self, value: Any) -> dict[str, int | str]:
        """Return the JSON that stands for an object."""
        return {"object": self.number(value), "type": type(value).__name__}

    def number(self, value: Any) -> int:
        """Return the number of an object; the same object always has the same one."""
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._objects)
            self._objects.append(value)  # which keeps it alive, and its id its own
        return self._numbers[id(value)]

    def decode(self, data: Any) -> Any:
        """Return the value that JSON stands for. Raises ValueError if it stands for none."""
        if isinstance(data, list):
            return [self.decode(item) for item in data]
        if not isinstance(data, dict):
            return data
        match data:
            case {"tuple": items}:
                return tuple(self.decode(items))
            case {"set": items}:
                return set(self.decode(items))
            case {"frozenset": items}:
                return frozenset(self.decode(items))
            case {"dict": pairs}:
                return {self.decode(key): self.decode(item) for key, item in pairs}
            case {"bytes": text}:
                return bytes.fromhex(text)
            case {"complex": [real, imaginary]}:
                return complex(real, imaginary)
            case {"object": int(number), "type": kind}:
                return self.object(number, str(kind))
        raise ValueError("the program's answer cannot be read")

    def object(self, number: int, kind: str) -> Any:
        """Return the object of a number."""
        return self._objects[number]


def describe(error: BaseException) -> str:
    """Return the kind and the text of an error on one line."""
    return cut(f"{type(error).__name__}: {text_of(error)}".rstrip(": "))


def text_of(error: BaseException) -> str:
    """Return the text of an error; empty if the error cannot even tell that."""
    with Caught():
        return cut(str(error))
    return ""


def cut(text: str) -> str:
    """Shorten a text to what may be reported."""
    return text if len(text) <= MAX_OUTPUT else f"{text[:MAX_OUTPUT]}..."


def ending(status: int) -> str:
    """Say how a process ended."""
    return f"exit code {status}" if status >= 0 else f"signal {-status}"
