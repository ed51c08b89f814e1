"""The worlds that a search acts in: open questions with tools, and the tasks of an environment."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool

from environments.base import Environment, Transition
from environments.registry import final_action
from nodes.acting import take
from nodes.answers import read_answer
from nodes.candidates import Branch, Candidate, identity, is_answer, trajectory_text
from nodes.chat import ATTEMPTS
from nodes.memo import memo_of
from nodes.research import act
from nodes.step import Step
from nodes.transcript import quoted
from state.searching import TreeContext
from state.tree import TreeNode


class World(Protocol):
    """What a candidate does, and when two of them come to the same."""

    def same(self, candidate: Candidate) -> str:
        """The canonical form of what a candidate does: equal ones are merged before they cost anything."""
        ...

    async def act(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Carry a candidate out and fill in what came of it; or say why it is refused."""
        ...

    def key(self, candidate: Candidate) -> str:
        """What two states of the world that are worth the same have in common; empty if it is the whole history."""
        ...

    def answer(self, node: TreeNode) -> str:
        """The answer that a node holds."""
        ...

    async def reward(self, node: TreeNode | None, text: str) -> Candidate | None:
        """An answer given as text from a node, as a candidate that was acted on; None if there is none in it."""
        ...


class OpenWorld:
    """Open questions: a step calls tools, or answers in plain text."""

    def __init__(self, step: Step[Any], tools: list[BaseTool]) -> None:
        self.step, self.tools = step, tools

    def show(self, branch: Branch, candidate: Candidate) -> str:
        """What is asked, and all that was done for it up to a candidate."""
        steps: list[TreeNode | Candidate] = [*branch.path, *candidate.before, candidate]
        return f"{branch.request}\n{quoted('trajectory', trajectory_text(steps))}"

    def same(self, candidate: Candidate) -> str:
        """Text and tool calls of the message."""
        return identity(candidate.messages[0])

    async def act(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Run the tools that the message calls. A step that was taken on the way is refused; one whose tools have
        failed may be tried again, three times in all."""
        message = candidate.messages[0]
        said = self.same(candidate)
        taken = [node for node in path if node["messages"] and identity(node["messages"][0]) == said]
        errors = [_error(node) for node in taken]
        if taken and not (all(errors) and len(taken) < ATTEMPTS):
            return "this step was taken on the way here" + (f", and failed: {errors[-1]}" if errors[-1] else "")
        candidate.answers = candidate.final = is_answer(message)
        if not candidate.answers:
            assert isinstance(message, AIMessage)
            candidate.messages += await act(self.step, message, self.tools)
        return None

    def key(self, candidate: Candidate) -> str:
        """None: what a step is worth depends on all that was found before it."""
        return ""

    def answer(self, node: TreeNode) -> str:
        """The text of the message."""
        return node["messages"][0].text

    async def reward(self, node: TreeNode | None, text: str) -> Candidate | None:
        """The text as an answer."""
        return Candidate(0, messages=[AIMessage(text)], answers=True) if text.strip() else None


def _error(node: TreeNode) -> str:
    """What the tools of a step have said if one of them has failed."""
    return next((reply.text for reply in node["messages"][1:] if getattr(reply, "status", "") == "error"), "")


class TaskWorld:
    """The task of an environment. Its states lie in the nodes without the task, which is put back before a step."""

    def __init__(
        self, step: Step[TreeContext], environment: Environment, start: Mapping[str, Any], run_id: str
    ) -> None:
        self.step, self.environment, self.start, self.memo = step, environment, start, memo_of(run_id)

    def state(self, node: TreeNode | None) -> dict[str, Any]:
        """The state of the world at a node, with its task."""
        return {**(node.get("state", self.start) if node else self.start), "task": self.start["task"]}

    def show(self, branch: Branch, candidate: Candidate) -> str:
        """What may be shown of the state that a candidate has come to."""
        return self.environment.public({**(candidate.state or {}), "task": self.start["task"]})

    def same(self, candidate: Candidate) -> str:
        """As the environment says."""
        return self.environment.same(candidate.action)

    async def act(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Step the environment; the same action in the same state is carried out once in a run."""
        before = self.state(path[-1])
        key = ("step", self.environment.key(before) or str(path[-1]["id"]), candidate.action)
        (earlier, done), known = await self.memo.once(key, lambda: self._step(before, candidate.action))
        if known and earlier != before:  # another way to the same state: its history is its own
            _, done = await self._step(before, candidate.action)
        if not done.valid:
            return done.observation
        self._fill(candidate, done)
        return None

    async def _step(self, before: dict[str, Any], action: str) -> tuple[dict[str, Any], Transition]:
        done = await take(self.environment, before, action)
        self.step.meter.count(tool_calls=1, tool_errors=int(not done.valid))
        return before, done

    def _fill(self, candidate: Candidate, done: Transition) -> None:
        candidate.observation, candidate.reward, candidate.done = done.observation, done.reward, done.done
        candidate.answers = bool(self.environment.answer(done.state))
        whole = final_action(self.step.context.environment_name, "") is not None
        candidate.final = done.done or (candidate.answers and whole)
        candidate.state = {key: value for key, value in done.state.items() if key != "task"}

    def key(self, candidate: Candidate) -> str:
        """As the environment says."""
        return self.environment.key({**(candidate.state or {}), "task": self.start["task"]})

    def answer(self, node: TreeNode) -> str:
        """The answer that the state holds."""
        return self.environment.answer(self.state(node))

    async def reward(self, node: TreeNode | None, text: str) -> Candidate | None:
        """The answer in a text, given to the environment from a node."""
        name = self.step.context.environment_name
        answer = read_answer(text, name)
        action = final_action(name, answer) if answer else None
        if action is None:
            return None
        done = await take(self.environment, self.state(node), action)
        candidate = Candidate(0, action=action)
        self._fill(candidate, done)
        return candidate if candidate.answers else None
