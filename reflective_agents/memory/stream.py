"""The memory stream (Generative Agents, section 4.1) of one agent, kept in LangGraph's store."""

import asyncio
import math
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import chain
from typing import NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, Item, PutOp
from numpy.typing import NDArray

from reflective_agents.memory.entries import Entry, Match
from reflective_agents.memory.index import Index
from reflective_agents.memory.layout import entry_of, memory_of, read, rounded, search, write
from reflective_agents.memory.postings import pack
from reflective_agents.memory.queries import Query, prepare, search_store
from reflective_agents.memory.rankings import hybrid
from reflective_agents.memory.rankings.base import Ranking
from reflective_agents.memory.replica import replica_of
from reflective_agents.memory.scoring import Halves
from reflective_agents.models.embeddings import embed, get_embeddings, meaning_of, name_of
from reflective_agents.models.meter import Meter
from reflective_agents.state.errors import Misuse
from reflective_agents.state.memories import KINDS, Kind, Mark, Memory, new_memory
from reflective_agents.telemetry import memory_operation
from reflective_agents.text.stems import stems

AT_ONCE = 500
"""Memories that are written, or read, in one request to the store."""
AT_ONCE_DELETED = 10_000
"""Memories, or items, that are deleted in one request."""


class Scored(NamedTuple):
    """A memory that was retrieved, as it was found, with its score and the three normalised terms, all in 0..1."""

    memory: Memory
    score: float
    recency: float
    importance: float
    relevance: float


class Change(NamedTuple):
    """What adding memories has changed: the ids that are new, and those forgotten to keep to the size."""

    added: list[str]
    forgotten: list[str]


class Pending(NamedTuple):
    """What was not reflected on yet: the importance of these observations, and the place of the latest of them."""

    importance: float
    latest: Mark


