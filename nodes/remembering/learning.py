"""What a run leaves to later ones when it ends (ReasoningBank, arXiv 2509.25140, section 3): how it went with the items
that it was shown, and new ones."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reflective_agents.nodes.asking.chat import ask
from reflective_agents.nodes.asking.transcript import around, quoted
from reflective_agents.nodes.evidence.long_questions import words_of
from reflective_agents.nodes.remembering.attempts import attempts_text, own_channels
from reflective_agents.nodes.remembering.curating import confirm, curate
from reflective_agents.nodes.remembering.experience import (
    LONGEST_TASK,
    LOOKED_AT,
    item_text,
    model_for_lessons,
    open_items,
)
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import experience as prompts
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.experience import Drawn, DrawnItem, Event, Experience, Item, ItemKind, plain_words
from reflective_agents.state.outcome import Appraisal, Outcome
from reflective_agents.state.run import RunState
from reflective_agents.text.words import count_words

if TYPE_CHECKING:
    from reflective_agents.memory.items import Items


async def keep(
    step: Step[Context], state: RunState, answer: str, outcome: Outcome, appraisal: Appraisal
) -> Experience | None:
    """Count how the run has ended for the items that it was shown, and draw new ones from it, in one call; None unless
    the settings ask for it.

    What nothing has verified teaches nothing unless the settings say so. Where a limit or a failing model stands in the
    way, that is told.
    """
    context: Context = step.context
    if context.experience is None:
        return None
    before = state.get("experience")
    experience = Experience(shown=before["shown"] if before else [], used=[], drawn=[])
    verdict = verdict_on(state, outcome, appraisal)
    teaches = bool(verdict) or (outcome["status"] != "failed" and context.experience_from == "judged")
    if not teaches and not experience["shown"]:
        return experience
    try:
        items = await open_items(step)
        shown = await items.get([item["id"] for item in experience["shown"]])
        await _count(items, state["run_id"], shown, verdict)
        if teaches:
            await _learn(step, state, items, shown, answer, outcome, verdict, experience)
    except (LimitReached, ModelFailed) as reason:
        step.emit("not_kept", reason=str(reason))
    return experience


def verdict_on(state: RunState, outcome: Outcome, appraisal: Appraisal) -> ItemKind | None:
    """Return what the verification of a run says of it; None if nothing has looked at its answer: it is not refused,
    and neither it nor an attempt on the way has a score or a reward."""
    if outcome["status"] == "solved":
        return "success"
    if outcome["status"] == "failed":  # a model that cannot be reached says nothing of what it was shown
        return None
    refused = appraisal.accepted is False and appraisal.by is not None
    graded = outcome["status"] != "answered" and any(map(_is_graded, own_channels(state).values()))
    return "failure" if refused or graded else None


def _is_graded(value: Any) -> bool:
    entries = value if isinstance(value, list) else [value]
    if isinstance(value, Mapping):
        entries = [*value.values()]
    for entry in entries:
        if isinstance(entry, Mapping) and (entry.get("score") is not None or entry.get("reward") is not None):
            return True
    return False


async def _count(items: "Items", run: str, shown: Sequence[Item], verdict: ItemKind | None) -> None:
    """Count a run for the items that it was shown. A contested one that was shown in a solved run is confirmed, and
    outlives those that contradict it."""
    now = time.time()
    solved = None if verdict is None else verdict == "success"
    if shown:
        events = {item["id"]: Event(what="shown", at=now, solved=solved) for item in shown}
        await items.record(f"{run} shown", events)
    ids = {item["id"] for item in shown}
    for item in shown:
        if solved and item["status"] == "contested" and ids.isdisjoint(item["against"]):
            await confirm(items, run, item, now)


async def _learn(
    step: Step[Context],
    state: RunState,
    items: "Items",
    shown: Sequence[Item],
    answer: str,
    outcome: Outcome,
    verdict: ItemKind | None,
    experience: Experience,
) -> None:
    """Draw items from a run, and curate what is known by them."""
    task = words_of(state["messages"][-1])[:LONGEST_TASK]
    near = await items.nearest(task, LOOKED_AT + len(shown))
    ids = {item["id"] for item in shown}
    known = [*shown]
    known += [item for item in near if item["id"] not in ids]
    words = {"success": prompts.SOLVED, "failure": prompts.FAILED, None: prompts.UNVERIFIED}
    prompt = prompts.DRAW.format_messages(
        verdict=words[verdict],
        request=quoted("request", task),
        attempts=around("trajectory", attempts_text(state)),
        answer=quoted("answer", answer[:LONGEST_TASK]),
        outcome=quoted("outcome", f"{outcome['status']}: {outcome['reason']}"),
        known=_known_text(known, len(shown)),
    )
    drawn = await ask(step, model_for_lessons(step), prompt, Drawn)
    experience["used"] = [item["id"] for number, item in enumerate(shown, 1) if number in drawn.used]
    answers = [answer, *_gold_of(state)]
    for number, item in enumerate(drawn.items, 1):
        if tells_answer(item, answers):
            step.emit("refused_item", title=item.title, problem="it tells the answer of this task")
            continue
        experience["drawn"].append(await curate(items, f"{state['run_id']} {number}", item, known, verdict))
    step.emit("kept", lessons=len(experience["drawn"]), used=len(experience["used"]))


def _known_text(known: Sequence[Item], shown: int) -> str:
    lines: list[str] = []
    for number, item in enumerate(known, 1):
        was_shown = "yes" if number <= shown else "no"
        lines.append(quoted("lesson", item_text(item), number=number, shown=was_shown))
    return "\n".join(lines) or prompts.NONE_KNOWN


def tells_answer(item: DrawnItem, answers: Sequence[str]) -> bool:
    """Tell whether an item holds an answer of its task as whole words: who is asked the same again would be told. A
    single word or number may stand there by chance."""
    own = plain_words(" ".join([item.title, item.applies_when, item.advice, item.evidence]))
    several = [words for words in map(plain_words, answers) if count_words(words) > 1]
    return any(f" {words} " in f" {own} " for words in several)


def _gold_of(state: RunState) -> list[str]:
    tasks = [value for value in own_channels(state).values() if isinstance(value, Mapping)]
    tasks += [value["task"] for value in tasks if isinstance(value.get("task"), Mapping)]
    return [task["gold"] for task in tasks if isinstance(task.get("gold"), str)]
