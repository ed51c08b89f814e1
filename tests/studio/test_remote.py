"""A strategy on the server as a graph of a client's: the examples of the docs that ask one."""

from typing import Any

import pytest
from langgraph.pregel.remote import RemoteGraph

from tests.test_docs import DOCS, EXAMPLE, SERVER

EXAMPLES = [found for page in DOCS.glob("*.md") for found in EXAMPLE.findall(page.read_text()) if SERVER in found[0]]
pytestmark = pytest.mark.studio


@pytest.mark.thorough
@pytest.mark.parametrize(("example", "printed"), EXAMPLES)
def test_an_example_that_asks_a_server(
    example: str, printed: str, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(example.replace(SERVER, address), "example", "exec"), names)
    for remote in names.values():
        if isinstance(remote, RemoteGraph) and remote.sync_client:
            remote.sync_client.close()  # it would warn of its connections whenever it is collected
    assert capsys.readouterr().out == printed
    assert printed
