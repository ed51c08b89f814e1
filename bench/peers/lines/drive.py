"""Does the tasks of one module, in the interpreter of its library, and prints each outcome as a line of JSON."""

import json
import os
import sys
from importlib import import_module
from typing import Any

from pydantic import BaseModel


def main() -> None:
    """Read a task and its questions from each line of stdin; the module is the first argument."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not get between the outcomes
    module = import_module(f"bench.peers.lines.{sys.argv[1]}")
    for line in sys.stdin:
        name, *questions = json.loads(line)
        outcome: Any = getattr(module, name)(*questions)
        print(json.dumps(outcome.model_dump() if isinstance(outcome, BaseModel) else outcome), file=out, flush=True)
