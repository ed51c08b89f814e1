"""What is counted of the calls of providers' own packages, against servers that speak as theirs do.

`python -m bench.provider_usage` installs the packages as `bench.provider_packages` does, and prints a row for each.
"""

import asyncio
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from bench.options import parser_of
from bench.provider_packages import install, run_in
from reflective_agents.models.calls import request
from reflective_agents.models.meter import Meter
from reflective_agents.state.context import Context
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.run import NOTHING_SPENT

TEXT = "It is thirteen."
PRICES = {"*": {"input": 2.0, "output": 10.0, "cached_input": 0.5}}


class Case(NamedTuple):
    """A package, what its server answers whole and in pieces, and what is to be counted: input, output, dollars."""

    kind: str
    fields: JsonObject
    whole: JsonObject
    pieces: list[JsonObject]
    counted: tuple[int, int, float]
    lines: bool = False
    """Whether the pieces are lines of JSON, and no events."""


def _openai(
    kind: str,
    address: str,
    usage: JsonObject,
    counted: tuple[int, int, float],
    last: Callable[[JsonObject], JsonObject] | None = None,
) -> Case:
    """Describe a server that speaks nearly as OpenAI's.

    Args:
        kind: The class of the package.
        address: What it calls the address of its server.
        usage: What the server reports.
        counted: What is to be counted.
        last: What the last piece of an answer holds of the usage; None if it comes in a piece of its own.
    """
    frame: JsonObject = {"id": "x", "created": 1, "model": "m", "system_fingerprint": "f"}
    message = {"role": "assistant", "content": TEXT}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    whole = {**frame, "object": "chat.completion", "choices": [choice], "usage": usage}
    chunk: JsonObject = {**frame, "object": "chat.completion.chunk"}
    ends: list[JsonObject] = [{"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}]}]
    ends = [{**ends[0], **last(usage)}] if last else [*ends, {"choices": [], "usage": usage}]
    begins = {"choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    pieces = [{**chunk, **piece} for piece in [begins, *ends]]
    return Case(kind, {"model": "m", address: "{url}"}, whole, pieces, counted)


def _plain(prompt: int, output: int, **more: Any) -> JsonObject:
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output, **more}


def _as_usage(usage: JsonObject) -> JsonObject:
    return {"usage": usage}


def _thought(tokens: int) -> JsonObject:
    return {"reasoning_tokens": tokens}


_CLAUDE = {"input_tokens": 50, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 30}
_GEMINI = {"promptTokenCount": 12, "thoughtsTokenCount": 1000, "totalTokenCount": 1052}
_SAID = {"content": {"role": "model", "parts": [{"text": TEXT}]}}
CASES = [
    Case(
        "langchain_anthropic.ChatAnthropic",
        {"model": "m", "base_url": "{url}"},
        {
            "id": "x",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": TEXT}],
            "stop_reason": "end_turn",
            "usage": {**_CLAUDE, "output_tokens": 9},
        },
        [
            {
                "type": "message_start",
                "message": {
                    "id": "x",
                    "type": "message",
                    "role": "assistant",
                    "model": "m",
                    "content": [],
                    "usage": {**_CLAUDE, "output_tokens": 1},
                },
            },
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                "usage": {**_CLAUDE, "output_tokens": 9},
            },
            {"type": "message_stop"},
        ],
        (180, 9, 0.0003),
    ),
    Case(
        "langchain_google_genai.ChatGoogleGenerativeAI",
        {"model": "m", "base_url": "{url}"},
        {"candidates": [{**_SAID, "finishReason": "STOP"}], "usageMetadata": {**_GEMINI, "candidatesTokenCount": 40}},
        [
            {"candidates": [_SAID], "usageMetadata": {**_GEMINI, "candidatesTokenCount": 20, "totalTokenCount": 1032}},
            {
                "candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}],
                "usageMetadata": {**_GEMINI, "candidatesTokenCount": 40},
            },
        ],
        (12, 1040, 0.010424),
    ),
    Case(
        "langchain_ollama.ChatOllama",
        {"model": "m", "base_url": "{url}"},
        {},
        [
            {"model": "m", "message": {"role": "assistant", "content": TEXT}, "done": False},
            {
                "model": "m",
                "message": {"role": "assistant", "content": ""},
                "done": True,
                "done_reason": "stop",
                "prompt_eval_count": 26,
                "eval_count": 298,
            },
        ],
        (26, 298, 0.003032),
        lines=True,
    ),
    _openai("langchain_mistralai.ChatMistralAI", "base_url", _plain(70, 30), (70, 30, 0.00044), last=_as_usage),
    _openai(
        "langchain_groq.ChatGroq",
        "base_url",
        _plain(60, 25, prompt_tokens_details={"cached_tokens": 40}, completion_tokens_details=_thought(20)),
        (60, 25, 0.00031),
        last=lambda usage: {"x_groq": {"id": "x", "usage": usage}},
    ),
    _openai(
        "langchain_deepseek.ChatDeepSeek",
        "api_base",
        _plain(100, 50, prompt_cache_hit_tokens=64, prompt_cache_miss_tokens=36),
        (100, 50, 0.000604),
        last=_as_usage,
    ),
    _openai(
        "langchain_xai.ChatXAI",
        "xai_api_base",
        _plain(32, 9, completion_tokens_details=_thought(2000)) | {"total_tokens": 2041},
        (32, 2009, 0.020154),
        last=_as_usage,
    ),
    _openai("langchain_openrouter.ChatOpenRouter", "base_url", _plain(194, 20, cost=0.0095), (194, 20, 0.0095)),
    _openai(
        "langchain_openai.ChatOpenAI",
        "base_url",
        _plain(1000, 300, prompt_tokens_details={"cached_tokens": 600}, completion_tokens_details=_thought(256)),
        (1000, 300, 0.0041),
    ),
]


class Ear:
    """Somebody who listens, so that replies are streamed."""

    is_subscribed = True

    async def on_token(self, text: str) -> None:
        """Take a piece."""

    async def retract(self) -> bool:
        """Forget the pieces."""
        return False


@contextmanager
def serving(case: Case) -> Iterator[str]:
    """Serve a case on this machine, and yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

        def do_POST(self) -> None:
            """Answer whole, or in pieces."""
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            streamed = bool(body.get("stream")) or "stream" in self.path or not case.whole
            texts = _events(case) if streamed else [json.dumps(case.whole)]
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if streamed else "application/json")
            self.end_headers()
            self.wfile.write("".join(texts).encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _events(case: Case) -> Iterable[str]:
    for piece in case.pieces:
        name = f"event: {piece['type']}\n" if "type" in piece else ""
        yield json.dumps(piece) + "\n" if case.lines else f"{name}data: {json.dumps(piece)}\n\n"
    if "choices" in case.pieces[0]:
        yield "data: [DONE]\n\n"


async def count(case: Case, streamed: bool) -> tuple[int, int, float]:
    """Send a request, and return what was counted of it."""
    module, _, name = case.kind.rpartition(".")
    with serving(case) as url:
        fields = {key: url if value == "{url}" else value for key, value in case.fields.items()}
        model: BaseChatModel = getattr(import_module(module), name)(**fields)
        meter = Meter(Context(prices=PRICES), NOTHING_SPENT)
        await request(model, [HumanMessage("How much?")], meter, listener=Ear() if streamed else None)
    return meter.usage["input_tokens"], meter.usage["output_tokens"], meter.usage["cost"]


def check() -> dict[str, list[list[float]]]:
    """Count each case whose package is there, whole and streamed: what was counted, twice, and what is to be."""
    warnings.simplefilter("ignore")
    return {
        case.kind: [*(list(asyncio.run(count(case, streamed))) for streamed in (False, True)), list(case.counted)]
        for case in CASES
        if find_spec(case.kind.partition(".")[0])
    }


def wrong(counts: dict[str, list[list[float]]]) -> list[str]:
    """Return the packages whose calls are counted otherwise than they should be."""
    return [name for name, (whole, streamed, expected) in counts.items() if not whole == streamed == expected]


def main() -> int:
    """Install and check."""
    parser = parser_of("bench.provider_usage", __doc__)
    parser.add_argument(
        "--check", action="store_true", help="check the packages that this environment has, for a program"
    )
    options = parser.parse_args()
    if options.check:
        print(json.dumps(check()))
        return 0
    with TemporaryDirectory() as folder:
        environment = Path(sys.prefix) if options.quick else Path(folder) / "env"
        if not options.quick:
            install(environment)
        counts = run_in(environment, "bench.provider_usage")
    for name, (whole, streamed, expected) in counts.items():
        print(name, "whole", whole, "streamed", streamed, "expected", expected)
    return int(bool(wrong(counts)))


if __name__ == "__main__":
    sys.exit(main())
