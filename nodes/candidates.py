"""A candidate on its way through a search: sampled by a policy, acted on by a world, graded by a value."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage

from nodes.transcript import quoted, steps_text
from prompts.lats import LESSONS
from search.base import Job, exact
from state.tree import TreeNode


@dataclass
class Grade:
    """What a value says of a candidate: a score (0..1), the figures it is made of, and why."""

    score: float
    critique: str = ""
    solved: bool = False
    terms: dict[str, float] = field(default_factory=dict)


@dataclass
class Candidate:
    """One sampled step. `index` is its place among the samples, `samples` how many of them have come to it.

    `otherwise` are other words for the same action, for a world that refuses the first; `before` are the steps that lie
    between the place of the job and this one.

    What the world fills in: `observation`, `state`, `reward`, `done`, `answers`: whether there is an answer now, and
    `final`: whether this is the end of a trajectory, since the task has ended or a whole answer was given.
    """

    index: int
    messages: list[AnyMessage] = field(default_factory=list)
    thought: str = ""
    action: str = ""
    terms: dict[str, float] = field(default_factory=dict)
    samples: int = 1
    otherwise: list[str] = field(default_factory=list)
    before: Sequence[TreeNode] = ()
    answers: bool = False
    final: bool = False
    observation: str = ""
    state: dict[str, Any] | None = None
    reward: float | None = None
    done: bool = False
    grade: Grade | None = None

    def as_node(self, node_id: str, parent_id: str | None, model: str = "") -> TreeNode:
        """The node of the tree that this candidate becomes; it holds only what there is."""
        grade = self.grade
        told = {
            "terms": {**self.terms, **(grade.terms if grade else {})},
            "thought": self.thought,
            "action": self.action,
            "observation": self.observation,
            "state": self.state,
            "done": self.done,
            "samples": self.samples if self.samples > 1 else 0,
            "model": model,
        }
        node = TreeNode(
            id=node_id,
            parent_id=parent_id,
            depth=node_id.count("."),
            kind="answer" if self.answers else "action",
            messages=self.messages,
            critique=grade.critique if grade else "",
            score=exact(grade.score) if grade else None,
            solved=bool(grade and grade.solved),
        )
        told = {key: value for key, value in told.items() if value}
        return cast(TreeNode, {**node, **told, **({} if self.reward is None else {"reward": self.reward})})


@dataclass(frozen=True)
class Branch:
    """Where a job works: the conversation, what is asked (as quoted text), and the nodes from the root to its place.

    `may_act` is False where a step has to be an answer; `lessons` are reflections on failed trajectories; `keep` is how
    many calls grading must leave for others. A job that judges has what is `judged`: for each node the steps from the
    place on, itself the last; `tree` is the whole tree so far.
    """

    job: Job
    conversation: Sequence[AnyMessage]
    request: str
    path: Sequence[TreeNode]
    lessons: Sequence[str] = ()
    may_act: bool = True
    keep: int = 0
    judged: Sequence[Sequence[TreeNode]] = ()
    tree: Mapping[str, TreeNode] = field(default_factory=dict)


def standing(index: int, steps: Sequence[TreeNode]) -> Candidate:
    """A node that is there already as a candidate again, to be judged; it comes last of the steps."""
    node = steps[-1]
    return Candidate(
        index,
        messages=node["messages"],
        thought=node.get("thought", ""),
        action=node.get("action", ""),
        samples=node.get("samples", 1),
        before=steps[:-1],
        answers=node["kind"] == "answer",
        final=bool(node.get("done")) or (node["kind"] == "answer" and "state" not in node),
        observation=node.get("observation", ""),
        state=node.get("state"),
        reward=node.get("reward"),
        done=node.get("done", False),
    )


def judged(node: TreeNode, grade: Grade) -> TreeNode:
    """A node with a grade."""
    terms = {**node.get("terms", {}), **grade.terms}
    told: Any = {"terms": terms} if terms else {}
    return {**node, "critique": grade.critique, "score": exact(grade.score), "solved": grade.solved, **told}


def told(branch: Branch) -> str:
    """What was learned from failed trajectories, as text that ends its line; empty if nothing was."""
    lessons = "\n".join(quoted("lesson", lesson) for lesson in branch.lessons)
    return LESSONS.format(lessons=lessons) if lessons else ""


def trajectory_text(steps: Sequence[TreeNode | Candidate]) -> str:
    """The steps of a trajectory as quoted text, for whoever has to judge them."""
    return "\n".join(filter(None, map(_step_text, steps)))


def _step_text(step: TreeNode | Candidate) -> str:
    told: Any = vars(step) if isinstance(step, Candidate) else step
    if told["messages"]:
        return steps_text(told["messages"])
    return "\n".join(quoted(tag, told[tag]) for tag in ("thought", "action", "observation") if told.get(tag))


def identity(message: BaseMessage) -> str:
    """What makes two messages the same: their text but for white space, and their tool calls but for ids and order
    of keys."""
    calls = [(call["name"], call["args"]) for call in getattr(message, "tool_calls", [])]
    broken = [(call["name"], call["args"]) for call in getattr(message, "invalid_tool_calls", [])]
    return json.dumps([" ".join(message.text.split()), calls, broken], sort_keys=True, default=str)


def is_answer(message: AnyMessage) -> bool:
    """Whether a message of the agent answers: it calls no tool."""
    return isinstance(message, AIMessage) and not message.tool_calls and not message.invalid_tool_calls
