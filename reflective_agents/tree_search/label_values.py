"""Values that are labels: sure, likely or impossible (Tree of Thoughts)."""

from collections import Counter
from collections.abc import Sequence

from reflective_agents.nodes.step import Step
from reflective_agents.prompts import lats as prompts
from reflective_agents.state.families import TreeContext
from reflective_agents.text.labels import last_word
from reflective_agents.tree_search.candidates import Branch, Candidate, Grade
from reflective_agents.tree_search.lessons import lessons_to_judge
from reflective_agents.tree_search.values import Judge
from reflective_agents.tree_search.worlds import OpenWorld, TaskWorld

LABELS = {"sure": 20.0, "likely": 1.0, "impossible": 0.001}
"""The value of a label (Tree of Thoughts, section 4.1)."""


UNREAD = "unread"
"""What replies without a label are counted as."""


class LabelJudge(Judge):
    """A judge that calls a state sure, likely or impossible, several times: its score is the sum of the labels (Tree of
    Thoughts), as a share of the most that there could be. A reply without a label adds nothing, and is counted.

    Args:
        step: The step of the graph, with the settings and the meter.
        world: The world, which shows a candidate's state.
        samples: How often a label is sampled.
    """

    def __init__(self, step: Step[TreeContext], world: OpenWorld | TaskWorld, samples: int) -> None:
        super().__init__(step, world.task)
        self.world, self.samples = world, samples

    def calls(self, width: int) -> int:
        """Count the calls: one each where the provider takes n, else one per label."""
        return width * self.calls_for(self.samples)

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Ask for the labels at once."""
        self.reserve_call(branch, candidate)
        state = self.world.show(branch, candidate)
        prompt = prompts.LABEL.format_messages(task=self.task, state=state, lessons=lessons_to_judge(branch))
        labels = [read_label(text) for text in await self.sample(prompt, self.samples)]
        self.step.meter.count(parse_failures=labels.count(""))
        return grade_from_labels(labels)


def grade_from_labels(labels: Sequence[str]) -> Grade:
    """Return the grade that labels come to; "" stands for a reply without a label."""
    total = 0.0
    terms: dict[str, float] = {}
    # In one order: else equal states would differ in the last digit.
    for label, count in sorted(Counter(labels).items()):
        total += LABELS.get(label, 0.0) * count
        terms[label or UNREAD] = float(count)
    return Grade(total / (LABELS["sure"] * max(len(labels), 1)), terms=terms)


def hope(grade: Grade) -> float:
    """Return the share of a state's labels that do not call it impossible; of a judge's score, whether it is above 0,
    since 0 says that the goal cannot be reached any more."""
    labels = sum(grade.terms.get(label, 0.0) for label in (*LABELS, UNREAD))
    if not labels:
        return float(grade.score > 0)
    return 1 - grade.terms.get("impossible", 0.0) / labels


def read_label(text: str) -> str:
    """Return the label on the last line of a reply; empty if there is none."""
    return last_word(text, LABELS)
