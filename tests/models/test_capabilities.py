"""In which ways models are asked, and what is learned from how they answer."""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from aiohttp import web
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from tenacity import wait_none

from reflective_agents.models.calls import request
from reflective_agents.models.capabilities import MAX_AGE, ModelCapabilities, capabilities_of
from reflective_agents.models.language import in_language, is_english, language_of
from reflective_agents.models.meter import Meter
from reflective_agents.models.providers import choose_model, close_models, get_model, ollama_url
from reflective_agents.models.refusals import context_size, is_too_long, refused_option
from reflective_agents.models.structured import read_form, retry
from reflective_agents.nodes.asking.chat import ask, call_tools
from reflective_agents.nodes.step import Step
from reflective_agents.state.context import Context
from reflective_agents.state.errors import InvalidOutput, ModelFailed, TooLong, UnknownModel
from reflective_agents.state.run import NOTHING_SPENT
from reflective_agents.state.schemas import Critique
from reflective_agents.testing.awkward import AwkwardServer, Manner
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request, ToolUse
from reflective_agents.tools.arithmetic import arithmetic_tools

pytestmark = pytest.mark.wire
GOOD = {"critique": "Fine.", "score": 0.5, "accept": True}
PROMPT = [HumanMessage("Judge.")]


@pytest.fixture(autouse=True)
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    yield
    await close_models()


def script(request: Request) -> Reply:
    if request.schema:
        return GOOD
    if request.tools and not any("4" in message.text for message in request.messages[1:]):
        return ToolUse("calculator", {"expression": "2 + 2"})
    return "It is 4."


def step_of(events: list[dict[str, Any]], **settings: Any) -> Step[Context]:
    return Step(Context(model="openai:test", **settings), {}, events.append)


