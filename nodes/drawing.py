"""Drawing several replies to one prompt."""

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from models.calls import request, takes_n, takes_seed
from nodes.chat import ATTEMPTS
from nodes.memo import at_once
from nodes.step import Step
from state.errors import InvalidOutput, LimitReached, ModelFailed


def calls_of(model: BaseChatModel, count: int) -> int:
    """How many calls so many replies take: one where the provider takes n, else one each."""
    return 1 if takes_n(model) else count


async def draw(
    step: Step[Any], model: BaseChatModel, prompt: Sequence[BaseMessage], count: int, **options: Any
) -> list[AIMessage]:
    """Draw replies: in one request where the provider has n, else in one each, all at once. What it leaves out, or is
    no text, is drawn again in requests of their own.

    Args:
        step: The node that asks; its setting `seed` goes with the requests.
        model: Who is asked.
        prompt: What.
        count: How many replies are wanted, from 1.
        options: Further options of the requests.

    Returns:
        The replies in the order of their samples; fewer, if some failed.

    Raises:
        LimitReached, ModelFailed: if there is none.
    """
    drawn: dict[int, AIMessage] = {}
    stops: list[LimitReached | ModelFailed] = []
    seed = step.context.seed

    async def ask(places: list[int]) -> None:
        seeded = {"seed": seed + places[0]} if seed is not None and takes_seed(model) else {}
        try:
            replies = await request(model, prompt, step.meter, n=len(places), **seeded, **options)
        except (LimitReached, ModelFailed) as stop:
            stops.append(stop)
            return
        drawn.update({place: reply for place, reply in zip(places, replies, strict=False) if reply.text.strip()})
        step.meter.count(parse_failures=sum(not reply.text.strip() for reply in replies))

    for attempt in range(ATTEMPTS):
        missing = [place for place in range(count) if place not in drawn]
        if stops or not missing:
            break
        together = takes_n(model) and attempt == 0
        await at_once([ask(places) for places in ([missing] if together else [[place] for place in missing])])
    if not drawn:
        raise stops[0] if stops else InvalidOutput(f"no text in {ATTEMPTS} attempts: the model called a tool instead")
    return [drawn[place] for place in sorted(drawn)]
