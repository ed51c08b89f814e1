"""Filling in the form in which an answer is held against its sources.

def reply(request):
    if request.schema == "SupportCheck":
        return support(request)                  # each sentence is supported by what it cites
    ...
"""

import re

from reflective_agents.state.json_types import JsonObject
from reflective_agents.testing.script import Request, Script

_PASSAGE = re.compile(r'<passage number="([^"]*)">\n(.*?)\n</passage>', re.DOTALL)
_SENTENCE = re.compile(r'<sentence number="(\d+)" cites="([^"]*)"')


def support(request: Request, level: str = "full", answered: str = "yes", fact: bool = True) -> JsonObject:
    """Fill in the form: each sentence that cites something states a fact, by the words of the first passage it cites.

    Args:
        request: What the checker was asked.
        level: How far each of these is supported: "full", "part" or "none".
        answered: Whether the request is answered: "yes", "partly" or "no".
        fact: Whether any sentence states a fact.
    """
    passages = dict(_PASSAGE.findall(request.text))
    checks = []
    for number, cites in _SENTENCE.findall(request.text):  # in whatever try
        words = passages.get(cites.split(", ")[0], "")
        checks.append({"number": int(number), "fact": fact and bool(words), "words": words, "support": level})
    return {"sentences": checks, "answered": answered}


def checked(script: Script, answered: str = "yes") -> Script:
    """Let a model whose script knows nothing of that form fill it in, too: the request is `answered` so far."""
    return lambda request: support(request, answered=answered) if request.schema == "SupportCheck" else script(request)
