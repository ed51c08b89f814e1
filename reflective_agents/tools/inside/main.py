"""The roles of a process in the sandbox.

A program and the tests that judge it run in two processes of two sandboxes, joined by one socket. Through it pass calls
and plain data, so nothing that a program does to its own process - patched builtins, an `__eq__` that agrees with
everything, an early exit - reaches the comparison. A test passes if it was carried out to its end over there.

    run <limits>          a program by itself: its text is the first message of standard input, the rest is its input
    program <limits> 3    the program that is tested: answers the calls that arrive at descriptor 3
    tests <limits> 3      the tests: call through descriptor 3, report each verdict on standard output
    probe <limits>        does nothing, under the limits
"""

import json
import os
import resource
import sys

from reflective_agents.tools.inside.judge import judge
from reflective_agents.tools.inside.plain import Channel
from reflective_agents.tools.inside.program import serve_program

MAX_DIGITS = 100_000
"""Digits of a whole number that is read or written."""


def limit(limits: dict[str, int]) -> None:
    """Put this process, and all that it starts, under limits that it cannot raise again."""
    for name, value in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    sys.set_int_max_str_digits(MAX_DIGITS)


def main(role: str, limits: str, peer: str = "") -> None:
    """Play a role."""
    limit(json.loads(limits))
    if role == "probe":
        # A process within the limit of processes, too: a sandbox that allows none is of no use.
        os.waitpid(os.fork() or os._exit(0), 0)
        return
    job = Channel(0).receive()
    if role == "run":
        sys.argv = ["program"]
        load_main(job["program"])
        return
    # What foreign code prints must not pass for a report: it gets descriptors that lead nowhere.
    report = Channel(os.dup(1))
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    if role == "program":
        # The program's side reports nothing, and could forge verdicts.
        os.close(report._descriptor)
        serve_program(Channel(int(peer)), job)
    else:
        judge(Channel(int(peer)), report, job)


def load_main(source: str) -> None:
    """Carry out source text as the main program."""
    exec(compile(source, "<program>", "exec", dont_inherit=True), {"__name__": "__main__"})
