"""What the model of the comparison answers: each search gets its own format, and never a solution."""

import random

from bench.scripts import text, unsolvable
from reflective_agents.testing.script import Reply, Request

FORMS = ("Judgement", "Judgements")


def reply(request: Request) -> Reply:
    """Answer in the form that the search can read; each candidate and each seed is told something else."""
    if request.schema in FORMS:
        return unsolvable(request)  # this project's own
    chance = random.Random(f"{request.text}{request.index}{request.seed}")
    if request.schema == "Candidates":
        return {"candidates": [text(chance, 200) for _ in range(5)]}
    if request.schema == "Evaluation":
        return {"score": chance.randint(1, 9), "is_done": False, "reasoning": text(chance, 200)}
    if "**Possible Options:**" in request.text:
        options = "\n".join(f"Option {i}: {text(chance, 200)}" for i in range(1, 6))
        return f"REFLECTION: {text(chance, 100)}\n**Possible Options:**\n{options}"
    if "on a scale of 1 to 10" in request.text:
        return f"{chance.randint(1, 9)}, for {text(chance, 200)}"
    if "only a number" in request.text:
        return f"{chance.random():.2f}"
    return text(chance, 400)