@pytest.mark.parametrize(
    ("manner", "way", "calls"),
    [("fences", "json_schema", 1), ("refuses_json_schema", "tool", 2), ("refuses_everything", "text", 3)],
)
async def test_the_way_of_structured_output_is_learned_once(
    manner: Manner, way: str, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[dict[str, Any]] = []
    async with AwkwardServer(script, manner) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        for _ in range(2):
            assert await ask(step_of(events), "openai:test", PROMPT, Critique) == Critique(**GOOD)
            assert capabilities_of(get_model("openai:test")).structured[0] == way
        assert len(server.requests) == calls + 1
    assert [event["structured"] for event in events if event["event"] == "learned"][-1:] == ([way] * (calls > 1))


async def test_a_way_that_is_set_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AwkwardServer(script, "refuses_json_schema") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        with pytest.raises(ModelFailed, match="json_schema is not supported"):
            await ask(step_of([], structured="json_schema"), "openai:test", PROMPT, Critique)
        assert len(server.requests) == 1


async def test_a_choice_of_tool_that_is_ignored_leads_to_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AwkwardServer(script, "ignores_tool_choice") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        capabilities_of(get_model("openai:test")).structured[:] = ["tool", "text"]
        for left in (["tool", "text"], ["text"]):
            assert (await ask(step_of([]), "openai:test", PROMPT, Critique)).score == 0.5
            assert capabilities_of(get_model("openai:test")).structured == left


async def test_samples_that_are_asked_for_one_by_one_have_seeds_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AwkwardServer(script, "refuses_n") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        chat = get_model("openai:test")
        for seed in (5, 0):
            await request(chat, PROMPT, Meter(Context(), NOTHING_SPENT), n=3, seed=seed)
        sent = [(exchange.body.get("n"), exchange.body["seed"]) for exchange in server.requests]
    assert (sent[0], sorted(sent[1:], key=str)) == ((3, 5), [(None, seed) for seed in (0, 1, 2, 5, 6, 7)])


async def test_what_its_server_cannot_do_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AwkwardServer(lambda _: "I would rather not.", "refuses_everything") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        with pytest.raises(InvalidOutput, match=r"refuses json_schema.*refuses tool"):
            await ask(step_of([]), "openai:test", PROMPT, Critique)


async def test_tools_that_are_refused_are_called_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[dict[str, Any]] = []
    async with AwkwardServer(script, "refuses_tools") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        tools = [tool for tool in arithmetic_tools() if tool.name == "calculator"]
        reply = await call_tools(step_of(events), "openai:test", [HumanMessage("2 + 2?")], tools)
        assert [(call["name"], call["args"]) for call in reply.tool_calls] == [("calculator", {"expression": "2 + 2"})]
        result = ToolMessage("4", tool_call_id=str(reply.tool_calls[0]["id"]))
        last = await call_tools(step_of(events), "openai:test", [HumanMessage("2 + 2?"), reply, result], tools)
        assert (last.text, last.tool_calls) == ("It is 4.", [])
        assert [exchange.fault for exchange in server.requests] == ["400", None, None]
    assert [event["refused"] for event in events if event["event"] == "learned"] == ["tools"]


@pytest.mark.parametrize("manner", ["refuses_n", "ignores_n"])
async def test_n_is_given_up_and_remembered(manner: Manner, monkeypatch: pytest.MonkeyPatch) -> None:
    async with AwkwardServer(script, manner) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        chat = get_model("openai:test")
        for _ in range(2):  # one shortfall may be chance
            await request(chat, PROMPT, Meter(Context(), NOTHING_SPENT), n=3)
        before = len(server.requests)
        assert len(await request(chat, PROMPT, Meter(Context(), NOTHING_SPENT), n=3)) == 3
        assert len(server.requests) == before + 3


async def test_thoughts_are_counted_and_told_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for manner in ("thinks", "thinks_half", "reasons"):
        events: list[dict[str, Any]] = []
        async with AwkwardServer(script, manner) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            step = step_of(events)
            reply = (await request(get_model("openai:test"), PROMPT, step.meter))[0]
        assert reply.text == "It is 4."
        assert step.meter.usage["thinking_tokens"] > 0
        assert [event["event"] for event in events] == ["thought"]


async def test_a_reply_that_was_all_thought_gets_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AwkwardServer(script, "thinks_cut_off") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        reply = (await request(get_model("openai:test"), PROMPT, Meter(Context(), NOTHING_SPENT)))[0]
        assert reply.text == "It is 4."
        assert [exchange.body["max_tokens"] for exchange in server.requests] == [2048, 4096, 8192]
    async with AwkwardServer(script, "reasons_only") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        meter = Meter(Context(), NOTHING_SPENT)
        with pytest.raises(ModelFailed, match=r"max_answer_tokens, or set thinking"):
            await request(get_model("openai:test"), PROMPT, meter)
        assert meter.usage["total_tokens"] == server.total_tokens


async def test_the_switch_of_thinking_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AwkwardServer(script, "fences") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        await request(get_model("openai:test"), PROMPT, Meter(Context(thinking="off"), NOTHING_SPENT))
        body = server.requests[0].body
        assert body["reasoning_effort"] == "none"
        assert body["chat_template_kwargs"] == {"enable_thinking": False}


async def test_the_size_of_the_context_is_learned_from_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AwkwardServer(script, "small_context") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        chat, meter = get_model("openai:test"), Meter(Context(), NOTHING_SPENT)
        assert (await request(chat, [HumanMessage("x " * 5_000)], meter))[0].text == "It is 4."
        assert capabilities_of(chat).context_tokens == 4096
        assert server.requests[-1].body["max_tokens"] == 1024
        with pytest.raises(TooLong, match=r"4096.*max_answer_tokens"):
            await request(chat, [HumanMessage("x " * 50_000)], meter)


async def test_a_model_object_without_a_limit_leaves_room_for_the_prompt_too() -> None:
    async with AwkwardServer(script, "small_context") as server:
        chat = ChatOpenAI(model="test", base_url=server.base_url, api_key=SecretStr("none"), max_retries=0)
        for _ in range(2):
            reply = await request(chat, [HumanMessage("x " * 4_400)], Meter(Context(), NOTHING_SPENT))
            assert reply[0].text == "It is 4."
        assert [exchange.body["max_completion_tokens"] for exchange in server.requests] == [2048, 1024, 1024]


@pytest.mark.parametrize(
    "text",
    [
        "context_length_exceeded",
        "Your input exceeds the context window of this model.",
        "prompt is too long: 9 > 8",
        "Request too large for model",
        "too many input tokens",
    ],
)
def test_a_refusal_says_that_a_prompt_is_too_long(text: str) -> None:
    assert is_too_long(text)
    assert not is_too_long("The image is too large. The tool choice is invalid.")


async def test_a_server_that_is_not_there_is_named_and_costs_nothing(
    monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{unused_tcp_port}/v1")
    meter = Meter(Context(), NOTHING_SPENT)
    with pytest.raises(ModelFailed, match=rf"no connection to http://127.0.0.1:{unused_tcp_port}/v1"):
        await request(get_model("openai:test"), PROMPT, meter)
    assert meter.usage["total_tokens"] == 0


async def test_a_server_without_a_model_is_not_silently_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(UnknownModel, match="MODEL=openai:"):
        choose_model(None)


async def test_ollama_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "localhost:1234")
    chat: Any = get_model("ollama:llama3.2")
    assert chat.model_name == "llama3.2"
    assert chat.root_async_client.base_url == httpx2.URL("http://localhost:1234/v1/")


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("localhost", "http://localhost:11434/v1"),
        ("0.0.0.0:1234", "http://127.0.0.1:1234/v1"),
        ("::", "http://[::1]:11434/v1"),
        ("[::1]:99", "http://[::1]:99/v1"),
        ("https://models.example/ollama/", "https://models.example/ollama/v1"),
    ],
)
def test_the_address_of_ollama_is_what_ollama_takes_it_for(
    host: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert ollama_url() == address


@pytest.mark.parametrize("name", ["anthropic:claude", "mistralai:x"])
def test_a_missing_package_is_named_with_its_pip(name: str) -> None:
    with pytest.raises(UnknownModel, match="pip install langchain-"):
        get_model(name)


def test_a_retry_repeats_the_call_and_answers_it() -> None:
    call = {"name": "Critique", "args": {"score": 7}, "id": "1", "type": "tool_call"}
    reply = AIMessage("", tool_calls=[call])
    _, problem = read_form(reply, Critique)
    reply_shown, hint = retry(reply, problem, [])
    assert isinstance(reply_shown, AIMessage)
    assert reply_shown.tool_calls == [call]
    assert isinstance(hint, ToolMessage)
    assert "score: must be at most 1" in hint.text
    assert "- score" not in hint.text, "the form says it"


def test_the_filled_in_example_is_no_output() -> None:
    echo = AIMessage('{"critique": "...", "score": 0.5, "accept": false}')
    assert read_form(echo, Critique) == (None, "that is the example; fill it in")


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("What is Reflexion?", True),
        ("4 9 10 13", True),
        ("Was ist Reflexion?", False),
        ("反思为什么有用？", False),
        ("การสะท้อนคิดมีประโยชน์อย่างไร", False),
    ],
)
def test_whether_a_question_is_english(text: str, english: bool) -> None:
    assert is_english(text) is english
    assert (len(in_language(PROMPT, None, text)) == 1) is english


