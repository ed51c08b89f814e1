"""The dev container: what a cloud editor makes of a clone."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
MADE = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())


def test_it_makes_the_environment_of_the_makefile_with_a_python_that_serves() -> None:
    make = (ROOT / "Makefile").read_text()
    assert MADE["postCreateCommand"] == "make .venv/dev.stamp"
    assert "$(VENV)/%.stamp:" in make
    version = re.fullmatch(r"mcr\.microsoft\.com/devcontainers/python:3\.(\d+)", MADE["image"])
    assert version
    assert int(version[1]) >= 12  # Aegra's least


def test_every_port_has_a_label_and_the_interpreter_is_the_one_that_is_made() -> None:
    assert {str(port) for port in MADE["forwardPorts"]} == set(MADE["portsAttributes"])
    interpreter = MADE["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"]
    assert interpreter == "${containerWorkspaceFolder}/.venv/bin/python"
