"""What a run is shown of earlier runs when it begins: the items that apply to its question."""

from collections.abc import Sequence

from reflective_agents.models.context_window import context_of
from reflective_agents.nodes.asking.chat import ask, model_of
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.remembering.experience import (
    LONGEST_TASK,
    LOOKED_AT,
    item_text,
    kept_in,
    model_for_lessons,
    open_items,
)
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import experience as prompts
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.experience import Applying, Item, ShownItem

SHARE, USUAL_CONTEXT = 0.1, 32_000
"""Share of a model's context that items may take, and the tokens of a context whose size nobody knows."""
CHARACTERS = 4
"""Characters of a token, about."""


async def recall(step: Step[Context], question: str) -> tuple[list[str], list[ShownItem]]:
    """Look up the items of earlier runs that apply to a question, and return them as text and by name, the best last.

    Those that are near are held against the question by a model, since likeness alone does not tell what applies.
    If a limit or a failing model prevents it, this is logged, and the run goes on without.

    Raises:
        Misuse, UnknownModel, MissingKey: as `MemoryStream.open`.
    """
    context: Context = step.context
    if context.experience is None:
        return [], []
    question = question[:LONGEST_TASK]
    try:
        items = await open_items(step)
        near = await items.nearest(question, LOOKED_AT + context.memory_size)
        may_ask = step.meter.calls_left > 1  # the last call is the answer's
        applying = await _applying(step, question, near) if near and may_ask else []
    except (LimitReached, ModelFailed) as reason:
        step.emit("recalled", lessons=0, reason=str(reason))
        return [], []
    shown = _within_share(step, applying[: context.memory_size])[::-1]
    texts = [item_text(item) for item in shown]
    step.emit("recalled", lessons=len(shown), looked_at=len(near), texts=texts, kept_in=kept_in())
    return texts, [ShownItem(id=item["id"], title=item["title"]) for item in shown]


async def _applying(step: Step[Context], question: str, near: Sequence[Item]) -> list[Item]:
    """Ask which items apply to a question, by their conditions alone."""
    conditions: list[str] = []
    for number, item in enumerate(near, 1):
        conditions.append(quoted("lesson", f"applies when: {item['applies_when']}", number=number))
    prompt = prompts.APPLIES.format_messages(request=quoted("request", question), items="\n".join(conditions))
    reply = await ask(step, model_for_lessons(step), prompt, Applying)
    return [item for number, item in enumerate(near, 1) if number in reply.applies]


def _within_share(step: Step[Context], items: Sequence[Item]) -> list[Item]:
    """Return the items that fit into their share of the model's context, the first ones first."""
    tokens = context_of(model_of(step, step.context.model), step.meter) or USUAL_CONTEXT
    left = CHARACTERS * SHARE * tokens
    within: list[Item] = []
    for item in items:
        length = len(item_text(item))
        if length <= left:
            left -= length
            within.append(item)
    return within
