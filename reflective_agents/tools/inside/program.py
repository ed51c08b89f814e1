"""The program's side: it is loaded, and answers calls."""

import os
import sys
import types
from typing import Any

from reflective_agents.tools.inside.plain import Caught, Channel, Job, Objects, describe, text_of


def serve_program(channel: Channel, job: Job) -> None:
    """Load a program and answer calls; each test meets a process forked from the freshly loaded program."""
    objects = Objects()
    names: dict[str, dict[str, int | str]] = {}
    with Caught() as loading:
        setup_names = prepare(job)
        module = load(job["program"], "program", setup_names)
        for name, value in [*vars(module).items()]:
            is_from_setup = name in setup_names and setup_names[name] is value
            if not is_from_setup and name[:2] != "__":
                names[name] = objects.handle(value)
    channel.send({"failed": describe(loading.error)} if loading.error else {"names": names})
    status = 0
    while loading.error is None:
        if channel.receive() == "begin":
            child = os.fork()
            if child == 0:
                answer_calls(channel, objects)
                os._exit(0)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        channel.send({"ended": status})  # also to a call that comes too late for the process that died


def prepare(job: Job) -> dict[str, Any]:
    """Return the names that the setup defines, without the one that the program is to define."""
    names = vars(load(job["setup"], "setup"))
    return {name: value for name, value in names.items() if name[:2] != "__" and name != job["entry_point"]}


def load(source: str, name: str, names: dict[str, Any] | None = None) -> types.ModuleType:
    """Carry out source text as a module of its own, in which these names are known."""
    module = types.ModuleType(name)
    sys.modules[name] = module  # where dataclasses look for it
    vars(module).update(names or {})
    exec(compile(source, f"<{name}>", "exec", dont_inherit=True), vars(module))
    return module


def answer_calls(channel: Channel, objects: Objects) -> None:
    """Answer calls until the test has ended."""
    while (request := channel.receive()) != "end":
        with Caught() as call:
            arguments = objects.decode(request["arguments"])
            before = objects.encode(arguments)
            target = objects.decode(request["target"])
            result = objects.encode(operate(request["operation"], target, arguments, objects.decode(request["named"])))
            after = objects.encode(arguments)
            channel.send({"result": result, "arguments": None if after == before else after})
        if call.error is not None:
            channel.send({"raised": type(call.error).__name__, "text": text_of(call.error)})


def operate(operation: str, target: Any, arguments: list[Any], named: dict[str, Any]) -> Any:
    """Carry out what a test does with one of the program's objects."""
    match operation:
        case "get":
            return getattr(target, *arguments)
        case "set":
            return setattr(target, *arguments)
        case "items":
            return list(target)
        case "length":
            return len(target)
    return target(*arguments, **named)
