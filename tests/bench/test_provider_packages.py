"""The packages of many providers, which are none of this project's dependencies: cache, counts and charges."""

import subprocess
from pathlib import Path

import pytest

from bench import provider_packages, provider_usage

pytestmark = [pytest.mark.thorough, pytest.mark.process, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the packages; without a registry of packages nothing here can run."""
    folder = tmp_path_factory.mktemp("providers") / "env"
    try:
        provider_packages.install(folder)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"the packages cannot be had here: {error}")
    return folder


def test_no_package_has_models_that_share_a_key(environment: Path) -> None:
    unseen = provider_packages.run_in(environment, "bench.provider_packages")
    assert len(unseen) >= 15
    assert {name: what for name, what in unseen.items() if what} == {}


def test_calls_of_packages_are_counted_as_their_servers_mean_it(environment: Path) -> None:
    counts = provider_packages.run_in(environment, "bench.provider_usage")
    assert len(counts) == len(provider_usage.CASES)
    assert provider_usage.wrong(counts) == []
