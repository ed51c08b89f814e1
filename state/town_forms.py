"""What the agents of a town are asked to fill in: plans, reactions, and what they say."""

from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from state.memories import Sentence
from state.town import Clock


class Stroke(BaseModel):
    """A part of the day."""

    start: Clock = Field(description="When it begins, HH:MM.")
    what: Sentence = Field(description="What is done, in a few words, with the place if it matters.")


class DayPlan(BaseModel):
    """Your plan for the day, in broad strokes."""

    strokes: list[Stroke] = Field(min_length=1, max_length=12, description="In the order of time, the whole day.")


class Hour(BaseModel):
    """An hour."""

    start: Clock = Field(description="When it begins, HH:MM.")
    what: Sentence = Field(description="What is done in this hour.")
    place: str = Field(description="Where: a place of the town.")


class HourPlan(BaseModel):
    """Your plan for this part of the day, hour by hour."""

    hours: list[Hour] = Field(min_length=1, max_length=24)


class Action(BaseModel):
    """Something that is done without a break."""

    minutes: int = Field(ge=1, le=240, description="How long it takes.")
    what: Sentence = Field(description="What is done, in the third person without the name, such as: bakes bread")
    place: str = Field(description="Where: a place of the town.")


class Actions(BaseModel):
    """Your actions in this hour."""

    actions: list[Action] = Field(min_length=1, max_length=12)


class Reaction(BaseModel):
    """Your reaction to whom you see: go on with what you do, do something else, or talk to one of them."""

    choice: Literal["continue", "change", "talk"]
    to: str = Field(description="With talk: the name of whom you talk to; else empty.")
    what: str = Field(description="With change: what you do instead. With talk: what about. Else empty.")


class Utterance(BaseModel):
    """What you say next."""

    say: Sentence = Field(description="Your words, one to three sentences.")
    ends: bool = Field(description="Whether the conversation ends with them.")


@cache
def hour_plan_of(places: tuple[str, ...]) -> type[HourPlan]:
    """The form of a plan hour by hour at these places."""
    hour = _at(Hour, places)
    return create_model("HourPlan", __base__=HourPlan, __doc__=HourPlan.__doc__, hours=_many(hour, 24))


@cache
def actions_of(places: tuple[str, ...]) -> type[Actions]:
    """The form of actions at these places."""
    action = _at(Action, places)
    return create_model("Actions", __base__=Actions, __doc__=Actions.__doc__, actions=_many(action, 12))


@cache
def reaction_of(names: tuple[str, ...]) -> type[Reaction]:
    """The form of a reaction to these agents."""
    to: Any = (Literal[("", *names)], Field(description=Reaction.model_fields["to"].description))
    return create_model("Reaction", __base__=Reaction, __doc__=Reaction.__doc__, to=to)


def _at(form: type[BaseModel], places: tuple[str, ...]) -> type[BaseModel]:
    place: Any = (Literal[places], Field(description=form.model_fields["place"].description))
    return create_model(form.__name__, __base__=form, __doc__=form.__doc__, place=place)


def _many(form: type[BaseModel], most: int) -> Any:
    return (list[form], Field(min_length=1, max_length=most))  # type: ignore[valid-type]
