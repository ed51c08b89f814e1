"""Texts that are too long to be shown whole: they are kept, and shown as their beginning and the passages that fit.

Each part that is shown is a source of its own: its address ends in the characters where it stands (RFC 5147).
"""

import asyncio
import json
import math
from bisect import bisect_right
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field

from reflective_agents.models.capabilities import capabilities_of
from reflective_agents.models.images import images_of
from reflective_agents.models.providers import model_for
from reflective_agents.nodes.evidence.sources import results_in
from reflective_agents.prompts import long_texts as prompts
from reflective_agents.state.context import Context
from reflective_agents.state.errors import SearchFailed
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.run import LongText
from reflective_agents.text.words import words
from reflective_agents.web_search.corpus import terms_of
from reflective_agents.web_search.engines import Search
from reflective_agents.web_search.passages import Span, passages_of
from reflective_agents.web_search.results import SearchResult

ESTIMATED_PER_TOKEN = 1.5
"""Estimated tokens of a prompt for each token of a context, of which an answer has a quarter: in English, twice as many
are estimated as there are."""
BYTES_PER_TOKEN = 2
"""Bytes of an estimated token."""
ASSUMED_CONTEXT = 16_384
"""Tokens that a model's context is taken to hold while nobody knows: what is not shown can be read on."""
SHARE = 4
"""Which part of the longest prompt the results of one step may take: a quarter."""
LEAST_SHOWN, MOST_SHOWN = 1_500, 100_000
"""Bytes of one result that are shown in any case, and of all results of a step at most."""
LEAST_BEGINNING = 200
"""Bytes below which no beginning of a text is shown."""
MOST_PASSAGES = 20
FOUND_AT_ONCE = 3
"""Passages of long texts among what one search finds."""
HOLDS = "holds"
"""Marks a message of another strategy's that holds a long text of the user's."""
ALONE, AND_QUESTION = "text", "text and question"
"""What it holds: a text that asks nothing, whatever it ends with, or a question beside it."""
TITLE = "title"
"""Where a message that holds a text alone says what that is called: the name of a file, for example."""
_OVERHEAD = 250
"""Bytes of a result beside its text, about."""


def longest_prompt(context: Context, known: int | None) -> float:
    """Return how many bytes a prompt may have, by the tokens that are known of the model's context."""
    most = getattr(context, "max_context_tokens", math.inf)
    return BYTES_PER_TOKEN * min(most, math.inf if known is None else ESTIMATED_PER_TOKEN * known)


def context_tokens_of(context: Context) -> int | None:
    """Return how many tokens the context of the run's model holds: as the settings say, or what is known of it."""
    chat = model_for(context, context.model)
    known = filter(None, (context.context_window, capabilities_of(chat).context_tokens))
    return min(known, default=None)


def part_url(url: str, span: Span) -> str:
    """Return the address of a part of a text."""
    sign = "&" if "#" in url else "#"
    return f"{url}{sign}char={span.begin},{span.end}"


@lru_cache(maxsize=16)
def text_url(scheme: str, text: str) -> str:
    """Return an address for a text that has none: the same for the same text."""
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=4)
    return f"{scheme}{digest.hexdigest()}"


