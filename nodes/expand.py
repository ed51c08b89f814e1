"""One expansion of a tree search: candidates are sampled, act and are judged, each flowing on its own."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.tools import BaseTool

from models.calls import ChatModel, request, takes_n, takes_seed
from nodes.chat import ask, model_of
from nodes.research import act
from nodes.step import Step
from nodes.transcript import quoted, request_text, steps_text
from prompts import lats as prompts
from search.mcts import exact
from state.context import LatsContext
from state.errors import LimitReached, ModelFailed
from state.schemas import Judgement, Judgements
from state.tree import TreeNode
from tools.run import with_call_ids

Stop = LimitReached | ModelFailed


class Candidate:
    """One sampled step on its way: its messages, then its judgement. `index` is its place among the samples."""

    def __init__(self, index: int, message: AIMessage) -> None:
        self.index = index
        # What a provider says of a reply is stored with it, and is longer than the rest of a short message.
        bare = message.model_copy(update={"response_metadata": {}, "usage_metadata": None})
        self.messages: list[AnyMessage] = [with_call_ids(bare)]
        self.judgement: Judgement | None = None

    @property
    def answers(self) -> bool:
        """Whether this step answers instead of calling tools."""
        return is_answer(self.messages[0])


def is_answer(message: AnyMessage) -> bool:
    """Whether a message of the agent answers: it calls no tool."""
    return isinstance(message, AIMessage) and not message.tool_calls and not message.invalid_tool_calls


class Expansion:
    """Expands one leaf.

    Args:
        step: The node that expands.
        conversation: The messages up to the question.
        trajectory: The nodes from the root of the tree to the leaf.
        tools: What the agent may call.
        may_act: Whether a candidate may still call tools, or has to answer.
        keep: Calls that judging a candidate without an answer must leave for others.
    """

    def __init__(
        self,
        step: Step[LatsContext],
        conversation: Sequence[AnyMessage],
        trajectory: Sequence[TreeNode],
        tools: list[BaseTool],
        may_act: bool = True,
        keep: int = 0,
    ) -> None:
        self.step, self.conversation, self.trajectory, self.tools = step, conversation, trajectory, tools
        self.may_act, self.keep = may_act, keep
        self.candidates: dict[str, Candidate] = {}
        self.stops: list[Stop] = []
        self._known = {identity(message) for node in trajectory for message in node["messages"] if message.type == "ai"}

    async def run(self, n: int) -> list[Candidate]:
        """Sample n candidates and see each to its judgement.

        Returns:
            The distinct candidates in the order of their samples. One without a judgement could not be judged:
            `stops` says why.
        """
        model = model_of(self.step, self.step.context.model)
        sizes = [n] if takes_n(model) else [1] * n
        async with asyncio.TaskGroup() as group:
            first = 0
            for size in sizes:
                group.create_task(self._sample(model, first, size))
                first += size
        candidates = sorted(self.candidates.values(), key=lambda candidate: candidate.index)
        if self.step.context.grading == "together":
            await self._judge_together(candidates)
        return candidates

    async def _sample(self, model: BaseChatModel, first: int, size: int) -> None:
        """Ask for `size` candidates, make up in single requests what the provider leaves out, and follow each one."""
        bound: ChatModel = model
        if self.tools:
            bound = model.bind_tools(self.tools, tool_choice=None if self.may_act else "none")
        prompt = prompts.ACT.format_messages(conversation=list(self.conversation), trajectory=history(self.trajectory))
        seed = self.step.context.seed
        options: dict[str, Any] = {"seed": seed + first} if seed is not None and takes_seed(model) else {}
        try:
            replies = await request(bound, prompt, self.step.meter, n=size, **options)
        except (LimitReached, ModelFailed) as stop:
            self.stops.append(stop)
            return
        async with asyncio.TaskGroup() as group:
            for index, reply in enumerate(replies[:size], first):
                group.create_task(self._follow(Candidate(index, reply)))
            for index in range(first + len(replies), first + size):
                group.create_task(self._sample(model, index, 1))

    async def _follow(self, candidate: Candidate) -> None:
        """Let a candidate act and be judged, unless an identical one is already there."""
        key = identity(candidate.messages[0])
        if key in self._known:
            twin = self.candidates.get(key)
            if twin:
                twin.index = min(twin.index, candidate.index)
            self.step.emit("merged", index=candidate.index)
            return
        self._known.add(key)
        self.candidates[key] = candidate
        try:
            if not candidate.answers:
                message = candidate.messages[0]
                assert isinstance(message, AIMessage)
                candidate.messages += await act(self.step, message, self.tools)
            if self.step.context.grading == "each":
                candidate.judgement = await self._judge(candidate)
        except (LimitReached, ModelFailed) as stop:
            self.stops.append(stop)

    async def _judge(self, candidate: Candidate) -> Judgement:
        if not candidate.answers and self.step.meter.calls_left <= self.keep:
            most = self.step.context.max_model_calls
            raise LimitReached(f"max_model_calls={most} reached, but for the call that is kept for the answer")
        prompt = prompts.JUDGE.format_messages(
            request=request_text(self.conversation),
            trajectory=quoted("trajectory", steps_text([*self._past(), *candidate.messages])),
        )
        return await ask(self.step, self._judge_model(), prompt, Judgement)

    async def _judge_together(self, candidates: Sequence[Candidate]) -> None:
        if not candidates:
            return
        texts = [quoted("candidate", steps_text(c.messages), number=i) for i, c in enumerate(candidates, 1)]
        prompt = prompts.JUDGE_TOGETHER.format_messages(
            request=request_text(self.conversation),
            trajectory=quoted("trajectory", steps_text(self._past())),
            candidates="\n".join(texts),
        )

        def one_each(judgements: Judgements) -> str | None:
            given, wanted = len(judgements.judgements), len(candidates)
            return None if given == wanted else f"there are {wanted} candidates, but {given} judgements"

        try:
            judged = await ask(self.step, self._judge_model(), prompt, Judgements, one_each)
        except (LimitReached, ModelFailed) as stop:
            self.stops.append(stop)
            return
        for candidate, judgement in zip(candidates, judged.judgements, strict=True):
            candidate.judgement = judgement

    def _judge_model(self) -> Any:
        return self.step.context.judge_model or self.step.context.model

    def _past(self) -> list[AnyMessage]:
        return [message for node in self.trajectory for message in node["messages"]]


def history(trajectory: Sequence[TreeNode]) -> list[AnyMessage]:
    """A trajectory as the agent sees it: its own messages and observations, each step followed by the judge's
    critique."""
    messages: list[AnyMessage] = []
    for node in trajectory:
        messages += node["messages"]
        if node["critique"]:
            messages.append(HumanMessage(prompts.CRITIQUE.format(critique=node["critique"])))
    return messages


def identity(message: BaseMessage) -> str:
    """What makes two candidates the same: their text but for white space, and their tool calls but for ids and order
    of keys."""
    calls = [(call["name"], call["args"]) for call in getattr(message, "tool_calls", [])]
    broken = [(call["name"], call["args"]) for call in getattr(message, "invalid_tool_calls", [])]
    return json.dumps([" ".join(message.text.split()), calls, broken], sort_keys=True, default=str)


def as_node(candidate: Candidate, node_id: str, parent_id: str | None, depth: int, min_score: float) -> TreeNode:
    """A judged candidate as a node of the tree. It is solved by the judge's word together with the minimum score."""
    judgement = candidate.judgement
    score = exact(judgement.score) if judgement else None
    return TreeNode(
        id=node_id,
        parent_id=parent_id,
        depth=depth,
        kind="answer" if candidate.answers else "action",
        messages=candidate.messages,
        critique=judgement.reasoning if judgement else "",
        score=score,
        solved=bool(judgement and judgement.solved and candidate.answers and judgement.score >= min_score),
    )
