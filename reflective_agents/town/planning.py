"""How an agent plans: its day in broad strokes, hours and actions only when they are needed (section 4.3)."""

import re
from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from langchain_core.messages import AnyMessage

from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.prompts import town as prompts
from reflective_agents.state.memories import Memory
from reflective_agents.state.settings.town import clock_of, minutes_of
from reflective_agents.town.agent import EVERYDAY, Agent
from reflective_agents.town.forms import NEWS_PLAN, DayPlan, NewsPlan, actions_of, hour_plan_of
from reflective_agents.town.state import Planned

HOUR = 60
_CLOCK = re.compile(r"\d\d:\d\d")
PLAN_IMPORTANCE = 3.0
VOICE_IMPORTANCE = 8.0


class Part(NamedTuple):
    """A part of a plan as the model gives it, with its beginning in minutes of the day."""

    begins: int
    what: str
    place: str = ""
    importance: float = EVERYDAY


async def wake(agent: Agent, conversation: Sequence[AnyMessage]) -> bool:
    """Remember what is known from before, and what the inner voice says; and plan the day in broad strokes.

    Returns:
        False if the model makes no plan that can be read: the day is the usual one then.
    """
    for knowledge in agent.persona.knows:
        agent.remember(knowledge.text, "before", importance=knowledge.importance)
    if agent.inner_voice:
        agent.remember(agent.inner_voice, "told", importance=VOICE_IMPORTANCE)
    usual, end = "\n".join(agent.persona.usual), minutes_of(agent.town.ends)
    parts = [quoted("usual", usual)] if usual else []
    parts.append(_part("the whole day", agent.minute, end))
    memories: list[Memory] = list(agent.memories[-agent.step.context.retrieved :])
    prompt = prompts.PLAN.format_messages(
        conversation=conversation if agent.inner_voice else [], scene=agent.scene(*parts, memories=memories)
    )
    plan = await agent.ask(prompt, NEWS_PLAN if await agent.has_own_news() else DayPlan)
    agent.news = plan.news if isinstance(plan, NewsPlan) else ""
    strokes = _strokes(plan) if plan else _usual(agent)
    agent.mind["strokes"] = _in_a_row(strokes, agent.minute, end)
    day = "; ".join(f"{clock_of(stroke['start'])} {stroke['what']}" for stroke in agent.mind["strokes"])
    agent.remember(f"{agent.name}'s plan for today: {day}", "plan", kind="plan", importance=PLAN_IMPORTANCE)
    return plan is not None


async def act(agent: Agent) -> None:
    """Do what the plan says for this moment, and go where it says; remember it if it is something new."""
    action = await _due(agent)
    what, place = action["what"], action["place"]
    if (what, place) != (agent.mind["doing"], agent.mind["place"]):
        agent.mind["doing"], agent.mind["place"] = what, place
        agent.remember(appearance(agent), "own", importance=action.get("importance", EVERYDAY))


def appearance(agent: Agent) -> str:
    """Describe what others can see of an agent: what it does, and where. What is no continuation of its name follows a
    colon: "Ben bakes bread", but "Ben: I bake bread"."""
    what, place = agent.mind["doing"], agent.mind["place"]
    who = f"{agent.name}:" if what[:1].isupper() else agent.name
    text = what if what.startswith(agent.name) else f"{who} {what}"
    return text if place in what else f"{text} ({place})"


async def _due(agent: Agent) -> Planned:
    """Return the action for this moment, decomposing the plan only as far as needed."""
    mind, now = agent.mind, agent.minute
    for name in ("strokes", "hours", "actions"):
        mind[name] = [part for part in mind[name] if part["end"] > now]
    if not mind["actions"]:
        if not mind["hours"]:
            stroke = mind["strokes"][0]
            at_once = stroke["end"] - now <= HOUR and _is_fine(agent, stroke)
            mind["hours"] = [stroke] if at_once else await _hours(agent, stroke)
        hour = mind["hours"][0]
        mind["actions"] = await _actions(agent, hour) if _is_fine(agent, hour) else [hour]
    return mind["actions"][0]


def _is_fine(agent: Agent, part: Planned) -> bool:
    """Tell whether a step of the clock is shorter than what is left of a part's next hour."""
    return min(part["end"] - agent.minute, HOUR) > agent.step.context.minutes


async def _hours(agent: Agent, stroke: Planned) -> list[Planned]:
    start, end = agent.minute, stroke["end"]
    times = " ".join(clock_of(minute) for minute in range(start - start % HOUR, end, HOUR))
    memories = await agent.recall(f"{agent.name} at {times}: {stroke['what']}")
    scene = agent.scene(_where(agent), _part(stroke["what"], start, end), memories=memories)
    prompt = prompts.HOURS.format_messages(scene=scene)
    plan = await agent.ask(prompt, hour_plan_of(agent.places))
    if plan is None:
        return _in_a_row([Part(start, stroke["what"], agent.mind["place"])], start, end)
    hours = [Part(minutes_of(hour.start), hour.what, hour.place, hour.importance) for hour in plan.hours]
    return _in_a_row(hours, start, end)


async def _actions(agent: Agent, hour: Planned) -> list[Planned]:
    start, end = agent.minute, min(hour["end"], agent.minute + HOUR)
    memories = await agent.recall(f"{agent.name} at {clock_of(start)}: {hour['what']}")
    where = {"place": hour["place"]} if hour["place"] else {}
    scene = agent.scene(_where(agent), _part(hour["what"], start, end, **where), memories=memories)
    prompt = prompts.ACTIONS.format_messages(scene=scene)
    plan = await agent.ask(prompt, actions_of(agent.places))
    if plan is None:
        return [{**hour, "start": start, "end": end, "place": hour["place"] or agent.mind["place"]}]
    begins, parts = start, list[Part]()
    for action in plan.actions:
        parts.append(Part(begins, action.what, action.place, action.importance))
        begins += action.minutes
    return _in_a_row(parts, start, end)


def _strokes(plan: DayPlan) -> list[Part]:
    return [Part(minutes_of(stroke.start), stroke.what) for stroke in plan.strokes]


def _usual(agent: Agent) -> list[Part]:
    """Return the usual day of an agent: the lines of its `usual` that begin with a time."""
    parts: list[Part] = []
    for line in agent.persona.usual:
        match line.split(maxsplit=1):
            case [time, what] if _CLOCK.fullmatch(time):
                parts.append(Part(minutes_of(time), what))
    return parts or [Part(agent.minute, "goes about the day")]


def _in_a_row(parts: Sequence[Part], start: int, end: int) -> list[Planned]:
    """Line up parts of a plan without gaps, from a start to an end; what lies outside is left out."""
    begun = [part for part in parts if part.begins < end]
    inside = begun or parts[:1]
    # Of parts that begin before the start the last one counts: it is under way.
    row: dict[int, Part] = {}
    for part in sorted(inside, key=attrgetter("begins")):
        row[max(part.begins, start)] = part
    planned = [
        Planned(start=begins, end=end, what=part.what, place=part.place, importance=part.importance)
        for begins, part in row.items()
    ]
    planned[0]["start"] = start  # at once, whenever the model lets it begin
    for earlier, later in pairwise(planned):
        earlier["end"] = later["start"]
    return planned


def _where(agent: Agent) -> str:
    return quoted("doing", f"{agent.mind['doing']} ({agent.mind['place']})")


def _part(what: str, start: int, end: int, **more: str) -> str:
    return quoted("part", what, start=clock_of(start), end=clock_of(end), **more)
