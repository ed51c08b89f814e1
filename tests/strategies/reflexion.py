"""A model for `graphs.reflexion`, and what to expect of it."""

import re

from reflective_agents.testing.script import Reply, Request
from tests.strategies.base import Strategy, mark


def script(request: Request, solves: bool) -> Reply:
    results = [message.text for message in request.messages if message.type == "tool"]
    rounds = sum("That does not fit" not in text for text in results)
    good = solves and rounds >= 2
    reflection = {"missing": "" if good else f"Evidence {rounds}.", "superfluous": "", "complete": good}
    queries = [] if good else [f"reflection evidence {rounds}", f"mistakes {rounds}"]
    common = {"reflection": reflection, "search_queries": queries}
    if request.schema == "AnswerQuestion":
        return {"answer": f"Draft on [{mark(request)}].", **common}
    found = re.findall(r'"url": "([^"]+)"', request.text)[:1]
    answer = f"Revision {rounds} on [{mark(request)}]: it helps" + (" [1]." if found else ".")
    return {"answer": answer, "references": found, **common}


STRATEGY = Strategy(
    name="reflexion",
    solving=lambda request: script(request, solves=True),
    endless=lambda request: script(request, solves=False),
    artefact=("answers", "sources"),
    answered=1,
    verified_by="sources",
    begins_with_a_form=True,
    settings={"search": "local"},
    longest={"max_rounds": 100},
    impossible={"max_rounds": 0, "max_queries": 11, "search": "yahoo"},
)
