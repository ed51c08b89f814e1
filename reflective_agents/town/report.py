"""The report of a day: the agents with their memories, who knows of the news, and a summary in words."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from reflective_agents.state.outcome import pluralize
from reflective_agents.state.settings.town import Town, clock_of, minutes_of
from reflective_agents.town.agent import Agent, is_about
from reflective_agents.town.state import Conversation, Knows, Mind, Moment, Portrait, Remembered, TownState

SHOWN = 12
"""Lines of an agent's day in the summary."""


def moments(agents: Sequence[Agent], talks: Sequence[Conversation]) -> list[Moment]:
    """List the rows that a step adds to the timeline."""
    talking: dict[str, int] = {}
    for talk in talks:
        talking |= dict.fromkeys(talk["agents"], talk["talk"])
    rows: list[Moment] = []
    for agent in agents:
        row = Moment(
            step=agent.number,
            time=clock_of(agent.minute),
            agent=agent.name,
            place=agent.mind["place"],
            doing=agent.mind["doing"],
            talk=talking.get(agent.name, 0),
        )
        rows.append(row)
    return rows


async def portrait(agent: Agent) -> Portrait:
    """Portray an agent with everything in its memory."""
    log = {memory["id"]: memory for memory in agent.earlier}
    memories: list[Remembered] = []
    async for memory in agent.stream.everything():
        if memory["id"] in log:
            memories.append({**log[memory["id"]], **memory})
    return _portrait(agent.town, agent.mind, memories)


def portraits_of(town: Town, minds: Sequence[Mind], remembered: Sequence[Remembered]) -> list[Portrait]:
    """Portray the agents from the state alone, where their memories cannot be read."""
    portraits = []
    for mind in minds:
        memories = [memory for memory in remembered if memory["agent"] == mind["agent"]]
        portraits.append(_portrait(town, mind, memories))
    return portraits


def _portrait(town: Town, mind: Mind, memories: list[Remembered]) -> Portrait:
    about = next(persona.about for persona in town.agents if persona.name == mind["agent"])
    return Portrait(name=mind["agent"], about=about, place=mind["place"], plan=mind["strokes"], memories=memories)


def spread(portraits: Sequence[Portrait], fact: str) -> list[Knows]:
    """Return who knows a fact, measured from memories: the first memory of each agent that holds all its words.

    The way goes back from whom a memory came to that agent's own first memory of the fact, and so on.
    """
    first: dict[str, Remembered] = {}
    for portrait in portraits:
        showing = [memory for memory in portrait["memories"] if is_about(fact, memory["text"])]
        if showing:
            first[portrait["name"]] = min(showing, key=lambda memory: (memory["created"], memory["id"]))
    return [_knows(portrait["name"], first) for portrait in portraits]


def _knows(name: str, first: Mapping[str, Remembered]) -> Knows:
    memory = first.get(name)
    if memory is None:
        return Knows(agent=name, knows=False, memory="", text="", time="", way=[])
    way, source = [name], memory["source"]
    # Two agents may each have it from the other: the way must not go in a circle.
    while source in first and source not in way:
        way.insert(0, source)
        source = first[source]["source"]
    time = clock_of(memory["created"] // 60)
    return Knows(agent=name, knows=True, memory=memory["id"], text=memory["text"], time=time, way=way)


def summary(state: TownState, knows: Sequence[Knows], fact: str) -> str:
    """Summarize the day: what the first agent was told, what each did, who talked, and who knows the news."""
    town, day = Town.model_validate(state["town"]), state["day"]
    first, last = day[0], day[-1]
    lines = [
        f"{town.name}, {first['time']} to {last['time']}: {pluralize(len(town.agents), 'agent')}, "
        f"{pluralize(last['step'], 'step')}, {pluralize(len(state['conversations']), 'conversation')}.",
        f"{town.agents[0].name} was told: {state['told']}",
    ]
    lines += [f"{persona.name}: {_day_of(persona.name, day)}" for persona in town.agents]
    if fact:
        ways: list[str] = []
        for agent in knows:
            if agent["knows"]:
                ways.append(f"{' > '.join(agent['way'])} ({agent['time']})")
        lines.append(f"{len(ways)} of {len(knows)} know about {fact!r}: {'; '.join(ways) or 'nobody'}.")
    return "\n".join(lines)


def _day_of(name: str, day: Sequence[Moment]) -> str:
    rows = [moment for moment in day if moment["agent"] == name]
    stays = groupby(rows, key=lambda moment: (moment["doing"], moment["place"]))
    changes = [next(stay) for _, stay in stays]
    lines = [f"{moment['time']} {moment['doing']}" for moment in changes[:SHOWN]]
    if len(changes) > SHOWN:
        lines.append(f"and {len(changes) - SHOWN} more")
    return f"{'; '.join(lines)}."


def is_over(town: Town, minute: int) -> bool:
    """Tell whether the day has ended at a time."""
    return minute >= minutes_of(town.ends)
