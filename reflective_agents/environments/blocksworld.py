"""Blocksworld: blocks on a table and one hand (PlanBench, arXiv 2206.10498; RAP, arXiv 2305.14992, section 4.1).

Tasks come from rows of a data set: see `environments.blocksworld_rows`.
"""

import re
from collections import deque

from reflective_agents.environments.base import Act, Environment, Example, State, Task, Transition, refuse
from reflective_agents.environments.blocks import (
    Move,
    apply_move,
    blocks_in,
    check_facts,
    check_move,
    in_words,
    is_fact,
    parse_move,
    possible_moves,
    read_plan,
    run_plan,
)
from reflective_agents.state.errors import Misuse

_STACKED = (
    "Now: the red block is clear, the hand is empty, the red block is on top of the blue block and the blue block is "
    "on the table.\nGoal: the blue block is on top of the red block."
)
EXAMPLES = (
    Example(
        _STACKED,
        (
            Act(
                "The red block has to go from the blue one first.",
                "unstack the red block from on top of the blue block",
                "Now: the blue block is clear, the hand is holding the red block and the blue block is on the table. "
                "Of the goal, 0% holds.",
            ),
            Act(
                "The red block must stand on the table.",
                "put down the red block",
                "Now: the blue block is clear, the red block is clear, the hand is empty, the blue block is on the "
                "table and the red block is on the table. Of the goal, 0% holds.",
            ),
            Act(
                "Now I can lift the blue block.",
                "pick up the blue block",
                "Now: the red block is clear, the hand is holding the blue block and the red block is on the table. Of "
                "the goal, 0% holds.",
            ),
            Act("It goes on the red one.", "stack the blue block on top of the red block"),
        ),
        "The red block is in the way and goes on the table; then the blue one goes on it.\nPlan:\n"
        "unstack the red block from on top of the blue block\nput down the red block\npick up the blue block\n"
        "stack the blue block on top of the red block",
    ),
    Example(
        _STACKED,
        (
            Act(
                "The blue block has to be on the red one.",
                "pick up the blue block",
                "Not possible: the blue block is not clear.",
            ),
        ),
        "The blue block goes on the red one.\nPlan:\npick up the blue block\n"
        "stack the blue block on top of the red block",
        solved=False,
        why="The red block lies on the blue one: it has to be moved away first.",
    ),
)
"""A tower of two that is turned upside down, and an attempt that overlooks the upper block."""

_PLAN = re.compile(r"plan:(.*)", re.IGNORECASE | re.DOTALL)


