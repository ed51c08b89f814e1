"""Tasks of the blocksworld from rows of data sets: with facts (RAP), or with a plan alone (its list form)."""

from collections.abc import Sequence

from reflective_agents.environments.base import Task
from reflective_agents.environments.blocks import Move, check_facts, in_words, is_fact, read_plan, run_plan
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonObject

_COLOURS = ["red", "blue", "orange", "yellow", "white", "magenta", "black", "cyan", "green", "violet", "silver", "gold"]
COLOURS = dict(zip("abcdefghijkl", _COLOURS, strict=True))
"""The blocks of PDDL files as PlanBench names them in words."""


def read_task(row: JsonObject) -> Task:
    """Return the task of a row.

    Args:
        row: `id`, and either `init`, `goal` and if known `gold_plan` (a list of actions), or `raw`: the name of a PDDL
            file, its plan, and the number of actions. The file itself is in no row, so the facts of such a task are
            those that its plan needs, and the goal is the towers after the plan; see `facts_of_plan`.

    Returns:
        The task. `gold` is the plan, one action a line; `data` holds `init`, `goal`, and the plan's length as
        `shortest`: the plans of both data sets are shortest ones.

    Raises:
        Misuse: if the row is neither, or its facts or its plan are inconsistent.
    """
    if "raw" in row:
        plan = [_coloured(move) for move in _plan(str(row["raw"][1]))]
        return _task(str(row["id"]), *facts_of_plan(plan), plan)
    if not {"init", "goal"} <= row.keys():
        raise Misuse(f"No task of the blocksworld: a row with {', '.join(row) or 'nothing'}.")
    return _task(str(row["id"]), row["init"], row["goal"], _plan("\n".join(row.get("gold_plan") or [])))


def _plan(text: str) -> list[Move]:
    plan = read_plan(text)
    if plan is None and text:
        raise Misuse("The plan holds a line that is none of the four actions.")
    return plan or []


def _coloured(move: Move) -> Move:
    return Move(move.verb, COLOURS.get(move.block, move.block), COLOURS.get(move.below, move.below))


def facts_of_plan(plan: Sequence[Move]) -> tuple[list[str], list[str]]:
    """Return the facts of the smallest state in which a plan can be carried out, and the towers that it builds.

    A block whose position the plan does not tell stands on the table; there are no blocks that the plan does not name.

    Args:
        plan: The actions.

    Returns:
        All facts before the plan, and those of the kind "on" after it.

    Raises:
        Misuse: if no state allows the plan.
    """
    init: set[str] = set()
    now: set[str] = set()
    for move in plan:
        new = set(move.needs) - now
        init |= new
        now = (now | new) - set(move.needs) | set(move.brings)
    blocks = set[str]()
    for move in plan:
        blocks |= {move.block, move.below} if move.below else {move.block}
    placed = set[str]()
    covered = set[str]()
    for fact in init:
        match fact.split():
            case ["on", block, below]:
                placed.add(block)
                covered.add(below)
            case ["ontable" | "holding", block]:
                placed.add(block)
    on_table = {f"ontable {block}" for block in blocks - placed}
    clear = {f"clear {block}" for block in blocks - covered}
    facts = sorted(init | on_table | clear)
    end, why = run_plan(facts, plan)
    try:
        check_facts(facts)
    except Misuse as error:
        raise Misuse("The plan can be carried out in no world.") from error
    if why:
        raise Misuse(f"The plan can be carried out in no world. {why}")
    return facts, [fact for fact in end if fact.startswith("on ")]


def _task(name: str, init: Sequence[str], goal: Sequence[str], plan: Sequence[Move]) -> Task:
    check_facts(init)
    for fact in goal:
        if not is_fact(fact):
            raise Misuse(f"{fact!r} is no goal of the blocksworld, such as on red blue.")
    question = f"{in_words(init)}. Goal: {in_words(goal)}."
    data: JsonObject = {"init": sorted(init), "goal": [*goal]}
    task = Task(id=name, question=question[:1].upper() + question[1:], data=data)
    if plan:
        task["gold"] = "\n".join(map(str, plan))
        data["shortest"] = len(plan)
    return task
