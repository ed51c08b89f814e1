"""What an answer says of the model that gave it."""

from typing import Any

import pytest

from reflective_agents.graphs import lats, reflection, reflexion


@pytest.mark.matrix
@pytest.mark.parametrize("graph", [lats.graph, reflection.graph, reflexion.graph], ids=lambda graph: graph.name)
async def test_the_offline_model_says_what_it_is(graph: Any) -> None:
    out = await graph.ainvoke({"messages": [("user", "What is reflection?")]}, context={"model": "offline"})
    metadata = out["messages"][-1].response_metadata
    assert metadata == {"model_name": "offline", "note": "offline extractive model", "strategy": graph.name}
