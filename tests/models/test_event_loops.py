"""Chat models in any thread and any event loop: asynchronous callers beside synchronous ones, over the wire."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool, tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from reflective_agents.graphs.chain_of_thought import graph
from reflective_agents.graphs.react import graph as react
from reflective_agents.graphs.reflection import graph as reflection
from reflective_agents.models.event_loops import of_this_loop
from reflective_agents.models.providers import close_models, get_model
from reflective_agents.nodes.bridge import wait_for
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request, ToolUse

pytestmark = pytest.mark.wire
ASK: dict[str, Any] = {"messages": [("user", "6 * 7?")]}
MANY = 40


def reply(request: Request) -> Reply:
    if "research" in request.tools and request.messages[-1].type != "tool":
        return ToolUse("research", {"question": "6 * 7?"})
    return {"complete": True, "critique": "Fine."} if request.schema else "Answer: 42"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(reply, latency=0.002).threaded() as server:
        yield server
        wait_for(close_models())  # those of synchronous callers


def chat(server: OpenAIServer, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="any", base_url=server.base_url, api_key=SecretStr("x"), max_retries=0, **options)


def call(model: BaseChatModel) -> str:
    return str(graph.invoke(ASK, context={"model": model})["answer"])


async def acall(model: BaseChatModel) -> str:
    return str((await graph.ainvoke(ASK, context={"model": model}))["answer"])


async def mixed(model: BaseChatModel, count: int = MANY) -> Counter[str]:
    calls = [acall(model) if number % 2 else asyncio.to_thread(call, model) for number in range(count)]
    return Counter(await asyncio.gather(*calls))


@pytest.mark.thorough
def test_asynchronous_callers_beside_synchronous_ones(server: OpenAIServer) -> None:
    assert asyncio.run(mixed(chat(server), 200)) == {"42": 200}
    assert len(server.requests) == 200


def test_one_event_loop_after_another(server: OpenAIServer) -> None:
    model = chat(server)
    answers = [
        asyncio.run(acall(model)),
        call(model),
        asyncio.run(acall(model)),
        call(model),
        asyncio.run(acall(model)),
    ]
    assert answers == ["42"] * 5


@pytest.mark.thorough
def test_threads_and_a_loop_in_each(server: OpenAIServer) -> None:
    model = chat(server)
    with ThreadPoolExecutor(8) as threads:
        runs = [threads.submit(asyncio.run, mixed(model, 4)) for _ in range(8)]
        assert sum((run.result() for run in runs), Counter()) == {"42": 32}


async def test_within_a_running_loop_as_in_a_notebook(server: OpenAIServer) -> None:
    model = chat(server)
    assert [await acall(model), call(model), await acall(model), call(model)] == ["42"] * 4


async def test_a_model_that_is_set_to_stream_answers(server: OpenAIServer) -> None:
    model = chat(server, streaming=True)
    assert [await acall(model), await asyncio.to_thread(call, model)] == ["42"] * 2


@pytest.mark.thorough
def test_a_synchronous_tool_of_an_asynchronous_agent(server: OpenAIServer) -> None:
    model = chat(server)

    @tool
    def research(question: str) -> str:
        """Research a question."""
        return str(reflection.invoke({"messages": [("user", question)]}, context={"model": model})["answer"])

    async def ask_all() -> list[Any]:
        agent: Any = create_agent(model, [research])
        return await asyncio.gather(*(agent.ainvoke(ASK) for _ in range(8)))

    for result in asyncio.run(ask_all()):
        assert [message.text for message in result["messages"] if message.type == "tool"] == ["Answer: 42"]


async def test_a_strategy_in_an_asynchronous_tool_that_blocks(server: OpenAIServer) -> None:
    model = chat(server)

    @tool
    async def research(question: str) -> str:
        """Research a question, and hold the loop meanwhile."""
        return call(model)

    out = react.invoke(ASK, context={"model": model, "tools": [research], "search": "none"})
    assert (out["outcome"]["status"], out["usage"]["tool_calls"], out["usage"]["tool_errors"]) == ("answered", 1, 0)


def researcher(request: Request) -> Reply:
    """Call the first tool, and then answer."""
    if request.tools and request.messages[-1].type != "tool":
        return ToolUse(request.tools[0], {"question": "6 * 7?"})
    return "Answer: 42"


def look_up(question: str) -> str:
    """Look a question up."""
    return "42"


async def look_up_at_once(question: str) -> str:
    """Look a question up."""
    return "42"


def of_agent(agent: Any) -> dict[str, Any]:
    return {"agent": agent, "critic": "checks", "min_words": 1}


def as_tool(agent: Any) -> dict[str, Any]:
    """The settings of an agent with the user's own agent as a tool with two halves."""

    def ask(question: str) -> str:
        return str(agent.invoke(ASK)["messages"][-1].text)

    async def ask_at_once(question: str) -> str:
        return str((await agent.ainvoke(ASK))["messages"][-1].text)

    tool = StructuredTool.from_function(ask, ask_at_once, "ask", "Ask.")
    return {"tools": [tool], "search": "none"}


