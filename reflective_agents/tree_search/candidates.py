"""A candidate on its way through a tree search: sampled by a policy, acted on by a world, graded by a value."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage

from reflective_agents.environments.base import State
from reflective_agents.nodes.asking.transcript import quoted, steps_text
from reflective_agents.nodes.evidence.citations import split_references
from reflective_agents.prompts import lats as prompts
from reflective_agents.prompts import search as search_prompts
from reflective_agents.state.tree import TreeNode, TreeView
from reflective_agents.tree_search.base import Job
from reflective_agents.tree_search.places import depth_of, exact


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
    `final`: whether this is the end of a trajectory, since the task has ended or a whole answer was given; `checked`:
    what code has found out about the answer, and `unfounded`: whether it refers to what was never found.
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
    checked: str = ""
    unfounded: bool = False
    state: State | None = None
    reward: float | None = None
    done: bool = False
    grade: Grade | None = None

    @property
    def solves(self) -> bool:
        """Whether the environment rewards this as the solution of its task."""
        return self.done and self.reward is not None and self.reward >= 1

    @classmethod
    def again(cls, index: int, steps: Sequence[TreeNode]) -> "Candidate":
        """Make a node that is there already, the last of the steps, a candidate again, to be judged."""
        node = steps[-1]
        answers, done = node["kind"] == "answer", node.get("done", False)
        return cls(
            index,
            messages=node["messages"],
            thought=node.get("thought", ""),
            action=node.get("action", ""),
            samples=node.get("samples", 1),
            before=steps[:-1],
            answers=answers,
            final=done or (answers and "state" not in node),
            observation=node.get("observation", ""),
            checked=node.get("checked", ""),
            unfounded=node.get("unfounded", False),
            state=node.get("state"),
            reward=node.get("reward"),
            done=done,
        )

    def as_node(self, node_id: str, parent_id: str | None, model: str = "") -> TreeNode:
        """Return the node of the tree that this candidate becomes; it holds only what there is."""
        node = TreeNode(
            id=node_id,
            parent_id=parent_id,
            depth=depth_of(node_id),
            kind="answer" if self.answers else "action",
            messages=self.messages,
            critique="",
            score=None,
            solved=False,
        )
        optional = {
            "terms": self.terms,
            "thought": self.thought,
            "action": self.action,
            "observation": self.observation,
            "checked": self.checked,
            "unfounded": self.unfounded,
            "state": self.state,
            "done": self.done,
            "samples": self.samples if self.samples > 1 else 0,
            "model": model,
        }
        present = {key: value for key, value in optional.items() if value}
        reward = {} if self.reward is None else {"reward": self.reward}
        return graded(cast(TreeNode, {**node, **present, **reward}), self.grade)


def graded(node: TreeNode, grade: Grade | None) -> TreeNode:
    """Return a node with a grade."""
    if grade is None:
        return node
    node = {**node, "critique": grade.critique, "score": exact(grade.score), "solved": grade.solved}
    if terms := {**node.get("terms", {}), **grade.terms}:
        node["terms"] = terms
    return node


@dataclass(frozen=True)
class Branch:
    """Where a job works: the conversation, what is asked (as quoted text), and the nodes from the root to its place.

    `may_act` is False where a step has to be an answer; `lessons` are reflections on failed trajectories; `keep` is how
    many calls grading must leave for others. A job that judges has what is `judged`: for each node the steps from the
    place on, itself the last; `tree` is the whole tree so far. `refused` says why nothing could be done of all that was
    proposed before.
    """

    job: Job
    conversation: Sequence[AnyMessage]
    request: str
    path: Sequence[TreeNode]
    lessons: Sequence[str] = ()
    may_act: bool = True
    keep: int = 0
    judged: Sequence[Sequence[TreeNode]] = ()
    tree: TreeView = field(default_factory=dict)
    refused: Sequence[str] = ()


def lessons_text(branch: Branch) -> str:
    """Return what was learned from failed trajectories, and what a person has hinted at on the way, as text that ends
    its line; empty if there is nothing."""
    lessons = "\n".join(quoted("lesson", lesson) for lesson in branch.lessons)
    return (prompts.LESSONS.format(lessons=lessons) if lessons else "") + hints_text(branch.path)


def hints_text(path: Sequence[TreeNode]) -> str:
    """Return what a person has hinted at on a path, as text that ends its line; empty if there is nothing."""
    hints = _hints(path)
    return search_prompts.HINTS.format(hints=hints) if hints else ""


def lessons_to_judge(branch: Branch) -> str:
    """Return lessons and hints as a judge is told of them, as text that ends its line: as material, for only the agent
    has to follow them."""
    lessons, hints = "\n".join(quoted("lesson", lesson) for lesson in branch.lessons), _hints(branch.path)
    told = prompts.LESSONS_TO_JUDGE.format(lessons=lessons) if lessons else ""
    return told + (search_prompts.HINTS_TO_JUDGE.format(hints=hints) if hints else "")


def _hints(path: Sequence[TreeNode]) -> str:
    return "\n".join(quoted("hint", hint) for node in path if (hint := node.get("hint")))


def trajectory_text(steps: Sequence[TreeNode | Candidate], *, goes_on: bool = False) -> str:
    """Return the steps of a trajectory as quoted text, for whoever has to judge them.

    Args:
        steps: The steps.
        goes_on: Whether others follow. All answers but the last one are marked as superseded.
    """
    last = None if goes_on or not steps else steps[-1]
    return "\n".join(filter(None, (_step_text(step, superseded=step is not last) for step in steps)))


def _step_text(step: TreeNode | Candidate, superseded: bool) -> str:
    said = step.as_node("", None) if isinstance(step, Candidate) else step
    if said["messages"]:
        shown = steps_text(said["messages"], superseded=superseded)
        before = quoted("thought", thought) + "\n" if (thought := said.get("thought")) else ""
        return before + (shown if superseded or not is_answer(said["messages"][0]) else f"{shown}\n{_checked(said)}")
    parts = {"thought": said.get("thought"), "action": said.get("action"), "observation": said.get("observation")}
    return "\n".join(quoted(tag, text) for tag, text in parts.items() if text)


def _checked(answer: TreeNode) -> str:
    """Return what code knows of an answer, as a fact for those who judge it."""
    body, _ = split_references(answer["messages"][0].text)
    facts = [search_prompts.LENGTH.format(words=len(body.split())), answer.get("checked", "")]
    return quoted("checked", " ".join(filter(None, facts)))


def identity(message: BaseMessage) -> str:
    """Return what makes two messages the same: their text but for white space and references, and their tool calls but
    for ids and order of keys."""
    calls = [(call["name"], call["args"]) for call in getattr(message, "tool_calls", [])]
    broken = [(call["name"], call["args"]) for call in getattr(message, "invalid_tool_calls", [])]
    return json.dumps([" ".join(split_references(message.text)[0].split()), calls, broken], sort_keys=True, default=str)


def is_answer(message: AnyMessage) -> bool:
    """Return whether a message of the agent answers: it calls no tool."""
    return isinstance(message, AIMessage) and not message.tool_calls and not message.invalid_tool_calls
