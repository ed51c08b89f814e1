"""Towns whose agents do what a test says, and models that play them."""

import re
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from reflective_agents.graphs.town import builder
from reflective_agents.testing.script import Reply, Request

Days = dict[str, list[str]]
"""Where each agent is in each hour of the day, which begins at 07:00."""
PARTY: Days = {
    "Anna": ["Flat", "Café", "Café", "Flat"],
    "Ben": ["House", "Café", "School", "Library"],
    "Clara": ["Park", "Park", "Hill", "Library"],
    "Dora": ["Park", "Mill", "Mill", "Mill"],
    "Emil": ["Hut", "Hut", "Hut", "Hut"],
}
"""Anna meets Ben at 08:00, Ben meets Clara at 10:00; Dora meets Clara at 07:00, and Emil meets nobody."""
NEWS = "There is a party tonight."


def town_of(days: Days, **knows: list[dict[str, Any]]) -> dict[str, Any]:
    """A town in which everyone is where the test says."""
    places = dict.fromkeys(name for day in days.values() for name in day)
    return {
        "name": "Testing",
        "begins": "07:00",
        "ends": f"{7 + max(map(len, days.values())):02}:00",
        "fact": "party",
        "places": [{"name": name} for name in places],
        "agents": [
            {"name": name, "about": f"{name} lives here.", "home": day[0], "knows": knows.get(name, [])}
            for name, day in days.items()
        ],
    }


def memories_in(request: Request) -> list[str]:
    """The memories that a prompt shows."""
    return re.findall(r"<memory [^>]*>\n(.*?)\n</memory>", request.text, re.S)


def name_in(request: Request) -> str:
    """Whose prompt it is."""
    found = re.findall(r'<agent name="([^"]+)">', request.text) or re.findall(r"<agent>\n(\w+) lives", request.text)
    return str(found[0])


def play(request: Request, days: Days = PARTY) -> Reply:
    """Go where the day says, talk to whoever is there, and pass the news on if it is among what is remembered."""
    match request.schema:
        case "DayPlan":
            return {"strokes": [{"start": "07:00", "what": "lives"}]}
        case "HourPlan":
            day = enumerate(days[name_in(request)], 7)
            return {
                "hours": [
                    {"start": f"{hour:02}:00", "what": f"is busy {hour}", "place": at, "importance": 3}
                    for hour, at in day
                ]
            }
        case "Reaction":
            fresh = re.findall(r'<seen name="(\w+)" talked="not yet today">', request.text)
            return {"choice": "talk" if fresh else "continue", "to": (fresh or [""])[0], "what": "", "importance": 3}
        case "Utterance":
            known = any("party" in memory for memory in memories_in(request))
            return {"say": NEWS if known else "Nice weather.", "ends": False, "importance": 3}
        case "Questions":
            return {"questions": ["What about the day?", "Who was there?", "What is new?"]}
        case "Insights":
            return {"insights": [{"insight": f"Insight {n}.", "evidence": [n], "importance": 4} for n in range(1, 6)]}
    raise AssertionError(f"nobody asks for {request.schema}")


def settings(days: Days = PARTY, **more: Any) -> dict[str, Any]:
    """Settings of a quick day: a step is an hour, so that nothing is decomposed below it."""
    common = {"town": town_of(days), "minutes": 60, "max_turns": 2, "embeddings": "lexical", "reflect_at": 10_000}
    return {**common, **more}


def stored(saver: BaseCheckpointSaver[Any], store: BaseStore | None = None) -> Any:
    """The graph with a checkpointer and a store."""
    return builder.compile(checkpointer=saver, store=store, name="town")


def summary(result: dict[str, Any]) -> dict[str, Any]:
    """What of a day has to be the same in every run."""
    kept = {name: result[name] for name in ("answer", "outcome", "day", "conversations", "agents", "spread")}
    return kept | {"retrievals": sorted(result["retrievals"], key=lambda one: (one["step"], one["agent"]))}
