"""The live page in a real browser, in front of a server that is a few dictionaries."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from langchain_core.messages import BaseMessage
from playwright.async_api import Browser, Page, Route, expect
from starlette.applications import Starlette

from reflective_agents.graphs.lats import graph
from reflective_agents.nodes.evidence.long_texts import ALONE, HOLDS, TITLE
from reflective_agents.serve import live
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.runs import Begin, Part, Result

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
ADDRESS = "http://localhost"
QUESTION = "Why is reflection useful in AI?"


class Server:
    """The threads of a server: what each holds, and its last run."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, Any]] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.listed: dict[str, dict[str, Any]] = {}
        self.ended: dict[str, asyncio.Event] = {}
        self.slow = asyncio.Event()
        self.slow.set()

    def add(self, values: dict[str, Any], status: str = "idle", run: str = "success", **metadata: str) -> str:
        """Add a thread with a run that has stored what it was asked."""
        name = str(uuid4())
        self.held[name] = values
        self.runs[name] = {"run_id": name, "status": run}
        self.listed[name] = {"thread_id": name, "status": status, "updated_at": "now", "metadata": metadata}
        return name

    def __call__(self, _: Any) -> "Server":
        return self

    async def state(self, thread: UUID | str) -> dict[str, Any]:
        name = str(thread)
        metadata = {"run_id": name if self.held[name] else None}
        return {"values": self.held[name], "next": [], "tasks": [], "metadata": metadata}

    async def last_run(self, thread: UUID | str) -> dict[str, Any]:
        return self.runs[str(thread)]

    async def threads(self) -> list[dict[str, Any]]:
        return [*self.listed.values()]

    async def create_thread(self, name: str, metadata: dict[str, str]) -> None:
        self.held[name] = {}
        self.listed[name] = {"thread_id": name, "status": "busy", "updated_at": "now", "metadata": metadata}

    async def start(self, name: str, strategy: str, begin: Begin, settings: Any, *, tokens: bool) -> str:
        assert tokens
        await self.slow.wait()
        self.runs[name] = {"run_id": "new", "status": "running", "kwargs": begin, "strategy": strategy}
        self.ended[name] = asyncio.Event()
        return "new"

    async def stop(self, thread: UUID | str, _: str) -> None:
        self.runs[str(thread)]["status"] = "interrupted"
        self.ended[str(thread)].set()

    async def events(self, thread: UUID | str, _: str) -> AsyncIterator[Part]:
        await self.ended[str(thread)].wait()
        yield Result("interrupted", {}, "")

    def sent(self, name: str) -> list[dict[str, Any]]:
        """Return the messages that the run of a thread was given."""
        return [*self.runs[name]["kwargs"]["input"]["messages"]]

    @property
    def newest(self) -> str:
        return [*self.runs][-1]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(live, "ServerApi", made)
    return made


Open = Callable[..., Any]


@pytest.fixture
def complaints() -> list[str]:
    """Return what the page has complained about; nothing of it may be left in the end."""
    return []


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, server: Server, complaints: list[str]) -> AsyncIterator[Page]:
    """Return a window whose requests the routes of the page answer."""
    context = await browser.new_context(
        viewport={"width": 1280, "height": 800}, permissions=["clipboard-read", "clipboard-write"]
    )
    made = await context.new_page()
    made.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    made.on("pageerror", lambda error: complaints.append(str(error)))
    await serve(made)
    yield made
    await context.close()
    assert complaints == []


async def serve(page: Page) -> None:
    client = httpx.AsyncClient(transport=httpx.ASGITransport(Starlette(routes=live.routes)), base_url=ADDRESS)

    async def answer(route: Route) -> None:
        request = route.request
        reply = await client.request(request.method, request.url, content=request.post_data_buffer)
        await route.fulfill(status=reply.status_code, headers={**reply.headers}, body=reply.content)

    page.set_default_timeout(20_000)
    await page.route(f"{ADDRESS}/**", answer)


