"""Experience: the items of a name, in the store of the graph, and what a model is shown of one."""

from typing import TYPE_CHECKING
from urllib.parse import quote

from langgraph.runtime import get_runtime

from reflective_agents.nodes.remembering.remember import store_of_process
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.users import authenticated_user
from reflective_agents.state.context import Context, Model
from reflective_agents.state.experience import Item, advice_of
from reflective_agents.state.extras import need_for_memory

if TYPE_CHECKING:
    from reflective_agents.memory.items import Items

LOOKED_AT = 10
"""Items beyond those shown of which a model says whether they apply, or how what is new stands to them."""
LONGEST_TASK = 2000
"""Characters of a task that are looked at."""


def item_text(item: Item) -> str:
    """Write an item for the prompt of a run."""
    mark = " (contested)" if item["status"] == "contested" else ""
    return f"{item['title']}{mark}\nWhen: {item['applies_when']}\n{advice_of(item)}"


def kept_in() -> str:
    """Describe where memories are kept, in words for the user."""
    return "this process, until it ends" if get_runtime().store is None else "the store of the graph"


def experience_of(name: str, user: str | None = None) -> str:
    """Return the owner of the items of a name, of a user's where a server has authenticated one."""
    return f"experience/{quote(user, safe='')}/{name}" if user else f"experience/{name}"


async def open_items(step: Step[Context]) -> "Items":
    """Open the items of the name that the settings give, within the limits of the run.

    Raises:
        Misuse, UnknownModel, MissingKey: as `MemoryStream.open`.
    """
    need_for_memory()
    from reflective_agents.memory.items import Items  # loads numpy, and few runs remember

    owner = experience_of(step.context.experience or "", authenticated_user())
    return await Items.open(get_runtime().store or store_of_process(), owner, meter=step.meter)


def model_for_lessons(step: Step[Context]) -> Model:
    """Return which model says what applies, and draws new items."""
    return step.context.experience_model or step.context.model
