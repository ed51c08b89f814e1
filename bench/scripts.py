"""How the model of the measurements behaves: it is never satisfied, so that every run goes on to its limit."""

import hashlib
import random

from testing.script import Reply, Request

QUESTION = {"messages": [("user", "Which even number above two is not the sum of two primes?")]}
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def unsolvable(request: Request) -> Reply:
    """Answer something new each time, and judge nothing as good enough."""
    return never_satisfied(request, answer=400, critique=200)


def verbose(request: Request) -> Reply:
    """The same in long texts: a node takes 1,900 bytes when it is stored."""
    return never_satisfied(request, answer=1180, critique=360)


def never_satisfied(request: Request, *, answer: int, critique: int) -> Reply:
    """A reply that differs for each text and candidate; `answer` and `critique` are lengths in characters."""
    chance = random.Random(hashlib.sha256(f"{request.text}{request.index}".encode()).digest())
    score, said = chance.random(), text(chance, critique)
    if request.schema == "Judgement":
        return {"reasoning": said, "score": score, "solved": False}
    if request.schema == "Judgements":
        one = {"reasoning": said, "solved": False}
        return {"judgements": [{**one, "score": chance.random()} for _ in range(request.last.count("<candidate "))]}
    if request.schema == "Critique":
        return {"critique": said, "score": score, "accept": False}
    if request.schema in ("AnswerQuestion", "ReviseAnswer"):
        reflection = {"missing": said, "superfluous": ""}
        common = {"answer": text(chance, answer), "reflection": reflection, "search_queries": [f"planning {said[:20]}"]}
        return common if request.schema == "AnswerQuestion" else {**common, "references": []}
    return text(chance, answer)


def text(chance: random.Random, length: int) -> str:
    """Words of no meaning."""
    return "".join(chance.choices(LETTERS + " " * 5, k=length - 1)).strip().ljust(length, "x")
