"""How agents perceive each other, react, and talk (sections 4.3.1 and 4.3.2)."""

from collections.abc import Sequence
from typing import NamedTuple

from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.prompts import town as prompts
from reflective_agents.state.settings.town import clock_of
from reflective_agents.town.agent import EVERYDAY, Agent
from reflective_agents.town.forms import Reaction, Utterance, reaction_of
from reflective_agents.town.planning import appearance
from reflective_agents.town.state import Conversation, Line


class Wish(NamedTuple):
    """That one agent wants to talk to another, and what about."""

    agent: Agent
    other: Agent
    why: str


def company(agent: Agent, agents: Sequence[Agent]) -> list[Agent]:
    """List the other agents at the place of an agent."""
    return [other for other in agents if other is not agent and other.mind["place"] == agent.mind["place"]]


async def react(agent: Agent, others: Sequence[Agent]) -> Wish | None:
    """Perceive the others; where there is something new to see, decide whether to go on, change the action, or talk."""
    seen = {other.name: other.mind["doing"] for other in others}
    new = [other for other in others if agent.mind["seen"].get(other.name) != seen[other.name]]
    agent.mind["seen"] = seen
    if not new:
        return None
    memories = await agent.recall(f"{agent.mind['doing']}; {' and '.join(map(appearance, new))}")
    sights = [quoted("seen", appearance(other), name=other.name, talked=_since(agent, other)) for other in others]
    prompt = prompts.REACT.format_messages(scene=agent.scene(_doing(agent), *sights, memories=memories))
    form = reaction_of(tuple(seen))
    reaction = await agent.ask(prompt, form, _flaw)
    importance = reaction.importance if reaction else EVERYDAY
    for other in new:
        agent.remember(appearance(other), "seen", source=other.name, importance=importance)
    return _carry_out(agent, reaction, others) if reaction else None


def _carry_out(agent: Agent, reaction: Reaction, others: Sequence[Agent]) -> Wish | None:
    if reaction.choice == "talk":
        other = next(other for other in others if other.name == reaction.to)
        return Wish(agent, other, reaction.what) if may_talk(agent, other) else None
    if reaction.choice == "change":
        agent.mind["doing"] = reaction.what
        current, *later = agent.mind["actions"]
        agent.mind["actions"] = [{**current, "what": reaction.what}, *later]
        agent.remember(appearance(agent), "own", importance=reaction.importance)
    return None


def _flaw(reaction: Reaction) -> str | None:
    if reaction.choice == "talk" and not reaction.to:
        return "say in `to` whom you talk to"
    if reaction.choice == "change" and not reaction.what.strip():
        return "say in `what` what you do instead"
    return None


def may_talk(agent: Agent, other: Agent) -> bool:
    """Tell whether two agents last talked to each other long enough ago."""
    before = agent.mind["talked"].get(other.name)
    return before is None or agent.minute - before >= agent.step.context.talk_again


def _since(agent: Agent, other: Agent) -> str:
    before = agent.mind["talked"].get(other.name)
    return "not yet today" if before is None else f"at {clock_of(before)}"


def pairs(wishes: Sequence[Wish | None]) -> list[Wish]:
    """Decide who talks to whom in this step: wishes in the order of the agents, nobody in two conversations."""
    chosen: list[Wish] = []
    taken: set[str] = set()
    for wish in wishes:
        if wish and not {wish.agent.name, wish.other.name} & taken:
            taken |= {wish.agent.name, wish.other.name}
            chosen.append(wish)
    return chosen


async def converse(wish: Wish, number: int) -> Conversation:
    """Let two agents talk in turns; each remembers what was said, by itself and by the other. It ends when one is at a
    loss for words."""
    speaker, listener = wish.agent, wish.other
    lines: list[Line] = []
    # Both, before anything is said: neither begins another conversation with the other in this step.
    for agent, other in ((speaker, listener), (listener, speaker)):
        agent.mind["talked"] = {**agent.mind["talked"], other.name: agent.minute}
    for _ in range(speaker.step.context.max_turns):
        utterance = await _say(speaker, listener, wish.why, lines)
        if utterance is None:
            break
        lines.append(Line(agent=speaker.name, text=utterance.say))
        text = f'{speaker.name} said to {listener.name}: "{utterance.say}"'
        speaker.remember(text, "said", talk=number, importance=utterance.importance)
        listener.remember(text, "heard", source=speaker.name, talk=number, importance=utterance.importance)
        if utterance.ends:
            break
        speaker, listener = listener, speaker
    first = wish.agent
    return Conversation(
        talk=number,
        step=first.number,
        time=clock_of(first.minute),
        place=first.mind["place"],
        agents=[first.name, wish.other.name],
        why=wish.why,
        lines=lines,
    )


async def _say(speaker: Agent, listener: Agent, why: str, lines: Sequence[Line]) -> Utterance | None:
    about = lines[-1]["text"] if lines else why
    memories = await speaker.recall(f"{listener.name}: {about}")
    # Only the one who wished to talk knows why: that agent has every other turn.
    topic = [quoted("about", why)] if why and len(lines) % 2 == 0 else []
    spoken = [quoted("said", line["text"], by=line["agent"]) for line in lines]
    seen = quoted("seen", appearance(listener), name=listener.name)
    scene = speaker.scene(_doing(speaker), seen, *topic, *spoken, memories=memories)
    return await speaker.ask(prompts.SAY.format_messages(scene=scene), Utterance)


def _doing(agent: Agent) -> str:
    return quoted("doing", appearance(agent))
