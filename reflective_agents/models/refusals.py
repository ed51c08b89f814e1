"""What refusals say: that a prompt is too long, how much a context holds, and which option a server does not have."""

import re

from reflective_agents.models.capabilities import ModelCapabilities, is_forced
from reflective_agents.state.json_types import JsonObject

_CONTEXT = re.compile(
    # OpenAI, vLLM: "context_length_exceeded", "maximum context length"; llama.cpp: "exceed_context_size_error".
    r"context[ _](?:length|size|window)|maximum context|exceed_context|too many (?:input |prompt )?tokens"
    # Anthropic: "prompt is too long"; proxies: "Request Entity Too Large".
    r"|(?:prompt|inputs?|request|message|entity|payload|content|body) (?:is |are )?too (?:long|large)",
    re.IGNORECASE,
)
_SIZE = re.compile(
    # The number next to the words, and not that of the tokens sent: "maximum context length is 4096 tokens,
    # but 5000 ..."
    r"(?:n_ctx\D{1,4}|context (?:length|size|window)\D{1,40}?|maximum (?:context )?(?:length )?of )"
    # 128,000, 1.048.576 and 32 k, as servers of several countries write them.
    r"(?P<digits>\d{1,3}(?:[,._ ]\d{3})+(?!\d)|\d+)(?P<thousands>\s?k\b)?",
    re.IGNORECASE,
)
SMALLEST_CONTEXT = 256
"""Tokens of a context below which a number in an error is taken for something else."""
_UNSUPPORTED = re.compile(
    # "does not support thinking", "logprobs is not supported", "are not permitted".
    r"(?:not|n't)\W+(?:\w+\W+){0,2}?(?:support|implement|permit|allow|enabl|accept|avail)|unsupported|no support"
    # "Unsupported parameter", Gemini's "Unknown name", pydantic's "Extra inputs"; not "Invalid schema for function".
    r"|(?:unknown|unrecogni[sz]ed|unexpected|invalid|extra)\W+(?:\w+\W+)?(?:parameter|argument|field|key|keyword|name|input)s?\b"
    # vLLM and llama.cpp name their flag ("requires --jinja"); of `n` it is said that it must be at most 1.
    r"|requires? \W*-|(?:must|should|can only) be\b.{0,40}\b1\b|<= ?1\b|only (?:one|1)\b|is disabled",
    re.IGNORECASE,
)
"""How servers say that they do not have something at all; other refusals speak of this one request."""
_NAMED = {
    "logprobs": re.compile(r"logprobs"),
    "seed": re.compile(r"\bseeds?\b", re.IGNORECASE),
    # The letter alone, but not the end of "don't".
    "n": re.compile(r"(?<![\w'])n(?![\w'])|['\"`]n['\"`]"),
    "tools": re.compile(r"\btools?\b|\bfunctions?\b|tool_c", re.IGNORECASE),
}
"""How an option is named in a refusal."""


def is_too_long(text: str) -> bool:
    """Tell whether an error says that the prompt does not fit into the context."""
    return bool(_CONTEXT.search(text))


def context_size(text: str) -> int | None:
    """Return the size of the context that an error names, in tokens; None if it names none."""
    sizes: list[int] = []
    for named in _SIZE.finditer(text):
        size = int(re.sub(r"\D", "", named["digits"]))
        sizes.append(1_000 * size if named["thousands"] else size)
    # Several may be named; the smallest one is certainly held to.
    return min((size for size in sizes if size >= SMALLEST_CONTEXT), default=None)


def refused_option(capabilities: ModelCapabilities, text: str, options: JsonObject) -> str | None:
    """Return the option that a server says it does not have, so that the request may be sent again without it.

    Args:
        capabilities: What is known.
        text: The error.
        options: The options of the request.

    Returns:
        A switch of thinking, one of `SAMPLING`, `seed`, `logprobs`, `n` or `tools`; None if the error speaks of
        something else.
    """
    if not _UNSUPPORTED.search(text):
        return None
    sent = {**options, **options.get("extra_body", {})}
    switches = [switch for switch in capabilities.switches if switch in sent]
    for switch in switches:
        if switch in text:
            return switch
    # Ollama says that a model "does not support thinking", and not which parameter asked for it.
    if switches and "think" in text.casefold():
        return switches[0]
    for name in capabilities.sampling:
        if sent.get(name) is not None and name in text:
            return name
    if sent.get("seed") is not None and _NAMED["seed"].search(text):
        return "seed"
    if sent.get("logprobs") and _NAMED["logprobs"].search(text):
        return "logprobs"
    if sent.get("n", 1) > 1 and _NAMED["n"].search(text):
        return "n"
    # A forced tool is a form: that it is refused says nothing about tools that the model may choose.
    if sent.get("tools") and not is_forced(sent.get("tool_choice")) and _NAMED["tools"].search(text):
        return "tools"
    return None


def is_unsupported(text: str) -> bool:
    """Tell whether a refusal says that the server does not have what was asked for, and not only this time."""
    return bool(_UNSUPPORTED.search(text))
