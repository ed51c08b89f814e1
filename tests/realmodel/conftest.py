"""A real language model for the tests that need one."""

from collections.abc import Iterator

import pytest

from bench.smollm import serving_smollm, weights


@pytest.fixture(scope="session")
def model_server() -> Iterator[str]:
    """Serve the model, and yield its base_url."""
    path = weights()
    assert path is not None
    with serving_smollm(path) as base_url:
        yield base_url
