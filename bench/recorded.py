"""Where the recorded model outputs lie: beside the checkout, not in it, or where the variable `RECORDED` says."""

import os
import sys
from pathlib import Path

RECORDED = Path(os.environ.get("RECORDED") or Path(__file__).parents[2] / "shared" / "recorded")


def required(path: Path) -> Path:
    """Return a file or a folder of the recorded runs.

    Raises:
        SystemExit: if it is not there; the message says how it is made.
    """
    if not path.exists():
        sys.exit(
            f"{path} is missing. The recorded runs are made from the logs that others published: `python -m "
            "bench.records` prints what to clone, `python -m bench.records FOLDER` makes them (docs/replays.md)."
        )
    return path
