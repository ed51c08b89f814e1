"""The command `reflect`, and `python -m reflective_agents.cli`, which is the same."""

import sys

from reflective_agents.state.errors import Misuse
from reflective_agents.state.extras import need

LIBRARIES = ("dotenv", "filelock", "langgraph.checkpoint.sqlite", "platformdirs", "rich", "typer")
"""What every sub-command needs."""


def main() -> int:
    """Run the command and return its exit code; without its libraries, say what brings them."""
    try:
        need(*LIBRARIES, extra="cli", purpose="reflect")
    except Misuse as missing:
        print(f"reflect: {missing}", file=sys.stderr)
        return 2
    from reflective_agents.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