class MemoryStream:
    """The memories of one agent.

        stream = await MemoryStream.open(InMemoryStore(), "anna")
        await stream.add([new_memory("Bob bakes bread.", created=0.0, importance=3)])
        for found in await stream.retrieve("Who bakes?", k=10, now=3600.0):
            print(found.memory["text"], found.score)

    `owner` is the text that it was opened with.

    The store may be any of LangGraph's: in memory, SQLite, Postgres, or that of the development server. What one call
    adds or changes is written at once, so that a kill leaves all of it or nothing (up to 500 memories a call; more are
    written in several steps). Any number of processes may use one memory: nothing is lost, and each sees what the
    others have written at its next call. A stream belongs to the event loop that it was opened in.

    Retrieval compares all memories, which is what normalising over the candidates needs: the vectors are held in this
    process, a byte for each of their numbers. An index of the store's own gets the texts, and only rankings that search
    the store (`memory.rankings.store`) ask it.
    """

    def __init__(
        self, store: BaseStore, owner: str, embeddings: Embeddings, meter: Meter | None, max_memories: int
    ) -> None:
        self.owner = owner
        self._store = store
        self._replica = replica_of(store, owner)
        self._embeddings = embeddings
        self._meter = meter
        self._max_memories = max_memories

    @classmethod
    async def open(
        cls,
        store: BaseStore,
        owner: str,
        embeddings: str | Embeddings | None = None,
        *,
        meter: Meter | None = None,
        max_memories: int = 100_000,
    ) -> "MemoryStream":
        """Open an agent's memory; a new one needs no preparation. Cheap where the process has opened it before.

        Args:
            store: Where it is kept, set up already.
            owner: Whose it is: any text. Memories of different owners never mix.
            embeddings: What makes vectors of texts, as for `models.embeddings.get_embeddings`.
            meter: The limits of the run, in which requests to an embedding server count as calls. Default: none.
            max_memories: Most memories kept, from 1. Beyond that some are forgotten: never before what rests on them,
                and of the others those first whose recency and importance are lowest (see `Index.trim`).

        Raises:
            Misuse: if the memory was made with other embeddings, or the owner or the size is impossible.
            UnknownModel, MissingKey: as `models.embeddings.get_embeddings`.
        """
        if max_memories < 1:
            raise Misuse(f"max_memories is 1 or more, not {max_memories}")
        stream = cls(store, owner, get_embeddings(embeddings), meter, max_memories)
        async with stream._current("open"):
            return stream

    async def count(self) -> int:
        """Count the memories, including the archive."""
        async with self._current("count") as index:
            return len(index)

    async def add(self, memories: Sequence[Memory], *, reflected: Mark | None = None) -> Change:
        """Add memories; those whose ids are known already are left as they are.

        A reflection puts the evidence it rests on into the archive, unless that is a reflection too.

        Args:
            memories: As `state.memories.new_memory` makes them.
            reflected: If these are the insights of a reflection, up to where it went (`Pending.latest`).

        Raises:
            ModelFailed, LimitReached: if the vectors cannot be had; then nothing is added.
        """
        async with self._current("look_up") as index:
            by_id = {memory["id"]: memory for memory in memories if memory["id"] not in index}
        new = list(by_id.values())
        texts = [indexed(memory) for memory in new]
        vectors = rounded(await self._vectors(texts))
        words = await asyncio.to_thread(lambda: [pack(memory) for memory in stems(texts)])
        change = Change([], [])
        start, done = 0, False
        while not done:
            end = start + AT_ONCE
            last = reflected if end >= len(new) else None
            added, forgotten = await self._write(new[start:end], vectors[start:end], words[start:end], last)
            change.added.extend(added)
            change.forgotten.extend(forgotten)
            done = end >= len(new) and len(forgotten) < AT_ONCE_DELETED
            start = end
        return change

    async def _write(self, memories: list[Memory], vectors: Halves, words: list[bytes], mark: Mark | None) -> Change:
        layout = self._replica.layout
        async with self._current("store") as index:
            _check_length(index, vectors.shape[1] if len(vectors) else None)
            rows = [row for row, memory in enumerate(memories) if memory["id"] not in index]
            new = [memories[row] for row in rows]
            changes: list[PutOp] = []
            entries: list[Entry] = []
            for row in rows:
                changes += layout.put(memories[row], vectors[row], words[row])
                entries.append(entry_of(memories[row]["id"], memories[row], words[row]))
            index.add(entries, vectors[rows])
            accessed = {memory["id"]: memory["accessed"] for memory in new}
            changes += layout.renew(index.renew(accessed))
            forgotten = index.trim(max(self._max_memories, len(index) - AT_ONCE_DELETED))
            changes += layout.delete(forgotten)
            added = [memory["id"] for memory in new]
            touched = [*added, *forgotten]
            if mark is not None and mark > self._replica.mark:
                self._replica.mark = mark
                changes.append(write(layout.part("mark"), mark.id, {"created": mark.created}))
                touched.append(mark.id)
            if new and self._replica.about is None:
                self._replica.about = name_of(self._embeddings)
                changes.append(write(layout.part("about"), "embeddings", {"name": self._replica.about}))
            if changes:
                await self._replica.commit(self._store, changes, touched)
        return Change(added, forgotten)

    async def get(self, ids: Iterable[str]) -> list[Memory]:
        """Read the memories with these ids, in their order; those that do not exist are left out."""
        async with self._current("get") as index:
            return await self._read(index, ids)

    async def latest(self, count: int, kinds: Collection[Kind] = KINDS, *, archived: bool = False) -> list[Memory]:
        """Return the latest memories, by creation, the latest last; those in the archive only if asked for."""
        async with self._current("latest") as index:
            return await self._read(index, index.latest(count, kinds, archived=archived))

    async def facts(self, count: int) -> list[Memory]:
        """Return the foremost facts that still hold: those of the profile, then the most important, then the latest."""
        async with self._current("facts") as index:
            return await self._read(index, index.facts(count))

    async def everything(self) -> AsyncIterator[Memory]:
        """Yield all memories, including the archive, by creation; those added meanwhile are not among them."""
        async with self._current("list") as index:
            ids = index.chronological()
        for start in range(0, len(ids), AT_ONCE):
            for memory in await self.get(ids[start : start + AT_ONCE]):
                yield memory

    async def retrieve(
        self,
        query: Query,
        *,
        k: int,
        now: float,
        ranking: Ranking = hybrid.RANKING,
        renew: bool = True,
        kinds: Collection[Kind] = KINDS,
        apart_from: str = "",
        facts: int = 0,
    ) -> list[Scored]:
        """Retrieve the memories that fit best, and the foremost facts, best first.

        Args:
            query: What is looked for: a text, or its vector, which says nothing of words, names and dates.
            k: How many at most.
            now: Seconds of the agent's clock.
            ranking: How they are ranked: a value of `memory.rankings`.
            renew: Whether this is an access, so that what is found counts as accessed now.
            kinds: What kinds of memories.
            apart_from: A conversation whose turns are passed over.
            facts: How many of the facts that still hold are found whatever fits better: those of the profile, then the
                most important, then the latest.

        Raises:
            Misuse: if the weights, the time or the vector are impossible, or the store has no index and is to be asked.
            ModelFailed, LimitReached: if the vector of the query cannot be had.
        """
        (found,) = await self.retrieve_each(
            [query], k=k, now=now, ranking=ranking, renew=renew, kinds=kinds, apart_from=apart_from, facts=facts
        )
        return found

    async def retrieve_each(
        self,
        queries: Sequence[Query],
        *,
        k: int,
        now: float,
        ranking: Ranking = hybrid.RANKING,
        renew: bool = True,
        kinds: Collection[Kind] = KINDS,
        apart_from: str = "",
        facts: int = 0,
    ) -> list[list[Scored]]:
        """Retrieve for several queries what `retrieve` does for each: they are embedded together and ranked at the
        same time, and what any of them finds is read once.

        Args:
            queries: What is looked for: texts or vectors.
            k: How many at most for each.
            now: Seconds of the agent's clock.
            ranking: As for `retrieve`, and so are the others.
            renew: Whether this is an access.
            kinds: What kinds of memories.
            apart_from: A conversation whose turns are passed over.
            facts: How many facts are found whatever fits better.

        Returns:
            For each query, in their order, what fits best.

        Raises:
            Misuse, ModelFailed, LimitReached: as `retrieve`.
        """
        if not math.isfinite(now):
            raise Misuse(f"the time is a finite number of seconds, not {now}")
        ranking.check()
        prepared = await prepare(queries, self._vectors, meaning_of(self._embeddings), now)
        if ranking.searches_store:
            text = self._replica.layout.part("text")
            found = await asyncio.gather(*(search_store(self._store, text, query) for query in queries))
            prepared = [query._replace(found=fitting) for query, fitting in zip(prepared, found, strict=True)]
        async with self._current("retrieve") as index:
            for query in prepared:
                _check_length(index, len(query.vector))
            retrievals = [index.retrieve(query, k, now, ranking, kinds, apart_from, facts) for query in prepared]
            best = await asyncio.gather(*retrievals)
            ids = list(dict.fromkeys(match.id for match in chain.from_iterable(best)))
            read = await (self._access(index, ids, now) if renew else self._read(index, ids))
        memories = {memory["id"]: memory for memory in read}
        return [_scored(matches, memories) for matches in best]

    async def renew(self, accessed: Mapping[str, float]) -> None:
        """Set when memories were last accessed, never back. Ids that do not exist are passed over.

        Args:
            accessed: Seconds of the agent's clock, for each id.

        Raises:
            Misuse: if a time is not finite.
        """
        if not all(map(math.isfinite, accessed.values())):
            raise Misuse("the time of an access is a finite number of seconds")
        async with self._current("renew") as index:
            await self._renew(index, accessed)

    async def _renew(self, index: Index, accessed: Mapping[str, float]) -> None:
        renewed = index.renew(accessed)
        if renewed:
            await self._replica.commit(self._store, self._replica.layout.renew(renewed), list(renewed))

    async def _access(self, index: Index, ids: Collection[str], now: float) -> list[Memory]:
        """Read memories as they were before this access, and set when they were accessed."""
        memories = await self._read(index, ids)
        # Not in one request with the reading: where two processes write, SQLite refuses a write that follows a read.
        await self._renew(index, dict.fromkeys(ids, now))
        return memories

    async def evidence(self, memory_id: str) -> list[Memory]:
        """Return what a memory rests on, level by level down to the leaves, without repetitions or deleted ones."""
        async with self._current("evidence") as index:
            return await self._read(index, index.evidence(memory_id))

    async def derived(self, memory_id: str) -> list[Memory]:
        """Return what rests on a memory, up to the top, level by level, without repetitions."""
        async with self._current("derived") as index:
            return await self._read(index, index.derived(memory_id))

    async def pending(self) -> Pending:
        """Return what was observed since the last reflection."""
        async with self._current("pending") as index:
            return Pending(*index.pending(self._replica.mark))

    async def reflected(self) -> Mark:
        """Return up to where the observations were reflected on; `state.memories.BEGINNING` if they never were."""
        async with self._current("reflected"):
            return self._replica.mark

    async def edit(self, memory_id: str, text: str) -> Memory:
        """Give a memory another text; its id, its time, and what it rests on and what rests on it stay.

        Raises:
            Misuse: if there is no such memory, or the text is empty.
            ModelFailed, LimitReached: if the vector cannot be had; then nothing is changed.
        """
        existing = await self.get([memory_id])
        if not existing:
            raise Misuse(f"there is no memory {memory_id} here")
        edited: Memory = {**existing[0], "text": new_memory(text, created=0.0)["text"]}
        vectors = rounded(await self._vectors([indexed(edited)]))
        (counted,) = await asyncio.to_thread(stems, [indexed(edited)])
        async with self._current("edit") as index:
            if memory_id not in index:  # deleted while its new vector was made
                raise Misuse(f"there is no memory {memory_id} here")
            index.remove([memory_id])
            index.add([entry_of(memory_id, edited, pack(counted))], vectors)
            index.renew({memory_id: edited["accessed"]})
            await self._replica.commit(
                self._store, self._replica.layout.put(edited, vectors[0], pack(counted)), [memory_id]
            )
            (memory,) = await self._read(index, [memory_id])
        return memory

    async def delete(self, memory_id: str) -> list[Memory]:
        """Delete a memory for good, and return what was derived from it, which stays. Evidence that only it kept in
        the archive comes out of it."""
        async with self._current("delete") as index:
            derived = index.derived(memory_id)
            if memory_id in index:
                index.remove([memory_id])
                await self._replica.commit(self._store, self._replica.layout.delete([memory_id]), [memory_id])
            return await self._read(index, derived)

    async def forget_all(self) -> None:
        """Delete everything that is stored for this owner."""
        root = self._replica.layout.root
        with memory_operation("forget_all", namespace=self.owner):
            async with self._replica.current(self._store):
                while items := await search(self._store, root, AT_ONCE_DELETED):
                    await self._store.abatch([write(item.namespace, item.key, None) for item in items])
                self._replica.begin_anew()

    @asynccontextmanager
    async def _current(self, operation: str) -> AsyncIterator[Index]:
        with memory_operation(operation, namespace=self.owner) as record:
            async with self._replica.current(self._store) as index:
                self._check_embeddings()
                yield index
                record.note(memories=len(index))

    def _check_embeddings(self) -> None:
        name, about = name_of(self._embeddings), self._replica.about
        if about not in (None, name):
            raise Misuse(
                f"this memory was made with the embeddings {about!r}, not {name!r}: name them "
                "(REFLECT_EMBEDDINGS), or export it and import it under another owner"
            )

    async def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return await embed(self._embeddings, texts, self._meter)

    async def _read(self, index: Index, ids: Iterable[str]) -> list[Memory]:
        existing = [memory_id for memory_id in ids if memory_id in index]
        items: list[Item | None] = []
        for start in range(0, len(existing), AT_ONCE):
            items += await read(self._store, self._replica.layout.get("text", existing[start : start + AT_ONCE]))
        return [memory_of(item.key, item.value, index) for item in items if item is not None]


def _scored(matches: Iterable[Match], memories: Mapping[str, Memory]) -> list[Scored]:
    """Return what was found with its scores; a memory that was deleted meanwhile is left out."""
    return [Scored(memories[match.id], *match[1:]) for match in matches if match.id in memories]


def _check_length(index: Index, length: int | None) -> None:
    if len(index) and length not in (None, index.dimensions):
        raise Misuse(f"a vector has {length} numbers, those of this memory {index.dimensions}")


def indexed(memory: Memory) -> str:
    """Return the text of a memory that is embedded and counted; in a conversation, with who said it and when."""
    speaker = memory.get("speaker")
    text = f"{speaker}: {memory['text']}" if speaker else memory["text"]
    if not memory.get("conversation"):
        return text
    return f"({datetime.fromtimestamp(memory['created'], UTC):%d %B %Y}) {text}"
