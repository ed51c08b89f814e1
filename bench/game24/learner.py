"""A fake model that can use a lesson in the game of 24: it thinks of + and - only, until it is told of more.

It proposes legal steps at random. It values what it sees at a glance: whether two numbers can make 24 by the operations
that it knows. After a failure it sees by an exact solver which operation was lacking, and says so.
"""

import random
import re
from functools import cache

from bench.game24.recorded import Player, after, left, taken
from bench.learners import lessons
from reflective_agents.environments.game24 import legal_steps, parse_step
from reflective_agents.testing.script import Reply, Request

KNOWN = "+-"
LACKING = ("*", "/", "*/")
"""What may be lacking, from the least on."""
LISTED = 12


@cache
def moves(numbers: str, known: str) -> tuple[str, ...]:
    """Return the legal steps by some operations."""
    found: list[str] = []
    for line in legal_steps({"numbers": numbers.split(), "done": False}):
        step = parse_step(line)
        if step and step.operation in known:
            found.append(line)
    return tuple(found)


@cache
def wins(numbers: str, known: str) -> bool:
    """Tell whether some operations make 24 of numbers."""
    if " " not in numbers:
        return numbers == "24"
    reached = (after(numbers, step) for step in moves(numbers, known))
    return any(wins(rest, known) for rest in reached if rest)


class Learner(Player):
    """The model. It knows what the lessons in each prompt say, and nothing of other prompts.

    Args:
        proposes: Whether it heeds lessons when it proposes steps.
        values: Whether it heeds them when it values numbers.
    """

    def __init__(self, proposes: bool = True, values: bool = True) -> None:
        self.proposes, self.values = proposes, values
        self.signs = KNOWN

    def __call__(self, request: Request) -> Reply:
        """Answer a request with what its prompt tells."""
        self.signs = KNOWN + "".join(sign for sign in "*/" if f"Think of {sign} too" in lessons(request))
        return super().__call__(request)

    def steps(self, numbers: str, request: Request) -> list[str]:
        """Return some of the legal steps, at random."""
        found = moves(numbers, self.signs if self.proposes else KNOWN)
        return random.Random(f"{request.key} {request.index}").sample(found, min(LISTED, len(found)))

    def labels(self, numbers: str) -> list[str]:
        """Label two numbers by whether they make 24; more of them may."""
        if len(numbers.split()) > 2:
            return ["likely"]
        return ["sure" if wins(numbers, self.signs if self.values else KNOWN) else "impossible"]

    def reflection(self, text: str) -> str:
        """Name the first operation that was missing and not tried."""
        numbers = left(f"Left: {re.findall('Numbers: (.+)', text)[0]}")
        lacking = next((signs for signs in LACKING if wins(numbers, KNOWN + signs)), "")
        tried = {step.operation for step in map(parse_step, taken(text)) if step}
        for sign in lacking:
            if sign not in tried:
                return f"Think of {sign} too."
        return "Other numbers should come first."
