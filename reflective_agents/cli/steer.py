"""`reflect steer`: takes a tree search by the hand, and lets it go on."""

import asyncio
from collections.abc import Sequence

from reflective_agents.cli.request import Order, Request
from reflective_agents.cli.run import run
from reflective_agents.cli.threads import open_saver
from reflective_agents.cli.tree import strategy_of
from reflective_agents.state.errors import Misuse
from reflective_agents.tree_search.steering import go_on, hint, more, prune, rescore, stop


def steer(thread: str, change: str, arguments: Sequence[str], as_json: bool) -> int:
    """Change the tree search of a thread and run it to its end.

    Args:
        thread: Its name.
        change: What is changed.
        arguments: What follows on the command line.
        as_json: Whether the result is written as JSON.

    Raises:
        Misuse: if there is no such thread, or the change cannot be made.
    """
    order, step = order_of(change, arguments)
    strategy = asyncio.run(_strategy(thread))
    return run(Request(strategy, thread=thread, resume=True, as_json=as_json, order=order, step=step))


def order_of(change: str, arguments: Sequence[str]) -> tuple[Order, int | None]:
    """Read a change: the order it comes to, and the step it begins at, if that is not the last.

    Raises:
        Misuse: if it cannot be read.
    """
    try:
        match change, *arguments:
            case "prune", *nodes:
                return lambda values: prune(values, *nodes), None
            case "rescore", node, text:
                score = float(text)
                return lambda values: rescore(values, node, score), None
            case "hint", node, text:
                return lambda values: hint(values, node, text), None
            case "more", number, *limits:
                expansions, raised = int(number), dict(map(_limit, limits))
                return lambda values: more(values, expansions, **raised), None
            case ("stop",):
                return stop, None
            case "fork", number:
                return lambda _: go_on(), int(number)
    except ValueError as error:
        raise Misuse(f"{change}: {error}") from error
    raise Misuse(f"{change} takes other arguments: reflect steer --help lists them")


def _limit(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    return name, float(number)


async def _strategy(thread: str) -> str:
    async with open_saver() as saver:
        return await strategy_of(saver, thread)
