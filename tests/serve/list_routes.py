"""Prints the routes of a server, as its app has them: `python list_routes.py dev`, or `aegra` with its own Python."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CONFIG = json.loads(Path("langgraph.json").read_text())
DEV = {
    "DATABASE_URI": ":memory:",
    "LANGGRAPH_AUTH": json.dumps(CONFIG["auth"]),
    "LANGGRAPH_DISABLE_FILE_PERSISTENCE": "true",
    "LANGGRAPH_HTTP": json.dumps(CONFIG["http"]),
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "LANGGRAPH_RUNTIME_EDITION": "inmem",
    "LANGSERVE_GRAPHS": "{}",
    "LANGSMITH_TRACING": "false",
    "MIGRATIONS_PATH": "__inmem",
    "REDIS_URI": "fake",
}
"""As `langgraph dev` sets them."""


def main(server: str) -> None:
    if server == "dev":
        os.environ.update(DEV)
        from langgraph_api.server import app  # type: ignore[import-untyped]
    else:
        os.environ["AEGRA_CONFIG"] = "aegra.json"
        from aegra_api.main import app
    sys.stdout.write(json.dumps(sorted({*routes(app.routes)})) + "\n")


def routes(mounted: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    for route in mounted:
        inner = getattr(route, "original_router", route)  # FastAPI wraps the routers that it includes
        if getattr(inner, "routes", None):
            yield from routes(inner.routes, prefix + getattr(route, "path", ""))
        else:
            for method in (getattr(route, "methods", None) or {"ANY"}) - {"HEAD", "OPTIONS"}:
                yield method, prefix + getattr(route, "path", "")


if __name__ == "__main__":
    main(sys.argv[1])
