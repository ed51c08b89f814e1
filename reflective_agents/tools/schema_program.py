"""A program that checks values against JSON schemas, one request a line. It may be killed where a library may not:
a schema can make the validator overflow its stack, or work for years. It imports nothing of the package, to start fast.
"""

import json
import signal
import sys
from functools import lru_cache
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs

FAULTS = 5
"""Most faults in an answer."""
LONGEST_FAULT = 500
"""Characters of a fault."""


def main(seconds: float, megabytes: int, pattern_bytes: int) -> None:
    """Answer each line of the input, `[schema, value]`, with a line: the list of what does not fit.

    A request that takes too much ends the process, which whoever waits for the answer sees.

    Args:
        seconds: Processor time that a request may take.
        megabytes: Memory that the process may take.
        pattern_bytes: Largest size of a compiled pattern.
    """
    linear = jsonschema_rs.RegexOptions(size_limit=pattern_bytes, dfa_size_limit=pattern_bytes)

    @lru_cache(maxsize=32)
    def compiled(schema: str) -> jsonschema_rs.Draft202012Validator:
        return jsonschema_rs.Draft202012Validator(json.loads(schema), pattern_options=linear, retriever=_nothing)

    _limit_memory(megabytes)
    for line in sys.stdin:
        _limit_time(seconds)
        try:
            schema, value = json.loads(line)
            faults = _faults(compiled(json.dumps(schema)), value)
        except (ValueError, RecursionError) as error:
            faults = [f"cannot be checked: {str(error).splitlines()[0][:LONGEST_FAULT]}"]
        _limit_time(0)
        sys.stdout.write(json.dumps(faults) + "\n")
        sys.stdout.flush()


def _faults(schema: jsonschema_rs.Draft202012Validator, value: Any) -> list[str]:
    # Quicker than to look for errors, and most values fit.
    if schema.is_valid(value):
        return []
    faults: list[str] = []
    for error in islice(schema.iter_errors(value), FAULTS):
        path = ".".join(map(str, error.instance_path)) or "output"
        faults.append(f"{path}: {error.message[:LONGEST_FAULT]}")
    return faults


def _nothing(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not part of the schema")


def _limit_memory(megabytes: int) -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20, megabytes * 2**20))
        # To run out of memory is expected here, and need not leave a file.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time(seconds: float) -> None:
    if sys.platform != "win32":
        # Processor time: on a busy machine a check takes longer on the clock. The signal ends the process.
        signal.setitimer(signal.ITIMER_PROF, seconds)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
