"""How agents perceive each other, react, and talk (sections 4.3.1 and 4.3.2)."""

from collections.abc import Sequence
from typing import NamedTuple

from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.prompts import town as prompts
from reflective_agents.state.settings.town import clock_of
from reflective_agents.town.agent import EVERYDAY, Agent
from reflective_agents.town.forms import Reaction, Utterance, reaction_of
from reflective_agents.town.planning import told
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
    known = await agent.recall(f"{agent.mind['doing']}; {' and '.join(told(other) for other in new)}")
    sights = [quoted("seen", told(other), name=other.name, talked=_since(agent, other)) for other in others]
    prompt = prompts.REACT.format_messages(scene=agent.scene(_doing(agent), *sights, memories=known))
    form = reaction_of(tuple(other.name for other in others))
    made = await agent.ask(prompt, form, _flaw)
    for other in new:
        agent.remember(told(other), "seen", source=other.name, importance=made.importance if made else EVERYDAY)
    return _carry_out(agent, made, others) if made else None


def _carry_out(agent: Agent, made: Reaction, others: Sequence[Agent]) -> Wish | None:
    if made.choice == "talk":
        other = next(other for other in others if other.name == made.to)
        return Wish(agent, other, made.what) if may_talk(agent, other) else None
    if made.choice == "change":
        agent.mind["doing"] = made.what
        agent.mind["actions"] = [{**agent.mind["actions"][0], "what": made.what}, *agent.mind["actions"][1:]]
        agent.remember(told(agent), "own", importance=made.importance)
    return None


def _flaw(made: Reaction) -> str | None:
    if made.choice == "talk" and not made.to:
        return "say in `to` whom you talk to"
    return "say in `what` what you do instead" if made.choice == "change" and not made.what.strip() else None


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
    for agent, other in ((speaker, listener), (listener, speaker)):
        agent.mind["talked"] = {**agent.mind["talked"], other.name: agent.minute}
    for _ in range(speaker.step.context.max_turns):
        said = await _say(speaker, listener, wish.why, lines)
        if said is None:
            break
        lines.append(Line(agent=speaker.name, text=said.say))
        text = f'{speaker.name} said to {listener.name}: "{said.say}"'
        speaker.remember(text, "said", talk=number, importance=said.importance)
        listener.remember(text, "heard", source=speaker.name, talk=number, importance=said.importance)
        if said.ends:
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
    known = await speaker.recall(f"{listener.name}: {about}")
    begun = [quoted("about", why)] if why and len(lines) % 2 == 0 else []
    spoken = [quoted("said", line["text"], by=line["agent"]) for line in lines]
    seen = quoted("seen", told(listener), name=listener.name)
    scene = speaker.scene(_doing(speaker), seen, *begun, *spoken, memories=known)
    return await speaker.ask(prompts.SAY.format_messages(scene=scene), Utterance)


def _doing(agent: Agent) -> str:
    return quoted("doing", told(agent))
