"""What is counted and charged for each form in which servers report usage: docs/models.md has the table."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.messages.ai import UsageMetadata

from reflective_agents.models.bills import billed
from reflective_agents.models.calls import request
from reflective_agents.models.costs import tokens_of
from reflective_agents.models.meter import Meter
from reflective_agents.models.providers import get_model
from reflective_agents.models.usage import Tokens, last_reported, reported
from reflective_agents.models.watched import Watch
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.run import NOTHING_SPENT, Usage
from reflective_agents.testing import completions, openai_server
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.openai_server import OpenAIServer

PRICES = {"test": {"input": 2.0, "output": 10.0, "cached_input": 0.5}}
PROMPT = [HumanMessage("How much is six and seven?")]


class Form(NamedTuple):
    """A form of usage: its parts as a provider documents them, and what is to be counted.

    `stream` says where a streamed reply has it: in a piece of its own at the end, in the last piece of the answer, in
    each piece with the counts so far, or under the name of Groq.
    """

    usage: JsonObject
    stream: str
    tokens: tuple[int, int]
    dollars: float


def plain(prompt: int, output: int, **more: Any) -> JsonObject:
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output, **more}


def read(tokens: int) -> JsonObject:
    return {"prompt_tokens_details": {"cached_tokens": tokens}}


def thought(tokens: int) -> JsonObject:
    return {"completion_tokens_details": {"reasoning_tokens": tokens}}


FORMS = {
    "OpenAI": Form(plain(1000, 300, **read(600), **thought(256)), "end", (1000, 300), 0.0041),
    "Azure": Form(plain(1000, 300, **read(0)), "end", (1000, 300), 0.005),
    "xAI": Form(plain(32, 9, **read(6), **thought(2000)) | {"total_tokens": 2041}, "last", (32, 2009), 0.020145),
    "xAI, as some resell it": Form(plain(206, 208, **read(194), **thought(158)), "last", (206, 208), 0.002201),
    "Gemini": Form(plain(12, 40) | {"total_tokens": 1052}, "each", (12, 1040), 0.010424),
    "Anthropic": Form(plain(500, 120), "end", (500, 120), 0.0022),
    "Groq": Form(plain(60, 25, queue_time=0.01, prompt_time=0.002, total_time=0.1), "groq", (60, 25), 0.00037),
    "Groq, with details": Form(plain(60, 25, **read(40), **thought(20)), "end", (60, 25), 0.00031),
    "Mistral": Form(plain(70, 30), "last", (70, 30), 0.00044),
    "DeepSeek": Form(
        plain(100, 50, prompt_cache_hit_tokens=64, prompt_cache_miss_tokens=36, **thought(20)),
        "last",
        (100, 50),
        0.000604,
    ),
    "Ollama": Form(plain(26, 298), "end", (26, 298), 0.003032),
    "vLLM": Form(plain(30, 41, prompt_tokens_details=None), "each", (30, 41), 0.00047),
    "llama.cpp": Form(plain(15, 20, **read(10)), "end", (15, 20), 0.000215),
    "OpenRouter": Form(plain(194, 20, cost=0.0095, **thought(0)), "end", (194, 20), 0.0095),
    "OpenRouter, in each piece": Form(plain(194, 20, cost=0.0095), "each", (194, 20), 0.0095),
}


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with OpenAIServer(lambda request: "It is thirteen.").threaded() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield server


def report(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let servers report usage in a form."""
    monkeypatch.setattr(completions, "usage_of", lambda *_: form.usage)
    monkeypatch.setattr(openai_server, "usage_of", lambda *_: {"total_tokens": 0})

    def chunks(*given: Any) -> Iterator[JsonObject]:
        pieces = [piece for piece in completions.chunks(*given) if piece["choices"]]
        for number, piece in enumerate(pieces, 1):
            whole = number == len(pieces)
            yield piece | _of_piece(form, number / len(pieces), whole)
        if form.stream == "end":
            yield pieces[-1] | {"choices": [], "usage": form.usage}

    monkeypatch.setattr(openai_server, "chunks", chunks)


def _of_piece(form: Form, share: float, whole: bool) -> JsonObject:
    output = math.ceil(form.usage["completion_tokens"] * share)
    so_far = form.usage if whole else form.usage | {"completion_tokens": output, "total_tokens": 0}
    if "cost" in so_far:
        so_far = so_far | {"cost": so_far["cost"] * share}
    match form.stream, whole:
        case ("each", _) | ("last", True):
            return {"usage": so_far}
        case "groq", True:
            return {"x_groq": {"usage": so_far}}
        case _:
            return {"usage": None}


class Ear:
    """Somebody who listens, so that replies are streamed."""

    is_subscribed = True

    async def on_token(self, text: str) -> None:
        """Take a piece."""

    async def retract(self) -> bool:
        """Forget the pieces."""
        return False


def meter(**settings: Any) -> Meter:
    return Meter(Context(**{"prices": PRICES, **settings}), NOTHING_SPENT)


def counted(usage: Usage) -> tuple[int, int]:
    return usage["input_tokens"], usage["output_tokens"]


