"""Filling in the form in which an answer is held against its sources.

def reply(request):
    if request.schema == "SupportCheck":
        return support(request)                  # each sentence is supported by what it cites
    ...
"""

import re

from reflective_agents.state.json_types import JsonObject
from reflective_agents.testing.script import Request

_PASSAGE = re.compile(r'<passage number="([^"]*)">\n(.*?)\n</passage>', re.DOTALL)
_SENTENCE = re.compile(r'<sentence number="(\d+)" cites="([^"]*)"')


def support(request: Request, level: str = "full", answered: str = "yes", fact: bool = True) -> JsonObject:
    """Fill in the form with the same for each sentence, and with the words of the first passage that it cites.

    Args:
        request: What the checker was asked.
        level: How far each sentence is supported: "full", "part" or "none".
        answered: Whether the request is answered: "yes", "partly" or "no".
        fact: Whether each sentence states a fact.
    """
    passages = dict(_PASSAGE.findall(request.last))
    checks = [
        {"number": int(number), "fact": fact, "words": passages.get(cites.split(", ")[0], ""), "support": level}
        for number, cites in _SENTENCE.findall(request.last)
    ]
    return {"sentences": checks, "answered": answered}
