"""Open questions: how their answers are read and compared where no other environment is set."""

import re

from reflective_agents.environments.base import Environment, Example, State, Task, Transition
from reflective_agents.environments.metrics import overlap
from reflective_agents.text.short import short_form

_CALCULATION = re.compile(r"[\d\s.,()+*/\u00d7\u00f7^=-]*\d[\s)]*=\s*-?[\d.,]+\s*")


class Plain(Environment):
    """Questions that are answered at once. A task's `question` is the question, `gold` the answer if it is known."""

    name = "plain"
    actions = "the answer"
    goal = "Answer the question."
    figure = "em"
    correct_if = "it equals the right one; case, punctuation, articles, blanks and how a number is written do not count"
    short_answers = True
    examples = (
        Example(
            "Question: A train leaves at 9:40 and arrives at 11:05. How long does it take?",
            reasoning="From 9:40 to 10:40 is one hour; from 10:40 to 11:05 are 25 minutes.\nAnswer: 1 hour 25 minutes",
        ),
        Example(
            "Question: Which of these months has the fewest letters: March, April, June?",
            reasoning="March and April have five letters each, so it is one of them.\nAnswer: March",
            solved=False,
            why="June was overlooked: it has four letters.",
        ),
    )

    def public(self, state: State) -> str:
        """Return the question."""
        return f"Question: {state['task']['question']}"

    def find_answer(self, text: str) -> str:
        """Return the answer that a text ends with; of a calculation, its result."""
        answer = super().find_answer(text)
        # Signs and digits alone: "E = mc^2" is an answer as a whole.
        return answer.rpartition("=")[2].strip() if _CALCULATION.fullmatch(answer) else answer

    def vote(self, answer: str, question: str) -> str:
        """Return the normal form; beside a single number, without the words of the question."""
        return short_form(answer, question)

    async def step(self, state: State, action: str) -> Transition:
        """Take the answer."""
        reward = self.score(state["task"], action).get("em")
        return Transition({**state, "answer": action.strip(), "done": True}, "Finished.", reward, True)

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Return whether the answer is the right one ("em"), and the overlap of their words ("f1")."""
        gold = task.get("gold")
        if gold is None:
            return {}
        return {"em": float(self.equal(answer, gold)), "f1": overlap(self.normal(answer), self.normal(gold))}

    def request(self, task: Task) -> str:
        """Return the question as it is."""
        return task["question"]


PLAIN = Plain()
"""The environment where none is set."""
