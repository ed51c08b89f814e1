"""What runs have learned under a name as one page of HTML that needs nothing else, made as that of a search is."""

from collections.abc import Iterable

from reflective_agents.state.experience import Item, advice_of
from reflective_agents.viewer.page import VIEWER, Page, assets

_ITEMS = Page(
    VIEWER / "items.html",
    "Experience",
    styles=assets(VIEWER, "items.css"),
    scripts=assets(VIEWER, "elements.js", "items.js"),
)


def items_page(title: str, items: Iterable[Item]) -> str:
    """Build the page.

    Args:
        title: What they are called.
        items: The items, in the order of the page; their advice is shown with what was added to it.
    """
    return _ITEMS.showing({"title": title, "items": [{**item, "advice": advice_of(item)} for item in items]})