@pytest.mark.wire
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", FORMS)
async def test_each_form_is_counted_and_charged(
    name: str, streamed: bool, serving: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, limits = FORMS[name], meter()
    report(form, monkeypatch)
    await request(get_model("openai:test"), PROMPT, limits, listener=Ear() if streamed else None)
    assert [bool(exchange.body.get("stream")) for exchange in serving.requests] == [streamed]
    assert counted(limits.usage) == form.tokens
    assert limits.usage["cost"] == pytest.approx(form.dollars, abs=1e-9)


NOTHING: dict[str, Form] = {
    "zeros": Form(plain(0, 0), "end", (0, 0), 0),
    "nulls": Form({"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}, "end", (0, 0), 0),
    "no output": Form(plain(7, 0), "end", (0, 0), 0),
    "less than nothing": Form(plain(-7, -3), "end", (0, 0), 0),
}


@pytest.mark.wire
@pytest.mark.parametrize("name", NOTHING)
async def test_what_is_reported_as_nothing_is_estimated(
    name: str, serving: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    report(NOTHING[name], monkeypatch)
    limits = meter(max_total_tokens=500, max_answer_tokens=100)
    for _ in range(40):
        try:
            await request(get_model("openai:test", max_answer_tokens=100), PROMPT, limits)
        except LimitReached:
            break
    assert len(serving.requests) < 40
    assert limits.usage["output_tokens"] >= 5 * len(serving.requests)
    assert 350 < limits.usage["total_tokens"] <= 500


def of_message(prompt: int, output: int, total: int, **details: Any) -> AIMessage:
    usage: Any = {"input_tokens": prompt, "output_tokens": output, "total_tokens": total, **details}
    return AIMessage("text", usage_metadata=usage)


@pytest.mark.parametrize("output", [6, 24])
def test_a_server_that_counts_one_of_several_replies_is_understood(output: int) -> None:
    usage = UsageMetadata(input_tokens=10, output_tokens=output, total_tokens=10 + output)
    replies = [AIMessage("one two three four five", usage_metadata=usage), *[AIMessage("six seven eight nine ten")] * 3]
    assert tokens_of(replies, guess=10, reserved=1000) == Tokens(10, 24)


def test_packages_of_providers_are_read() -> None:
    """Anthropic's adds its cache to the input, with the kinds of writing apart; tiers of service are before names."""
    anthropic = {"cache_read": 100, "cache_creation": 0, "ephemeral_5m_input_tokens": 30}
    assert reported([of_message(200, 10, 210, input_token_details=anthropic)]) == Tokens(200, 10, 100, 30)
    flex = {"flex_cache_read": 50, "flex": 150}
    assert reported([of_message(200, 10, 210, input_token_details=flex)]) == Tokens(200, 10, 50)
    beside = of_message(200, 10, 210, output_token_details={"reasoning": 300})
    assert reported([beside]) == Tokens(200, 310, thought=300)
    assert reported([AIMessage("no usage")]) == reported([]) == Tokens()


def chunk(prompt: int, output: int) -> AIMessageChunk:
    return AIMessageChunk(
        content="", usage_metadata=UsageMetadata(input_tokens=prompt, output_tokens=output, total_tokens=0)
    )


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(30, 0), (0, 20), (0, 21)], (30, 41)),
        ([(30, 20), (30, 41)], (30, 41)),
        ([(30, 41), (0, 0)], (30, 41)),
        ([], None),
    ],
    ids=["in parts", "so far", "an empty end", "none"],
)
def test_a_stream_is_counted_once(parts: list[tuple[int, int]], expected: tuple[int, int] | None) -> None:
    used = last_reported([AIMessageChunk(content="text"), *(chunk(*part) for part in parts)])
    assert (used and (used["input_tokens"], used["output_tokens"])) == expected


@pytest.mark.wire
async def test_what_langchains_cache_answers_is_free(serving: OpenAIServer) -> None:
    model, limits = get_model("openai:test"), meter()
    set_llm_cache(InMemoryCache())
    try:
        for _ in range(3):
            assert (await request(model, PROMPT, limits))[0].text == "It is thirteen."
    finally:
        set_llm_cache(None)
    once = meter()
    await request(model, PROMPT, once)
    assert len(serving.requests) == 2
    assert limits.usage["model_calls"] == 1
    assert counted(limits.usage) == counted(once.usage)
    assert limits.usage["cost"] == once.usage["cost"] > 0


@pytest.mark.wire
async def test_what_langchains_cache_answers_leaves_the_calls_of_a_run_and_of_its_part_to_others(
    serving: OpenAIServer,
) -> None:
    model, limits = get_model("openai:test"), meter(max_model_calls=2)
    set_llm_cache(InMemoryCache())
    try:
        with billed() as bill:
            for question in ("Six?", "Six?", "Six?", "Seven?"):
                await request(model, [HumanMessage(question)], limits)
            with pytest.raises(LimitReached, match="max_model_calls"):
                await request(model, [HumanMessage("Eight?")], limits)
    finally:
        set_llm_cache(None)
    assert (len(serving.requests), limits.calls_left) == (2, 0)
    assert (bill.calls, bill.tokens) == (2, limits.usage["total_tokens"])


async def test_all_answers_of_a_users_own_call_are_held() -> None:
    limits, model = meter(max_total_tokens=1000, max_answer_tokens=200), FakeChatModel(reply=lambda request: "word")
    with pytest.raises(LimitReached):
        await model.ainvoke(PROMPT, {"callbacks": [Watch(limits)]}, n=8)
    assert (model.calls, limits.usage["model_calls"]) == ([], 0)
    await model.ainvoke(PROMPT, {"callbacks": [Watch(limits)]}, n=4)
    assert len(model.calls) == 1
