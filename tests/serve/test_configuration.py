"""The two servers serve the same."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_aegra_serves_what_the_development_server_serves() -> None:
    dev, aegra = (json.loads((ROOT / name).read_text()) for name in ("langgraph.json", "aegra.json"))
    assert {name: entry["description"] for name, entry in aegra["graphs"].items()} == {
        name: entry["description"] for name, entry in dev["graphs"].items()
    }
    for name, entry in aegra["graphs"].items():  # Aegra takes files, the development server modules
        assert entry["path"] == f"./reflective_agents/serve/graphs.py:{name}"
    assert aegra["auth"] == dev["auth"]
