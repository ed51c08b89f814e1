"""How the offline model plans, and leads others: it splits a request into sub-goals or sub-questions, and gives each
member of a team its turn."""

import re
from collections.abc import Iterator
from itertools import chain

from reflective_agents.offline.grading import grade
from reflective_agents.offline.pieces import Piece
from reflective_agents.offline.reading import CRITICISE, Reading
from reflective_agents.text.extract import terms
from reflective_agents.text.sentences import split

_NEXT_QUESTION = re.compile(r"(?<!\s)[,;]?+\s++(?:and\s++)?(?=(?:what|how|why|which|who|whose|when|where)\b)", re.I)
_CRITIC = re.compile(r"critic|review", re.I)


def subgoals(reading: Reading) -> Iterator[dict[str, str | list[str]]]:
    """Yield the sub-goals of a request: its questions, which need nothing of each other; of a single one first what its
    first and its last word mean, and then the question itself.

    After a failure: what the words of the sub-goals mean that have failed, as far as it was not asked yet.
    """
    earlier = {goal.text for goal in reading.subgoals}
    first = len(earlier) + 1
    if reading.failures:
        failed = {failure.name for failure in reading.failures}
        meanings: dict[str, None] = {}
        for subgoal in reading.subgoals:
            if subgoal.name in failed:
                meanings |= dict.fromkeys(map(_meaning, terms(subgoal.text).values()))
        new = [goal for goal in meanings if goal not in earlier]
        goals = new[:2] or [reading.question]
        yield from (_subgoal(number, goal) for number, goal in enumerate(goals, first))
        return
    goals, words = _questions(reading.question), list(reading.terms.values())
    ends = dict.fromkeys((words[0], words[-1])) if len(goals) == 1 < len(words) else {}
    definitions = [_meaning(word) for word in ends]
    yield from (_subgoal(number, goal) for number, goal in enumerate(definitions, first))
    needs = range(first, first + len(definitions))
    for number, goal in enumerate(goals, first + len(definitions)):
        yield _subgoal(number, goal, *needs)


def _subgoal(number: int, goal: str, *needs: int) -> dict[str, str | list[str]]:
    return {"id": str(number), "goal": goal, "needs": [str(number) for number in needs]}


def _meaning(word: str) -> str:
    return f"What is {word}?"


def _questions(text: str) -> list[str]:
    """Split a text into its questions."""
    parts = chain.from_iterable(map(_NEXT_QUESTION.split, split(text)))
    stripped = [part.strip(" ,;.?") for part in parts]
    questions = [f"{part[0].upper()}{part[1:]}?" for part in stripped if part]
    return questions if len(questions) > 1 else [text.strip()]


def tasks(reading: Reading) -> Iterator[dict[str, str]]:
    """Yield the next task for a member of the team: who has not reported yet, in their order; then who does the work
    that the critics are content with or not."""
    workers = [member for member in reading.members if not _is_critic(member)]
    for member in (*waiting(reading), *workers[-1:], *reading.members)[:1]:
        yield {"to": member.name, "task": CRITICISE if _is_critic(member) else reading.question}


def waiting(reading: Reading) -> list[Piece]:
    """Return the members that have not reported yet."""
    reported = {candidate.author for candidate in reading.candidates}
    return [member for member in reading.members if member.name not in reported]


def _is_critic(member: Piece) -> bool:
    return bool(_CRITIC.search(member.name))


def best(reading: Reading) -> Reading:
    """Return the candidate with the best grade, of equals the last; the reading itself if there is none."""

    def worth(candidate: Reading) -> tuple[bool, float]:
        return bool(candidate.draft), grade(candidate, candidate.draft).score

    return max(reversed(reading.candidates), key=worth, default=reading)


def subquestion(reading: Reading, variant: int) -> str:
    """Return the next sub-question: a sub-goal that was not asked yet, or the question itself.

    Args:
        reading: the conversation.
        variant: which of them; the first ones, one a line, where several are asked for.
    """
    goals = [str(goal["goal"]) for goal in subgoals(reading)]
    new = [goal for goal in goals if goal not in reading.questions and goal != reading.question]
    options = [*new, reading.last or reading.question]
    return "\n".join(options[: reading.most]) if reading.most > 1 else options[variant % len(options)]


def useful(reading: Reading, step: str) -> float:
    """Return how much of the question a step is about, 0..1."""
    return round(1 - len(reading.missing(terms(step))) / max(len(reading.terms), 1), 3)


def vote(reading: Reading) -> str:
    """Return a vote for the candidate with the best grade, of equals for the one that is most about the question."""
    grades = [grade(candidate, candidate.draft).score for candidate in reading.candidates]
    uses = [useful(reading, candidate.text) for candidate in reading.candidates]
    worth = list(zip(grades, uses, strict=True))
    return f"The best choice is {worth.index(max(worth)) + 1}"