@pytest.mark.matrix
@pytest.mark.parametrize(("strategy", "settings"), [(reflection, of_agent), (react, as_tool)])
def test_an_agent_of_the_users_for_callers_of_both_kinds(
    strategy: Any, settings: Callable[[Any], dict[str, Any]]
) -> None:
    """LangChain's own client of the agent's model stays in the one loop of the user's."""
    with OpenAIServer(researcher, latency=0.002).threaded() as server:
        model = chat(server)
        given = {"model": model, **settings(create_agent(model, [look_up]))}

        async def ask_all() -> list[Any]:
            calls = [
                strategy.ainvoke(ASK, context=given)
                if number % 2
                else asyncio.to_thread(strategy.invoke, ASK, context=given)
                for number in range(MANY)
            ]
            return await asyncio.gather(*calls)

        results = asyncio.run(ask_all())
        wait_for(close_models())
    assert {result["answer"] for result in results} == {"Answer: 42"}
    assert sum(result["usage"]["tool_errors"] for result in results) == 0


class OnlyAsynchronous(AgentMiddleware[Any, Any, Any]):
    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return await handler(request)


@pytest.mark.parametrize(
    "options",
    [{"tools": [look_up]}, {"tools": [look_up_at_once]}, {"tools": [look_up], "middleware": [OnlyAsynchronous()]}],
    ids=["synchronous", "an asynchronous tool", "an asynchronous middleware"],
)
def test_a_synchronous_caller_of_any_agent_of_the_users(options: dict[str, Any]) -> None:
    agent: Any = create_agent(FakeChatModel(reply=researcher), **options)
    out = reflection.invoke(ASK, context={"model": "offline", **of_agent(agent)})
    assert (out["answer"], out["usage"]["model_calls"], out["usage"]["tool_calls"]) == ("Answer: 42", 2, 1)


@pytest.mark.thorough
def test_a_service_of_synchronous_and_asynchronous_routes(server: OpenAIServer) -> None:
    model = chat(server)

    def blocking(_: HttpRequest) -> PlainTextResponse:  # in Starlette's threads, as FastAPI's `def`
        return PlainTextResponse(call(model))

    async def waiting(_: HttpRequest) -> PlainTextResponse:
        return PlainTextResponse(await acall(model))

    async def ask_all() -> Counter[str]:
        app = Starlette(routes=[Route("/blocking", blocking), Route("/waiting", waiting)])
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://app") as client:
            paths = ["/blocking", "/waiting"] * (MANY // 2)
            return Counter([response.text for response in await asyncio.gather(*map(client.get, paths))])

    assert asyncio.run(ask_all()) == {"42": MANY}


# Clients of the user's


class Proxy(httpx2.BaseTransport):
    """Counts what goes through it."""

    def __init__(self) -> None:
        self.sent = 0
        self._inner = httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent += 1
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


class AsyncProxy(httpx2.AsyncBaseTransport):
    """Counts what goes through it."""

    def __init__(self) -> None:
        self.sent = 0
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent += 1
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@pytest.mark.thorough
async def test_clients_of_the_users_are_never_replaced(server: OpenAIServer) -> None:
    proxy, async_proxy = Proxy(), AsyncProxy()
    with httpx2.Client(transport=proxy) as client:
        async_client = httpx2.AsyncClient(transport=async_proxy)
        model = chat(server, http_client=client, http_async_client=async_client)
        assert await mixed(model) == {"42": MANY}
        assert await asyncio.to_thread(asyncio.run, mixed(model)) == {"42": MANY}
        await async_client.aclose()
    assert proxy.sent + async_proxy.sent == len(server.requests) == 2 * MANY
    assert async_proxy.sent == MANY // 2  # those of the loop that asked first


def test_a_synchronous_client_serves_synchronous_callers(server: OpenAIServer) -> None:
    proxy = Proxy()
    with httpx2.Client(transport=proxy) as client:
        model = chat(server, http_client=client)
        assert [call(model), call(model)] == ["42", "42"]
        assert list(graph.stream(ASK, context={"model": model}, stream_mode="messages"))
    assert proxy.sent == len(server.requests) == 3


# Other models


class Halves(BaseChatModel):
    """A model of which each half notes who asked it."""

    questions: list[str]

    @property
    def _llm_type(self) -> str:
        return "halves"

    def _answer(self, half: str) -> ChatResult:
        self.questions.append(half)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Answer: 42"))])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._answer("sync")

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return self._answer("async")


class AsyncOnly(Halves):
    """A model without a synchronous half."""

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError


@pytest.mark.parametrize(("kind", "halves"), [(Halves, ["async", "sync", "sync"]), (AsyncOnly, ["async"] * 3)])
def test_any_other_model_is_asked_by_the_half_that_fits(kind: Callable[..., Halves], halves: list[str]) -> None:
    model = kind(questions=[])

    async def twice() -> None:
        await acall(model)
        call(model)

    asyncio.run(twice())
    asyncio.run(acall(model))
    assert model.questions == halves


async def test_a_change_of_a_model_is_seen_and_a_model_that_is_gone_forgotten(server: OpenAIServer) -> None:
    model = chat(server)
    first = get_model(model)
    assert get_model(model) is first
    model.temperature = 0.5
    changed: Any = get_model(model)
    assert (changed.temperature, first is changed) == (0.5, False)
    assert of_this_loop().adapted
    del model, first, changed
    assert not of_this_loop().adapted
