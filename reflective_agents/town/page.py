"""A town's day as one page of HTML that needs nothing else, made as the page of a search is: see `viewer.page`."""

from pathlib import Path

from typing_extensions import TypedDict

from reflective_agents.state.json_types import JsonMapping
from reflective_agents.state.outcome import Outcome
from reflective_agents.state.run import Usage
from reflective_agents.state.settings.town import minutes_of
from reflective_agents.town.state import Conversation, Knows, Moment, Portrait, Retrieval
from reflective_agents.viewer.artefact import check_state
from reflective_agents.viewer.page import VIEWER, Page, assets

_FOLDER = Path(__file__).parent
DAY = Page(
    _FOLDER / "town.html",
    "A day in a town",
    styles=assets(_FOLDER, "town.css", "town-day.css"),
    scripts=(*assets(VIEWER, "elements.js", "given.js"), *assets(_FOLDER, "town-data.js", "town-panel.js", "town.js")),
)


class TownPicture(TypedDict):
    """A day, and what is needed to look at it. `minutes` pass in a step; `fact` is the news whose way is shown."""

    town: str
    told: str
    fact: str
    minutes: int
    places: list[str]
    day: list[Moment]
    conversations: list[Conversation]
    retrievals: list[Retrieval]
    agents: list[Portrait]
    spread: list[Knows]
    outcome: Outcome | None
    usage: Usage


_NEEDED = ("town", "told", "day", "conversations", "retrievals", "agents", "spread", "outcome", "usage")


def town_picture(values: JsonMapping) -> TownPicture:
    """Build the picture of a day from the state of its run.

    Raises:
        Misuse: if something of it is missing: a run's output lacks the town, and what the first agent was told.
    """
    check_state(values, _NEEDED, "a day")
    town = values["town"]
    return TownPicture(
        town=town["name"],
        told=values["told"],
        fact=town["fact"],
        minutes=_minutes(values["day"]),
        places=[place["name"] for place in town["places"]],
        day=values["day"],
        conversations=values["conversations"],
        retrievals=values["retrievals"],
        agents=values["agents"],
        spread=values["spread"],
        outcome=values["outcome"],
        usage=values["usage"],
    )


def _minutes(day: list[Moment]) -> int:
    """Return the minutes between the first two steps; 60 if there is only one."""
    times = sorted({minutes_of(entry["time"]) for entry in day})
    return times[1] - times[0] if len(times) > 1 else 60


def town_page(picture: TownPicture | None) -> str:
    """Build the page of a day; without one, a page that waits for it to be posted by the page around it."""
    return DAY.showing(picture)
