"""What the tests of the contract that ask a server share."""

from collections.abc import AsyncIterator

import pytest
from tenacity import wait_none

from reflective_agents.models.providers import close_models


@pytest.fixture
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """A key, retries that do not wait unless the provider asks for it, and no connection left open."""
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setenv("OPENAI_BASE_URL", "")  # which a test sets, and is put back
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    yield
    await close_models()
