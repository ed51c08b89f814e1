"""Fact checking with articles (FEVER; ReAct, section 3.1)."""

from environments.base import State, Task, Transition, refuse
from environments.metrics import exact_match, normalise_answer
from environments.questions import Questions

LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")
"""What may be said of a claim."""


class FactChecking(Questions):
    """Claims to be checked with Search, Lookup and Finish. A task's `question` is the claim, `gold` one of `LABELS`."""

    name = "fever"
    actions = f"Search[entity], Lookup[keyword], {', '.join(f'Finish[{label}]' for label in LABELS)}"

    def public(self, state: State) -> str:
        """Return the claim, and which page is open."""
        return super().public(state).replace("Question:", "Claim:", 1)

    def _finish(self, state: State, answer: str) -> Transition:
        for label in LABELS:
            if normalise_answer(answer) == normalise_answer(label):
                return super()._finish(state, label)
        return refuse(state, f"[{answer}] is not one of the three answers.", self.actions)

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Return whether the label is right ("em")."""
        gold = task.get("gold")
        return {} if gold is None else {"em": exact_match(answer, gold)}