async def show(page: Page, thread: str = "") -> None:
    await page.goto(f"{ADDRESS}/live{thread and f'#{thread}'}")
    await expect(page.locator("#strategy option")).not_to_have_count(0)


def conversation(*texts: str, **values: Any) -> dict[str, Any]:
    """Return the values of a thread on which a question and its answer stand in turns."""
    kinds = ("human", "ai")
    messages = [
        {"id": str(number), "type": kinds[number % 2], "content": text, "response_metadata": {"model_name": "test"}}
        for number, text in enumerate(texts)
    ]
    return {"messages": messages, "strategy": "react", "outcome": {"status": "answered", "reason": "done"}, **values}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def searched() -> dict[str, Any]:
    """Return the values of a thread with a search, as a server returns them."""
    settings = {"model": "offline", "search": "local", "n": 2, "max_expansions": 1}
    out = await graph.ainvoke({"messages": [("user", QUESTION)]}, context=settings)
    plain = json.loads(
        json.dumps(out, default=lambda one: one.model_dump() if isinstance(one, BaseMessage) else str(one))
    )
    return {**plain, "strategy": "lats"}


async def test_a_first_sight_explains_and_an_example_starts(page: Page, server: Server) -> None:
    await show(page)
    await expect(page.locator("#examples button")).to_have_count(3)
    await expect(page.locator("#view")).to_be_hidden()
    assert "offline model" in await page.inner_text("#hint")
    await page.evaluate("location.hash = '#../strategies'")
    await expect(page.locator("#welcome")).to_be_visible()
    await page.locator("#examples button").first.click()
    await expect(page.locator("#said .human")).to_have_count(1)
    assert server.runs[server.newest]["strategy"] == "lats"
    await expect(page.locator("#welcome")).to_be_hidden()


@pytest.mark.thorough
async def test_the_question_stays_from_the_click_on(page: Page, server: Server) -> None:
    """While the server has stored nothing, in another window, and after a stop before the first step."""
    await show(page)
    await page.evaluate("""() => {
      window.without = 0;
      const said = document.getElementById("said");
      const look = () => { if (!said.children.length) window.without += 1; };
      new MutationObserver(look).observe(said, { childList: true });
    }""")
    await page.fill("#question", QUESTION)
    server.slow.clear()
    await page.click("#send")
    text = page.locator("#said .human .text")
    await expect(text).to_have_text(QUESTION)
    assert not server.runs
    server.slow.set()
    await page.wait_for_url("**#*")
    await expect(text).to_have_text(QUESTION)
    await expect(page.locator("#send")).to_be_hidden()
    assert await page.evaluate("() => window.without") == 0
    await page.reload()
    await expect(text).to_have_text(QUESTION)
    await expect(page.locator("#state")).to_contain_text("running")
    await page.click("[data-do=pause]")
    await expect(page.locator("#state")).to_contain_text("stopped")
    await expect(text).to_have_text(QUESTION)
    await expect(page.locator("#send")).to_be_visible()
    assert server.runs[server.newest]["status"] == "interrupted"


@pytest.mark.thorough
async def test_the_list_names_runs_of_other_clients_and_those_that_pause(page: Page, server: Server) -> None:
    other = server.add(conversation("a", "b"), graph_id="lats")
    server.runs[other]["kwargs"] = {
        "input": {"messages": [{"role": "user", "content": [{"type": "text", "text": "From afar?"}]}]}
    }
    server.add(conversation("a", "b"), graph_id="lats", thread_name="From Aegra?", run="interrupted")
    server.add(conversation("a", "b"), strategy="rap", question="From here?", status="busy", run="running")
    await show(page)
    await expect(page.locator("#threads li")).to_have_count(3)
    texts = await page.locator("#threads li").all_inner_texts()
    assert [text.split("\n") for text in texts] == [
        ["From afar?", "lats · ended"],
        ["From Aegra?", "lats · paused"],
        ["From here?", "rap · running"],
    ]