class Blocksworld(Environment):
    """The blocks as an environment.

    A task's `data` holds `init`, all facts that hold at first, and `goal`, those that are to hold; if `shortest` is
    there, it is the length of the shortest plan. The state holds the facts, sorted, and the plan so far. A task ends
    where the goal holds: there is no dead end. It ends as well with a whole plan from the beginning, which is one
    action for agents that answer at once: the line "Plan:" and then one of the four actions a line.
    """

    name = "blocksworld"
    correct_if = "its plan reaches the goal by the rules of the game"
    actions = (
        "`pick up the A block`, `put down the A block`, `stack the A block on top of the B block`, "
        "`unstack the A block from on top of the B block`"
    )
    goal = "Move the blocks, one at a time, until everything listed under Goal holds."
    rules = (
        "The hand holds one block at most. It picks a block up from the table, or unstacks it from another block, only "
        "if the hand is empty and the block is clear; then it holds the block, which is no longer clear, and the block "
        "below, if there is one, is clear. It puts the block that it holds down on the table, or stacks it on a block "
        "that is clear; then the hand is empty, the block is clear, and a block below it is clear no longer."
    )
    answer_form = "End with a line 'Plan:' and the actions of the plan, one a line, and nothing after them."
    examples = EXAMPLES
    scores_by_data = True

    def start(self, task: Task) -> State:
        """Return the state before the first action.

        Raises:
            Misuse: if the facts contradict each other, or the goal names other blocks, or holds already.
        """
        data = task.get("data", {})
        facts, goal = sorted(set(data.get("init", []))), set(data.get("goal", []))
        blocks = check_facts(facts)
        unknown = blocks_in(goal) - blocks
        if unknown or not goal or goal <= set(facts) or any(not is_fact(fact) for fact in goal):
            raise Misuse(
                f"Task {task.get('id', '')}: the goal must be of its blocks, {', '.join(sorted(blocks))}, and be open."
            )
        return {"task": task, "facts": facts, "plan": [], "done": False}

    def public(self, state: State) -> str:
        """Return what holds, and the goal."""
        return f"Now: {in_words(state['facts'])}.\nGoal: {in_words(state['task']['data']['goal'])}."

    def answer(self, state: State) -> str:
        """Return the plan, one action a line; empty before the task has ended."""
        return "\n".join(state["plan"]) if state["done"] else ""

    def key(self, state: State) -> str:
        """Return the facts, and whether the task has ended: how they came about does not matter."""
        ended = ["ended"] if state["done"] else []
        return "; ".join([*state["facts"], *ended])

    async def step(self, state: State, action: str) -> Transition:
        """Carry out one action, or a whole plan from the beginning; the reward is 1 where the goal then holds."""
        if match := _PLAN.fullmatch(action.strip()):
            return self._finish(state, match[1])
        move = parse_move(action)
        if move is None:
            return refuse(state, "No action can be read in this.")
        if why := check_move(state["facts"], move):
            return refuse(state, why)
        facts = apply_move(state["facts"], move)
        new = {**state, "facts": facts, "plan": [*state["plan"], str(move)]}
        if progress(new) == 1:
            return Transition({**new, "done": True}, "The goal is reached.", 1.0, True)
        return Transition(new, _observation(new))

    def _finish(self, state: State, text: str) -> Transition:
        """End the task with a plan: carry it out from the beginning, as far as possible."""
        plan = read_plan(text)
        if plan is None:
            return refuse(state, "No plan can be read in this.")
        facts, why = run_plan(state["task"]["data"]["init"], plan)
        new = {**state, "facts": facts, "plan": [*map(str, plan)], "done": True}
        if why or progress(new) < 1:
            return Transition(new, why or f"The plan does not reach the goal. {_observation(new)}", 0.0, True)
        return Transition(new, "The goal is reached.", 1.0, True)

    def is_action(self, line: str) -> bool:
        """Return whether a line is one of the four actions."""
        return parse_move(line) is not None

    def canonical(self, action: str) -> str:
        """Return an action, or each line of a plan, in the notation of `actions`."""
        match = _PLAN.fullmatch(action.strip())
        if match and (plan := read_plan(match[1])):
            return "\n".join(["Plan:", *map(str, plan)])
        move = parse_move(action)
        return str(move) if move else super().canonical(action)

    def legal_actions(self, state: State) -> list[str]:
        """Return every action that is possible; none once the task has ended."""
        return legal_actions(state)

    def final_action(self, answer: str) -> str:
        """Return a whole plan as one action."""
        return f"Plan:\n{answer}"

    def find_answer(self, text: str) -> str:
        """Return the whole text, from which the plan is read."""
        return text.strip()

    def normal(self, answer: str) -> str:
        """Return the actions in the notation of `actions`; empty if there is no plan."""
        return "\n".join(map(str, read_plan(answer) or []))

    def measurable(self, task: Task) -> bool:
        """Return True: the rules say what is right."""
        return True

    def request(self, task: Task) -> str:
        """Return the rules, the blocks and the goal, and how a plan is written."""
        return (
            "There are blocks on a table. A hand moves one block at a time, and can do this: pick up the A block (from "
            "the table), put down the A block (on the table), stack the A block on top of the B block, unstack the A "
            "block from on top of the B block. It lifts a block only if it is empty and nothing is on the block, and "
            f"stacks only on blocks that nothing is on.\n\n{task['question']}\n\n"
            "Give the plan, one action a line, and nothing else."
        )

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Return whether a plan reaches the goal ("solved"), and with the fewest actions if that is known ("optimal").

        What follows the point where the goal first holds counts as a part of the plan.
        """
        plan = read_plan(answer) or []
        data = task.get("data", {})
        facts, why = run_plan(data["init"], plan)
        solved = float(why is None and set(data["goal"]) <= set(facts))
        scores = {"solved": solved}
        shortest = data.get("shortest")
        if shortest is not None:
            scores["optimal"] = solved * (len(plan) <= shortest)
        return scores


def _observation(state: State) -> str:
    return f"Now: {in_words(state['facts'])}. Of the goal, {progress(state):.0%} holds."


def progress(state: State) -> float:
    """Return the share of the goal's facts that hold, from 0 to 1."""
    goal = set(state["task"]["data"]["goal"])
    return len(goal & set(state["facts"])) / len(goal)


def legal_actions(state: State) -> list[str]:
    """Return every action that is possible, in a fixed order; none once the goal holds."""
    return [] if state["done"] else [str(move) for move in possible_moves(state["facts"])]


def solve(state: State) -> list[str] | None:
    """Return a shortest plan from a state to the goal, or None if there is none.

    Searches breadth first: about 10 ms with five blocks, and ten times as long with each further block.
    """
    start = frozenset(state["facts"])
    goal = frozenset(state["task"]["data"]["goal"])
    pending: deque[frozenset[str]] = deque([start])
    reached_by: dict[frozenset[str], tuple[frozenset[str], Move] | None] = {start: None}
    while pending:
        facts = pending.popleft()
        if goal <= facts:
            return _plan_to(facts, reached_by)
        for move in possible_moves(facts):
            after = facts.difference(move.needs).union(move.brings)
            if after not in reached_by:
                reached_by[after] = (facts, move)
                pending.append(after)
    return None


def _plan_to(end: frozenset[str], reached_by: dict[frozenset[str], tuple[frozenset[str], Move] | None]) -> list[str]:
    plan, step = [], reached_by[end]
    while step:
        plan.append(str(step[1]))
        step = reached_by[step[0]]
    return plan[::-1]
