"""An agent of a town in one step of the clock: what it remembers, and what it makes of it.

A step only reads the memories in the store. What it adds, and what it has accessed, goes into the state and is written
to the store when the next step begins, under ids that follow from the step: a step that was killed leaves no trace, and
one that is done again does the same.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from reflective_agents.memory import rankings
from reflective_agents.nodes.asking.chat import ask
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.memo import at_once
from reflective_agents.nodes.remembering.remember import open_memory, reflect
from reflective_agents.nodes.step import Step
from reflective_agents.state.errors import InvalidOutput
from reflective_agents.state.memories import BEGINNING, Kind, Mark, Memory, new_memory
from reflective_agents.state.settings.town import Persona, Town, TownContext, clock_of, minutes_of
from reflective_agents.text.extract import terms
from reflective_agents.town.state import Found, How, Mind, Planned, Remembered, Retrieval, TownState

if TYPE_CHECKING:
    from reflective_agents.memory.rankings.base import Ranking
    from reflective_agents.memory.stream import MemoryStream, Scored

F = TypeVar("F", bound=BaseModel)
_INSIGHTS: tuple[Kind, ...] = ("reflection",)
EVERYDAY = 1.0
"""Importance of what nobody has called important."""


class Agent:
    """One agent in one step.

    Attributes:
        persona: Who it is.
        mind: What it is doing, and its plans; changed as the step goes on.
        minute: The time, in minutes of the day.
        memories: What it remembers of this step, in order.
        retrievals: What it has retrieved in this step.
        news: The words of the news that its inner voice has told it; empty if there is none, or it is awake already.
    """

    def __init__(self, state: TownState, step: Step[TownContext], index: int, stream: "MemoryStream") -> None:
        self.town = Town.model_validate(state["town"])
        self.persona: Persona = self.town.agents[index]
        self.inner_voice: str = "" if index else state["told"]
        self.step = step
        self.number: int = state["ticks"] + 1 if state["minds"] else 0
        self.minute = minutes_of(self.town.begins) + max(self.number - 1, 0) * step.context.minutes
        self.mind: Mind = state["minds"][index].copy() if state["minds"] else _asleep(self.persona)
        self.earlier: list[Remembered] = [memory for memory in state["remembered"] if memory["agent"] == self.name]
        self.memories: list[Remembered] = []
        self.retrievals: list[Retrieval] = []
        self.stream = stream
        self.failure = ""
        self.news = ""

    @property
    def name(self) -> str:
        """Its name."""
        return self.persona.name

    async def has_own_news(self) -> bool:
        """Tell whether its inner voice says other news than the town's own, of which the words are known."""
        if self.step.context.fact or not (self.inner_voice and self.town.fact):
            return False
        return not await asyncio.to_thread(is_about, self.town.fact, self.inner_voice)

    @property
    def seconds(self) -> float:
        """The time on the clock of its memory."""
        return 60.0 * self.minute

    @property
    def description(self) -> str:
        """Who it is, with what its inner voice says today."""
        return f"{self.persona.about}\nToday: {self.inner_voice}" if self.inner_voice else self.persona.about

    @property
    def places(self) -> tuple[str, ...]:
        """The names of the places of the town."""
        return tuple(place.name for place in self.town.places)

    def scene(self, *parts: str, memories: Sequence[Memory] = ()) -> str:
        """Describe what the agent knows now, as quoted text: itself, the map, the time, `parts` and its memories."""
        places = [f"{place.name}: {place.about}" for place in self.town.places]
        remembered = [self._quoted(number, memory) for number, memory in enumerate(memories, 1)]
        knowledge = [
            quoted("agent", self.description, name=self.name),
            quoted("map", "\n".join(places)),
            quoted("time", clock_of(self.minute)),
            *parts,
            *remembered,
        ]
        return "\n".join(part for part in knowledge if part)

    def _quoted(self, number: int, memory: Memory) -> str:
        how: str = memory["kind"]
        for earlier in self.earlier:
            if earlier["id"] == memory["id"]:
                how = earlier["how"]
                break
        return quoted("memory", memory["text"], number=number, kind=how, time=clock_of(memory["created"] // 60))

    async def recall(self, query: str) -> list[Memory]:
        """Retrieve the agent's memories for a query, most fitting first."""
        most, ranking = self.step.context.retrieved, self._ranking()
        scored = await self.stream.retrieve(query, k=most, now=self.seconds, ranking=ranking, renew=False)
        found = list(map(_found, scored))
        self.retrievals.append(
            Retrieval(agent=self.name, step=self.number, time=clock_of(self.minute), query=query, found=found)
        )
        return [each.memory for each in scored]

    def _ranking(self) -> "Ranking":
        context = self.step.context
        weights = {"recency": context.recency, "importance": context.importance, "relevance": context.relevance}
        return rankings.named("paper", **weights)

    def remember(
        self,
        text: str,
        how: How,
        *,
        kind: Kind = "observation",
        importance: float = EVERYDAY,
        source: str = "",
        talk: int = 0,
    ) -> None:
        """Remember something from the next step on."""
        ordinal = len(self.memories)
        memory = new_memory(
            text,
            created=self.seconds + (self.number > 0) + ordinal / 100,  # after what was remembered on waking
            kind=kind,
            importance=importance,
            key=f"{self.name} {self.number} {ordinal}",
        )
        remembered = Remembered(**memory, agent=self.name, step=self.number, how=how, source=source, talk=talk)
        self.memories.append(remembered)

    async def ask(
        self, prompt: Sequence[BaseMessage], form: type[F], check: Callable[[F], str | None] = lambda _: None
    ) -> F | None:
        """Ask the model to fill in a form as this agent.

        Returns:
            None if nothing that it says fits: the agent makes do without, and the day goes on.
        """
        try:
            return await ask(self.step, self.step.context.model, prompt, form, check)
        except InvalidOutput as error:
            self.failure = str(error)
            self.step.emit("at_a_loss", agent=self.name, reason=self.failure)
            return None

    async def reflect(self) -> None:
        """Reflect if that is due. The insights go into the store at once, all or none."""
        context = self.step.context
        try:
            await reflect(
                self.step,
                context.model,
                self.stream,
                now=self.seconds,
                identity=self.description,
                threshold=context.reflect_at,
                ranking=self._ranking(),
            )
        except InvalidOutput as error:
            self.step.emit("at_a_loss", agent=self.name, reason=str(error))
            return
        mark = list(await self.stream.reflected())
        if mark != self.mind["mark"]:
            self.mind["mark"] = mark
            for memory in await self.stream.latest(100, _INSIGHTS):
                if memory["created"] == self.seconds:
                    insight = Remembered(
                        **memory, agent=self.name, step=self.number, how="reflection", source="", talk=0
                    )
                    self.memories.append(insight)


def _found(scored: "Scored") -> Found:
    return Found(
        id=scored.memory["id"],
        score=scored.score,
        recency=scored.recency,
        importance=scored.importance,
        relevance=scored.relevance,
    )


def is_about(fact: str, text: str) -> bool:
    """Tell whether a text holds all words of a fact, in whatever form and order. It blocks: call it from a thread."""
    words = set(terms(fact))
    return bool(words) and words <= set(terms(text))


def _asleep(persona: Persona) -> Mind:
    none: list[Planned] = []
    return Mind(
        agent=persona.name,
        place=persona.home,
        doing="sleeps",
        strokes=none,
        hours=none,
        actions=none,
        seen={},
        talked={},
        mark=list(BEGINNING),
    )


def owner_of(run_id: str, name: str) -> str:
    """Return the owner of an agent's memories in the store."""
    return f"town {run_id} {name}"


async def open_agents(state: TownState, step: Step[TownContext]) -> list[Agent]:
    """Open all agents of the town, with what they remember of the last step written to their memories.

    Where the store holds nothing of an agent, as after a restart without one, its memories are made anew of the state.
    """
    names = [agent["name"] for agent in state["town"]["agents"]]
    opening = [_open(state, step, index, name) for index, name in enumerate(names)]
    return await at_once(opening)


async def _open(state: TownState, step: Step[TownContext], index: int, name: str) -> Agent:
    context = step.context
    stream = await open_memory(
        step, owner_of(state["run_id"], name), context.embeddings, max_memories=context.max_memories
    )
    agent = Agent(state, step, index, stream)
    if not agent.earlier:
        return agent
    accessed = _accessed(name, state["retrievals"])
    if await stream.count() == 0:
        # As it was: when a memory was last accessed counts for its recency.
        renewed = [{**each, "accessed": accessed.get(each["id"], each["accessed"])} for each in agent.earlier]
        await stream.add(cast(list[Memory], renewed), reflected=Mark(*agent.mind["mark"]))
        return agent
    made = [memory for memory in agent.earlier if memory["step"] == state["ticks"]]
    await stream.add(made)
    latest = [retrieval for retrieval in state["retrievals"] if retrieval["step"] == state["ticks"]]
    await stream.renew(_accessed(name, latest))
    return agent


def _accessed(name: str, retrievals: Sequence[Retrieval]) -> dict[str, float]:
    """Return when an agent last accessed its memories."""
    accessed = {}
    for retrieval in retrievals:
        if retrieval["agent"] == name:
            for found in retrieval["found"]:
                accessed[found["id"]] = 60.0 * minutes_of(retrieval["time"])
    return accessed
