"""The report of a day: the agents with their memories, who knows of the news, and a summary in words."""

from collections.abc import Mapping, Sequence

from reflective_agents.state.settings.town import Town, clock_of, minutes_of
from reflective_agents.text.extract import terms
from reflective_agents.town.agent import Agent
from reflective_agents.town.state import Conversation, Knows, Mind, Moment, Portrait, Remembered, TownState

SHOWN = 12
"""Lines of an agent's day in the summary."""


def moments(agents: Sequence[Agent], talks: Sequence[Conversation]) -> list[Moment]:
    """List the rows that a step adds to the timeline."""
    talking = {name: talk["talk"] for talk in talks for name in talk["agents"]}
    return [
        Moment(
            step=agent.number,
            time=clock_of(agent.minute),
            agent=agent.name,
            place=agent.mind["place"],
            doing=agent.mind["doing"],
            talk=talking.get(agent.name, 0),
        )
        for agent in agents
    ]


async def portrait(agent: Agent) -> Portrait:
    """Portray an agent with everything in its memory."""
    log = {one["id"]: one for one in agent.known}
    memories: list[Remembered] = []
    async for memory in agent.stream.everything():
        noted = log.get(memory["id"])
        if noted:
            memories.append({**noted, **memory})
    return _portrait(agent.town, agent.mind, memories)


def portraits_of(town: Town, minds: Sequence[Mind], remembered: Sequence[Remembered]) -> list[Portrait]:
    """Portray the agents from the state alone, where their memories cannot be read."""
    return [_portrait(town, mind, [one for one in remembered if one["agent"] == mind["agent"]]) for mind in minds]


def _portrait(town: Town, mind: Mind, memories: list[Remembered]) -> Portrait:
    about = next(persona.about for persona in town.agents if persona.name == mind["agent"])
    return Portrait(name=mind["agent"], about=about, place=mind["place"], plan=mind["strokes"], memories=memories)


def spread(portraits: Sequence[Portrait], fact: str) -> list[Knows]:
    """Return who knows a fact, measured from memories: the first memory of each agent that holds all its words.

    The way goes back from whom a memory came to that agent's own first memory of the fact, and so on.
    """
    wanted = set(terms(fact))
    first: dict[str, Remembered] = {}
    for portrait in portraits:
        showing = [one for one in portrait["memories"] if wanted and wanted <= set(terms(one["text"]))]
        if showing:
            first[portrait["name"]] = min(showing, key=lambda one: (one["created"], one["id"]))
    return [_knows(portrait["name"], first) for portrait in portraits]


def _knows(name: str, first: Mapping[str, Remembered]) -> Knows:
    memory = first.get(name)
    if memory is None:
        return Knows(agent=name, knows=False, memory="", text="", time="", way=[])
    way = [name]
    while (source := first[way[0]]["source"]) in first and source not in way:
        way.insert(0, source)
    time = clock_of(memory["created"] // 60)
    return Knows(agent=name, knows=True, memory=memory["id"], text=memory["text"], time=time, way=way)


def summary(state: TownState, knows: Sequence[Knows], fact: str) -> str:
    """Summarize the day: what the first agent was told, what each did, who talked, and who knows the news."""
    town, day = Town.model_validate(state["town"]), state["day"]
    first, last = day[0], day[-1]
    lines = [
        f"{town.name}, {first['time']} to {last['time']}: {len(town.agents)} agents, {last['step']} steps, "
        f"{len(state['conversations'])} conversations.",
        f"{town.agents[0].name} was told: {state['told']}",
    ]
    lines += [f"{persona.name}: {_day_of(persona.name, day)}" for persona in town.agents]
    if fact:
        told = [f"{' > '.join(one['way'])} ({one['time']})" for one in knows if one["knows"]]
        count = sum(one["knows"] for one in knows)
        lines.append(f"{count} of {len(knows)} know about {fact!r}: {'; '.join(told) or 'nobody'}.")
    return "\n".join(lines)


def _day_of(name: str, day: Sequence[Moment]) -> str:
    own = [one for one in day if one["agent"] == name]
    changes = [one for before, one in zip([None, *own], own, strict=False) if not before or _differs(before, one)]
    told = [f"{one['time']} {one['doing']}" for one in changes[:SHOWN]]
    return "; ".join([*told, f"and {len(changes) - SHOWN} more"] if len(changes) > SHOWN else told) + "."


def _differs(one: Moment, other: Moment) -> bool:
    return (one["doing"], one["place"]) != (other["doing"], other["place"])


def is_over(town: Town, minute: int) -> bool:
    """Tell whether the day has ended at a time."""
    return minute >= minutes_of(town.ends)
