"""What was found on the way: search results, numbered along a path, so that an answer can cite them."""

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from textwrap import shorten
from typing import NamedTuple, TypeGuard, TypeVar

from langchain_core.messages import BaseMessage, ToolMessage
from pydantic import JsonValue

from reflective_agents.prompts import search as prompts
from reflective_agents.state.json_types import JsonMapping, JsonObject

M = TypeVar("M", bound=BaseMessage)
LONGEST_PASSAGE = 2000
"""Characters of what is shown of a source to those who compare what it says."""


class Source(NamedTuple):
    """A source that was shown to a model: its number, and what the model has read of it, in order."""

    number: int
    url: str
    title: str
    passages: tuple[str, ...]


Sources = Mapping[int, Source]
"""Sources by their numbers."""


def sources_of(observations: Sequence[str], conversation: Sequence[BaseMessage] = ()) -> dict[int, Source]:
    """Return the numbered sources in what tools have answered."""
    titles = titles_of(observations)
    contents: dict[str, dict[str, None]] = {}
    for result in all_results(observations):
        contents.setdefault(result["url"], {})[result["content"]] = None
    return {
        number: Source(number, url, titles.get(url, ""), tuple(contents[url])) for number, url in enumerate(contents, 1)
    }


def observations(messages: Iterable[BaseMessage]) -> list[str]:
    """Return what tools have answered, in order."""
    return [message.text for message in messages if isinstance(message, ToolMessage)]


def observations_of_result(result: JsonMapping) -> list[str]:
    """Return what a strategy has found, as far as its result holds it: as sources, or as observations of its steps."""
    steps = [*result.get("steps", ()), *result.get("tree", {}).values()]
    seen = [text for step in steps for text in observations(step["messages"]) or [step.get("observation", "")]]
    return [json.dumps(result.get("sources", [])), *seen]


def passages(texts: Iterable[str], urls: Container[str]) -> dict[str, str]:
    """Return what the results in observations say that have one of these addresses, by address."""
    contents: dict[str, dict[str, None]] = {}
    for result in all_results(texts):
        if result["url"] in urls:
            contents.setdefault(result["url"], {})[result["content"]] = None
    return {url: shorten("\n".join(parts), LONGEST_PASSAGE, placeholder=" ...") for url, parts in contents.items()}


def addresses(texts: Iterable[str]) -> list[str]:
    """Return the addresses of all results in observations, each once: the first has the number 1."""
    return list(dict.fromkeys(result["url"] for result in all_results(texts)))


def titles_of(texts: Iterable[str]) -> dict[str, str]:
    """Return the titles of all results in observations by address; without those that say no more than that."""
    titles: dict[str, dict[str, None]] = {}
    for result in all_results(texts):
        if isinstance(title := result.get("title"), str) and title.strip() and title.strip() not in result["url"]:
            titles.setdefault(result["url"], {})[title.strip()] = None
    return {url: _document_title(list(several)) for url, several in titles.items()}


def _document_title(titles: Sequence[str]) -> str:
    """Return the title of a document of which several passages were found, or else the first title."""
    documents = {title.partition(" — ")[0] for title in titles}
    return documents.pop() if len(titles) > 1 and len(documents) == 1 else titles[0]


def all_results(texts: Iterable[str]) -> Iterator[JsonObject]:
    """Yield the search results in observations, in order."""
    return (result for text in texts for result in results_in(text))


def results_in(observation: str) -> list[JsonObject]:
    """Return the search results that an observation holds: a JSON array of objects with an address and a text, or an
    object with such `results`."""
    value = _json(observation)
    value = value.get("results") if isinstance(value, dict) else value
    return [item for item in value if _is_result(item)] if isinstance(value, list) else []


def numbered(observation: str, before: Sequence[str]) -> str:
    """Give the results of an observation numbers, and leave out those that were found before; other texts stay.

    Args:
        observation: What a tool has answered.
        before: The observations before it on the path.
    """
    value = _json(observation)
    results = [item for item in value if _is_result(item)] if isinstance(value, list) else []
    if not isinstance(value, list) or not results or len(results) < len(value):
        return observation
    seen = {_key(result) for result in all_results(before)}
    urls = addresses([*before, observation])
    new = [with_number(result, urls) for result in results if _key(result) not in seen]
    if new:
        return json.dumps(new, ensure_ascii=False)
    again = sorted({urls.index(result["url"]) + 1 for result in results})
    return prompts.NOTHING_NEW.format(numbers=", ".join(f"[{number}]" for number in again))


def with_number(result: JsonMapping, urls: Sequence[str]) -> JsonObject:
    """Return a result with its number before everything else."""
    return {"number": urls.index(result["url"]) + 1, **result}


def with_numbers(replies: Sequence[M], before: Sequence[str]) -> list[M]:
    """Give the results in the replies of tools numbers, one reply after the other."""
    shown: list[M] = []
    seen = list(before)
    for reply in replies:
        text = numbered(reply.text, seen)
        seen.append(text)
        shown.append(reply if text == reply.text else reply.model_copy(update={"content": text}))
    return shown


def _key(result: JsonMapping) -> tuple[str, str]:
    return result["url"], result["content"]


def _is_result(value: JsonValue) -> TypeGuard[JsonObject]:
    return (
        isinstance(value, dict)
        and isinstance(value.get("content"), str)
        and bool(value.get("url"))
        and isinstance(value["url"], str)
    )


def _json(text: str) -> JsonValue:
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value
