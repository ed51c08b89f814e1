"""What a web page, or anyone else who can send requests to the server, cannot do with it."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import PermissionDeniedError

pytestmark = [pytest.mark.studio, pytest.mark.matrix, pytest.mark.hostile, pytest.mark.xdist_group("studio")]

STUDIO = "https://smith.langchain.com"
LOCAL = ["http://localhost:5173", "http://127.0.0.1:8000", "https://localhost", "http://[::1]:3000"]
FOREIGN = [
    "https://evil.example",
    "https://smith.langchain.com.evil.example",
    "http://smith.langchain.com",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example:80",
    "null",
]
RUN = '{"assistant_id": "reflection", "input": {"messages": [{"role": "user", "content": "Why?"}]}}'


def preflight(address: str, origin: str) -> httpx.Response:
    headers = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Private-Network": "true"}
    return httpx.options(f"{address}/runs/wait", headers={"Origin": origin, **headers})


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_foreign_page_gets_no_permission(address: str, origin: str) -> None:
    answer = preflight(address, origin)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_foreign_page_starts_nothing(address: str, origin: str) -> None:
    # A browser sends plain text without asking first; the server would read it as JSON.
    answer = httpx.post(f"{address}/runs/wait", headers={"Origin": origin, "Content-Type": "text/plain"}, content=RUN)
    assert (answer.status_code, "Answer to" in answer.text) == (403, False)


@pytest.mark.parametrize("origin", [STUDIO, *LOCAL])
def test_studio_and_local_pages_work(address: str, origin: str) -> None:
    permission = preflight(address, origin)
    assert permission.status_code == 200
    assert permission.headers["access-control-allow-origin"] == origin
    answer = httpx.get(f"{address}/info", headers={"Origin": origin})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, origin)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:2024", "localhost.evil.example", "", "[::1", "127.0.0.2"]
)
def test_a_name_that_is_not_this_machines_is_refused(address: str, host: str) -> None:
    # DNS rebinding: the page's own name has come to mean 127.0.0.1, so to the browser it asks its own server.
    assert httpx.get(f"{address}/info", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1", "[::1]:2024"])
def test_this_machines_names_work(address: str, host: str) -> None:
    assert httpx.get(f"{address}/info", headers={"Host": host}).status_code == 200


def asking(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a folder with a file that no caller may read."""
    (tmp_path / "secret.md").write_text("# Vault\n\nThe vault opens with the word heliotrope.\n")
    return tmp_path


async def shown_after(client: LangGraphClient, strategy: str, **options: Any) -> str:
    """Ask for the secret on a new thread; return all that the server then shows of it."""
    thread = (await client.threads.create())["thread_id"]
    answer: Any
    try:
        answer = await client.runs.wait(thread, strategy, raise_error=False, **options)
    except httpx.HTTPStatusError as refused:
        answer = refused.response.text
    return f"{answer} {await client.threads.get(thread)} {await client.threads.get_history(thread)}"


VAULT = asking("With which word does the vault open?")
OFFLINE_MODEL = {"model": "offline"}
OFFLINE = {"model": "offline", "search": "local"}


async def test_a_caller_cannot_choose_the_folder_that_is_searched(client: LangGraphClient, secret: Path) -> None:
    shown = await shown_after(client, "reflexion", input=VAULT, context={**OFFLINE, "corpus": str(secret)})
    assert "heliotrope" not in shown
    assert "REFLECT_CORPUS" in shown


async def test_nor_by_an_assistant_of_his_own(client: LangGraphClient, secret: Path) -> None:
    with pytest.raises(PermissionDeniedError, match="REFLECT_CORPUS"):
        await client.assistants.create("reflexion", context={**OFFLINE, "corpus": str(secret)})


async def test_nor_by_configurable(client: LangGraphClient, secret: Path) -> None:
    config: Any = {"configurable": {**OFFLINE, "corpus": str(secret)}}
    assert "heliotrope" not in await shown_after(client, "reflexion", input=VAULT, config=config)


@pytest.mark.parametrize(
    "verifier",
    [
        {"command": ["SECRET"]},
        {"tests": "SECRET", "entry_point": "f"},
        {"reward": "http://127.0.0.1:1"},
        {"rubric": ["So."], "model": "offline"},
    ],
)
async def test_nor_verifiers_that_reach_files_addresses_or_models(
    client: LangGraphClient, secret: Path, verifier: dict[str, Any]
) -> None:
    named = {key: str(secret) if value == "SECRET" else value for key, value in verifier.items()}
    shown = await shown_after(
        client, "chain_of_thought", input=VAULT, context={"model": "offline", "verifiers": [named]}
    )
    assert "heliotrope" not in shown
    assert "REFLECT_VERIFIERS" in shown


@pytest.mark.thorough
async def test_verifiers_that_are_data_decide_a_run(client: LangGraphClient) -> None:
    verifiers: list[Any] = [{"language": "German"}, {"rubric": ["It is short."], "tools": ["calculator"]}]
    state = await client.runs.wait(None, "reflection", input=VAULT, context={**OFFLINE_MODEL, "verifiers": verifiers})
    assert isinstance(state, dict)
    assert state["outcome"]["status"] != "solved"


async def test_nor_in_the_settings_of_a_worker(client: LangGraphClient, secret: Path) -> None:
    context = {**OFFLINE, "worker": "react", "worker_settings": {"corpus": str(secret)}}
    shown = await shown_after(client, "plan", input=VAULT, context=context)
    assert "heliotrope" not in shown
    assert "REFLECT_CORPUS" in shown


@pytest.mark.thorough
async def test_nor_in_the_state_of_a_thread(client: LangGraphClient, secret: Path) -> None:
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "reflexion", input=VAULT, context=OFFLINE)
    values: Any = {"settings": {**OFFLINE, "corpus": str(secret)}, **VAULT, "outcome": None}
    await client.threads.update_state(thread, values, as_node="begin")
    await client.runs.wait(thread, "reflexion", input=None, raise_error=False)
    assert "REFLECT_CORPUS" in str(await client.threads.get(thread))


@pytest.mark.parametrize(
    ("setting", "value", "strategy"),
    [("docstore", "/etc/passwd", "react"), ("unsafe_code", True, "react"), ("town", "/etc/passwd", "town")],
)
async def test_other_settings_that_reach_the_machine(
    client: LangGraphClient, setting: str, value: Any, strategy: str
) -> None:
    context = {"model": "offline", "environment": "questions"} if strategy == "react" else {"model": "offline"}
    shown = await shown_after(client, strategy, input=asking("Who?"), context={**context, setting: value})
    assert f"REFLECT_{setting.upper()}" in shown


def test_a_run_sends_its_result_to_no_address_of_the_callers(address: str) -> None:
    body = {"assistant_id": "reflection", "input": VAULT, "webhook": "https://example.com/"}
    assert httpx.post(f"{address}/runs", json=body).status_code in (403, 404, 422)
