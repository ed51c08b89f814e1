"""How every run begins and ends: one question in, one answer with its outcome out."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from models.providers import choose_model, describe_model
from nodes.chat import check_model, model_of
from nodes.experience import keep, recall
from nodes.lessons import Learned
from nodes.step import C, Step, Update, node
from state.context import Model, SearchContext
from state.errors import EmptyQuestion, WrongThread
from state.run import Outcome, Status
from tools.corpus import open_corpus
from tools.search import choose_search


async def nothing_more(_: Mapping[str, Any], __: Step[Any]) -> Update:
    """What most strategies have to prepare at the beginning of a turn."""
    return {}


def begin(
    strategy: str,
    schema: type[C],
    prepare: Callable[[Mapping[str, Any], Step[C]], Awaitable[Update]] = nothing_more,
    **reset: Any,
) -> RunnableLambda[Any, Update]:
    """The node that begins a turn: refuses misuse, and clears what an earlier question on the thread has left.

    Args:
        strategy: Name of the graph; a thread belongs to the first one that ran on it.
        schema: The settings of the graph.
        prepare: What else the strategy does at the beginning: `(state, step) -> update`. The lessons of earlier runs
            are in `recalled`; one that shows them in a place of its own clears it, else they stand in front of the
            conversation that its nodes are shown.
        reset: The strategy's own channels with their first values.
    """

    @node(schema, begins=True)
    async def begin(state: Mapping[str, Any], step: Step[C]) -> Update:
        asked = question(state.get("messages") or [])
        owner = state.get("strategy") or strategy
        if owner != strategy:
            raise WrongThread(
                f"this thread belongs to {owner}, not to {strategy}: choose another thread, or run {owner}"
            )
        models = {name: await _check_models(step, name) for name in schema.model_fields if name in _MODELS}
        search = await _check_search(step.context)
        step.emit("begin", strategy=strategy, **models, **search)
        recalled = await recall(step, asked)
        fresh = {"answer": None, "outcome": None, "recalled": recalled, **reset}
        update = {"strategy": strategy, "settings": step.context.given(), **fresh}
        update |= await prepare({**state, "recalled": recalled}, step)
        if not update["recalled"] and "recalled" not in state:
            del update["recalled"]
        return {name: value for name, value in update.items() if not _stands(name, value, state)}

    return begin


def _stands(name: str, value: Any, state: Mapping[str, Any]) -> bool:
    """Whether a channel holds a value already. One that was never written costs nothing in a checkpoint."""
    return name in state and state[name] == (value.value if isinstance(value, Overwrite) else value)


_MODELS = ("model", "judge_model", "critic_model", "arms")


def question(messages: list[BaseMessage]) -> str:
    """The question that a conversation ends with.

    Raises:
        EmptyQuestion: if it ends with something else, or with nothing.
    """
    text = messages[-1].text.strip() if messages and messages[-1].type == "human" else ""
    if not text:
        raise EmptyQuestion('the question is empty: give {"messages": [("user", "your question")]}')
    return text


async def _check_models(step: Step[Any], name: str) -> str:
    setting = getattr(step.context, name)
    if setting is None and name != "model":
        return "same as model"
    return ", ".join([await _known(step, one) for one in (setting if isinstance(setting, list) else [setting])])


async def _known(step: Step[Any], model: Model) -> str:
    await check_model(step, model)
    chosen, _ = choose_model(model)
    return chosen if isinstance(chosen, str) else type(chosen).__name__


async def _check_search(context: Any) -> Update:
    if not isinstance(context, SearchContext):
        return {}
    kind, _ = choose_search(context.search)
    if kind == "local":
        await asyncio.to_thread(open_corpus, context.corpus)
    return {"search": kind}


async def end(
    state: Mapping[str, Any],
    step: Step[Any],
    answer: AIMessage | None,
    learned: Sequence[Learned] = (),
    model: BaseChatModel | None = None,
) -> Update:
    """The update that ends a turn: the answer as the one new message, and the outcome that fits it.

    Without an answer the outcome is `failed` with the cause and no message is added; a fault that came after an
    answer was found leaves the answer and ends as `exhausted`. What was `learned` is kept for later runs, if the
    settings ask for it. `model` has written the answer, if it was not the run's.
    """
    reached = state["outcome"] or Outcome(status="exhausted", reason="nothing was left to do")
    status: Status = reached["status"]
    if answer is None:
        status = "failed"
    elif status == "failed":
        status = "exhausted"
    outcome = Outcome(status=status, reason=reached["reason"])
    await keep(step, state, learned, outcome)
    step.emit("end", **outcome)
    if answer is None:
        return {"answer": None, "outcome": outcome}
    answer.response_metadata = describe_model(model or model_of(step, step.context.model))
    return {"messages": [answer], "answer": answer.text, "outcome": outcome}


class Ended(TypedDict):
    """What a router has to know. It would be given a copy of the whole state otherwise."""

    outcome: Outcome | None


def unless_ended(then: str) -> RunnableLambda[Any, str]:
    """A router to the next node, which goes to `finish` instead once something has ended the run."""

    def route(state: Ended) -> str:
        return "finish" if state["outcome"] else then

    async def route_at_once(state: Ended) -> str:  # a plain function would be sent to another thread and back
        return route(state)

    return RunnableLambda(route, afunc=route_at_once, name="unless_ended")
