"""Fake models that can use a lesson: each fails at a kind of task until it is told what to do there, and knows to say
what it should have done."""

import itertools
import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from reflective_agents.environments.base import Task
from reflective_agents.testing.script import Reply, Request

_LESSON = re.compile(r"<lesson>\n(.*?)\n</lesson>|^- (.*)$", re.DOTALL | re.MULTILINE)


def lessons(request: Request) -> str:
    """Return all lessons that a prompt holds, as text."""
    return "\n".join("".join(found) for found in _LESSON.findall(request.text))


def reflects(request: Request) -> bool:
    """Tell whether a lesson is asked for."""
    return request.last.endswith("Reflection:")


# Questions


_KINDS = re.compile(r"\b(who|whose|whom|when|where|how many|which|what)\b", re.IGNORECASE)


def kind(question: str) -> str:
    """Return what a question asks for: its first question word, or "yes or no" if it has none."""
    found = _KINDS.search(question)
    return found[1].lower() if found else "yes or no"


def answering(tasks: Sequence[Task]) -> Callable[[Request], Reply]:
    """Make a model that knows every answer but buries it in a sentence.

    It answers plainly after a lesson on that kind of question, and yes-or-no questions from the start.
    """
    gold = {task["question"]: task["gold"] for task in tasks}

    def reply(request: Request) -> Reply:
        question = next(candidate for candidate in gold if candidate in request.last)
        form = kind(question)
        if reflects(request):
            return f'Asked "{form}", answer with that alone, not with a sentence.'
        plain = form == "yes or no" or f'Asked "{form}"' in lessons(request)
        return f"Answer: {gold[question]}" if plain else f"Answer: It is said that this would be {gold[question]}"

    return reply


# The game of 24


OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "*": operator.mul,
    "-": operator.sub,
    "/": operator.truediv,
}
SHAPES = ("((a {0} b) {1} c) {2} d", "(a {0} b) {1} (c {2} d)")
FORMS = [shape.format(*signs) for signs in itertools.product(OPERATIONS, repeat=3) for shape in SHAPES]
"""Ways to combine four numbers, in the order in which a player thinks of them."""
KNOWN = FORMS[:1]
"""Ways that the player knows without a lesson: to add up."""


@cache
def solve(numbers: tuple[int, ...], form: str) -> str | None:
    """Find an expression of this form that makes 24 of the numbers, if there is one."""
    first, second, third = (OPERATIONS[sign] for sign in re.findall(r"[-+*/]", form))
    for a, b, c, d in itertools.permutations(numbers):
        try:
            made = second(first(a, b), third(c, d)) if form.endswith(")") else third(second(first(a, b), c), d)
        except ZeroDivisionError:
            continue
        if math.isclose(made, 24):
            return form.translate({ord(name): str(number) for name, number in zip("abcd", (a, b, c, d), strict=True)})
    return None


def playing() -> Callable[[Request], Reply]:
    """Make a player that tries the forms it knows and those in lessons, and afterwards names the one it lacked."""

    def reply(request: Request) -> Reply:
        numbers = tuple(map(int, re.findall(r"Numbers: ([\d ]+)", request.last)[-1].split()))
        if reflects(request):
            lacked = next((form for form in FORMS if solve(numbers, form)), "of a fraction")
            return f"Try the form {lacked}."
        learned = lessons(request)
        tried = [*KNOWN, *(form for form in FORMS if f"Try the form {form}." in learned)]
        expression = next(_solutions(numbers, tried), " + ".join(map(str, numbers)))
        return f"Answer: {expression} = 24"

    return reply


# Both


_CONDITION = re.compile(r'<lesson number="(\d+)"[^>]*>\napplies when: (.*?)\n</lesson>', re.DOTALL)
_REQUEST = re.compile(r"<request>\n(.*?)\n</request>", re.DOTALL)
GAME = "a game of 24"


def mixed(tasks: Sequence[Task]) -> Callable[[Request], Reply]:
    """Make a model that does both, says which lessons apply, and draws from a run what it lacked there."""
    answer, play = answering(tasks), playing()

    def reply(request: Request) -> Reply:
        if request.schema == "Applying":
            own = _condition(_REQUEST.findall(request.text)[-1])
            return {"applies": [int(number) for number, text in _CONDITION.findall(request.text) if text == own]}
        if request.schema == "Drawn":
            return {"items": [*_drawn(request)]}
        return play(request) if "Numbers: " in request.last else answer(request)

    return reply


def _condition(task: str) -> str:
    return GAME if re.fullmatch(r"[\d ]+", task.strip()) else f'a question that asks "{kind(task)}"'


def _drawn(request: Request) -> Iterator[dict[str, str]]:
    task = _REQUEST.findall(request.text)[-1]
    reflections = re.findall(r"^reflection: (.*)$", request.text, re.MULTILINE)
    texts = {"title": "A form", "applies_when": _condition(task), "evidence": "The first trial lacked it."}
    if reflections:
        yield {**texts, "advice": reflections[-1], "kind": "success"}


def _solutions(numbers: tuple[int, ...], forms: Sequence[str]) -> Iterator[str]:
    return filter(None, (solve(numbers, form) for form in forms))
