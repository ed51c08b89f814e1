"""How the offline model lives in a town: it picks what stands in the prompt, and always fits the form."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel

from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.offline.model import OfflineChatModel
from reflective_agents.offline.town import core
from reflective_agents.state.memories import Insights, Questions
from reflective_agents.town.forms import DayPlan, Utterance, actions_of, hour_plan_of, reaction_of

PLACES = ("Café", "House")
MAP = quoted("map", "Café: cakes\nHouse: rooms")
PARTY = "There is a party at the Café at 17:00."


def fill(form: type[BaseModel], *parts: str) -> Any:
    """What the model fills in, checked against the form."""
    model = OfflineChatModel().bind_tools([convert_to_openai_tool(form)], tool_choice=form.__name__)
    text = "\n".join([quoted("agent", "Ben is a baker.", name="Ben"), MAP, *parts, "What do you do?"])
    return form.model_validate(model.invoke([HumanMessage(text)]).tool_calls[0]["args"])


def memory(text: str, kind: str = "heard", number: int = 1) -> str:
    return quoted("memory", text, number=number, kind=kind, time="08:00")


def part(start: str, end: str) -> str:
    return quoted("part", "bakes bread", start=start, end=end, place="House")


def test_the_day_is_the_usual_one() -> None:
    made = fill(DayPlan, quoted("time", "07:00"), quoted("usual", "07:00 gets up\n08:30 bakes bread at the House"))
    assert [(stroke.start, stroke.what) for stroke in made.strokes] == [
        ("07:00", "gets up"),
        ("08:30", "bakes bread at the House"),
    ]
    assert [stroke.start for stroke in fill(DayPlan, quoted("time", "06:00")).strokes] == ["06:00"]


def test_an_appointment_that_is_remembered_comes_before_the_plan() -> None:
    heard = f'Anna said to Ben: "{PARTY}"'
    made = fill(hour_plan_of(PLACES), quoted("doing", "Ben sleeps (House)"), part("15:30", "19:00"), memory(heard))
    assert [(hour.start, hour.place) for hour in made.hours] == [
        ("15:30", "House"),
        ("16:00", "House"),
        ("17:00", "Café"),
        ("18:00", "House"),
    ]
    (action,) = fill(actions_of(PLACES), part("17:00", "18:00"), memory(heard)).actions
    assert (action.place, action.what) == ("Café", f"is at the appointment: {PARTY}")
    (action,) = fill(actions_of(PLACES), part("17:00", "18:00"), memory(heard, kind="plan")).actions
    assert (action.place, action.what, action.minutes) == ("House", "bakes bread", 60)


def test_news_is_passed_on_with_whom_it_comes_from() -> None:
    seen = quoted("seen", "Clara reads (Café)", name="Clara", talked="not yet today")
    heard = memory(f'Anna said to Ben: "{PARTY}"', number=2)
    react = fill(reaction_of(("Clara",)), seen, memory("Ben bakes bread", kind="own"), heard)
    assert (react.choice, react.to, react.what) == ("talk", "Clara", PARTY)
    utterance = fill(Utterance, seen, memory("Owls hoot.", kind="before"), heard)
    assert (utterance.say, utterance.ends) == (f"I heard from Anna: {PARTY}", False)
    after = fill(Utterance, seen, memory("Owls hoot.", kind="before"), heard, quoted("said", utterance.say, by="Ben"))
    assert after.say == "Owls hoot."
    nothing = fill(Utterance, seen, heard, quoted("said", utterance.say, by="Ben"))
    assert (nothing.say, nothing.ends) == ("That is all I know, Clara.", True)


def test_nobody_is_told_what_comes_from_them_or_is_about_them() -> None:
    seen = quoted("seen", "Clara reads (Café)", name="Clara", talked="not yet today")
    own = [memory('Clara said to Ben: "Owls hoot."'), memory("Clara likes owls.", kind="before", number=2)]
    assert fill(Utterance, seen, *own).say == "Good day, Clara."
    assert fill(reaction_of(("Clara",)), seen, *own).choice == "continue"
    again = quoted("seen", "Clara reads (Café)", name="Clara", talked="at 08:00")
    assert fill(reaction_of(("Clara",)), again, memory("Owls hoot.", kind="before")).choice == "continue"


def test_what_names_a_time_matters_most() -> None:
    heard = memory(f'Anna said to Ben: "{PARTY}"', kind="heard")
    other = quoted("seen", "Clara reads (Café)", name="Clara", talked="not yet today")
    assert fill(Utterance, other, heard).importance == 8
    assert fill(Utterance, other).importance == 5
    (action,) = fill(actions_of(PLACES), part("09:00", "10:00"), heard).actions
    assert action.importance == 2


def test_insights_repeat_memories_and_name_them_as_evidence() -> None:
    texts = [f"Anna bakes cake number {n}" for n in range(4)] + ["Owls hoot.", "Ben's plan: 07:00 gets up"]
    kinds = ["observation"] * 5 + ["plan"]
    shown = [memory(text, kind, number) for number, (text, kind) in enumerate(zip(texts, kinds, strict=True), 1)]
    questions = fill(Questions, *shown).questions
    assert len(questions) == 3
    assert "What about cake?" in questions
    made = fill(Insights, *shown, quoted("question", "What about cake?")).insights
    assert [insight.insight for insight in made[:4]] == [f"On cake: {text}" for text in texts[:4]]
    assert all(set(insight.evidence) <= {1, 2, 3, 4, 5} for insight in made)
    assert made[0].evidence == [1, 2, 3, 4]


@pytest.mark.parametrize("text", [PARTY, f'Anna said to Ben: "I heard from Clara: {PARTY}"', f"On cake: {PARTY}"])
def test_the_core_is_what_was_said_first(text: str) -> None:
    assert core(text) == PARTY


@pytest.mark.parametrize("text", ["Anna said to Ben: ", 'Anna said to Ben: "', 'On cake: "Anna said to Ben: '])
def test_who_said_nothing_leaves_a_text(text: str) -> None:
    assert core(text) == text.removeprefix("On cake: ")


FORMS: list[type[BaseModel]] = [
    DayPlan,
    hour_plan_of(PLACES),
    actions_of(PLACES),
    reaction_of(("Clara",)),
    Utterance,
    Questions,
    Insights,
]
anything = st.text(min_size=1, max_size=60).filter(str.strip)


@pytest.mark.matrix(keep=2)
@settings(max_examples=25, deadline=None)
@given(texts=st.tuples(anything, anything, anything))
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_whatever_stands_in_the_prompt_the_form_is_filled(form: type[BaseModel], texts: tuple[str, str, str]) -> None:
    first, second, third = texts
    time = quoted("time", "07:00")
    seen = quoted("seen", third, name="Clara", talked="not yet today")
    parts = [time, part("07:15", "11:00"), quoted("usual", third), quoted("doing", third), seen]
    fill(form, *parts, memory(first), memory(second, "before", 2), quoted("question", third))
