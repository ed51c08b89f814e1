"""What `graphs.auto` has seen of its stages by kind of task: how often each ended a run well, and its calls.

Thompson sampling (Thompson 1933): a run draws for each stage how likely it is to end the run well, from what earlier
runs of the same kind say of it. Neither the right answer nor a reward that rests on it is ever kept.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from reflective_agents.graphs._auto.state import STAGES, AutoState, Stage, Turn
from reflective_agents.memory.layout import as_part
from reflective_agents.nodes.agent import environment_of
from reflective_agents.nodes.remember import caller, store_of_process
from reflective_agents.nodes.step import Step
from reflective_agents.state.settings.auto import AutoContext

MOST = 1000
"""Runs of one kind that are counted."""


class Took(TypedDict):
    """What a stage took in one run, and whether it ended the run well."""

    calls: int
    well: bool


async def draw_odds(step: Step[AutoContext]) -> dict[Stage, list[float]]:
    """Draw what to expect of each stage: its chance to end the run well, and its calls; nothing unless the settings ask
    for it."""
    if (place := await _place(step)) is None:
        return {}
    runs = [item.value for item in await (get_runtime().store or store_of_process()).asearch(place, limit=MOST)]
    chances = random.Random(f"{step.context.seed} {len(runs)}")
    odds: dict[Stage, list[float]] = {
        stage: _drawn([run[stage] for run in runs if stage in run], chances) for stage in STAGES
    }
    step.emit("odds", runs=len(runs), **{stage: round(chance, 3) for stage, (chance, _) in odds.items()})
    return odds


async def keep_seen(state: AutoState, step: Step[AutoContext], well: bool) -> None:
    """Keep what each stage of a run took; done again, it changes nothing.

    Args:
        state: The state of the run.
        step: The node that ends it.
        well: Whether something has verified the answer, or its vote is safe.
    """
    if (place := await _place(step)) is not None:
        store = get_runtime().store or store_of_process()
        took = taken_by(state["turns"], step.meter.usage["model_calls"], well)
        await store.aput(place, state["run_id"], {**took}, index=False)


def taken_by(turns: Sequence[Turn], calls: int, well: bool) -> dict[str, Took]:
    """Return what each stage of a run took. The last one has ended it."""
    ends = [*(turn["model_calls"] for turn in turns), calls][1:]
    spent = Counter[str]()
    for turn, end in zip(turns, ends, strict=True):
        spent[turn["stage"]] += end - turn["model_calls"]
    stages = [turn["stage"] for turn in turns if turn["stage"]]
    return {stage: Took(calls=spent[stage], well=well and stage == stages[-1]) for stage in dict.fromkeys(stages)}


def _drawn(runs: Sequence[Mapping[str, int]], chances: random.Random) -> list[float]:
    """Draw the chance of a stage from Beta(1 + successes, 1 + failures)."""
    well = sum(run["well"] for run in runs)
    chance = chances.betavariate(1 + well, 1 + len(runs) - well)
    return [chance, sum(run["calls"] for run in runs) / len(runs) if runs else 0.0]


async def _place(step: Step[AutoContext]) -> tuple[str, ...] | None:
    """Return where runs of this kind are kept; None where they are not, or where rewards rest on the right answer."""
    environment = await environment_of(step.context)
    gold = step.context.gold_reward or (environment is not None and environment.needs_gold)
    if step.context.stages is None or gold:
        return None
    kind = environment.name if environment else "question"
    return "stages", *map(as_part, (caller() or "-", step.context.stages, kind))
