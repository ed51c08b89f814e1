"""What an answer may rest on: the sources that a model was shown, numbered once for a thread, so that it can cite them.

The lists of references in the earlier answers of a conversation say which numbers are taken. So a number means the same
source in all answers, whoever keeps the thread.
"""

import json
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeGuard, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from pydantic import JsonValue

from reflective_agents.nodes.evidence.reference_list import split_references, titles_in
from reflective_agents.prompts import search as prompts
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.tree import TreeNode
from reflective_agents.text.excerpt import excerpt
from reflective_agents.text.joined import joined

M = TypeVar("M", bound=BaseMessage)
PARTS = "parts"
"""Where a message holds the parts of long texts that it shows: results with their numbers."""
LONGEST_PASSAGE = 8_000
"""Characters of what is kept of a source for those who compare what it says."""


class Source(NamedTuple):
    """A source that a model was shown.

    Attributes:
        number: Its number in the thread, by which it is cited.
        url: Its address.
        title: Its title; empty if that is not known.
        passages: What the model was shown of it, in order; nothing of one that only an earlier answer cites.
    """

    number: int
    url: str
    title: str = ""
    passages: tuple[str, ...] = ()

    @property
    def quotable(self) -> str:
        """What can be quoted from it, with its title; empty where the model has read nothing of it."""
        return joined([self.title, *self.passages]) if self.passages else ""


Sources = Mapping[int, Source]
"""Sources by their numbers."""
EARLIER = "earlier_sources"
"""Where the summary of earlier turns holds their sources, in its `additional_kwargs`: address and title by number."""
NO_SOURCES: Sources = MappingProxyType({})


def sources_of(texts: Sequence[str], earlier: Sources = NO_SOURCES) -> dict[int, Source]:
    """Return what an answer may cite: the results in observations, and what earlier answers cite.

    Args:
        texts: What tools have answered, in order.
        earlier: The sources of the thread before, which keep their numbers.
    """
    results = list(all_results(texts))
    titles = {source.url: source.title for source in earlier.values()} | _titles(results)
    contents = _contents(results)
    for source in earlier.values():
        if source.passages:
            contents[source.url] = list(dict.fromkeys([*source.passages, *contents.get(source.url, ())]))
    sources: dict[int, Source] = {}
    for url, number in numbers_of(results, earlier).items():
        sources[number] = Source(number, url, titles.get(url, ""), tuple(contents.get(url, ())))
    return sources


def _contents(results: Iterable[JsonMapping]) -> dict[str, list[str]]:
    """Return the different texts of results, by address."""
    contents: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for result in results:
        contents[result["url"]][result["content"]] = None
    return {url: list(texts) for url, texts in contents.items()}


def numbers_of(results: Iterable[JsonMapping], earlier: Sources = NO_SOURCES) -> dict[str, int]:
    """Return the numbers of results by address: new ones come after the greatest of `earlier`."""
    numbers = {source.url: number for number, source in earlier.items()}
    last = max(numbers.values(), default=0)
    for result in results:
        if result["url"] not in numbers:
            last += 1
            numbers[result["url"]] = last
    return numbers


def thread_sources(conversation: Iterable[BaseMessage]) -> dict[int, Source]:
    """Return the sources that the answers of a conversation list, and the parts of long texts that a question shows.
    Where a list gives the number of an earlier source to another one, that comes after the greatest."""
    sources: dict[int, Source] = {}
    urls = set[str]()
    parts: list[JsonObject] = []
    for message in conversation:
        parts += message.additional_kwargs.get(PARTS, ())
        for number, (url, title) in message.additional_kwargs.get(EARLIER, {}).items():
            sources[int(number)] = Source(int(number), url, title)
            urls.add(url)
        if not isinstance(message, AIMessage):
            continue
        text = message.text
        _, entries = split_references(text)
        titles = titles_in(text) if entries else {}
        for listed, url in entries.items():
            if url not in urls:
                number = listed if listed and listed not in sources else max(sources, default=0) + 1
                sources[number] = Source(number, url, titles.get(url, ""))
                urls.add(url)
    numbers = numbers_of(parts, sources)
    for part in parts:
        number = numbers[part["url"]]
        sources[number] = Source(number, part["url"], part["title"], (part["content"],))
    return sources


def observations(messages: Iterable[BaseMessage]) -> list[str]:
    """Return what tools have answered, in order."""
    return [message.text for message in messages if isinstance(message, ToolMessage)]


