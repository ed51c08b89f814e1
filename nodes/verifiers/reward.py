"""Reward models behind HTTP, as vLLM serves them: `/pooling` with the task `classify` for whole answers, or
`token_classify` for each step.

The server is asked for logits, which become a score from 0 to 1 here: with one label the sigmoid of its logit, with
several the softmax, of which the label's share is taken. Of a process reward the last row counts: what is said of the
newest step, after all before it.
"""

import json
import math
import os
from collections.abc import Sequence
from typing import Any

import httpx
from langchain_core.messages import BaseMessage

from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers.finding import Case, Finding, NoVerdict
from reflective_agents.state.context import Context
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.verifier_forms import Reward
from reflective_agents.web_search.client import client

MOST_BYTES = 4_000_000
"""Size of a reply."""
_ROLES = {"system": "system", "human": "user", "ai": "assistant"}


async def verify(step: Step[Context], reward: Reward, case: Case) -> Finding:
    """Score an answer. For a process reward its paragraphs are the steps.

    Raises:
        NoVerdict: if the server fails, or its reply is no score.
    """
    steps = case.answer.split("\n\n") if reward.task == "token_classify" else [case.answer]
    return Finding(await score(step, reward, case.run["messages"], steps))


async def score(
    step: Step[Context], reward: Reward, conversation: Sequence[BaseMessage], steps: Sequence[str]
) -> float:
    """Return the score (0..1) of an answer, or of the last of the steps to one.

    Args:
        step: The node that asks.
        reward: The reward model.
        conversation: What is answered.
        steps: The answer alone, or the steps.

    Raises:
        NoVerdict: as `verify`.
    """
    ends = reward.step_tag if reward.task == "token_classify" else ""
    answer = "".join(f"{text.strip()}{ends}" for text in steps)
    messages = [{"role": _ROLES[each.type], "content": each.text} for each in conversation if each.type in _ROLES]
    messages.append({"role": "assistant", "content": answer})
    body: JsonObject = {"task": reward.task, "use_activation": False, "messages": messages}
    if reward.model:
        body["model"] = reward.model
    step.meter.check()
    step.meter.count(tool_calls=1)
    try:
        return as_score(await _post(step, reward, body), reward.label)
    except NoVerdict:
        step.meter.count(tool_errors=1)
        raise


def as_score(reply: Any, label: int) -> float:
    """Return the score that the logits of a reply come to: of one label the sigmoid, of several the label's softmax.

    Raises:
        NoVerdict: if there are none.
    """
    try:
        row = reply["data"][0]["data"]
        row = row[-1] if row and isinstance(row[-1], list) else row
        logits = [float(logit) for logit in row]
        chosen = logits[label]
    except (TypeError, ValueError, LookupError, OverflowError) as error:
        raise NoVerdict("its reply holds no logit of the label") from error
    if not all(map(math.isfinite, logits)):
        raise NoVerdict("its reply holds a logit that is no number")
    others = [logit - chosen for logit in logits] if len(logits) > 1 else [0.0, -chosen]
    return 1 / sum(math.exp(min(other, 700.0)) for other in others)


async def _post(step: Step[Context], reward: Reward, body: JsonObject) -> Any:
    """Ask the server. What fails is told without the address, which may hold a password."""
    key = os.environ.get(reward.key_variable, "") if reward.key_variable else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    seconds = min(getattr(step.context, "verifier_timeout", 60.0), step.meter.seconds_left)
    try:
        async with (
            await client(timeout=seconds) as http,
            http.stream("POST", f"{reward.reward}/pooling", json=body, headers=headers) as response,
        ):
            text = bytearray()
            async for part in response.aiter_bytes():
                text += part
                if len(text) > MOST_BYTES:
                    raise NoVerdict(f"its reply is longer than {MOST_BYTES:,} bytes")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # ValueError: what no request can hold
        raise NoVerdict(f"it cannot be reached ({type(error).__name__})") from error
    if not response.is_success:
        raise NoVerdict(f"it fails (HTTP {response.status_code})")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NoVerdict("its reply is not JSON") from error
