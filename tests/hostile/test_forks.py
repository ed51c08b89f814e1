"""Servers that fork after they have used a graph, as prefork servers and multiprocessing do."""

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.process, pytest.mark.hostile]

FORKING = """
import os, signal, threading
from reflective_agents.graphs.reflexion import graph

def ask():
    question = {"messages": [("user", "What is LATS?")]}
    return graph.invoke(question, context={"model": "offline", "search": "local", "max_rounds": 1})["answer"]

threads = [threading.Thread(target=ask) for _ in range(4)]  # whose locks are held while this process forks
[thread.start() for thread in threads]
first = ask()
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if ask() == first else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), ask() == first)
[thread.join() for thread in threads]
"""


CALCULATING = """
import os, signal, threading, time
from reflective_agents.state.forks import CachedProperty

begun = threading.Event()

class Slow:
    @CachedProperty
    def value(self):
        begun.set()
        time.sleep(0.3)
        return 1

first = Slow()
thread = threading.Thread(target=lambda: first.value)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(10)
    os._exit(0 if Slow().value == 1 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
"""


def run(program: str) -> tuple[str, str]:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout, result.stderr


def test_a_property_that_was_being_calculated_is_no_lock_to_a_forked_process() -> None:
    assert run(CALCULATING) == ("0\n", "")


@pytest.mark.thorough
def test_a_forked_process_can_invoke() -> None:
    assert run(FORKING) == ("0 True\n", "")
