"""How the answer to a task is asked for where a strategy knows no environments, and how it is measured."""

from typing import NamedTuple

from environments.base import Task
from environments.metrics import exact_match, f1
from environments.programming import Programming
from environments.registry import get_environment

_BRIEF = "Give the answer alone, as short as it can be, without an explanation."


class Kind(NamedTuple):
    """A kind of tasks."""

    figure: str
    """The score that is 1 if an answer is correct."""
    request: str
    """How a task is put to a strategy that knows no environments; `{question}` stands for its question."""
    needs_gold: bool = True
    """Whether answers can only be measured where the right one is known."""


KINDS = {
    "questions": Kind("em", f"{{question}}\n\n{_BRIEF}"),
    "fever": Kind(
        "em",
        "Is the claim true?\n\nClaim: {question}\n\n"
        "Answer with SUPPORTS, REFUTES or NOT ENOUGH INFO, and nothing else.",
    ),
    "game24": Kind(
        "solved",
        "Use each of the numbers {question} exactly once, with + - * / and parentheses, to get 24. "
        "Give the expression alone on the last line, as in: Answer: (1 + 2 + 3) * 4 = 24",
        needs_gold=False,
    ),
    "crosswords": Kind(
        "game",
        "Solve the mini crossword of 5 x 5 letters. The first five clues are the rows from above, the other five the "
        "columns from the left.\n\n{question}\n\n"
        "Give five lines of five letters, set apart by blanks, and nothing else.",
    ),
    "programming": Kind(
        "passed",
        "Write this Python function. Give the whole program in one ```python block.\n\n{question}",
        needs_gold=False,
    ),
    "blocksworld": Kind(
        "solved",
        "There are blocks on a table. A hand moves one block at a time, and can do this: pick up the A block (from the "
        "table), put down the A block (on the table), stack the A block on top of the B block, unstack the A block "
        "from on top of the B block. It lifts a block only if it is empty and nothing is on the block, and stacks "
        "only on blocks that nothing is on.\n\n{question}\n\nGive the plan, one action a line, and nothing else.",
        needs_gold=False,
    ),
    "arithmetic": Kind("correct", "{question}\n\nGive the number alone on the last line."),
    "plain": Kind("em", "{question}"),
}
"""The kinds of tasks, by the name of their environment; "plain" has none."""


def request(environment: str, task: Task) -> str:
    """Return how a task is put to a strategy that knows no environments."""
    return KINDS[environment].request.replace("{question}", task["question"])


def measurable(environment: str, task: Task) -> bool:
    """Return whether it can be said of an answer if it is correct."""
    return "gold" in task or not KINDS[environment].needs_gold


def is_correct(environment: str, scores: dict[str, float]) -> bool:
    """Return whether scores are those of a correct answer."""
    return scores.get(KINDS[environment].figure) == 1


async def measure(environment: str, task: Task, answer: str, *, unsafe_code: bool = False) -> dict[str, float]:
    """Measure an answer, outside any run.

    Args:
        environment: One of `KINDS`.
        task: A task of it.
        answer: What a strategy returned.
        unsafe_code: Whether programs may run as plain processes where there is no sandbox.

    Returns:
        Figures from 0 to 1; none if the right answer is not known.

    Raises:
        SandboxMissing: if a program would have to be run, and cannot be.
    """
    if environment == "plain":
        gold = task.get("gold")
        return {} if gold is None else {"em": exact_match(answer, gold), "f1": f1(answer, gold)}
    world = get_environment(environment, unsafe_code=unsafe_code)
    if isinstance(world, Programming):
        return await world.measure(task, answer)
    return world.score(task, answer)
