"""An agent of a town in one step of the clock: what it remembers, and what it makes of it.

A step only reads the memories in the store. What it adds, and what it has accessed, goes into the state and is written
to the store when the next step begins, under ids that follow from the step: a step that was killed leaves no trace, and
one that is done again does the same.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from reflective_agents.memory.scoring import Ranking
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.nodes.asking.chat import ask
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.memo import at_once
from reflective_agents.nodes.remembering.remember import open_memory, reflect
from reflective_agents.nodes.step import Step
from reflective_agents.state.errors import InvalidOutput
from reflective_agents.state.memories import BEGINNING, Kind, Mark, Memory, new_memory
from reflective_agents.state.settings.town import Persona, Town, TownContext, clock_of, minutes_of
from reflective_agents.town.state import Found, How, Mind, Planned, Remembered, Retrieval, TownState

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
    """

    def __init__(self, state: TownState, step: Step[TownContext], place: int, stream: MemoryStream) -> None:
        self.town = Town.model_validate(state["town"])
        self.persona: Persona = self.town.agents[place]
        self.told: str = "" if place else state["told"]
        self.step = step
        self.number: int = state["ticks"] + 1 if state["minds"] else 0
        self.minute = minutes_of(self.town.begins) + max(self.number - 1, 0) * step.context.minutes
        self.mind: Mind = state["minds"][place].copy() if state["minds"] else _asleep(self.persona)
        self.known: list[Remembered] = [one for one in state["remembered"] if one["agent"] == self.name]
        self.memories: list[Remembered] = []
        self.retrievals: list[Retrieval] = []
        self.stream = stream
        self.at_a_loss = ""

    @property
    def name(self) -> str:
        """Its name."""
        return self.persona.name

    @property
    def seconds(self) -> float:
        """The time on the clock of its memory."""
        return 60.0 * self.minute

    @property
    def who(self) -> str:
        """Who it is, with what its inner voice says today."""
        return f"{self.persona.about}\nToday: {self.told}" if self.told else self.persona.about

    @property
    def places(self) -> tuple[str, ...]:
        """The names of the places of the town."""
        return tuple(place.name for place in self.town.places)

    def scene(self, *parts: str, memories: Sequence[Memory] = ()) -> str:
        """Describe what the agent knows now, as quoted text: itself, the map, the time, `parts` and its memories."""
        places = "\n".join(f"{place.name}: {place.about}" for place in self.town.places)
        known = [
            quoted("agent", self.who, name=self.name),
            quoted("map", places),
            quoted("time", clock_of(self.minute)),
            *parts,
            *(self._quoted(number, one) for number, one in enumerate(memories, 1)),
        ]
        return "\n".join(part for part in known if part)

    def _quoted(self, number: int, memory: Memory) -> str:
        how = next((one["how"] for one in self.known if one["id"] == memory["id"]), memory["kind"])
        return quoted("memory", memory["text"], number=number, kind=how, time=clock_of(memory["created"] // 60))

    async def recall(self, query: str) -> list[Memory]:
        """Retrieve the agent's memories for a query, most fitting first."""
        context = self.step.context
        ranking = Ranking(context.recency, context.importance, context.relevance)
        scored = await self.stream.retrieve(query, k=context.retrieved, now=self.seconds, ranking=ranking, renew=False)
        found = [
            Found(
                id=one.memory["id"],
                score=one.score,
                recency=one.recency,
                importance=one.importance,
                relevance=one.relevance,
            )
            for one in scored
        ]
        self.retrievals.append(
            Retrieval(agent=self.name, step=self.number, time=clock_of(self.minute), query=query, found=found)
        )
        return [one.memory for one in scored]

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
        made = Remembered(**memory, agent=self.name, step=self.number, how=how, source=source, talk=talk)
        self.memories.append(made)

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
            self.at_a_loss = str(error)
            self.step.emit("at_a_loss", agent=self.name, reason=self.at_a_loss)
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
                identity=self.who,
                threshold=context.reflect_at,
                ranking=Ranking(context.recency, context.importance, context.relevance),
            )
        except InvalidOutput as error:
            self.step.emit("at_a_loss", agent=self.name, reason=str(error))
            return
        mark = list(await self.stream.reflected())
        if mark != self.mind["mark"]:
            self.mind["mark"] = mark
            made = [one for one in await self.stream.latest(100, _INSIGHTS) if one["created"] == self.seconds]
            self.memories += [
                Remembered(**one, agent=self.name, step=self.number, how="reflection", source="", talk=0)
                for one in made
            ]


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
    return await at_once([_open(state, step, place, name) for place, name in enumerate(names)])


async def _open(state: TownState, step: Step[TownContext], place: int, name: str) -> Agent:
    context = step.context
    stream = await open_memory(
        step, owner_of(state["run_id"], name), context.embeddings, max_memories=context.max_memories
    )
    agent = Agent(state, step, place, stream)
    if not agent.known:
        return agent
    accessed = _accessed(name, state["retrievals"])
    if await stream.count() == 0:
        renewed = [{**one, "accessed": accessed.get(one["id"], one["accessed"])} for one in agent.known]
        await stream.add(cast(list[Memory], renewed), reflected=Mark(*agent.mind["mark"]))
        return agent
    await stream.add([one for one in agent.known if one["step"] == state["ticks"]])
    await stream.renew(_accessed(name, [one for one in state["retrievals"] if one["step"] == state["ticks"]]))
    return agent


def _accessed(name: str, retrievals: Sequence[Retrieval]) -> dict[str, float]:
    """Return when an agent last accessed its memories."""
    own = [one for one in retrievals if one["agent"] == name]
    return {found["id"]: 60.0 * minutes_of(one["time"]) for one in own for found in one["found"]}