def test_a_language_that_is_set_is_asked_for() -> None:
    assert "Write in German" in in_language(PROMPT, "German", "What is it?")[0].text


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Tom hat 3 Schachteln mit je 12 Stiften. Wie viele hat er?", "German"),
        ("Combien de pages sont dans ce livre, et qui les a lues ?", "French"),
        ("¿Cuántas páginas lee Tom, y dónde?", "Spanish"),
        ("Quantas páginas você lê por dia?", "Portuguese"),
        ("Quanti libri sono nella scuola?", "Italian"),
        ("为什么海水会涨潮？", "simplified Chinese"),
        ("為什麼海水會漲潮？", "traditional Chinese"),
        ("東京の人口は何人ですか。", "Japanese"),
        ("อะไรทำให้เกิดน้ำขึ้นน้ำลง", "Thai"),
        ("서울의 인구는 얼마입니까?", "Korean"),
        ("Hvem er den mand der bor i dette hus?", 'the language of "Hvem er den mand der bor i dette hus?"'),
        ("Ile stron ma ta książka i kto ją napisał?", 'the language of "Ile stron ma ta książka i kto ją napisał?"'),
        ("Что такое прилив?", 'the language of "Что такое прилив?"'),
        ("What causes tides, and who found it?", None),
    ],
)
def test_a_language_is_named_where_it_is_known(question: str, language: str | None) -> None:
    assert language_of(question) == language


