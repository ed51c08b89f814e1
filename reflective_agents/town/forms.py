"""What the agents of a town are asked to fill in: plans, reactions, and what they say; with each how much it matters,
for that is remembered."""

import re
from functools import cache
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, create_model
from pydantic.fields import FieldInfo

from reflective_agents.state.memories import Rating, Sentence
from reflective_agents.state.schemas import Truth, one_of
from reflective_agents.state.settings.town import Clock

T = TypeVar("T")
# Also "7h30", 7時30, 7시 30분 and "7 น."
_TIME = re.compile(r"(\d{1,2})(?:\s?[:.h時点时시]\s?(\d{2})?분?)?\s*(?:([ap])\.?m\.?|uhr|น\.?)?", re.IGNORECASE)
IN_WORDS = "as others see it, without thoughts or intentions: in the third person, without the name: bakes bread"
MATTERS: Rating = Field(
    default=1,
    description="How much it matters to you, from 1 (everyday, such as brushing teeth) to 10 (life-changing).",
)


def _clock(value: T) -> T | str:
    """Read a time of day as people write it: 7:00, 7.30, 7 am, 19 Uhr, 7."""
    match = _TIME.fullmatch(str(value).strip())
    if match is None:
        return value
    hour, minute, half = int(match[1]), match[2] or "00", (match[3] or "").casefold()
    if half:  # 12 am is midnight, 12 pm noon
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"{hour:02}:{minute}"


Time = Annotated[Clock, BeforeValidator(_clock)]
"""A time of the day, in whatever form."""


class Stroke(BaseModel):
    """A part of the day."""

    start: Time = Field(description="When it begins, HH:MM.")
    what: Sentence = Field(description="What is done, in a few words, with the place if it matters.")


class DayPlan(BaseModel):
    """Your plan for the day, in broad strokes."""

    strokes: list[Stroke] = Field(min_length=1, max_length=12, description="In the order of time, the whole day.")


class NewsPlan(DayPlan):
    """Your plan for the day, in broad strokes, and the news that you have."""

    news: str = Field(
        default="",
        max_length=100,
        description="The news in what your inner voice says, as the one to three words of it without which nobody "
        "could pass it on, such as: garden party. Empty if it says no news.",
    )


NEWS_PLAN = create_model(DayPlan.__name__, __base__=NewsPlan, __doc__=NewsPlan.__doc__)
"""The same form as that of a plan, under its name."""


class Hour(BaseModel):
    """An hour."""

    start: Time = Field(description="When it begins, HH:MM.")
    what: Sentence = Field(description=f"What is done in this hour, {IN_WORDS}.")
    place: str = Field(description="Where: a place of the town.")
    importance: Rating = MATTERS


class HourPlan(BaseModel):
    """Your plan for this part of the day, hour by hour."""

    hours: list[Hour] = Field(min_length=1, max_length=24)


class Action(BaseModel):
    """Something that is done without a break."""

    minutes: int = Field(ge=1, le=240, description="How long it takes.")
    what: Sentence = Field(description=f"What is done, {IN_WORDS}.")
    place: str = Field(description="Where: a place of the town.")
    importance: Rating = MATTERS


class Actions(BaseModel):
    """Your actions in this hour."""

    actions: list[Action] = Field(min_length=1, max_length=12)


class Reaction(BaseModel):
    """Your reaction to whom you see: go on with what you do, do something else, or talk to one of them."""

    choice: one_of(("continue", "change", "talk"))  # type: ignore[valid-type]
    to: str = Field(description="With talk: the name of whom you talk to; else empty.")
    what: str = Field(description=f"With change: what you do instead, {IN_WORDS}. With talk: what about. Else empty.")
    importance: Rating = MATTERS


class Utterance(BaseModel):
    """What you say next."""

    say: Sentence = Field(description="Your words, one to three sentences.")
    ends: Truth = Field(description="Whether the conversation ends with them.")
    importance: Rating = MATTERS


@cache
def hour_plan_of(places: tuple[str, ...]) -> type[HourPlan]:
    """Build the form of a plan hour by hour at these places."""
    hour = _at(Hour, places)
    return create_model("HourPlan", __base__=HourPlan, __doc__=HourPlan.__doc__, hours=_list_of(hour, 24))


@cache
def actions_of(places: tuple[str, ...]) -> type[Actions]:
    """Build the form of actions at these places."""
    action = _at(Action, places)
    return create_model("Actions", __base__=Actions, __doc__=Actions.__doc__, actions=_list_of(action, 12))


@cache
def reaction_of(names: tuple[str, ...]) -> type[Reaction]:
    """Build the form of a reaction to these agents."""
    to = (one_of(("", *names)), Field(description=Reaction.model_fields["to"].description))
    return create_model("Reaction", __base__=Reaction, __doc__=Reaction.__doc__, to=to)


def _at(form: type[BaseModel], places: tuple[str, ...]) -> type[BaseModel]:
    place = (one_of(places), Field(description=form.model_fields["place"].description))
    return create_model(form.__name__, __base__=form, __doc__=form.__doc__, place=place)


def _list_of(form: type[BaseModel], most: int) -> tuple[type[list[BaseModel]], FieldInfo]:
    return (list[form], Field(min_length=1, max_length=most))  # type: ignore[valid-type]
