"""A provider that quotes the key it refuses: the key reaches neither the terminal nor the threads."""

import os
from pathlib import Path

import pytest

from reflective_agents.testing.faults import STATUS_ERRORS
from reflective_agents.testing.openai_server import OpenAIServer
from tests.cli.conftest import Reflect

pytestmark = [pytest.mark.wire, pytest.mark.hostile]

KEY = "sk-planted-0123456789"


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_quoted_key_is_cut_out(reflect: Reflect, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]) -> None:
    monkeypatch.setitem(STATUS_ERRORS, "401", ("invalid_api_key", f"Incorrect API key provided: {KEY}."))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAIServer(lambda _: "", faults=lambda *_: "401").threaded() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        ended = reflect("run", "chain_of_thought", "Why?", "--model", "openai:test", *options)
    assert ended.code == 1
    assert "[OPENAI_API_KEY]" in ended.out + ended.err
    written = [file.read_bytes() for file in Path(os.environ["REFLECT_HOME"]).rglob("*") if file.is_file()]
    assert written
    assert not [text for text in (ended.out.encode(), ended.err.encode(), *written) if KEY.encode() in text]
