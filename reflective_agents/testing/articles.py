"""A scripted model for two questions of the articles that this began with, so that they run without a key:

    python -m reflective_agents.testing.openai_server --port 8000 --script reflective_agents.testing.articles:reply

An essay on The Little Prince, which a teacher criticises: its drafts and critiques are written down here. And what gear
reducers cost, power included, in Chinese or English: the numbers are those of the question, and a calculator works out
the sum.
"""

import re

from reflective_agents.testing.responder import respond
from reflective_agents.testing.script import Reply, Request, ToolUse

DRAFTS = (
    "The Little Prince is a famous book. Children all over the world have read it, and it is still read today.",
    "A child of today counts likes as the businessman in The Little Prince counts stars, and cannot say what for. The "
    "fox answers both: one sees clearly only with the heart, and what one has tamed one is responsible for. A child "
    "with a rabbit, or a friend who has moved away, understands that at once.",
    "Children like The Little Prince because it takes their questions seriously, and adults should do so too.",
)
CRITIQUES = (
    {"critique": '"Famous" says nothing. Name a scene, and a child of today.', "score": 0.3, "accept": False},
    {"critique": "A scene, a thought, a child of today.", "score": 0.85, "accept": True},
    {"critique": "The fox is gone, and with it the reason.", "score": 0.5, "accept": False},
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_DAYS = 7
"""Of the first week, which both languages name in words."""


def reply(request: Request) -> Reply:
    """Answer one of the two questions; anything else, as well as the form allows."""
    if "减速机" in request.text or "gear reducers" in request.text:
        return _gears(request)
    if "little prince" in request.text.lower():
        return _essay(request)
    return respond(request)


def _essay(request: Request) -> Reply:
    if request.schema == "Critique":
        for draft, critique in zip(DRAFTS, CRITIQUES, strict=True):
            if draft in request.text:
                return dict(critique)
        return {}
    if request.schema:
        return respond(request)
    written = sum(message.type == "ai" for message in request.messages)
    return DRAFTS[min(written, len(DRAFTS) - 1)]


def _gears(request: Request) -> Reply:
    results = [message.text for message in request.messages if message.type == "tool"]
    if results:
        [result] = _NUMBER.findall(results[-1])[-1:]
        return f"第一周一共{result}元。" if "减速机" in request.text else f"They cost {result} yuan in the first week."
    question = next(message.text for message in request.messages if message.type == "human")
    pieces, price, power, hours = _NUMBER.findall(question)[:4]
    return ToolUse("calculator", {"expression": f"{pieces} * {price} + {pieces} * {power} * {hours} * {_DAYS}"})