@pytest.mark.thorough
async def test_the_address_is_followed(page: Page, server: Server) -> None:
    first, second = server.add(conversation("One?", "1")), server.add(conversation("Two?", "2"))
    await show(page, first)
    await expect(page.locator("#title")).to_have_text("One?")
    await page.evaluate("id => { location.hash = id; }", second)
    await expect(page.locator("#title")).to_have_text("Two?")
    await page.go_back()
    await expect(page.locator("#title")).to_have_text("One?")
    await page.click("#new")
    await expect(page.locator("#welcome")).to_be_visible()
    await page.go_back()
    await expect(page.locator("#title")).to_have_text("One?")


@pytest.mark.thorough
async def test_the_bar_names_the_node_whose_details_are_shown(
    page: Page, server: Server, searched: dict[str, Any]
) -> None:
    await show(page, server.add(searched))
    tree = page.frame_locator("#tree")
    shown = tree.locator("#panel h2 code")
    await expect(shown).to_have_text("0.0")
    await expect(page.locator("#selected")).to_have_text("Node 0.0")
    await expect(page.locator("[data-do=prune]")).to_be_enabled()
    await tree.locator("[id='node-0.1'] .shape").click()
    await expect(page.locator("#selected")).to_have_text("Node 0.1")
    boxes = [await page.locator(name).bounding_box() for name in ("#steering", "#view")]
    assert boxes[0]
    assert boxes[1]
    assert boxes[0]["height"] < boxes[1]["height"] / 8


@pytest.mark.thorough
async def test_on_a_phone_the_tree_stands_before_the_question(
    page: Page, server: Server, searched: dict[str, Any]
) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    await show(page, server.add(searched))
    await expect(page.locator("#menu")).not_to_have_attribute("open", "")
    await page.frame_locator("#tree").locator("#panel h2").wait_for()
    order = await page.evaluate("""() => ["#said", "#tree", "#ask"].map((name) => {
      const one = document.querySelector(name);
      return [...document.querySelectorAll("*")].indexOf(one);
    })""")
    assert order == sorted(order)
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


async def test_an_answer_cites_passages_that_open(page: Page, server: Server, searched: dict[str, Any]) -> None:
    words = "Reflection lets a model spend more computation on a hard question than on an easy one."
    support = {"sentences": [{"text": words, "cites": ["1"], "support": "full", "words": words}]}
    await show(page, server.add({**searched, "support": support}))
    answer = page.locator("#said .ai")
    await expect(answer.locator(".who span")).to_have_text("lats · offline extractive model")
    assert "References" not in await answer.inner_text()
    await answer.locator(".cites button").first.click()
    await expect(page.locator("#passage mark")).to_have_text(words)
    await expect(page.locator("#passage-address")).to_have_text("corpus:reflection.md")
    await page.keyboard.press("Escape")
    await expect(page.locator("#passage")).to_be_hidden()


@pytest.mark.thorough
async def test_a_source_on_the_web_is_a_link_to_the_words(page: Page, server: Server) -> None:
    answer = "It floats [1]. So [2].\n\nReferences:\n[1] Ships, https://example.org/ships"
    support = {"sentences": [{"text": "", "cites": ["1"], "support": "full", "words": "well-built"}]}
    await show(page, server.add(conversation("Does it?", answer, support=support)))
    assert await page.locator(".markdown").inner_text() == "It floats [1]. So [2]."
    await page.click(".cites button")
    link = page.locator("#passage-address a")
    await expect(link).to_have_attribute("href", "https://example.org/ships#:~:text=well%2Dbuilt")
    await expect(link).to_have_attribute("rel", "noopener noreferrer")


