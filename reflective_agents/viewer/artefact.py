"""What a drawing needs of the state of a run."""

from collections.abc import Collection

from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonMapping


def check_state(values: JsonMapping, needed: Collection[str], drawing: str) -> None:
    """Refuse values that lack what a drawing is made of.

    Args:
        values: The state of a run.
        needed: The channels.
        drawing: What is drawn, such as "a tree".

    Raises:
        Misuse: if one is missing; the text names it, and says where it is.
    """
    missing = ", ".join(repr(name) for name in needed if name not in values)
    if missing:
        raise Misuse(
            f"{drawing} is drawn from the whole state of a run; missing here: {missing}. Give "
            f"graph.get_state(config).values of a graph that makes {drawing}"
        )
