"""Reflection as a middleware: what an agent answers is criticised, and it answers again until the critic accepts.

The critics, their prompts and their settings are those of `graphs.reflection`.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.agents.middleware.types import OmitFromInput
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from reflective_agents.graphs.reflection import best_draft, verdict
from reflective_agents.nodes.asking.critics import Draft, criticise, judgement_of
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.asking.wording import use_prompts
from reflective_agents.nodes.bridge import wait_for
from reflective_agents.nodes.step import StateBefore, Step, Update
from reflective_agents.prompts import reflection as prompts
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.outcome import Outcome, decide, stopped
from reflective_agents.state.run import NOTHING_SPENT, Usage
from reflective_agents.state.settings.reflection import ReflectionContext

SOURCE = {"lc_source": "reflection"}
"""Marks critiques among the messages, as LangChain's own middleware marks what it adds."""


class Reflected(TypedDict):
    """What came of it: the drafts with their critiques, the outcome, and what the critics have cost."""

    drafts: list[Draft]
    outcome: Outcome | None
    usage: Usage


class ReflectedState(AgentState[Any]):
    """State of an agent with reflection."""

    reflection: Annotated[Reflected, OmitFromInput]


class ReflectionMiddleware(AgentMiddleware[ReflectedState, Any, Any]):
    """Has each answer of an agent criticised, and sends it back with the critique until the critic accepts.

        agent = create_agent(model, tools, middleware=[ReflectionMiddleware(max_rounds=3, min_words=50)])

    The best-scored draft is the agent's last message; drafts and critiques lie in `reflection`, not among the messages.
    The limits are those of the critics' calls; LangChain's `ModelCallLimitMiddleware` bounds the agent's own.

    Args:
        settings: Those of `graphs.reflection`.
    """

    state_schema = ReflectedState

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.context = ReflectionContext(**settings)

    async def abefore_agent(self, state: ReflectedState, runtime: Runtime[Any]) -> Update:
        """Forget what came of an earlier question on the thread."""
        return {"reflection": Reflected(drafts=[], outcome=None, usage=NOTHING_SPENT)}

    def before_agent(self, state: ReflectedState, runtime: Runtime[Any]) -> Update:
        """Do the same in synchronous code."""
        return wait_for(self.abefore_agent(state, runtime))

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: ReflectedState, runtime: Runtime[Any]) -> Update | None:
        """Criticise an answer. The agent goes on if it has called tools, and answers again if the critic rejects."""
        *before, reply = state["messages"]
        if not isinstance(reply, AIMessage) or reply.tool_calls or not reply.text.strip():
            return None
        conversation = _up_to_question(before)
        spent = StateBefore(usage=state["reflection"]["usage"], messages=conversation)
        step = Step(self.context, spent, runtime.stream_writer)
        with use_prompts(self.context.prompts):
            drafts, outcome = await self._judged(step, state["reflection"]["drafts"], conversation, reply)
        if outcome:
            outcome = decide(outcome, reply.text)
        update = {"reflection": Reflected(drafts=drafts, outcome=outcome, usage=step.meter.usage)}
        return {**update, **(_last_word(drafts, state["messages"]) if outcome else _again(drafts))}

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: ReflectedState, runtime: Runtime[Any]) -> Update | None:
        """Do the same in synchronous code."""
        return wait_for(self.aafter_model(state, runtime))

    async def _judged(
        self, step: Step[ReflectionContext], drafts: list[Draft], conversation: Sequence[AnyMessage], reply: AIMessage
    ) -> tuple[list[Draft], Outcome | None]:
        """Return the drafts with the new one, judged if that can be had, and what ends the rounds, if anything does."""
        draft = Draft(
            round=len(drafts) + 1, id=reply.id or "", text=reply.text, critique="", score=None, accepted=False
        )
        try:
            before = judgement_of(drafts[-1] if drafts else None)
            critique = await criticise(step, conversation, reply.text, before)
        except (LimitReached, ModelFailed) as error:
            return [*drafts, draft], stopped(error)
        judged, ended = verdict(step, draft, critique)
        return [*drafts, judged], ended.get("outcome")


def _up_to_question(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the conversation up to the question, without what was done since."""
    for end in range(len(messages), 0, -1):
        if isinstance(messages[end - 1], HumanMessage) and not _is_critique(messages[end - 1]):
            return list(messages[:end])
    return [HumanMessage("")]


def _is_critique(message: AnyMessage) -> bool:
    return bool(message.additional_kwargs.get("lc_source") == SOURCE["lc_source"])


def _again(drafts: Sequence[Draft]) -> Update:
    """Send the agent back with the critique of its last draft."""
    critique = prompts.REVISE.format(critique=quoted("critique", drafts[-1]["critique"]))
    return {"messages": [HumanMessage(critique, additional_kwargs=SOURCE)], "jump_to": "model"}


def _last_word(drafts: Sequence[Draft], messages: Sequence[AnyMessage]) -> Update:
    """Let the best draft be the last message, and remove the others with their critiques."""
    best, last = best_draft(drafts), messages[-1]
    assert best is not None
    rejected = {draft["id"] for draft in drafts[:-1]}
    critiques = {message.id for message in messages if _is_critique(message)}
    removed = [RemoveMessage(id=name) for name in [*rejected, *critiques] if name]
    return {"messages": [*removed, last.model_copy(update={"content": best["text"]})]}
