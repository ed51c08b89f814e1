"""How likely a model holds what it has written, by the log-probabilities that its provider tells."""

import math
from collections.abc import Sequence

from langchain_core.messages import AIMessage

from reflective_agents.state.json_types import JsonMapping


def lines(reply: AIMessage) -> list[tuple[str, float | None]]:
    """Return the lines of a reply that hold text, each with its likelihood; None where the provider gives none."""
    texts = reply.text.split("\n")
    shares: list[list[JsonMapping]] = [[] for _ in texts]
    line = 0
    for token in tokens_of(reply):
        shares[min(line, len(texts) - 1)].append(token)
        line += str(token.get("token")).count("\n")
    # Tokens with other line breaks than the text are those of something else, such as a thought before it.
    are_of_text = line == len(texts) - 1
    likely: list[tuple[str, float | None]] = []
    for text, share in zip(texts, shares, strict=True):
        if text.strip():
            likely.append((text, likelihood(share) if are_of_text else None))
    return likely


def likelihood(tokens: Sequence[JsonMapping]) -> float | None:
    """Calculate the geometric mean of the tokens' probabilities, so that a long step is not less likely than a short
    one; None if they are not known."""
    logprobs = [token.get("logprob") for token in tokens]
    numbers = [value for value in logprobs if isinstance(value, int | float) and not math.isnan(value)]
    if not numbers or len(numbers) < len(logprobs):
        return None
    return min(math.exp(sum(numbers) / len(numbers)), 1.0)


def tokens_of(reply: AIMessage) -> list[JsonMapping]:
    """Return the tokens of a reply with their log-probabilities, as a provider of OpenAI's protocol tells them."""
    logprobs = reply.response_metadata.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    return [token for token in tokens or () if isinstance(token, dict)]
