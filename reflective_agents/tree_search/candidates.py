"""Candidates of a tree search: a policy samples them, a world carries them out, a value grades them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage

from reflective_agents.environments.base import State
from reflective_agents.nodes.asking.transcript import quoted, steps_text
from reflective_agents.nodes.evidence.reference_list import length_text, split_references
from reflective_agents.nodes.verifiers.verdict import Verdict
from reflective_agents.state.tree import TreeNode, TreeView
from reflective_agents.text.joined import joined
from reflective_agents.tree_search.base import Job
from reflective_agents.tree_search.tree_paths import depth_of, round_score

VERIFIERS = "verifiers"
"""The term of a score that verifiers of the user's have given."""
_ANSWER = "answer "
"""How the keys of answers begin."""


@dataclass
class Grade:
    """The grade of a candidate: a score from 0 to 1, the `terms` that it was computed from, and why."""

    score: float
    critique: str = ""
    solved: bool = False
    terms: dict[str, float] = field(default_factory=dict)


@dataclass
class Candidate:
    """One sampled step.

    Attributes:
        index: Its number among the samples.
        samples: How many samples proposed it.
        alternatives: Other wordings of the same action, for an environment that refuses the first.
        guess: An answer that the model wrote behind the action, before it could know the result; empty if it did not.
        before: The steps between the node of the job and this one.
        answers: Whether there is an answer now. This and all below is filled in as the candidate acts.
        final: Whether the trajectory ends here, because the task has ended or a whole answer was given.
        checked: What code has found out about the answer.
        unfounded: Whether the answer refers to sources that were never found.
        state: The environment's state after the step, without the task.
        reward: The environment's reward, 0..1.
        done: Whether the task has ended.
        verdict: What the verifiers of the user's say of the answer.
    """

    index: int
    messages: list[AnyMessage] = field(default_factory=list)
    thought: str = ""
    action: str = ""
    terms: dict[str, float] = field(default_factory=dict)
    samples: int = 1
    alternatives: list[str] = field(default_factory=list)
    guess: str = ""
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
    verdict: Verdict | None = None

    @property
    def solves(self) -> bool:
        """Whether the environment rewards this as the solution of its task, and the verifiers let it count."""
        return self.done and self.reward is not None and self.reward >= 1 and self.is_allowed

    @property
    def is_rewarded(self) -> bool:
        """Whether the environment or the verifiers have scored this, and not a judge."""
        return self.reward is not None or (self.grade is not None and VERIFIERS in self.grade.terms)

    @property
    def is_allowed(self) -> bool:
        """Whether no verifier of the user's refuses this, or gives no verdict."""
        return self.verdict is None or self.verdict.allows

    @classmethod
    def from_node(cls, index: int, steps: Sequence[TreeNode]) -> "Candidate":
        """Make a candidate of a node, the last of `steps`, so that it can be judged."""
        node = steps[-1]
        answers = node["kind"] == "answer"
        done = node.get("done", False)
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
        """Return the node of the tree that this candidate becomes; what is empty is left out."""
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


def answer_key(text: str, checked: str, *, unfounded: bool) -> str:
    """Return a key for an answer to an open question: the same text with the same sources has the same one."""
    content = "\0".join((" ".join(text.split()), checked, str(unfounded)))
    return f"{_ANSWER}{sha256(content.encode(errors='surrogatepass')).hexdigest()[:16]}"


def is_answer_key(key: str) -> bool:
    """Tell whether a key is that of an answer."""
    return key.startswith(_ANSWER)


def graded(node: TreeNode, grade: Grade | None) -> TreeNode:
    """Return a node with a grade."""
    if grade is None:
        return node
    node = {**node, "critique": grade.critique, "score": round_score(grade.score), "solved": grade.solved}
    terms = {**node.get("terms", {}), **grade.terms}
    if terms:
        node["terms"] = terms
    return node


@dataclass(frozen=True)
class Branch:
    """Where in the tree a job works.

    Attributes:
        job: The job.
        conversation: The messages of the conversation.
        request: The user's request, as quoted text.
        path: The nodes from the root to the node of the job.
        lessons: Reflections on failed trajectories.
        earlier: Lessons of earlier runs, for who acts: a judge is not shown them.
        may_act: False where a step has to be an answer.
        reserved_calls: How many model calls grading must leave for others.
        judged: Of a job that judges, for each node the steps from `path` on, itself the last.
        tree: The whole tree so far.
        refused: Why nothing of what was proposed before could be carried out.
    """

    job: Job
    conversation: Sequence[AnyMessage]
    request: str
    path: Sequence[TreeNode]
    lessons: Sequence[str] = ()
    earlier: Sequence[str] = ()
    may_act: bool = True
    reserved_calls: int = 0
    judged: Sequence[Sequence[TreeNode]] = ()
    tree: TreeView = field(default_factory=dict)
    refused: Sequence[str] = ()


def trajectory_text(steps: Sequence[TreeNode | Candidate], *, goes_on: bool = False) -> str:
    """Return the steps of a trajectory as quoted text, for a judge, without the answers that others supersede.

    Args:
        steps: The steps.
        goes_on: Whether other steps follow, which supersede the last answer too.
    """
    texts = []
    for number, step in enumerate(steps, 1):
        node = step.as_node("", None) if isinstance(step, Candidate) else step
        is_last = number == len(steps) and not goes_on
        if is_last or not _answers(node):
            texts.append(_step_text(node))
    return joined(texts)


def _step_text(node: TreeNode) -> str:
    shown: list[str] = []
    if thought := node.get("thought"):
        shown.append(quoted("thought", thought))
    if node["messages"]:
        shown.append(steps_text(node["messages"]))
    else:
        if action := node.get("action"):
            shown.append(quoted("action", action))
        if observation := node.get("observation"):
            shown.append(quoted("observation", observation))
    if _answers(node):
        shown.append(_checked(node))
    return "\n".join(shown)


def thought_of(node: TreeNode) -> str:
    """Return what a step says beside its action; empty if it says nothing, or is the answer."""
    if _answers(node) or not node["messages"]:
        return node.get("thought", "")
    return node["messages"][0].text


def words_of_step(node: TreeNode) -> str:
    """Return a step in words, without tags: what was thought, done and seen; empty for the bare task."""
    parts = [node.get("thought"), node.get("action")]
    for message in node["messages"]:
        parts.append(message.text)
        parts += [f"{call['name']}({call['args']})" for call in getattr(message, "tool_calls", [])]
    parts.append(node.get("observation"))
    return joined(dict.fromkeys(parts))


def _answers(node: TreeNode) -> bool:
    return bool(node["messages"]) and is_answer(node["messages"][0])


def _checked(answer: TreeNode) -> str:
    """Return what code has found out about an answer, as a fact for its judge."""
    length = length_text(answer["messages"][0].text)
    return quoted("checked", joined([length, answer.get("checked")], " "))


def canonical_message(message: BaseMessage) -> str:
    """Return the same text for equal messages: without ids, white space, references and the order of arguments."""
    body, _ = split_references(message.text)
    calls = [(call["name"], call["args"]) for call in getattr(message, "tool_calls", [])]
    broken = [(call["name"], call["args"]) for call in getattr(message, "invalid_tool_calls", [])]
    return json.dumps([" ".join(body.split()), calls, broken], sort_keys=True, default=str)


def is_answer(message: AnyMessage) -> bool:
    """Return whether a message of the agent answers: it calls no tool."""
    return isinstance(message, AIMessage) and not message.tool_calls and not message.invalid_tool_calls