def test_a_sample_of_a_language_ends_with_a_word() -> None:
    question = "Hvad er årsagen til " + "tidevandet i havet omkring øen " * 9
    assert (language_of(question) or "").endswith(' ..."')
    assert len(language_of(question) or "") < 110


class Scripted(OpenAIServer):
    """A server that refuses requests by a function of their bodies."""

    def __init__(self, refuse: Callable[[dict[str, Any], int], str | None]) -> None:
        super().__init__(script)
        self.refuse = refuse

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        body = await http.json()
        if refusal := self.refuse(body, len(self.requests)):
            with self._exchange(body):
                error: dict[str, Any] = {"message": refusal, "type": "invalid_request_error", "code": None}
                if refusal.startswith("Failed to call"):
                    error |= {"code": "tool_use_failed", "failed_generation": "<function=calculator{"}
                return web.json_response({"error": error}, status=400)
        return await super()._complete(http)


UNLUCKY = (
    "The response was filtered due to the prompt triggering the content management policy.",
    "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
    "Invalid 'messages[1]': the tool call has no response.",
    "The model is thinking about too many functions.",
)


@pytest.mark.parametrize("refusal", UNLUCKY)
async def test_nothing_is_learned_from_a_request_that_was_unlucky(
    refusal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = [tool for tool in arithmetic_tools() if tool.name == "calculator"]
    events: list[dict[str, Any]] = []
    async with Scripted(lambda body, number: refusal if number == 0 else None) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        before = capabilities_of(get_model("openai:test")).trial()
        bound = get_model("openai:test").bind_tools(tools)
        with suppress(ModelFailed):
            await request(bound, PROMPT, step_of(events, thinking="low").meter, logprobs=True)
        assert capabilities_of(get_model("openai:test")) == before
    assert events == []


async def test_a_generation_that_a_server_could_not_read_is_sampled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Scripted(lambda body, number: UNLUCKY[1] if number < 2 else None) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        tools = [tool for tool in arithmetic_tools() if tool.name == "calculator"]
        reply = await call_tools(step_of([]), "openai:test", [HumanMessage("2 + 2?")], tools)
        assert [call["name"] for call in reply.tool_calls] == ["calculator"]
        assert [bool(exchange.body.get("tools")) for exchange in server.requests] == [True] * 3


async def test_a_form_that_is_refused_once_is_asked_for_in_the_same_way_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Scripted(lambda body, number: UNLUCKY[0] if number == 0 else None) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        for _ in range(2):
            await ask(step_of([]), "openai:test", PROMPT, Critique)
        assert capabilities_of(get_model("openai:test")).structured[0] == "json_schema"
        assert ["response_format" in exchange.body for exchange in server.requests] == [True, False, True]


async def test_nothing_is_learned_where_the_other_way_fails_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Scripted(lambda body, number: "tools are not supported") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        tools = [tool for tool in arithmetic_tools() if tool.name == "calculator"]
        with pytest.raises(ModelFailed):
            await call_tools(step_of([]), "openai:test", [HumanMessage("2 + 2?")], tools)
        assert capabilities_of(get_model("openai:test")).tools
        assert len(server.requests) == 3


NOT_SUPPORTED = [
    ("Unsupported parameter: 'logprobs' is not supported with this model.", {"logprobs": True}, "logprobs"),
    ("registry.ollama.ai/library/x does not support tools", {"tools": [{}]}, "tools"),
    ('"auto" tool choice requires --enable-auto-tool-choice to be set', {"tools": [{}]}, "tools"),
    ("tools param requires --jinja flag", {"tools": [{}]}, "tools"),
    ("'n' : number must be at most 1", {"n": 4}, "n"),
    ("Only one completion choice is allowed: n", {"n": 4}, "n"),
    ("Field 'n': Value must be between 1 <= value <= 1", {"n": 4}, "n"),
    ('"llama3.2" does not support thinking', {"reasoning_effort": "low"}, "reasoning_effort"),
    (
        'Invalid JSON payload received. Unknown name "chat_template_kwargs": Cannot find field.',
        {"extra_body": {"chat_template_kwargs": {}}},
        "chat_template_kwargs",
    ),
    ("Extra inputs are not permitted, field: 'reasoning_effort'", {"reasoning_effort": "low"}, "reasoning_effort"),
    ("Invalid schema for function 'search': missing 'type'", {"tools": [{}]}, None),
    ("Function 'search' was called with wrong arguments", {"tools": [{}]}, None),
    ("tools are not supported", {"tools": [{}], "tool_choice": {"type": "function"}}, None),
    ("logprobs is not supported", {"n": 4}, None),
    ("Unrecognized request argument supplied: top_k", {"top_k": 3, "top_p": 0.5}, "top_k"),
]


@pytest.mark.parametrize(("refusal", "sent", "option"), NOT_SUPPORTED)
def test_what_a_server_does_not_have_is_read_from_its_words(
    refusal: str, sent: dict[str, Any], option: str | None
) -> None:
    known = ModelCapabilities(structured=["tool"], switches=["chat_template_kwargs", "reasoning_effort"])
    assert refused_option(known, refusal, sent) == option


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("This model's maximum context length is 4096 tokens, but 5000 were requested.", 4096),
        ("the context length is 128,000 tokens", 128_000),
        ("the context window of 1.048.576 tokens", 1_048_576),
        ("context length is 128K", 128_000),
        ("maximum context length of 32 k tokens", 32_000),
        ("request exceeds the available context size (n_ctx = 8192)", 8192),
        ("context length is 12", None),
        ("prompt is too long", None),
    ],
)
def test_the_size_of_a_context_is_read_in_every_notation(text: str, size: int | None) -> None:
    assert context_size(text) == size