class LongTexts:
    """The long texts of a run: those of tools, which the state keeps, and those of the user, which stand in messages.

    Args:
        context: The settings of the run.
        kept: What the state keeps, by address.
    """

    def __init__(self, context: Context, kept: Mapping[str, LongText]) -> None:
        self._context, self._texts, self._given = context, dict(kept), dict[str, str | None]()
        self.new: dict[str, LongText] = {}
        """What was added, for the state."""

    def __bool__(self) -> bool:
        return bool(self._texts)

    def give(self, url: str, text: LongText, message: str | None) -> None:
        """Take a text of the user's, which the message with this id keeps."""
        self._texts[url] = text
        self._given[url] = message

    def as_messages(self, without: Container[str | None]) -> list[AnyMessage]:
        """Return the user's texts as messages that hold nothing else, but for those of some messages, by their ids."""
        messages: list[AnyMessage] = []
        for url, message in sorted(self._given.items()):
            if message not in without:
                text = self._texts[url]
                kwargs = {HOLDS: ALONE, TITLE: text["title"]}
                messages.append(HumanMessage(text["text"], additional_kwargs=kwargs))
        return messages

    async def given_parts(self, query: str) -> list[JsonObject]:
        """Return what is shown of the user's texts within one share: their beginnings, and the passages that fit best.
        Of many texts no beginning is shown: their messages name them."""
        urls = sorted(self._given)
        texts = {url: self._texts[url]["text"] for url in urls}
        left = self.most_shown
        if sum(_bytes(text) + _OVERHEAD for text in texts.values()) <= left:
            return [self._part(url, Span(0, len(text))) for url, text in texts.items()]
        if len(urls) == 1:
            return await self.parts(urls[0], query, left)
        beginning = left // SHARE // len(urls)
        ends = dict.fromkeys(urls, 0)
        shown: dict[str, list[Span]] = {url: [] for url in urls}
        if beginning >= LEAST_BEGINNING:
            for url, text in texts.items():
                ends[url] = len(_cut(text, beginning))
                shown[url].append(Span(0, ends[url]))
                left -= beginning + _OVERHEAD
        for url, span in await self._best_of(urls, query):
            size = _bytes(texts[url][span.begin : span.end]) + _OVERHEAD
            if span.begin >= ends[url] and size <= left:
                shown[url].append(span)
                left -= size
        parts: list[JsonObject] = []
        for url in urls:
            for span in sorted(shown[url]):
                part = self._part(url, span)
                parts.append(part if span.begin else part | self._read_on(url, span.end))
        return parts

    async def _best_of(self, urls: Iterable[str], query: str) -> list[tuple[str, Span]]:
        """Return the passages of texts that fit a query: those first that hold most of its words."""
        terms = {*terms_of(query)}
        found: list[tuple[int, int, str, Span]] = []
        for url in urls:
            text = self._texts[url]["text"]
            best = await asyncio.to_thread(_best, text, query, FOUND_AT_ONCE)
            for rank, span in enumerate(best):
                held = terms.intersection(words(text[span.begin : span.end]))
                found.append((-len(held), rank, url, span))
        return [(url, span) for _, _, url, span in sorted(found)]

    @property
    def most_shown(self) -> int:
        """How many bytes the results of one step may have together."""
        known = context_tokens_of(self._context) or ASSUMED_CONTEXT
        return max(min(int(longest_prompt(self._context, known)) // SHARE, MOST_SHOWN), LEAST_SHOWN)

    async def shown(self, replies: Sequence[ToolMessage], queries: Sequence[str]) -> list[ToolMessage]:
        """Show the results of tools within their share of a prompt. Of those that are too long the whole text is kept.

        Args:
            replies: What the tools have answered.
            queries: What each of them was asked for.
        """
        if sum(map(_size, replies)) <= LEAST_SHOWN:
            return [*replies]
        left = self.most_shown
        fitting: list[ToolMessage] = []
        for number, (reply, query) in enumerate(zip(replies, queries, strict=True)):
            share = max(left // (len(replies) - number), LEAST_SHOWN)
            fitting.append(await self._fit(reply, query, share))
            left -= _size(fitting[-1])
        return fitting

    async def _fit(self, reply: ToolMessage, query: str, share: int) -> ToolMessage:
        if _size(reply) <= share or images_of(reply):
            return reply
        if is_read_on(reply):
            return reply.model_copy(update={"content": prompts.TOO_MUCH, "status": "error"})
        if reply.status == "error":
            return reply.model_copy(update={"content": _cut(reply.text, share)})
        results = results_in(reply.text)
        if not results or results != json.loads(reply.text) or max(map(_beside_content, results)) > LEAST_SHOWN:
            results = [{"title": reply.name, "url": text_url(f"tool:{reply.name}/", reply.text), "content": reply.text}]
        shown = await self.fit_results(results, query, share)
        return reply.model_copy(update={"content": json.dumps(shown, ensure_ascii=False)})

    async def fit_results(self, results: Iterable[JsonMapping], query: str, share: int) -> list[JsonObject]:
        """Show results within a share of bytes: long ones in parts, and as many of the others as fit, at least one."""
        several = [*results]
        each = max(share // max(len(several), 1), LEAST_SHOWN)
        left = share
        shown: list[JsonObject] = []
        for result in several:
            parts: list[JsonObject] = [{**result}]
            if _bytes(result["content"]) > each:
                parts = await self._parts(result, query, each)
            left -= sum(_bytes(part["content"]) + _OVERHEAD for part in parts)
            if shown and left < 0:
                break
            shown += parts
        return shown

    async def fit_found(self, results: list[SearchResult], query: str, share: int) -> list[SearchResult]:
        """Show what a search has found within a share of bytes."""
        if sum(_bytes(result["content"]) + _OVERHEAD for result in results) <= share:
            return results
        return [SearchResult(**part) for part in await self.fit_results(results, query, share)]  # type: ignore[typeddict-item]

    async def _parts(self, result: JsonMapping, query: str, share: int) -> list[JsonObject]:
        """Keep a text, and return its beginning and the passages that fit."""
        url = result["url"]
        text = result["content"]
        if url not in self._texts or self._texts[url]["text"] != text:
            title = str(result.get("title") or url)
            self._texts[url] = self.new[url] = LongText(title=title, text=text)
        return await self.parts(url, query, share)

    async def parts(self, url: str, query: str, share: int) -> list[JsonObject]:
        """Return the beginning of a text, and the passages that fit a query, in the order of the text."""
        text = self._texts[url]["text"]
        beginning = Span(0, len(_cut(text, share // SHARE)))
        left = share - share // SHARE - 2 * _OVERHEAD
        spans = list[Span]()
        for span in await asyncio.to_thread(_best, text, query, MOST_PASSAGES):
            size = _bytes(text[span.begin : span.end]) + _OVERHEAD
            if span.begin >= beginning.end and size <= left:
                spans.append(span)
                left -= size
        head = self._part(url, beginning) | self._read_on(url, beginning.end)
        return [head, *(self._part(url, span) for span in sorted(spans))]

    def _read_on(self, url: str, position: int) -> JsonObject:
        return {"read_on": prompts.READ_ON.format(url=url, position=position)}

    def _part(self, url: str, span: Span) -> JsonObject:
        kept = self._texts[url]
        part = prompts.PARTS.format(begin=span.begin, end=span.end, characters=len(kept["text"]))
        content = kept["text"][span.begin : span.end].strip()
        return {"title": f"{kept['title']} ({part})", "url": part_url(url, span), "content": content}

    async def find(self, query: str) -> list[SearchResult]:
        """Return the passages of all texts that fit a query best."""
        best = (await self._best_of(self._texts, query))[:FOUND_AT_ONCE]
        return [SearchResult(**self._part(url, span)) for url, span in best]  # type: ignore[typeddict-item]

    def beside(self, search: Search | None) -> Search | None:
        """Return a search that finds passages of the texts beside what another one finds."""
        if not self:
            return search

        async def both(query: str) -> list[SearchResult]:
            found = await self.find(query)
            try:
                return found + (await search(query) if search else [])
            except SearchFailed:
                if not found:
                    raise
                return found

        return both

    def tool(self) -> BaseTool:
        """Return the tool that reads on in a text."""

        async def read_more(source: str, position: int = 0) -> tuple[str, str]:
            return json.dumps([self.read(source, position)], ensure_ascii=False), READ_ON

        return StructuredTool.from_function(
            coroutine=read_more,
            args_schema=ReadMore,
            description=prompts.READ_MORE,
            response_format="content_and_artifact",
            handle_tool_error=True,
        )

    def read(self, source: str, position: int) -> JsonObject:
        """Return the part of a text from a position on, as much as one step may show.

        Raises:
            ToolException: if there is no such text or position.
        """
        url = source if source in self._texts else source.rpartition("char=")[0][:-1]
        if url not in self._texts:
            raise ToolException(prompts.NO_TEXT.format(source=source[:200], names=", ".join(self._texts)))
        text = self._texts[url]["text"]
        if not 0 <= position < len(text):
            raise ToolException(prompts.AT_THE_END.format(characters=len(text)))
        longest = self._part(url, Span(len(text), len(text))) | self._read_on(url, len(text))
        most = self.most_shown - _beside_content(longest) - _OVERHEAD
        span = Span(position, position + len(_cut(text[position : position + MOST_SHOWN], most)))
        more = self._read_on(url, span.end) if span.end < len(text) else {}
        return self._part(url, span) | more


READ_ON = "read on"
"""The artifact of what `read_more` has read."""


def is_read_on(reply: ToolMessage) -> bool:
    """Tell whether `read_more` has read a result, which may have lain in a checkpoint since."""
    return isinstance(reply.artifact, str) and reply.artifact == READ_ON


class ReadMore(BaseModel):
    """Read on in a long text."""

    source: str = Field(description=prompts.SOURCE)
    position: int = Field(default=0, description=prompts.POSITION)


def _best(text: str, query: str, most: int) -> list[Span]:
    return passages_of(text).best(query, most)


def _size(reply: ToolMessage) -> int:
    return len(reply.text.encode(errors="surrogatepass"))


def _bytes(text: str) -> int:
    """Return how many bytes a text has as it is shown: in JSON, where a quotation mark or the end of a line has two."""
    return len(json.dumps(text, ensure_ascii=False).encode(errors="surrogatepass")) - 2


def _beside_content(result: JsonMapping) -> int:
    return len(json.dumps({**result, "content": ""}, ensure_ascii=False).encode(errors="surrogatepass"))


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text, of so many bytes at most."""
    text = text[: max(most, 0)]
    ends = range(1, len(text) + 1)
    return text[: bisect_right(ends, most, key=lambda end: _bytes(text[:end]))]
