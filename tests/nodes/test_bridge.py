"""Functions as nodes: each is one run to whoever traces."""

from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler

from reflective_agents.graphs.chain_of_thought import graph
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.testing.fake import FakeChatModel


class Names(AsyncCallbackHandler):
    """Notes the names of all runs but those of models."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        """Note a run."""
        self.seen.append(kwargs["name"])


async def test_a_node_is_one_run() -> None:
    names = Names()
    context = ChainOfThoughtContext(model=FakeChatModel(reply=lambda request: "Answer: 4"), samples=1)
    await graph.ainvoke({"messages": [("user", "2 + 2?")]}, {"callbacks": [names]}, context=context)
    assert names.seen == ["chain_of_thought", "begin", "sample", "vote", "finish"]
