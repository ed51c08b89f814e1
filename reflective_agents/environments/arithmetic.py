"""Word questions with arithmetic, answered with a number (GSM8K, arXiv 2110.14168; RAP, arXiv 2305.14992)."""

import re
from fractions import Fraction
from typing import ClassVar

from langchain_core.tools import ToolException

from reflective_agents.environments.actions import answer_action, has_answer
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
from reflective_agents.environments.calculations import MAX_CHARACTERS, read_calculation, without_signs
from reflective_agents.state.errors import Misuse
from reflective_agents.text.labels import any_of
from reflective_agents.text.normal import numbers
from reflective_agents.tools.arithmetic import evaluate, exact, show

_QUESTION = re.compile(
    rf"(?:{any_of('question')})[:：](.*?)(?<!\w)(?:{any_of('answer')})[:：](.*)", re.IGNORECASE | re.DOTALL
)
_NUMBER = re.compile(r"[-+]?+\.?+\d[\d.]*+")
_LAST_NOTE = re.compile(r"(?<=[\w%])\s*+\([^()]*+\)\Z")


class Arithmetic(Environment):
    """Word questions as an environment.

    A task's `question` is the question, `gold` the number. A step is a calculation, which is worked out exactly, or a
    smaller question with the agent's own answer, which nothing checks. The state holds the steps. A task ends with an
    answer, and is rewarded with 1 or 0 if the right number is known.
    """

    name = "arithmetic"
    actions = "`calculate: (2 + 3) * 4`, `Question: a smaller question Answer: what it comes to`, or `Answer: number`"
    goal = "Find the number that the question asks for."
    rules = "The answer is one number, without a unit. Smaller questions may be answered on the way to it."
    effects = "A calculation is worked out exactly. Nothing checks the answer to a smaller question but you."
    answer_form = "End with a line 'Answer: number'."
    figure = "correct"
    correct_if = "the number that it ends with is the right one, however it is written"
    by_subquestions = True
    presets: ClassVar[Presets] = {"rap": {}}
    examples = (
        Example(
            "Question: A box holds 6 rows of 8 pens. Tim takes 5 pens out. How many are left?",
            (
                Act("I need the number of pens in the box.", "calculate: 6 * 8", "6 * 8 = 48"),
                Act("5 are taken out.", "calculate: 48 - 5", "48 - 5 = 43"),
                Act("That is the answer.", "Answer: 43"),
            ),
            "The box holds 6 * 8 = 48 pens. 48 - 5 = 43 are left.\nAnswer: 43",
        ),
        Example(
            "Question: A shirt of 40 euros costs a quarter less today. What does it cost?",
            (
                Act("I need a quarter of 40.", "calculate: 40 / 4", "40 / 4 = 10"),
                Act("It costs that much less.", "calculate: 40 - 10", "40 - 10 = 30"),
                Act("That is the price.", "Answer: 30"),
            ),
            "A quarter of 40 is 10, and 40 - 10 = 30.\nAnswer: 30",
        ),
        Example(
            "Question: Anna reads 12 pages a day, twice as many as Ben. How many pages do both read in 5 days?",
            (
                Act("Ben reads twice 12 pages.", "calculate: 12 * 2", "12 * 2 = 24"),
                Act("Both together, 5 days.", "calculate: (12 + 24) * 5", "(12 + 24) * 5 = 180"),
                Act("Done.", "Answer: 180"),
            ),
            "Ben reads twice 12, so 24; (12 + 24) * 5 = 180.\nAnswer: 180",
            solved=False,
            why="It is Anna who reads twice as many: Ben reads 6 pages a day, and both read (12 + 6) * 5 = 90.",
        ),
    )

    def start(self, task: Task) -> State:
        """Return the state before the first step.

        Raises:
            Misuse: if the right answer is given, and is no number.
        """
        check_task(task)
        if final_number(task.get("gold", "0")) is None:
            raise Misuse(f"Task {task.get('id', '')!r}: the right answer must be a number, such as 48 or 2.50.")
        return {"task": task, "steps": [], "answer": "", "done": False}

    def public(self, state: State) -> str:
        """Return the question, and the steps with their results."""
        return "\n".join([f"Question: {state['task']['question']}", *state["steps"]])

    def key(self, state: State) -> str:
        """Return the number of the answer, or else what the steps came to, in any order; empty before the first one.

        A calculation counts by its result: 80 * (1 - 0.25) and 80 * 0.75 lead to equal states.
        """
        if state["answer"]:
            return self.canonical(f"answer: {state['answer']}")
        results = {_result(step) for step in state["steps"]}
        return "\n".join(sorted(results))

    async def step(self, state: State, action: str) -> Transition:
        """Work out a calculation, note a smaller question with its answer, or take the answer and reward it."""
        text = action.strip()[:MAX_CHARACTERS]
        answer = _given_answer(text)
        if answer is not None:
            return self._finish(state, answer)
        match = _QUESTION.fullmatch(text)
        if match and match[1].strip() and match[2].strip():
            question, answer = (" ".join(part.split()) for part in match.groups())
            return _with_step(state, f"Question: {question} Answer: {answer}", "Noted.")
        # A bare number is refused below, or taken for the answer; without a label it would not be read at all.
        calculation = read_calculation(f"calculate: {text}" if _NUMBER.fullmatch(text) else text)
        if calculation is None:
            return refuse(state, "No calculation and no answer can be read in this.")
        if calculation.why:
            return refuse(state, calculation.why)
        value = evaluate(calculation.expression)
        if _NUMBER.fullmatch(calculation.expression):
            if _last_result(state) == value:  # there is nothing to calculate: it is meant as the answer
                return self._finish(state, exact(value))
            return refuse(
                state, "This is a number, no calculation. If it is what the question asks for, answer with it."
            )
        result = f"{calculation.expression} = {show(value)}"
        return _with_step(state, f"calculate: {result}", result)

    def _finish(self, state: State, answer: str) -> Transition:
        if final_number(answer) is None:
            return refuse(state, "The answer must be a number.")
        worked_out = _result_of(answer)
        if worked_out is not None:
            answer = worked_out
        reward = self.score(state["task"], answer).get("correct")
        return Transition({**state, "answer": answer, "done": True}, "Finished.", reward, True)

    def is_action(self, line: str) -> bool:
        """Return whether a line is a calculation that can be worked out."""
        calculation = read_calculation(line)
        return calculation is not None and not calculation.why

    def canonical(self, action: str) -> str:
        """Return an answer as its exact number, a calculation without blanks and result, all else in lower case."""
        text = action.strip()
        answer = _given_answer(text)
        number = None if answer is None else final_number(answer)
        if number is not None:
            return f"answer:{exact(number)}"
        if _QUESTION.fullmatch(text) is None and (calculation := read_calculation(text)):
            return f"calculate:{''.join(calculation.expression.split())}"
        return " ".join(text.casefold().split())

    def final_action(self, answer: str) -> str:
        """Return the answer with its label."""
        return f"Answer: {answer}"

    def find_answer(self, text: str) -> str:
        """Return the answer that a text ends with; of a calculation without any label of an answer, its result."""
        answer = super().find_answer(text)
        result = None if has_answer(text) else _result_of(answer)
        return answer if result is None else result

    def normal(self, answer: str) -> str:
        """Return the number that a text ends with, in one notation; empty if there is none."""
        number = final_number(answer)
        return "" if number is None else str(number)

    def request(self, task: Task) -> str:
        """Return the question, to be answered with a number."""
        return f"{task['question']}\n\nGive the number alone on the last line."

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Return whether an answer is the right number ("correct"), however it is written."""
        gold = final_number(task.get("gold", ""))
        return {} if gold is None else {"correct": float(final_number(answer) == gold)}


def final_number(text: str) -> Fraction | None:
    """Return the number that a text ends with: "48", "48.0", "$1,000", "6 * 8 = 48", "It is 48 metres."

    A text that is arithmetic, or is so after its last "=", is worked out; of any other, the last number counts that is
    not in a note behind it: "48 (4 dozen)" is 48.

    Returns:
        The exact number; None if there is none.
    """
    text = without_signs(text[-MAX_CHARACTERS:]).rstrip(" .%\n")
    try:
        return evaluate(text.rpartition("=")[2])
    except ToolException:  # not arithmetic
        found = numbers(_LAST_NOTE.sub("", text)) or numbers(text)
        return found[-1] if found else None


def _given_answer(action: str) -> str | None:
    """Return the answer of an action: its first line that holds a number, for an explanation may follow, else all of
    it; None if the action gives no answer."""
    answer = answer_action(action)
    if answer is None:
        return None
    for line in answer.splitlines():
        if final_number(line) is not None:
            return " ".join(line.split())
    return " ".join(answer.split())


def _result_of(answer: str) -> str | None:
    """Return what an answer that is a calculation comes to; None if it is none, or cannot be worked out."""
    calculation = read_calculation(answer)
    if calculation is None or calculation.why:
        return None
    return exact(evaluate(calculation.expression))


def _result(step: str) -> str:
    """Return what a step of a state came to: the value of a calculation; a smaller question with its answer."""
    return step.rpartition(" = ")[2] if step.startswith("calculate:") else step.casefold()


def _last_result(state: State) -> Fraction | None:
    """Return what the last step came to; None if there is none, or it came to no number."""
    return final_number(state["steps"][-1]) if state["steps"] else None


def _with_step(state: State, step: str, observation: str) -> Transition:
    return Transition({**state, "steps": [*state["steps"], step]}, observation)
