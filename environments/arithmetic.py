"""Word questions with arithmetic, answered with a number (GSM8K, arXiv 2110.14168; RAP, arXiv 2305.14992)."""

import re
from fractions import Fraction

from langchain_core.tools import ToolException

from environments.base import State, Task, Transition, over, refuse
from state.errors import Misuse
from tools.arithmetic import evaluate, exact, show

_ANSWER = re.compile(r"answer:(.*)", re.IGNORECASE | re.DOTALL)
_CALCULATE = re.compile(r"calculate:([^=]*)(?:=.*)?", re.IGNORECASE | re.DOTALL)
_QUESTION = re.compile(r"question:(.*?)\banswer:(.*)", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.,/])-?\d+(?:\.\d+)?(?:\s*/\s*0*[1-9]\d*)?(?!\d|[.,]\d|\s*/)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SIGNS = str.maketrans({"\N{MINUS SIGN}": "-", **dict.fromkeys("$\N{EURO SIGN}\N{POUND SIGN}\N{YEN SIGN}")})
_MAX_CHARACTERS = 1_000


class Arithmetic:
    """Word questions as an environment.

    A task's `question` is the question, `gold` the number. A step is a calculation, which is worked out exactly, or a
    smaller question with the agent's own answer, which nothing checks. The state holds the steps. A task ends with an
    answer, and is rewarded with 1 or 0 if the right number is known.
    """

    name = "arithmetic"
    actions = "`calculate: (2 + 3) * 4`, `Question: a smaller question Answer: what it comes to`, or `Answer: 20`"

    def start(self, task: Task) -> State:
        """Return the state before the first step.

        Raises:
            Misuse: if the right answer is given, and is no number.
        """
        if read_number(task.get("gold", "0")) is None:
            raise Misuse(f"Task {task['id']}: the right answer must be a number, such as 48 or 2.50.")
        return {"task": task, "steps": [], "answer": "", "done": False}

    def public(self, state: State) -> str:
        """Return the question, and the steps with their results."""
        return "\n".join([f"Question: {state['task']['question']}", *state["steps"]])

    def answer(self, state: State) -> str:
        """Return what was given as the answer."""
        return str(state["answer"])

    def key(self, state: State) -> str:
        """Return the number of the answer, or else the steps, in whatever order; empty before the first one."""
        if state["answer"]:
            return self.same(f"answer: {state['answer']}")
        return "\n".join(sorted({step.casefold() for step in state["steps"]}))

    async def step(self, state: State, action: str) -> Transition:
        """Work out a calculation, note a smaller question with its answer, or take the answer and reward it."""
        if state["done"]:
            return over(state)
        text = action.strip()[:_MAX_CHARACTERS]
        if found := _ANSWER.fullmatch(text):
            return self._finish(state, " ".join(found[1].split()))
        if found := _CALCULATE.fullmatch(text):
            return self._calculate(state, found[1])
        if (found := _QUESTION.fullmatch(text)) and found[1].strip() and found[2].strip():
            asked, said = (" ".join(part.split()) for part in found.groups())
            return _noted(state, f"Question: {asked} Answer: {said}", "Noted.")
        return refuse(state, "This is no step that can be read.", self.actions)

    def _finish(self, state: State, answer: str) -> Transition:
        if read_number(answer) is None:
            return refuse(state, "The answer must be a number.", self.actions)
        reward = self.score(state["task"], answer).get("correct")
        return Transition({**state, "answer": answer, "done": True}, "Finished.", reward, True)

    def _calculate(self, state: State, expression: str) -> Transition:
        plain = " ".join(_plain(expression).split())
        try:
            worked_out = f"{plain} = {show(evaluate(plain))}"
        except ToolException as error:
            return refuse(state, str(error), self.actions)
        return _noted(state, f"calculate: {worked_out}", worked_out)

    def same(self, action: str) -> str:
        """Return an answer as its exact number, a calculation without blanks and result, all else in lower case."""
        text = action.strip()
        if (found := _ANSWER.fullmatch(text)) and (number := read_number(found[1])) is not None:
            return f"answer:{exact(number)}"
        if found := _CALCULATE.fullmatch(text):
            return f"calculate:{''.join(_plain(found[1]).split())}"
        return " ".join(text.casefold().split())

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Return whether an answer is the right number ("correct"), however it is written."""
        gold = read_number(task.get("gold", ""))
        return {} if gold is None else {"correct": float(read_number(answer) == gold)}


def read_number(text: str) -> Fraction | None:
    """Read the number that a text gives as its answer: "48", "48.0", "$1,000", "6 * 8 = 48", "It is 48 metres."

    A text that is arithmetic, or is so after its last "=", is worked out; of any other, the last number counts.

    Returns:
        The exact number; None if there is none.
    """
    plain = _plain(text[-_MAX_CHARACTERS:]).rstrip(" .%\n")
    for part in (plain.rpartition("=")[2], *_NUMBER.findall(plain)[-1:]):
        try:
            return evaluate(part)
        except ToolException:  # no arithmetic
            continue
    return None


def _noted(state: State, step: str, observation: str) -> Transition:
    return Transition({**state, "steps": [*state["steps"], step]}, observation)


def _plain(text: str) -> str:
    """Return a text without signs of currency, and without commas between thousands."""
    return _THOUSANDS.sub("", text.translate(_SIGNS))