@pytest.mark.thorough
async def test_code_is_copied(page: Page, server: Server) -> None:
    await show(page, server.add(conversation("Code?", "So:\n\n```python\nif x < 1:\n\tprint('a')\n```")))
    await page.click(".code .copy")
    await expect(page.locator(".code .copy")).to_have_text("Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == "if x < 1:\n\tprint('a')"


@pytest.mark.thorough
async def test_an_edited_question_is_asked_in_a_conversation_of_its_own(page: Page, server: Server) -> None:
    old = server.add(conversation("One?", "1", "Two?", "2"))
    await show(page, old)
    await page.locator("#said .human button").nth(1).click()
    await expect(page.locator("#question")).to_have_value("Two?")
    await expect(page.locator("#editing")).to_be_visible()
    await page.select_option("#strategy", "lats")
    await page.fill("#question", "Three?")
    await page.click("#send")
    await expect(page.locator("#said .human .text").last).to_have_text("Three?")
    new = server.newest
    assert new != old
    assert [message["content"] for message in server.sent(new)] == ["One?", "1", "Three?"]
    assert server.runs[new]["strategy"] == "lats"
    assert len(server.held[old]["messages"]) == 4


@pytest.mark.thorough
async def test_files_go_along_as_texts_to_cite(page: Page, server: Server) -> None:
    await show(page)
    chosen = [{"name": name, "mimeType": "text/plain", "buffer": data} for name, data in FILES.items()]
    await page.set_input_files("#chosen", chosen)  # type: ignore[arg-type]
    await expect(page.locator("#problem")).to_contain_text("ship.jpg")
    await page.evaluate("""() => {
      const data = new DataTransfer();
      data.items.add(new File(["dropped"], "c.csv"));
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }""")
    await expect(page.locator("#files li")).to_have_count(3)
    await page.click("#files [aria-label='Remove b.md']")
    await page.fill("#question", "Who built it?")
    await page.click("#send")
    await expect(page.locator("#said .file summary")).to_have_text(["a.txt · 10 characters", "c.csv · 7 characters"])
    await expect(page.locator("#files li")).to_have_count(0)
    first, second, question = server.sent(server.newest)
    assert (first["content"], first["additional_kwargs"]) == ("the Petrel", {HOLDS: ALONE, TITLE: "a.txt"})
    assert (second["content"], question["content"]) == ("dropped", "Who built it?")


FILES = {"a.txt": b"the Petrel", "b.md": b"# B", "ship.jpg": b"\xff\xd8\xff"}


@pytest.mark.thorough
async def test_what_is_refused_can_be_sent_again(
    page: Page, server: Server, monkeypatch: pytest.MonkeyPatch, complaints: list[str]
) -> None:
    async def refuse(*_: Any, **__: Any) -> str:
        raise Refused("not now", status=429)

    await show(page)
    await page.set_input_files("#chosen", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"text"})
    await page.fill("#question", QUESTION)
    monkeypatch.setattr(server, "start", refuse)
    await page.click("#send")
    await expect(page.locator("#problem")).to_have_text("not now")
    await expect(page.locator("#question")).to_have_value(QUESTION)
    await expect(page.locator("#files li")).to_have_count(1)
    await expect(page.locator("#send")).to_be_enabled()
    assert [complaint for complaint in complaints if "429" not in complaint] == []
    complaints.clear()


RICH = """# A
1. one
2. two
   - deep

| a | b |
|---|---|
| 1 | `x` |

> so

```js
1
```
[1] https://example.org
"""


@pytest.mark.thorough
@pytest.mark.parametrize("width", [390, 1280])
async def test_axe_finds_nothing(browser: Browser, server: Server, searched: dict[str, Any], width: int) -> None:
    context = await browser.new_context(viewport={"width": width, "height": 800}, bypass_csp=True)
    page = await context.new_page()
    await serve(page)
    messages = [*searched["messages"], *conversation("And?", RICH)["messages"]]
    thread = server.add({**searched, "messages": messages})
    for name in ("", thread):
        await show(page, name)
        if name:
            await page.frame_locator("#tree").locator("#panel h2").wait_for()
        await page.click("#key-part summary")
        found = (await Axe().run(page.main_frame)).response["violations"]
        assert [(violation["id"], violation["nodes"][0]["html"]) for violation in found] == []
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await page.locator(".cites button").first.click()
    await page.locator("#passage-text p").first.wait_for()
    found = (await Axe().run(page.main_frame)).response["violations"]
    assert [(violation["id"], violation["nodes"][0]["html"]) for violation in found] == []
    await context.close()