def observations_of_steps(steps: Iterable[JsonMapping]) -> list[str]:
    """Return what tools or an environment have answered in steps, in order."""
    found: list[str] = []
    for step in steps:
        found += observations(step["messages"]) or [step.get("observation", "")]
    return found


def observations_on(path: Sequence[TreeNode]) -> list[str]:
    """Return the results of the tools on a path of a search tree."""
    found: list[str] = []
    for node in path:
        found += observations(node["messages"])
    return found


def observations_of_result(result: JsonMapping) -> list[str]:
    """Return what a strategy has found, as far as its result holds it: as sources, or as observations of its steps."""
    steps = [*result.get("steps", ()), *result.get("tree", {}).values()]
    return [json.dumps(result.get("sources", [])), *observations_of_steps(steps)]


def passages(texts: Iterable[str], urls: Container[str], answer: str) -> dict[str, str]:
    """Return what the results in observations say that have one of these addresses, by address; of a long one what
    bears on the answer that cites it."""
    cited = [result for result in all_results(texts) if result["url"] in urls]
    return {url: excerpt("\n".join(parts), LONGEST_PASSAGE, answer) for url, parts in _contents(cited).items()}


def _titles(results: Iterable[JsonMapping]) -> dict[str, str]:
    """Return the titles of results by address; without those that say no more than that."""
    titles: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for result in results:
        given = result.get("title")
        title = given.strip() if isinstance(given, str) else ""
        if title and title not in result["url"]:
            titles[result["url"]][title] = None
    return {url: _document_title(list(several)) for url, several in titles.items()}


def _document_title(titles: Sequence[str]) -> str:
    """Return the title of a document of which several passages were found, or else the first title."""
    # As `web_search.documents` titles the passages of a file.
    documents = {title.partition(" — ")[0] for title in titles}
    return documents.pop() if len(titles) > 1 and len(documents) == 1 else titles[0]


def all_results(texts: Iterable[str]) -> Iterator[JsonObject]:
    """Yield the search results in observations, in order."""
    for text in texts:
        yield from results_in(text)


def results_in(observation: str) -> list[JsonObject]:
    """Return the search results that an observation holds: a JSON array of objects with an address and a text, or an
    object with such `results`."""
    value = _json(observation)
    if isinstance(value, dict):
        value = value.get("results")
    if not isinstance(value, list):
        return []
    return [item for item in value if _is_result(item)]


def numbered(observation: str, before: Sequence[str], earlier: Sources = NO_SOURCES) -> str:
    """Give the results of an observation numbers, and leave out those that were found before; other texts stay.

    Args:
        observation: What a tool has answered.
        before: The observations before it on the path.
        earlier: The sources of the thread before the question.
    """
    value = _json(observation)
    if not isinstance(value, list):
        return observation
    results = [item for item in value if _is_result(item)]
    if not results or len(results) < len(value):
        return observation
    seen = {_key(result) for result in all_results(before)}
    numbers = numbers_of(all_results([*before, observation]), earlier)
    new = [with_number(result, numbers) for result in results if _key(result) not in seen]
    if new:
        return json.dumps(new, ensure_ascii=False)
    again = {numbers[result["url"]] for result in results}
    names = [f"[{number}]" for number in sorted(again)]
    return prompts.NOTHING_NEW.format(numbers=", ".join(names))


def without_repeats(observation: str, seen: dict[tuple[str, str], str], name: str) -> str:
    """Return an observation in which the results that somebody else was shown name that one instead of their text.

    Args:
        observation: What a tool has answered to `name`.
        seen: Who was shown each result first, by its address and text; new results are added.
        name: Who was shown this observation.
    """
    results = results_in(observation)
    first = [seen.setdefault(_key(result), name) for result in results]
    if not isinstance(_json(observation), list) or all(owner == name for owner in first):
        return observation
    shown = []
    for result, owner in zip(results, first, strict=True):
        shown.append(result if owner == name else {**result, "content": f"as in {owner}"})
    return json.dumps(shown, ensure_ascii=False)


def with_number(result: JsonMapping, numbers: Mapping[str, int]) -> JsonObject:
    """Return a result with its number before everything else, and in place of any that it has."""
    rest = {name: value for name, value in result.items() if name != "number"}
    return {"number": numbers[result["url"]], **rest}


def with_numbers(replies: Sequence[M], before: Sequence[str], earlier: Sources = NO_SOURCES) -> list[M]:
    """Give the results in the replies of tools numbers, one reply after the other."""
    shown: list[M] = []
    seen = list(before)
    for reply in replies:
        text = numbered(reply.text, seen, earlier)
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
