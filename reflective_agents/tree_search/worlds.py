"""The worlds that a tree search acts in: open questions with tools, and the tasks of an environment."""

from collections.abc import Sequence
from itertools import chain
from typing import Protocol

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import BaseTool

from reflective_agents.environments.base import Environment, State, Transition
from reflective_agents.nodes.acting.actions import take
from reflective_agents.nodes.acting.agent import environment_of
from reflective_agents.nodes.acting.react_text import parse_answer
from reflective_agents.nodes.asking.chat import ATTEMPTS
from reflective_agents.nodes.asking.task_prompt import task_prompt
from reflective_agents.nodes.asking.transcript import around, quoted
from reflective_agents.nodes.evidence.citations import resolve_citations
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.evidence.research import act, as_tools, search_tools
from reflective_agents.nodes.evidence.sources import observations_on, thread_sources, with_numbers
from reflective_agents.nodes.evidence.support import flags_text
from reflective_agents.nodes.evidence.verifying import Evidence
from reflective_agents.nodes.memo import memo_of
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import search as prompts
from reflective_agents.state.families import AgentContext, ToolsContext, TreeContext
from reflective_agents.state.tool_calls import with_call_ids
from reflective_agents.state.tree import SearchState, TreeNode
from reflective_agents.text.actions import read_answer
from reflective_agents.text.joined import joined
from reflective_agents.tree_search.candidates import (
    Branch,
    Candidate,
    answer_key,
    canonical_message,
    is_answer,
    trajectory_text,
)


