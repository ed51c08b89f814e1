"""How the model of the measurements behaves: it is never satisfied, so that every run goes on to its limit."""

import hashlib
import random

from reflective_agents.environments.base import Task
from reflective_agents.environments.game24 import Game24, legal_steps
from reflective_agents.testing.script import Reply, Request, ToolUse

QUESTION = {"messages": [("user", "Which even number above two is not the sum of two primes?")]}
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def unsolvable(request: Request) -> Reply:
    """Answer something new each time, and judge nothing as good enough."""
    return never_satisfied(request, answer=400, critique=200)


def verbose(request: Request) -> Reply:
    """Reply as `unsolvable` does, in long texts: a node takes 1,900 bytes when it is stored."""
    return never_satisfied(request, answer=1180, critique=360)


def reading(request: Request) -> Reply:
    """Read one article after the other, and answer wrongly in the end; judge it, and learn nothing."""
    chance = random.Random(hashlib.sha256(f"{request.text}{request.index}{request.attempt}".encode()).digest())
    if request.schema:
        return never_satisfied(request, answer=0, critique=300)
    if request.last.endswith("Reflection:"):
        return text(chance, 400)
    page = f"Search[Page {chance.randrange(len(ARTICLES))}]"
    ends = sum(message.type == "tool" for message in request.messages) >= 5 and request.index % 2
    return f"{text(chance, 200)}\nAction: {f'Finish[{text(chance, 12)}]' if ends else page}"


def searching(request: Request) -> Reply:
    """Search at first and now and then, and answer at length."""
    chance = random.Random(hashlib.sha256(f"{request.text}{request.index}{request.attempt}".encode()).digest())
    if request.schema:
        return never_satisfied(request, answer=0, critique=300)
    begins = not any(message.type == "ai" for message in request.messages)
    if "search" in request.tools and request.tool_choice != "none" and (begins or request.index % 2 == 0):
        return ToolUse("search", {"query": f"reflection agents {text(chance, 20)}"})
    return text(chance, 1200)


def playing(request: Request) -> Reply:
    """List all steps that are possible in a game of 24, and label what they lead to."""
    chance = random.Random(hashlib.sha256(f"{request.text}{request.index}".encode()).digest())
    if not request.last.endswith("Possible next steps:"):
        return f"{text(chance, 200)}\n{chance.choice(['sure', 'likely', 'impossible'])}"
    left = request.text.rpartition("Left: ")[2].split("\n")[0].split()
    state = Game24().start({"id": "", "question": "1"}) | {"numbers": left, "terms": left}
    return "\n".join(legal_steps(state)[:12])


def never_satisfied(request: Request, *, answer: int, critique: int) -> Reply:
    """Make a reply that differs for each text and candidate; `answer` and `critique` are lengths in characters."""
    chance = random.Random(hashlib.sha256(f"{request.text}{request.index}".encode()).digest())
    score, critique_text = chance.random(), text(chance, critique)
    if request.schema == "Judgement":
        return {"reasoning": critique_text, "score": score, "solved": False}
    if request.schema == "Judgements":
        judgement = {"reasoning": critique_text, "solved": False}
        return {
            "judgements": [{**judgement, "score": chance.random()} for _ in range(request.last.count("<candidate "))]
        }
    if request.schema == "Critique":
        return {"critique": critique_text, "score": score, "accept": False}
    if request.schema in ("AnswerQuestion", "ReviseAnswer"):
        reflection = {"missing": critique_text, "superfluous": "", "complete": False}
        common = {
            "answer": text(chance, answer),
            "reflection": reflection,
            "search_queries": [f"planning {critique_text[:20]}"],
        }
        return common if request.schema == "AnswerQuestion" else {**common, "references": []}
    return text(chance, answer)


def text(chance: random.Random, length: int) -> str:
    """Make up meaningless words."""
    return "".join(chance.choices(LETTERS + " " * 5, k=length - 1)).strip().ljust(length, "x")


ARTICLES = [[f"Page {i}", [f"{text(random.Random(f'{i} {j}'), 140)}. " for j in range(8)]] for i in range(60)]
TASK = Task(
    id="two hops",
    question="Which of two films was made by the older director, and in which town was that director born?",
    data={"context": ARTICLES},
)
"""A question with articles of about 1,100 characters."""
