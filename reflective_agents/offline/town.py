"""How the offline model lives in a town: it plans what is usual, keeps appointments it remembers, and passes on what it
was told. All it says stands in the prompt: it picks, and invents nothing."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle, islice

from reflective_agents.offline.tags import read_tags
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.memories import MOST_FACTS, MOST_LOOK_UPS
from reflective_agents.state.settings.town import clock_of, minutes_of
from reflective_agents.text.extract import terms
from reflective_agents.text.sentences import split

_TAGS = ("agent", "map", "time", "usual", "part", "memory", "doing", "seen", "said", "question")
_SOURCE = re.compile(r"([^\n:]++): ")
_SPEAKER = re.compile(r"^([^\n:\"]+?) said to ")
_TIME = re.compile(r"\b([01]?\d|2[0-3]):([0-5]\d)\b")
_USUAL = re.compile(r"^[^\w\n]*+([01]\d|2[0-3]):([0-5]\d)\s++(.+)$", re.M)
_PART = re.compile(r"[.!?;,\n]+|\band\b")
TOLD = ("before", "told", "heard", "reflection")
"""Kinds of memories that are worth telling."""
ROUTINE, TALK, APPOINTMENT = 2, 5, 8
"""Importance of what happens every day, of what was said, and of what names a time."""
GREETING, FAREWELL = "Good day", "That is all I know"
TURNS = 4
"""Things said after which a conversation ends."""


@dataclass(frozen=True)
class Block:
    """A quoted part of the prompt."""

    tag: str
    text: str
    attributes: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        """Return an attribute; empty if there is none of that name."""
        return self.attributes.get(name, "")


class Scene:
    """What an agent is shown."""

    def __init__(self, text: str) -> None:
        parts = read_tags(text, _TAGS)
        self.blocks = [Block(part.tag, part.text.replace("<\\/", "</"), part.attributes) for part in parts]

    def all(self, tag: str) -> list[Block]:
        """Return the parts under a tag."""
        return [block for block in self.blocks if block.tag == tag]

    def first(self, tag: str) -> Block:
        """Return the first part under a tag; an empty one if there is none."""
        return next(iter(self.all(tag)), Block(tag, "", {}))

    @property
    def places(self) -> list[str]:
        """The places of the town, the longest name first."""
        names = [line.partition(":")[0] for line in self.first("map").text.splitlines()]
        return sorted(names, key=len, reverse=True)

    def place(self, text: str) -> str:
        """Return the first place that a text names; empty if it names none."""
        return next((place for place in self.places if place in text), "")

    def appointment(self, minute: int) -> Block | None:
        """Find a memory that names this hour and a place."""
        for memory in self.all("memory"):
            if memory["kind"] != "plan" and self.place(memory.text) and minute in _times(memory.text):
                return memory
        return None

    @property
    def lived(self) -> list[Block]:
        """The memories that are neither plans nor greetings; all if there is nothing else."""
        memories = self.all("memory")
        return [memory for memory in memories if _is_lived(memory)] or memories

    def tellable(self, listener: str) -> list[Block]:
        """List what is worth telling someone, with what names a time first.

        Left out is what was said in this conversation, what comes from the listener or is about them, and what they are
        doing already.
        """
        utterances = {core(block.text) for block in self.all("said")}
        doing = " ".join(block.text for block in self.all("seen") if block["name"] == listener)

        def is_news(memory: Block) -> bool:
            text = core(memory.text)
            if memory["kind"] not in TOLD or text in utterances or text in doing:
                return False
            return listener not in text and _speaker(memory.text) != listener

        return sorted(filter(is_news, self.all("memory")), key=lambda memory: not _times(memory.text))


def _is_lived(memory: Block) -> bool:
    return memory["kind"] != "plan" and not core(memory.text).startswith((GREETING, FAREWELL))


def live(form: str, text: str) -> JsonObject | None:
    """Fill in a form for an agent in a town; None if the form is not one of these.

    Args:
        form: The name of the form.
        text: The last message of the prompt.
    """
    scene = Scene(text)
    return FORMS[form](scene) if form in FORMS and scene.blocks else None


def core(text: str) -> str:
    """Reduce a memory or an utterance to what it says, without those who passed it on."""
    begin, end = 0, len(text)
    while source := _SOURCE.match(text, begin, end):
        after, who = source.end(), source[1]
        is_quoted = after < end - 1 and text[after] == text[end - 1] == '"'
        if is_quoted and _SPEAKER.match(f"{who} ") and '"' not in who:
            begin, end = after + 1, end - 1
        elif who.startswith(("I heard from ", "On ")):
            begin = after
        else:
            break
    return text[begin:end]


def _speaker(text: str) -> str:
    match = _SPEAKER.match(text)
    return match[1] if match else ""


def _times(text: str) -> list[int]:
    """Return the full hours that a text names, in minutes of the day."""
    return [60 * int(hour) for hour, _ in _TIME.findall(core(text))]


def day_plan(scene: Scene) -> dict[str, list[dict[str, str]]]:
    """Plan the usual day."""
    lines = _USUAL.findall(scene.first("usual").text)
    usual = [{"start": f"{hour}:{minute}", "what": what} for hour, minute, what in lines]
    return {"strokes": usual[:12] or [{"start": scene.first("time").text, "what": "goes about the day"}]}


def hour_plan(scene: Scene) -> dict[str, list[dict[str, str | float]]]:
    """Plan the same thing for every hour, except for appointments."""
    part = scene.first("part")
    start, end = minutes_of(part["start"]), minutes_of(part["end"])
    starts = [start, *range(start - start % 60 + 60, end, 60)]
    hours = [{"start": clock_of(minute), **_due(scene, part, minute)} for minute in starts[:24]]
    return {"hours": hours}


def actions(scene: Scene) -> dict[str, list[dict[str, str | float]]]:
    """Plan one thing for the whole hour."""
    part = scene.first("part")
    start, end = minutes_of(part["start"]), minutes_of(part["end"])
    return {"actions": [{"minutes": min(end - start, 240), **_due(scene, part, start)}]}


def _due(scene: Scene, part: Block, minute: int) -> dict[str, str | float]:
    appointment = scene.appointment(minute - minute % 60)
    if appointment:
        place = scene.place(core(appointment.text))
        what = f"is at the appointment: {core(appointment.text)}"
        return {"what": what, "place": place, "importance": APPOINTMENT}
    here = scene.place(scene.first("doing").text) or (scene.places or [""])[0]
    return {"what": part.text, "place": part["place"] or scene.place(part.text) or here, "importance": ROUTINE}


def reaction(scene: Scene) -> dict[str, str | float]:
    """Talk to the first agent who was not talked to yet, if there is something to tell."""
    for seen in scene.all("seen"):
        news = scene.tellable(seen["name"])
        if not _times(seen["talked"]) and news:
            return {"choice": "talk", "to": seen["name"], "what": core(news[0].text), "importance": ROUTINE}
    return {"choice": "continue", "to": "", "what": "", "importance": ROUTINE}


def utterance(scene: Scene) -> dict[str, str | bool | float]:
    """Say what is worth telling, and from whom it comes."""
    listener, turns = scene.first("seen")["name"], len(scene.all("said"))
    news = scene.tellable(listener)
    if not news:
        return {"say": f"{FAREWELL if turns else GREETING}, {listener}.", "ends": turns > 0, "importance": TALK}
    speaker, text = _speaker(news[0].text), core(news[0].text)
    say = f"I heard from {speaker}: {text}" if speaker else text
    return {"say": say, "ends": turns + 1 >= TURNS, "importance": APPOINTMENT if _times(text) else TALK}


def questions(scene: Scene) -> dict[str, list[str]]:
    """Ask about the three words that most memories have in common."""
    count: Counter[str] = Counter()
    words: dict[str, str] = {}
    for memory in scene.lived:
        for stem, word in terms(core(memory.text)).items():
            if not word[0].isdigit():
                count[stem] += 1
                words.setdefault(stem, word)
    common = [words[stem] for stem, _ in count.most_common(3)]
    subjects = islice(cycle(common or ["today"]), 3)
    return {"questions": [f"What about {word}?" for word in subjects]}


def insights(scene: Scene) -> JsonObject:
    """Repeat what most memories on the question are about, with the memories that share its words as evidence."""
    asked_about = terms(scene.first("question").text)
    topic, named = set(asked_about), next(iter(asked_about.values()), "this")
    memories = scene.lived
    stems = {memory["number"]: set(terms(core(memory.text))) for memory in memories}
    on_topic = [memory for memory in memories if stems[memory["number"]] & topic]
    related = on_topic or memories
    by_core = {core(memory.text): memory for memory in reversed([*related, *memories])}
    insights: list[JsonObject] = []
    for memory in islice(cycle(reversed(by_core.values())), 5):
        shared = stems[memory["number"]]
        half = max(len(shared), 1) / 2
        alike = [other for other in related if len(stems[other["number"]] & shared) >= half]
        numbers = sorted({int(block["number"]) for block in (memory, *alike[:4])})
        text = f"On {named}: {core(memory.text)}"
        insights.append({"insight": text, "evidence": numbers, "importance": APPOINTMENT if _times(text) else TALK})
    return {"insights": insights}


def facts(scene: Scene) -> JsonObject:
    """Keep each sentence of the user's that asks nothing and says something, as it stands."""
    sentences: dict[str, None] = {}
    for block in scene.all("said"):
        sentences |= dict.fromkeys(split(block.text))
    common = {"about": "the user", "since": "", "importance": TALK, "supersedes": []}
    facts: list[JsonObject] = []
    for sentence in sentences:
        if not sentence.endswith("?") and len(terms(sentence)) > 1:
            facts.append({**common, "statement": sentence})
    return {"facts": facts[:MOST_FACTS]}


def look_ups(scene: Scene) -> JsonObject:
    """Look up each part of what the user says, if there are several."""
    parts = [part.strip() for part in _PART.split(scene.first("said").text) if terms(part)]
    return {"queries": parts[:MOST_LOOK_UPS] if len(parts) > 1 else []}


FORMS: dict[str, Callable[[Scene], JsonObject]] = {
    "DayPlan": day_plan,
    "HourPlan": hour_plan,
    "Actions": actions,
    "Reaction": reaction,
    "Utterance": utterance,
    "Questions": questions,
    "Insights": insights,
    "Facts": facts,
    "LookUps": look_ups,
}
