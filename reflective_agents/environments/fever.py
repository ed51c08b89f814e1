"""Fact checking with articles (FEVER; ReAct, section 3.1)."""

from reflective_agents.environments.base import Act, Example, State, Task, Transition, refuse
from reflective_agents.environments.metrics import exact_match, normalise_answer
from reflective_agents.environments.questions import Questions

LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")
"""What may be said of a claim."""


class FactChecking(Questions):
    """Claims to be checked with Search, Lookup and Finish. A task's `question` is the claim, `gold` one of `LABELS`."""

    name = "fever"
    correct_if = "it is the right label"
    actions = ", ".join(["Search[entity]", "Lookup[keyword]", *map("Finish[{}]".format, LABELS)])
    labels = LABELS
    goal = f"Say whether articles support or refute the claim: {', '.join(LABELS)}."
    rules = "SUPPORTS and REFUTES need an article that says so; what no article decides is NOT ENOUGH INFO."
    answer_form = "End with a line 'Answer: SUPPORTS', 'Answer: REFUTES' or 'Answer: NOT ENOUGH INFO'."
    examples = (
        Example(
            "Claim: The river Elbe flows into the Baltic Sea.",
            (
                Act(
                    "I look up the Elbe.",
                    "Search[Elbe]",
                    "The Elbe is one of the major rivers of Central Europe. It flows into the North Sea at Cuxhaven.",
                ),
                Act("It flows into the North Sea, so the claim is wrong.", "Finish[REFUTES]"),
            ),
            "The Elbe flows into the North Sea.\nAnswer: REFUTES",
        ),
        Example(
            "Claim: Cuxhaven has more bakeries than Hamburg.",
            (
                Act("I look up Cuxhaven.", "Search[Cuxhaven]", "Cuxhaven is a town in Lower Saxony, on the North Sea."),
                Act("Nothing about bakeries.", "Lookup[bakeries]", "No results."),
                Act("No article decides it.", "Finish[NOT ENOUGH INFO]"),
            ),
            "Nothing is known about the bakeries of either.\nAnswer: NOT ENOUGH INFO",
        ),
        Example(
            "Claim: Ada Lovelace wrote about a calculating machine.",
            (
                Act("I look her up.", "Search[Ada Lovelace]", "Ada Lovelace was an English mathematician."),
                Act("No word of a machine, so the claim must be wrong.", "Finish[REFUTES]"),
            ),
            "The first lines on Ada Lovelace name no machine, so it must be wrong.\nAnswer: REFUTES",
            solved=False,
            why="What one paragraph leaves out is not refuted: Lookup[machine] should have come next.",
        ),
    )

    def public(self, state: State) -> str:
        """Return the claim, and which page is open."""
        return super().public(state).replace("Question:", "Claim:", 1)

    def _finish(self, state: State, answer: str) -> Transition:
        for label in LABELS:
            if normalise_answer(answer) == normalise_answer(label):
                return super()._finish(state, label)
        return refuse(state, f"[{answer}] is not one of the three answers.")

    def request(self, task: Task) -> str:
        """Return the claim, and what may be said of it."""
        labels = "Answer with SUPPORTS, REFUTES or NOT ENOUGH INFO, and nothing else."
        return f"Is the claim true?\n\nClaim: {task['question']}\n\n{labels}"

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Return whether the label is right ("em")."""
        gold = task.get("gold")
        return {} if gold is None else {"em": exact_match(answer, gold)}
