"""The image and the services of compose, which cannot be built everywhere: a linter and a schema check them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]


def lint(program: str, *arguments: str) -> None:
    command = [str(Path(sys.executable).parent / program), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.process
def test_the_dockerfile_is_clean() -> None:
    lint("hadolint", "Dockerfile")


def test_what_the_dockerfile_copies_is_there() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    sources = [line.split()[1] for line in lines if line.startswith("COPY")]
    assert all((ROOT / source).exists() for source in sources)


@pytest.mark.thorough
@pytest.mark.process
def test_the_services_fit_the_schema_of_compose() -> None:
    lint("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")


def test_the_services_name_nothing_that_is_not_there() -> None:
    compose: dict[str, Any] = YAML(typ="safe").load(ROOT / "compose.yaml")
    for service in compose["services"].values():
        assert {*service.get("depends_on", {})} <= {*compose["services"]}
        assert {*service.get("secrets", [])} <= {*compose["secrets"]}
        assert {volume.partition(":")[0] for volume in service.get("volumes", [])} <= {*compose["volumes"]}
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
