"""Runs one search of one driver, once for each line on stdin, and prints what each run took as a line of JSON.

    <interpreter of the peer> drive.py DRIVER SETTING QUESTION

DRIVER is a module beside this file with a class `Search`, made once from SETTING: `run(question)` searches anew;
`root()` is the root of the tree that the caller has in hand, also after a failed run, or None; `calls` is how many
calls the run made, if somebody counts them. A search that raises ends the process with its traceback, after its line
of JSON.
"""

import json
import os
import sys
import time
from importlib import import_module
from typing import Any, TextIO


def report(search: Any, question: str, out: TextIO) -> None:
    """Run a search and print its figures: seconds of the clock, of this process's processor time, and its tree."""
    finished, started, busy = False, time.perf_counter(), time.process_time()
    try:
        search.run(question)
        finished = True
    finally:
        seconds, cpu = time.perf_counter() - started, time.process_time() - busy
        nodes, expansions = size(search.root())
        calls = getattr(search, "calls", None)
        figures = {"seconds": seconds, "cpu": cpu, "nodes": nodes, "expansions": expansions, "calls": calls}
        print(json.dumps({**figures, "finished": finished}), file=out, flush=True)


def size(root: Any) -> tuple[int, int]:
    """Count the nodes below the root, and the nodes, including the root, that have children."""
    if root is None or not root.children:
        return 0, 0
    below = [size(child) for child in root.children]
    return len(below) + sum(nodes for nodes, _ in below), 1 + sum(expansions for _, expansions in below)


def main() -> None:
    """Run until stdin ends."""
    driver, setting, question = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not get between the figures
    search = import_module(driver).Search(setting)
    for _ in sys.stdin:
        report(search, question, out)


if __name__ == "__main__":
    main()
