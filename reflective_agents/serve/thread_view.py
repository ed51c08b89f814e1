"""What the live page shows of a thread, computed from its state as the server's API returns it."""

from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages
from langgraph_sdk.schema import Run, ThreadState

from reflective_agents.serve.runs import values_of
from reflective_agents.state.context import Context
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.settings import settings_of
from reflective_agents.state.settings.town import Town
from reflective_agents.town.page import TownPicture, town_picture
from reflective_agents.town.report import portraits_of, spread
from reflective_agents.tree_search.steering import changes_in
from reflective_agents.viewer.picture import Aggregate, Picture, picture

# Lists of other purposes; the messages have a place of their own on the page.
_NOT_LISTED = ("messages", "log", "lessons", "orders", "recalled", "weights")
_MAX_TEXT = 4000
"""The most characters of a text in a list of rounds, trials and the like."""


def thread_view(state: ThreadState, run: Run | None) -> JsonObject:
    """Return what the page shows of a thread.

    Args:
        state: Its state.
        run: Its last run, if there was one.
    """
    values = values_of(state)
    strategy = values.get("strategy", "")
    messages = convert_to_messages(values.get("messages") or [])
    return {
        "strategy": strategy,
        "status": _status(state, values, run),
        "events": values.get("events") or 0,
        "changes": changes_in(values),
        "steps": len(values.get("log") or []),
        "messages": [{"type": message.type, "text": message.text} for message in messages if message.text],
        "outcome": values.get("outcome"),
        "usage": values.get("usage"),
        "settings": values.get("settings") or {},
        "tree": _tree(values, strategy, messages) if values.get("tree") else None,
        "day": _day(values) if values.get("town") and values.get("day") else None,
        "lists": ({} if values.get("tree") or values.get("town") else _lists(values))
        | _support(values)
        | _experience(values),
    }


def _status(state: ThreadState, values: JsonMapping, run: Run | None) -> str:
    if run is not None and run["status"] in ("pending", "running"):
        return "running"
    if any(task.get("interrupts") for task in state.get("tasks") or []):
        return "waiting"
    if run is not None and run["status"] == "error":
        return "error"
    if state.get("next"):
        return "paused"
    return "ended" if values.get("outcome") else "empty"


def _tree(values: JsonMapping, strategy: str, messages: list[BaseMessage]) -> Picture:
    tree = values["tree"].items()
    nodes = {key: {**node, "messages": convert_to_messages(node.get("messages") or [])} for key, node in tree}
    schema = settings_of(strategy)
    settings = values.get("settings") or {}
    weight = settings.get("exploration_weight", _default(schema, "exploration_weight"))
    aggregate: Aggregate = settings.get("aggregate") or _default(schema, "aggregate") or "mean"
    return picture({**values, "tree": nodes, "messages": messages}, strategy, weight, aggregate)


def _day(values: JsonMapping) -> TownPicture:
    """Return the day so far: the agents, and which of them know the news."""
    agents = values.get("agents") or portraits_of(
        Town.model_validate(values["town"]), values["minds"], values["remembered"]
    )
    news_spread = values.get("spread") or spread(agents, values["town"]["fact"])
    return town_picture({**values, "agents": agents, "spread": news_spread})


def _default(schema: type[Context], name: str) -> Any:
    field = schema.model_fields.get(name)
    return field.default if field else None


def _support(values: JsonMapping) -> dict[str, list[dict[str, str]]]:
    """Return the sentences of the answer, each with what it cites and how far that supports it."""
    sentences = (values.get("support") or {}).get("sentences") or []
    rows = [{**sentence, "cites": ", ".join(sentence["cites"])} for sentence in sentences]
    return _lists({"support": rows})


def _experience(values: JsonMapping) -> dict[str, list[dict[str, str]]]:
    """Return the lessons of earlier runs that the run was shown, and whether it says that it has used them."""
    experience = values.get("experience") or {}
    shown, used = experience.get("shown") or [], experience.get("used") or []
    return _lists({"experience": [{**item, "used": "yes" if item["id"] in used else "no"} for item in shown]})


def _lists(values: JsonMapping) -> dict[str, list[dict[str, str]]]:
    """Return the rounds, trials, plans and the like that a strategy stores, with all values as texts."""
    return {
        name: [
            {key: str(part)[:_MAX_TEXT] for key, part in entry.items() if part not in (None, "", [], {})}
            for entry in rows
        ]
        for name, rows in values.items()
        if name not in _NOT_LISTED and isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows)
    }
