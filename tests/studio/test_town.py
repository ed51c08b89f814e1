"""A town in the development server, which brings its own store and refuses everything that blocks."""

from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

from reflective_agents.state.outcome import limited

pytestmark = [pytest.mark.studio, pytest.mark.matrix, pytest.mark.xdist_group("studio")]


@pytest.mark.thorough
@pytest.mark.parametrize("embeddings", ["lexical", None])
async def test_a_morning(client: LangGraphClient, embeddings: str | None) -> None:
    context: dict[str, Any] = {"model": "offline", "max_steps": 4, "embeddings": embeddings}
    news = "Anna gives a garden party at the Café today at 17:00."
    given: dict[str, Any] = {"messages": [{"role": "user", "content": news}]}
    result = await client.runs.wait(None, "town", input=given, context=context)
    assert isinstance(result, dict)
    assert result["outcome"] == limited({"name": "max_steps", "most": 4, "spent": 4})
    assert [news["way"] for news in result["spread"]] == [["Anna"], ["Anna", "Ben"], []]
