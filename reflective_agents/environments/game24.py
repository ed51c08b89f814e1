"""Game of 24: combine numbers, each used once, with + - * / until 24 is left (Tree of Thoughts, section 4.1)."""

import itertools
import re
from fractions import Fraction
from typing import ClassVar

from langchain_core.tools import ToolException

from reflective_agents.environments.actions import answer_action
from reflective_agents.environments.base import (
    Act,
    Environment,
    Example,
    Presets,
    State,
    Task,
    Transition,
    check_task,
    refuse,
)
from reflective_agents.environments.game24_steps import (
    TARGET,
    Step,
    check_expression,
    check_step,
    listed,
    parse_step,
    result_of,
    solve,
    step_text,
    without_backticks,
)
from reflective_agents.state.errors import Misuse
from reflective_agents.text.normal import tidy
from reflective_agents.tools.arithmetic import evaluate

__all__ = ["Game24", "Step", "check_expression", "check_step", "legal_steps", "parse_step", "solve"]

MAX_NUMBERS = 6
"""Most numbers of one task: the number of possible games grows fast with them."""


class Game24(Environment):
    """The game as an environment. A task's `question` holds the numbers, such as "4 5 6 10".

    The state holds the numbers that remain, in rising order, as text ("3/2" is exact), and the expression that each
    stands for. A task ends with an answer, or where one number remains: nothing is left to decide then, and where it is
    24, the answer is the expression that it stands for.
    """

    name = "game24"
    correct_if = "it is an expression that uses each of the numbers once and comes to 24"
    actions = "`a op b = c (left: the numbers that remain)` with op one of + - * /, or `Answer: expression = 24`"
    goal = "Combine the numbers with + - * / until the result is 24. Each number is used exactly once."
    rules = (
        "A step takes two of the numbers that are left and puts their result in their place; fractions are allowed. "
        "Once 24 alone is left, the game is won; whoever sees the whole expression before that may answer with it."
    )
    answer_form = "End with a line 'Answer: expression = 24' that uses each number once."
    examples = (
        Example(
            "Numbers: 2 3 4 12\nLeft: 2 3 4 12",
            (
                Act("12 times 2 is 24, so 3 and 4 have to become 1.", "4 - 3 = 1 (left: 1 2 12)", "Left: 1 2 12."),
                Act("Twice 12 is 24.", "2 * 12 = 24 (left: 1 24)", "Left: 1 24."),
                Act("Times 1 changes nothing.", "1 * 24 = 24 (left: 24)"),
            ),
            "4 - 3 = 1, which leaves 1 2 12. 2 * 12 = 24, which leaves 1 24. 1 * 24 = 24.\n"
            "Answer: (4 - 3) * (2 * 12) = 24",
        ),
        Example(
            "Numbers: 1 5 5 5\nLeft: 1 5 5 5",
            (
                Act("5 times 5 is 25, which is near.", "1 / 5 = 0.2 (left: 0.2 5 5)", "Left: 0.2 5 5."),
                Act("5 less a fifth is 4.8.", "5 - 0.2 = 4.8 (left: 4.8 5)", "Left: 4.8 5."),
                Act("Five times 4.8 is 24.", "4.8 * 5 = 24 (left: 24)"),
            ),
            "1 / 5 = 0.2, which leaves 0.2 5 5. 5 - 0.2 = 4.8, which leaves 4.8 5. 4.8 * 5 = 24.\n"
            "Answer: (5 - 1 / 5) * 5 = 24",
        ),
        Example(
            "Numbers: 4 9 10 13\nLeft: 4 9 10 13",
            (
                Act("I try the large numbers first.", "9 + 13 = 22 (left: 4 10 22)", "Left: 4 10 22."),
                Act("4 and 10 are 14.", "4 + 10 = 14 (left: 14 22)", "Left: 14 22."),
                Act(
                    "The difference is nearest.",
                    "22 - 14 = 8 (left: 8)",
                    "Left: 8. That is not 24, and no step is left.",
                ),
            ),
            "9 + 13 = 22, which leaves 4 10 22. 4 + 10 = 14, which leaves 14 22. 22 + 14 = 36, 22 - 14 = 8.\n"
            "Answer: (9 + 13) - (4 + 10) = 8",
            solved=False,
            why="14 and 22 make 36, 8, 308, 11/7 or 7/11: 24 was out of reach as soon as they were left.",
        ),
    )
    presets: ClassVar[Presets] = {
        "lats": {
            "max_depth": 4,
            "max_expansions": 1000,
            "max_rollouts": 50,
            "simulate": True,
            "judge_weight": 0.5,
            "proposals": "list",
            "lists": 3,
            "grades": "labels",
            "grading": "each",
        },
        "tree_of_thoughts": {
            "n": 12,
            "beam": 5,
            "max_depth": 4,
            "max_expansions": 1000,
            "proposals": "list",
            "grades": "labels",
            "grade_samples": 3,
        },
    }

    def start(self, task: Task) -> State:
        """Return the state with all numbers left.

        Raises:
            Misuse: if the question does not hold 1 to `MAX_NUMBERS` whole numbers.
        """
        check_task(task)
        words = task["question"].split()
        if not 1 <= len(words) <= MAX_NUMBERS or not all(re.fullmatch(r"[0-9]{1,6}", word) for word in words):
            raise Misuse(f"A game of 24 needs 1 to {MAX_NUMBERS} whole numbers, such as 4 5 6 10.")
        numbers = [str(number) for number in sorted(map(int, words))]
        return {"task": task, "numbers": numbers, "terms": numbers, "steps": [], "answer": "", "done": False}

    def public(self, state: State) -> str:
        """Return the numbers of the task, the steps so far and what is left."""
        steps = "".join(f"{step}\n" for step in state["steps"])
        return f"Numbers: {state['task']['question']}\n{steps}Left: {listed(_left(state))}"

    def key(self, state: State) -> str:
        """Return the numbers that remain, such as "3/2 5", and the answer if there is one."""
        left = " ".join(state["numbers"])
        return f"{left} = {''.join(state['answer'].split())}" if state["answer"] else left

    async def step(self, state: State, action: str) -> Transition:
        """Apply an arithmetic step, or take the answer and reward it with 1 if it is right, else 0."""
        action = without_backticks(action)
        if (answer := answer_action(action)) is not None:
            return self._finish(state, _expression(answer))
        step = parse_step(action)
        if step is None:
            return refuse(state, "No step and no answer can be read in this.")
        if why := check_step(_left(state), step):
            return refuse(state, why)
        return _apply_step(state, step)

    def _finish(self, state: State, expression: str) -> Transition:
        try:
            evaluate(expression)
        except ToolException as error:
            return refuse(state, str(error))
        why = check_expression(state["task"]["question"].split(), expression)
        new = {**state, "answer": expression, "done": True}
        return Transition(new, why or "That is 24.", float(why is None), True)

    def is_action(self, line: str) -> bool:
        """Return whether a line is a step that says what is left: without that, a thought may look like it."""
        step = parse_step(line)
        return step is not None and step.left is not None

    def canonical(self, action: str) -> str:
        """Return a step without what is left, the operands of + and * in rising order; an answer without blanks."""
        action = without_backticks(action)
        if (answer := answer_action(action)) is not None:
            return f"answer:{''.join(_expression(answer).split())}"
        step = parse_step(action)
        if step is None:
            return super().canonical(action)
        a, b = sorted([step.a, step.b]) if step.operation in "+*" else (step.a, step.b)
        return f"{a} {step.operation} {b} = {step.c}"

    def legal_actions(self, state: State) -> list[str]:
        """Return the arithmetic steps."""
        return legal_steps(state)

    def final_action(self, answer: str) -> str:
        """Return the answer with its label."""
        return f"Answer: {answer}"

    def normal(self, answer: str) -> str:
        """Return the answer without blanks; empty if its expression is not arithmetic."""
        plain = tidy(answer)
        try:
            evaluate(plain.partition("=")[0])
        except ToolException:
            return ""
        return "".join(plain.split())

    def measurable(self, task: Task) -> bool:
        """Return True: the rules say what is right."""
        return True

    def request(self, task: Task) -> str:
        """Return the whole game as one question."""
        return (
            f"Use each of the numbers {task['question']} exactly once, with + - * / and parentheses, to get 24. "
            "Give the expression alone on the last line, as in: Answer: (1 + 2 + 3) * 4 = 24"
        )

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Return whether the last line of an answer is an expression that is right ("solved")."""
        line = without_backticks(answer.strip().rpartition("\n")[2])
        labelled = answer_action(line)
        expression = _expression(line if labelled is None else labelled)
        return {"solved": float(check_expression(task["question"].split(), expression) is None)}


def _expression(answer: str) -> str:
    """Return an answer without its result: `(1 + 2 + 3) * 4 = 24` without `= 24`."""
    return answer.partition("=")[0].strip()


def legal_steps(state: State) -> list[str]:
    """Return every arithmetic step that leads on from a state."""
    if state["done"]:
        return []
    numbers = _left(state)
    steps: list[str] = []
    for a, b in dict.fromkeys(itertools.permutations(numbers, 2)):
        for operation in "+-*/":
            result = result_of(a, operation, b)
            is_twin = operation in "+*" and a > b
            if result is not None and not is_twin:
                steps.append(step_text(numbers, Step(a, operation, b, result, None)))
    return steps


def _apply_step(state: State, step: Step) -> Transition:
    """Apply a legal step: its result replaces the operands, and its term theirs."""
    numbers = _left(state)
    terms = [*state["terms"]]
    operands: list[str] = []
    for number in (step.a, step.b):
        index = numbers.index(number)
        del numbers[index]
        operands.append(terms.pop(index))
    numbers.append(step.c)
    terms.append(f"({operands[0]} {step.operation} {operands[1]})")
    left = sorted(zip(numbers, terms, strict=True))
    numbers = [number for number, _ in left]
    done = len(numbers) == 1
    won = numbers == [TARGET]
    new = {
        **state,
        "numbers": [str(number) for number in numbers],
        "terms": [term for _, term in left],
        "steps": [*state["steps"], step_text(_left(state), step)],
        "answer": left[0][1] if won else "",
        "done": done,
    }
    end = ""
    if done:
        end = " That is 24." if won else " That is not 24, and no step is left."
    return Transition(new, f"Left: {listed(numbers)}.{end}", float(won) if done else None, done)


def _left(state: State) -> list[Fraction]:
    return [Fraction(number) for number in state["numbers"]]
