"""Characters that can neither be stored nor sent: halves of surrogate pairs, and the null that PostgreSQL refuses."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from reflective_agents.testing.tavily_server import TavilyServer
from reflective_agents.web_search.engines import cached, make_search
from tests.strategies import QUESTION, Strategy, every_strategy, thread

pytestmark = pytest.mark.hostile


@pytest.mark.matrix(keep=2)
@every_strategy
async def test_questions_and_answers_are_stored(strategy: Strategy, tmp_path: Path) -> None:
    def reply(request: Request) -> Reply | Sequence[Reply]:
        written = strategy.solving(request)
        return f"{written}\ud800\0" if isinstance(written, str) else written

    inputs = {"messages": [("user", f"{QUESTION}\ud800\0")]}
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads")) as saver:
        graph = strategy.graph.builder.compile(checkpointer=saver, name=strategy.name)
        result = await graph.ainvoke(inputs, thread(), context=strategy.make(model=FakeChatModel(reply=reply)))
        kept = (await graph.aget_state(thread())).values["messages"][0].text
    assert result["outcome"]["status"] in ("solved", "answered")
    assert result["messages"][0].text == f"{QUESTION}�"
    assert kept[: len(QUESTION)] == QUESTION
    assert not re.search(r"\\ud800|\\u0000", json.dumps([kept, result], default=str))


@pytest.mark.wire
async def test_search_results(monkeypatch: pytest.MonkeyPatch) -> None:
    page = {"title": "A\ud800", "url": "https://example.com/", "content": "Text\0 \udfff."}
    async with TavilyServer([page]) as server:
        monkeypatch.setenv("TAVILY_API_KEY", "k")
        monkeypatch.setenv("TAVILY_BASE_URL", server.url)
        search = make_search("tavily", None)
        assert search is not None
        found = await cached(search, "run")("q")
    assert found == [{"title": "A�", "url": "https://example.com/", "content": "Text �."}]
