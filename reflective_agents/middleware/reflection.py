"""Reflection as a middleware: what an agent answers is criticised, and it answers again until the critic accepts.

The critics, their prompts and their settings are those of `graphs.reflection`.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.agents.middleware.types import OmitFromInput
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.runtime import Runtime
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from typing_extensions import TypedDict

from reflective_agents.graphs.reflection import best_draft, verdict
from reflective_agents.nodes.asking.critics import NO_CHECK, Draft, criticise, has_critic, judgement_of
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.asking.wording import use_prompts
from reflective_agents.nodes.bridge import wait_for
from reflective_agents.nodes.step import StateBefore, Step, Update
from reflective_agents.prompts import reflection as prompts
from reflective_agents.state.effect import InRuns
from reflective_agents.state.errors import LimitReached, Misuse, ModelFailed
from reflective_agents.state.outcome import Outcome, decide, stopped
from reflective_agents.state.run import NOTHING_SPENT, Usage
from reflective_agents.state.settings.reflection import ReflectionContext
from reflective_agents.state.tool_calls import with_callers

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


class Answer(NamedTuple):
    """What an agent has answered: the id of its message, and the text; of a structured answer that is its JSON."""

    id: str
    text: str


class ReflectionMiddleware(AgentMiddleware[ReflectedState, Any, Any]):
    """Has each answer of an agent criticised, and sends it back with the critique until the critic accepts.

        agent = create_agent(model, tools, middleware=[ReflectionMiddleware(max_rounds=3, min_words=50)])

    The best-scored draft is the agent's last message, and what it has answered in a `response_format` is its
    `structured_response`; drafts and critiques lie in `reflection`, not among the messages.
    The limits are those of the critics' calls; LangChain's `ModelCallLimitMiddleware` bounds the agent's own.

    Args:
        settings: Those of `graphs.reflection`.

    Raises:
        Misuse: if a setting has no effect in a middleware.
    """

    state_schema = ReflectedState

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.context = ReflectionContext(**settings)
        self.context.check_effect()
        for name in self.context.model_fields_set & settings.keys():
            for mark in ReflectionContext.model_fields[name].metadata:
                if isinstance(mark, InRuns):
                    raise Misuse(f"{name} has no effect in a middleware: {mark.instead}")

    async def abefore_agent(self, state: ReflectedState, runtime: Runtime[Any]) -> Update:
        """Forget what came of an earlier question on the thread."""
        return {"reflection": Reflected(drafts=[], outcome=None, usage=NOTHING_SPENT)}

    def before_agent(self, state: ReflectedState, runtime: Runtime[Any]) -> Update:
        """Do the same in synchronous code."""
        return wait_for(self.abefore_agent(state, runtime))

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: ReflectedState, runtime: Runtime[Any]) -> Update | None:
        """Criticise an answer. The agent goes on if it has called tools, and answers again if the critic rejects."""
        answer = _answer_in(state)
        if answer is None:
            return None
        conversation = _up_to_question(state["messages"])
        spent = StateBefore(usage=state["reflection"]["usage"], messages=conversation)
        step = Step(self.context, spent, runtime.stream_writer)
        with use_prompts(self.context.prompts):
            drafts, outcome = await self._judged(step, state["reflection"]["drafts"], conversation, answer)
        if outcome and (best := best_draft(drafts)):
            outcome = decide(outcome, best["text"])
        update = _last_word(drafts, state) if outcome else _again(drafts, state["messages"])
        return {"reflection": Reflected(drafts=drafts, outcome=outcome, usage=step.meter.usage), **update}

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: ReflectedState, runtime: Runtime[Any]) -> Update | None:
        """Do the same in synchronous code."""
        return wait_for(self.aafter_model(state, runtime))

    async def _judged(
        self, step: Step[ReflectionContext], drafts: list[Draft], conversation: Sequence[AnyMessage], answer: Answer
    ) -> tuple[list[Draft], Outcome | None]:
        """Return the drafts with the new one, judged if that can be had, and what ends the rounds, if anything does."""
        draft = Draft(round=len(drafts) + 1, id=answer.id, text=answer.text, critique="", score=None, accepted=False)
        if not has_critic(self.context):
            return [*drafts, draft], Outcome(status="answered", reason=NO_CHECK)
        try:
            before = judgement_of(drafts[-1] if drafts else None)
            critique = await criticise(step, conversation, answer.text, before)
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


def _again(drafts: Sequence[Draft], messages: Sequence[AnyMessage]) -> Update:
    """Send the agent back with the critique of its last draft; calls of tools beside that are not carried out."""
    critique = prompts.REVISE.format(critique=quoted("critique", drafts[-1]["critique"]))
    waiting = [ToolMessage(prompts.NOT_CALLED, tool_call_id=name, status="error") for name in _unanswered(messages)]
    return {"messages": [*waiting, HumanMessage(critique, additional_kwargs=SOURCE)], "jump_to": "model"}


def _last_word(drafts: Sequence[Draft], state: ReflectedState) -> Update:
    """Let the best draft be the last message, and remove the others with their critiques."""
    messages, data = state["messages"], state.get("structured_response")
    responses = {draft["id"]: _read_as(data, draft) for draft in drafts}
    best = best_draft([draft for draft in drafts if data is None or responses[draft["id"]] is not None])
    assert best is not None
    end = _end_of(best, messages)
    rejected = {draft["id"] for draft in drafts} - {best["id"]}
    removed: list[AnyMessage] = []
    for caller, message in with_callers(messages[:end]):
        if message.id in rejected or _is_critique(message) or (caller and caller.id in rejected):
            removed.append(message)
    removed += messages[end:]
    update: Update = {"messages": [RemoveMessage(id=message.id or "") for message in removed]}
    return update if data is None else {**update, "structured_response": responses[best["id"]]}


def _answer_in(state: ReflectedState) -> Answer | None:
    """Return the agent's answer; None if it goes on by itself."""
    last = state["messages"][-1]
    data = state.get("structured_response")
    if data is not None:
        # Not always the last message: with a tool strategy the result of its call follows.
        written = next(message for message in reversed(state["messages"]) if isinstance(message, AIMessage))
        return Answer(written.id or "", to_json(data).decode())
    if not isinstance(last, AIMessage) or last.tool_calls or not last.text.strip():
        return None
    return Answer(last.id or "", last.text)


def _read_as(data: object, draft: Draft) -> object:
    """Return a draft in the type of the last structured answer; None if it has another of several types."""
    try:
        return TypeAdapter(type(data)).validate_json(draft["text"])
    except ValidationError:
        return None


def _end_of(draft: Draft, messages: Sequence[AnyMessage]) -> int:
    """Return where a draft ends among the messages: behind the results of its calls."""
    end = next(index for index, message in enumerate(messages, 1) if message.id == draft["id"])
    while end < len(messages) and isinstance(messages[end], ToolMessage):
        end += 1
    return end


def _unanswered(messages: Sequence[AnyMessage]) -> list[str]:
    """Return the calls of the last answer that have no results yet, by their ids."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            called = [call["id"] or "" for call in message.tool_calls]
            return [name for name in called if name not in answered]
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return []
