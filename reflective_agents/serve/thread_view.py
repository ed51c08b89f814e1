"""What the live page shows of a thread, computed from its state as the server's API returns it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from langchain_core.messages import AnyMessage, BaseMessage, convert_to_messages
from langgraph_sdk.schema import Run, ThreadState

from reflective_agents.nodes.evidence.long_questions import is_text, parts_of
from reflective_agents.nodes.evidence.long_texts import TITLE
from reflective_agents.nodes.evidence.reference_list import split_references, titles_in
from reflective_agents.nodes.evidence.sources import results_in
from reflective_agents.serve.policy import policy
from reflective_agents.serve.runs import values_of
from reflective_agents.state.context import Context
from reflective_agents.state.errors import BadCorpus
from reflective_agents.state.families import SearchContext
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.settings import settings_of
from reflective_agents.state.settings.town import Town
from reflective_agents.town.page import TownPicture, town_picture
from reflective_agents.town.report import portraits_of, spread
from reflective_agents.tree_search.steering import changes_in
from reflective_agents.viewer.picture import Aggregate, Picture, picture
from reflective_agents.web_search.corpus import open_corpus
from reflective_agents.web_search.engines import choose_search

# Lists of other purposes; the messages have a place of their own on the page.
_NOT_LISTED = ("messages", "log", "lessons", "orders", "recalled", "weights")
_PART = re.compile(r"(.+)[#&]char=(\d{1,9}),(\d{1,9})", re.ASCII)
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
    unstored = [] if run is None or _has_stored(state, run) else _not_shown(messages_given(run), messages, state, run)
    quotes = _quotes(values)
    return {
        "strategy": strategy,
        "status": _status(state, values, run),
        "events": values.get("events") or 0,
        "changes": changes_in(values),
        "steps": len(values.get("log") or []),
        "messages": [_message(message, quotes) for message in [*messages, *unstored] if message.text],
        "outcome": values.get("outcome"),
        "usage": values.get("usage"),
        "settings": values.get("settings") or {},
        "tree": _tree(values, strategy, messages) if values.get("tree") else None,
        "day": _day(values) if values.get("town") and values.get("day") else None,
        "lists": ({} if values.get("tree") or values.get("town") else _lists(values))
        | _support(values)
        | _experience(values),
    }


def passages_of(values: JsonMapping, url: str) -> list[str]:
    """Return what a source says that an answer of a thread cites, as the run was shown it; nothing that is not kept.

    Args:
        values: The values of the thread.
        url: The address of the source.
    """
    messages = convert_to_messages(values.get("messages") or [])
    if not any(url in split_references(message.text)[1].values() for message in messages if message.type == "ai"):
        return []
    if own := parts_of(cast(list[AnyMessage], messages), [url]):
        return [own[url]]
    part = _PART.fullmatch(url)
    if part and (text := (values.get("texts") or {}).get(part[1])):
        return [text["text"][int(part[2]) : int(part[3])]]
    found = (result["content"] for result in _results({**values, "messages": []}) if result["url"] == url)
    return [*dict.fromkeys(found)] or _in_corpus(url)


def _results(value: Any) -> Iterator[JsonMapping]:
    """Yield the search results in values: those of tools, wherever a strategy keeps them, and no others."""
    if isinstance(value, list):
        for part in value:
            yield from _results(part)
    elif isinstance(value, dict) and isinstance(value.get("url"), str) and isinstance(value.get("content"), str):
        yield value
    elif isinstance(value, dict):
        # Nothing else is read: what a model writes might look like a result.
        replies = [value.get("observation"), value.get("content") if value.get("type") == "tool" else None]
        for reply in replies:
            yield from results_in(reply) if isinstance(reply, str) else ()
        for part in value.values():
            yield from _results(part)


def _in_corpus(url: str) -> list[str]:
    """Return the passages of a document in the operator's corpus, if searches of callers may find them."""
    operators, settings = SearchContext(), policy().settings
    searched = settings is None or "search" in settings or choose_search(operators.search)[0] == "local"
    if not searched or not url.startswith("corpus:"):
        return []
    try:
        return open_corpus(operators.corpus).document(url)
    except BadCorpus:  # its words name the folder
        return []


def messages_given(run: Run) -> list[BaseMessage]:
    """Return the messages that a run was given; none if it was given no question, or none that can be read."""
    # Where they stand depends on the server: `langgraph dev` has them among what it calls the graph with.
    stored = cast(JsonMapping, run)
    given = (stored.get("kwargs") or stored).get("input")
    messages = given.get("messages") if isinstance(given, Mapping) else None
    try:
        return convert_to_messages(messages if isinstance(messages, list) else [messages] if messages else [])
    except (ValueError, TypeError, LookupError, NotImplementedError):  # the run refuses them with a reason
        return []


def _has_stored(state: ThreadState, run: Run) -> bool:
    """Tell whether a run has stored what it was asked."""
    metadata = state.get("metadata") or {}
    return metadata.get("run_id") == run["run_id"] and metadata.get("source") != "input"


def _not_shown(
    given: list[BaseMessage], messages: list[BaseMessage], state: ThreadState, run: Run
) -> list[BaseMessage]:
    """Return what a run was given, unless its first state shows it already, as LangGraph does in the moment when it is
    about to store it."""
    is_its_own = (state.get("metadata") or {}).get("run_id") == run["run_id"]
    last = messages[len(messages) - len(given) :] if is_its_own and len(given) <= len(messages) else []
    return [] if [message.text for message in last] == [message.text for message in given] else given


def _message(message: BaseMessage, quotes: Mapping[str, list[str]]) -> JsonObject:
    """Return a message of a person, or an answer apart from its sources, as the page shows it."""
    shown: JsonObject = {"id": message.id, "type": message.type, "text": message.text}
    if is_text(message):
        name = str(message.additional_kwargs.get(TITLE) or "")
        return shown | {"file": name, "size": len(message.text), "text": message.text[:_MAX_TEXT]}
    if message.type != "ai":
        return shown
    shown["text"], listed = split_references(message.text)
    titles = titles_in(message.text)
    about = message.response_metadata
    return shown | {
        "strategy": about.get("strategy", ""),
        "model": about.get("model_name", ""),
        "note": about.get("note", ""),
        "sources": [
            {"number": number, "url": url, "title": titles.get(url, ""), "words": quotes.get(str(number), [])}
            for number, url in listed.items()
        ],
    }


def _quotes(values: JsonMapping) -> dict[str, list[str]]:
    """Return the words of sources that support the last answer, by their numbers."""
    quotes: dict[str, list[str]] = {}
    for sentence in (values.get("support") or {}).get("sentences") or []:
        for number in sentence["cites"]:
            quotes.setdefault(number, []).extend(filter(None, [sentence.get("words")]))
    return quotes


def _status(state: ThreadState, values: JsonMapping, run: Run | None) -> str:
    if run is not None and run["status"] in ("pending", "running"):
        return "running"
    if any(task.get("interrupts") for task in state.get("tasks") or []):
        return "waiting"
    if run is not None and run["status"] == "error":
        return "error"
    if state.get("next"):
        return "paused"
    if run is not None and run["status"] == "interrupted" and not _has_stored(state, run):
        return "stopped"
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
