"""The cache of replies with the packages of many providers, which are none of this project's dependencies."""

import subprocess
from pathlib import Path

import pytest

from bench.provider_packages import check_in, install


@pytest.mark.thorough
@pytest.mark.process
def test_no_package_has_models_that_share_a_key(tmp_path: Path) -> None:
    try:
        install(tmp_path / "env")
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"the packages cannot be had here: {error}")
    unseen = check_in(tmp_path / "env")
    assert len(unseen) >= 15
    assert {name: what for name, what in unseen.items() if what} == {}
