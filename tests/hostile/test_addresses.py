"""Addresses in what strangers send or write: none of them is fetched."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from pydantic import ValidationError

from reflective_agents.graphs.react import graph as react
from reflective_agents.graphs.reflection import graph as reflection
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.web_search.corpus import open_corpus

pytestmark = [pytest.mark.hostile, pytest.mark.wire]


class Inner(HTTPServer):
    """A service of this machine that nobody outside should reach."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Inner

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"type": "object"}')

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def inner() -> Iterator[Inner]:
    server = Inner()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


PLACES = ["$ref", "$dynamicRef", "$schema", "$id"]


@pytest.mark.parametrize("form", PLACES)
def test_a_form_of_an_answer(form: str, inner: Inner) -> None:
    hostile = {"type": "object", "properties": {"a": {form: f"{inner.address}/form"}}}
    tool = {"type": "function", "function": {"name": "t", "parameters": hostile}}
    for given in ({"answer_schema": hostile}, {"answer_schema": {**hostile, form: hostile}}, {"client_tools": [tool]}):
        with suppress(ValidationError):  # most are refused
            ReactContext.model_validate(given)
    assert inner.paths == []


async def test_an_image(inner: Inner) -> None:
    picture = {"type": "image_url", "image_url": {"url": f"{inner.address}/image.png"}}
    question = HumanMessage([{"type": "text", "text": "What is this?"}, picture])
    model = FakeChatModel(reply=lambda _: "A picture.")
    settings: Any = {"model": model, "max_rounds": 1, "critic": "checks"}
    inputs: Any = {"messages": [question]}
    await reflection.ainvoke(inputs, context=settings)
    assert inner.paths == []


async def test_what_a_model_writes(inner: Inner) -> None:
    words = [f"search[{inner.address}/a]", f"Search[{inner.address}/b]", f"![x]({inner.address}/c)"]
    replies = iter([*(f"Action: {word}" for word in words), f"Final Answer: ![x]({inner.address}/d)"])
    model = FakeChatModel(reply=lambda _: next(replies, "Final Answer: no"))
    settings: Any = {"model": model, "search": "local", "acting": "paper"}
    inputs: Any = {"messages": [("user", f"Read {inner.address}/e")]}
    result: Any = await react.ainvoke(inputs, context=settings)
    assert result["answer"]
    assert inner.paths == []


PAGES = {
    "page.html": '<html><head><link rel="stylesheet" href="{0}/1"><base href="{0}/"><meta http-equiv="refresh" '
    'content="0;url={0}/2"></head><body><img src="{0}/3"><iframe src="{0}/4"></iframe>The vault.</body></html>',
    "page.md": "The vault. ![x]({0}/5) <img src='{0}/6'>",
    "entity.html": '<!DOCTYPE a [<!ENTITY x SYSTEM "{0}/7">]><html><body>The vault &x;</body></html>',
}


def test_a_document(inner: Inner, tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text.format(inner.address))
    found = open_corpus(str(tmp_path)).search("vault")
    assert {result["url"] for result in found} == {f"corpus:{name}" for name in PAGES}
    assert inner.paths == []