class World(Protocol):
    """Carries candidates out, and tells which of them are equal.

    Attributes:
        task: The description of the task with which all prompts begin; empty for open questions.
        rewards: Whether steps may be rewarded without a model.
    """

    task: str
    rewards: bool

    def canonical(self, candidate: Candidate) -> str:
        """Return the canonical form of a candidate's action: equal ones are merged before they cost anything."""
        ...

    async def act(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Carry out a candidate and fill in the result; return why, if it is refused."""
        ...

    def key(self, candidate: Candidate) -> str:
        """Return the key of a candidate's state: equal keys have equal values. Empty if its whole history counts."""
        ...

    def answer(self, node: TreeNode) -> str:
        """Return the answer that a node holds."""
        ...

    async def reward(self, path: Sequence[TreeNode], text: str) -> Candidate | None:
        """Return the answer in a text at the end of a path, as a candidate that was carried out; None if there is
        none."""
        ...


async def world_of(state: SearchState, step: Step[TreeContext]) -> "OpenWorld | TaskWorld":
    """Return the world of a run: the environment that the settings name, else an open question with tools."""
    environment = await environment_of(step.context)
    if environment is not None:
        return TaskWorld(step, environment, state["world"], state["run_id"])
    if isinstance(step.context, AgentContext) and step.context.agent is not None:
        return AgentsWorld(step, [], state["messages"])
    tools = search_tools(step, state["run_id"])
    if isinstance(step.context, ToolsContext):
        tools += as_tools(step.context.tools)
    by_name = {tool.name: tool for tool in tools}
    return OpenWorld(step, list(by_name.values()), state["messages"])


class OpenWorld:
    """Open questions: a step calls tools, or answers in plain text."""

    rewards = False

    def __init__(self, step: Step[TreeContext], tools: list[BaseTool], conversation: Sequence[AnyMessage]) -> None:
        self.step, self.tools, self.conversation = step, tools, conversation
        self.task = ""

    def show(self, branch: Branch, candidate: Candidate) -> str:
        """Return the request, and the steps up to a candidate, as quoted text."""
        steps: list[TreeNode | Candidate] = [*branch.path, *candidate.before, candidate]
        return around("task", f"{branch.request}\n{around('trajectory', trajectory_text(steps))}")

    def canonical(self, candidate: Candidate) -> str:
        """Compare text and tool calls of the message."""
        return canonical_message(candidate.messages[0])

    async def act(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Run the tools that the message calls. A step that is on the path already is refused; one whose tools have
        failed may be tried `ATTEMPTS` times in all."""
        form = self.canonical(candidate)
        taken = [node for node in path if node["messages"] and canonical_message(node["messages"][0]) == form]
        errors = [_error(node) for node in taken]
        if taken and not (all(errors) and len(taken) < ATTEMPTS):
            why = "this step was taken on the way here"
            return f"{why}, and failed: {errors[-1]}" if errors[-1] else why
        message = candidate.messages[0]
        candidate.answers = candidate.final = is_answer(message)
        if candidate.answers:
            self.check_answer(candidate, path)
        else:
            assert isinstance(message, AIMessage)
            before = chain.from_iterable(node["messages"] for node in path)
            candidate.messages[0] = message = with_call_ids(message, before)
            replies = await act(self.step, message, self.tools)
            earlier = thread_sources(self.conversation)
            candidate.messages += with_numbers(replies, observations_on(path), earlier)
        return None

    def check_answer(self, candidate: Candidate, path: Sequence[TreeNode], *, streamed: bool = False) -> None:
        """Check the citations of an answer, and build its list of references. Without tools, an answer that lists
        references cannot be accepted."""
        message = candidate.messages[0]
        if self.tools:
            citations = resolve_citations(message.text, observations_on(path), self.conversation, streamed=streamed)
            candidate.messages[0] = message.model_copy(update={"content": citations.text})
            flags = flags_text(citations.body, Evidence(citations.sources).passages)
            candidate.checked = joined([citations.facts, flags], " ")
            candidate.unfounded = bool(citations.wrong)
        elif split_references(message.text)[1]:
            candidate.checked = prompts.UNCHECKED
            candidate.unfounded = True

    def key(self, candidate: Candidate) -> str:
        """Return a key for an answer: the same text with the same sources is worth the same in all branches. That of a
        step is empty, for its value depends on all observations before it."""
        if not candidate.answers:
            return ""
        return answer_key(candidate.messages[0].text, candidate.checked, unfounded=candidate.unfounded)

    def answer(self, node: TreeNode) -> str:
        """Return the text of the message."""
        return node["messages"][0].text

    async def reward(self, path: Sequence[TreeNode], text: str) -> Candidate | None:
        """Take the text as an answer, without its label."""
        candidate = Candidate(0, messages=[AIMessage(read_answer(text) or text)], answers=True, final=True)
        self.check_answer(candidate, path, streamed=True)
        return candidate if candidate.messages[0].text.strip() else None


class AgentsWorld(OpenWorld):
    """Open questions that an agent of the user's own answers: its sources and citations are not known here."""

    def check_answer(self, candidate: Candidate, path: Sequence[TreeNode], *, streamed: bool = False) -> None:
        """Leave the answer as it is."""


def _error(node: TreeNode) -> str:
    """Return the error of the first tool of a step that has failed; empty if none has."""
    for reply in node["messages"][1:]:
        if getattr(reply, "status", "") == "error":
            return reply.text
    return ""


def without_task(state: State) -> State:
    """Return a state of an environment as nodes hold it: without its task, which is the same in all of them."""
    return {key: value for key, value in state.items() if key != "task"}


class TaskWorld:
    """The task of an environment. Nodes hold its states without the task, which is added again before a step."""

    rewards = True

    def __init__(self, step: Step[TreeContext], environment: Environment, start: State, run_id: str) -> None:
        self.step, self.environment, self.start, self.memo = step, environment, start, memo_of(run_id)
        self.task = task_prompt(environment, examples=step.context.few_shot, request=environment.public({**start}))

    def state(self, node: TreeNode | None) -> State:
        """Return the environment's state at a node, with its task."""
        state = node.get("state", self.start) if node else self.start
        return {**state, "task": self.start["task"]}

    def show(self, branch: Branch, candidate: Candidate) -> str:
        """Return the public part of a candidate's state, as quoted text."""
        return quoted("task", self.environment.public({**(candidate.state or {}), "task": self.start["task"]}))

    def canonical(self, candidate: Candidate) -> str:
        """Ask the environment."""
        return self.environment.canonical(candidate.action)

    async def act(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Step the environment; the same action in the same state is carried out once in a run."""
        before = self.state(path[-1])
        key = ("step", self.environment.key(before) or str(path[-1]["id"]), candidate.action)
        (earlier, transition), cached = await self.memo.once(key, lambda: self._step(before, candidate.action))
        if cached and earlier != before:  # another path to a state with the same key has a history of its own
            _, transition = await self._step(before, candidate.action)
        if not transition.valid:
            return transition.observation or "the environment refuses it"
        self._fill(candidate, transition)
        return None

    async def _step(self, before: State, action: str) -> tuple[State, Transition]:
        transition = await take(self.environment, before, action)
        self.step.meter.count(tool_calls=1, tool_errors=int(not transition.valid))
        return before, transition

    def _fill(self, candidate: Candidate, transition: Transition) -> None:
        candidate.observation = transition.observation
        candidate.reward = transition.reward
        candidate.done = transition.done
        candidate.answers = bool(self.environment.answer(transition.state))
        candidate.final = transition.done or self.environment.is_whole(transition.state)
        candidate.state = without_task(transition.state)

    def key(self, candidate: Candidate) -> str:
        """Ask the environment."""
        return self.environment.key({**(candidate.state or {}), "task": self.start["task"]})

    def answer(self, node: TreeNode) -> str:
        """Return the answer that the state holds."""
        return self.environment.answer(self.state(node))

    async def reward(self, path: Sequence[TreeNode], text: str) -> Candidate | None:
        """Give the answer in a text to the environment, in the state at the end of a path; an empty one is at the
        start."""
        answer = parse_answer(text, self.environment)
        action = self.environment.final_action(answer) if answer else None
        if action is None:
            return None
        transition = await take(self.environment, self.state(path[-1] if path else None), action)
        candidate = Candidate(0, action=action)
        self._fill(candidate, transition)
        return candidate if candidate.answers else None
