"""How an agent plans: its day in broad strokes, hours and actions only when they are needed (section 4.3)."""

from collections.abc import Sequence

from langchain_core.messages import AnyMessage

from nodes.chat import ask
from nodes.town.agent import Agent
from nodes.transcript import quoted
from prompts import town as prompts
from state.memories import Memory
from state.town import Planned, clock_of, minutes_of
from state.town_forms import DayPlan, actions_of, hour_plan_of

HOUR = 60
PLAN_IMPORTANCE = 3.0
VOICE_IMPORTANCE = 8.0


async def wake(agent: Agent, conversation: Sequence[AnyMessage]) -> None:
    """Remember what is known from before, and what the inner voice says; and plan the day in broad strokes."""
    for one in agent.persona.knows:
        agent.remember(one.text, "before", importance=one.importance)
    if agent.told:
        agent.remember(agent.told, "told", importance=VOICE_IMPORTANCE)
    usual, end = "\n".join(agent.persona.usual), minutes_of(agent.town.ends)
    parts = [quoted("usual", usual)] if usual else []
    parts.append(_part("the whole day", agent.minute, end))
    known: list[Memory] = list(agent.memories[-agent.step.context.retrieved :])
    prompt = prompts.PLAN.format_messages(
        conversation=conversation if agent.told else [], scene=agent.scene(*parts, memories=known)
    )
    made = await ask(agent.step, agent.step.context.model, prompt, DayPlan)
    strokes = [(minutes_of(one.start), one.what, "") for one in made.strokes]
    agent.mind["strokes"] = _in_a_row(strokes, agent.minute, end)
    day = "; ".join(f"{clock_of(one['start'])} {one['what']}" for one in agent.mind["strokes"])
    agent.remember(f"{agent.name}'s plan for today: {day}", "plan", kind="plan", importance=PLAN_IMPORTANCE)


async def act(agent: Agent) -> None:
    """Do what the plan says for this moment, and go where it says; remember it if it is something new."""
    action = await _due(agent)
    what, place = action["what"], action["place"]
    if (what, place) != (agent.mind["doing"], agent.mind["place"]):
        agent.mind["doing"], agent.mind["place"] = what, place
        agent.remember(told(agent), "own")


def told(agent: Agent) -> str:
    """What can be seen of an agent: what it does, and where."""
    what, place = agent.mind["doing"], agent.mind["place"]
    return f"{agent.name} {what}" if place in what else f"{agent.name} {what} ({place})"


async def _due(agent: Agent) -> Planned:
    """The action of this moment; the plan is decomposed just as far as that needs."""
    mind, now = agent.mind, agent.minute
    for name in ("strokes", "hours", "actions"):
        mind[name] = [one for one in mind[name] if one["end"] > now]
    if not mind["actions"]:
        if not mind["hours"]:
            mind["hours"] = await _hours(agent, mind["strokes"][0])
        hour = mind["hours"][0]
        fine = min(hour["end"] - now, HOUR) > agent.step.context.minutes
        mind["actions"] = await _actions(agent, hour) if fine else [hour]
    return mind["actions"][0]


async def _hours(agent: Agent, stroke: Planned) -> list[Planned]:
    start, end = agent.minute, stroke["end"]
    times = " ".join(clock_of(minute) for minute in range(start - start % HOUR, end, HOUR))
    known = await agent.recall(f"{agent.name} at {times}: {stroke['what']}")
    scene = agent.scene(_where(agent), _part(stroke["what"], start, end), memories=known)
    prompt = prompts.HOURS.format_messages(scene=scene)
    made = await ask(agent.step, agent.step.context.model, prompt, hour_plan_of(agent.places))
    return _in_a_row([(minutes_of(one.start), one.what, one.place) for one in made.hours], start, end)


async def _actions(agent: Agent, hour: Planned) -> list[Planned]:
    start, end = agent.minute, min(hour["end"], agent.minute + HOUR)
    known = await agent.recall(f"{agent.name} at {clock_of(start)}: {hour['what']}")
    scene = agent.scene(_where(agent), _part(hour["what"], start, end, place=hour["place"]), memories=known)
    prompt = prompts.ACTIONS.format_messages(scene=scene)
    made = await ask(agent.step, agent.step.context.model, prompt, actions_of(agent.places))
    begun, parts = start, list[tuple[int, str, str]]()
    for one in made.actions:
        parts.append((begun, one.what, one.place))
        begun += one.minutes
    return _in_a_row(parts, start, end)


def _in_a_row(parts: Sequence[tuple[int, str, str]], start: int, end: int) -> list[Planned]:
    """Parts of a plan one after the other, without a gap, from a start to an end; what lies outside is left out."""
    inside = sorted((part for part in parts if part[0] < end), key=lambda part: part[0]) or parts[:1]
    row = {max(begins, start): (what, place) for begins, what, place in inside}
    starts = [start, *list(row)[1:]]
    return [
        Planned(start=begins, end=until, what=what, place=place)
        for begins, until, (what, place) in zip(starts, [*starts[1:], end], row.values(), strict=True)
    ]


def _where(agent: Agent) -> str:
    return quoted("doing", f"{agent.mind['doing']} ({agent.mind['place']})")


def _part(what: str, start: int, end: int, **more: str) -> str:
    return quoted("part", what, start=clock_of(start), end=clock_of(end), **more)