async def test_a_server_that_leaves_out_a_choice_keeps_n(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([3, 1, 4, 1, 3])

    class Short(OpenAIServer):
        async def _answer(self, http: Any, exchange: Any, request: Any, choices: Any) -> Any:
            return await super()._answer(http, exchange, request, choices[: next(counts)])

    async with Short(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        for _ in range(5):
            await request(get_model("openai:test"), PROMPT, Meter(Context(), NOTHING_SPENT), n=4)
        assert capabilities_of(get_model("openai:test")).n


async def test_what_was_learned_is_forgotten_after_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=1_000.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("reflective_agents.models.capabilities.time", clock)
    async with AwkwardServer(script, "refuses_n") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        chat = get_model("openai:test")
        for clock.now, refused in ((1_000.0, 1), (1_000.0 + MAX_AGE, 1), (1_001.0 + MAX_AGE, 2)):
            await request(chat, PROMPT, Meter(Context(), NOTHING_SPENT), n=2)
            assert [exchange.fault for exchange in server.requests].count("400") == refused


def test_what_a_model_does_not_take_of_sampling_is_left_out() -> None:
    capabilities = ModelCapabilities(structured=["text"])
    refusal = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported."
    options = {"temperature": 0, "top_p": 0.5}
    assert refused_option(capabilities, refusal, options) == "temperature"
    capabilities.give_up("temperature")
    assert "temperature" not in capabilities.sampling
    assert refused_option(capabilities, "Unsupported parameter: 'top_p' is not supported.", options) == "top_p"
    assert refused_option(capabilities, "temperature must be between 0 and 2", options) is None
