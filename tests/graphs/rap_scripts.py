"""Models of the world for the tests: one that knows the rules of the blocksworld, and what it is asked."""

import random
import re
from collections.abc import Callable
from typing import Any

from reflective_agents.environments.base import State
from reflective_agents.environments.blocks import apply_move, check_move, parse_move
from reflective_agents.environments.blocksworld import Blocksworld, legal_actions, progress, solve
from reflective_agents.testing.script import Reply, Request, Script, likely

_FACTS = {
    r"the (\w+) block is on top of the (\w+) block": "on {} {}",
    r"the (\w+) block is on the table": "ontable {}",
    r"the (\w+) block is clear": "clear {}",
    r"the hand is holding the (\w+) block": "holding {}",
    r"the hand is empty()": "handempty{}",
}


def tagged(tag: str, text: str) -> list[str]:
    """What stands in these tags."""
    return re.findall(rf"<{tag}\b[^>]*>\n(.*?)\n</{tag}>", text, re.DOTALL)


def facts(text: str) -> list[str]:
    """The facts that a text in words tells."""
    found = ((form, match.groups()) for pattern, form in _FACTS.items() for match in re.finditer(pattern, text))
    return sorted({form.format(*blocks) for form, blocks in found})


def blocks_of(request: Request) -> State:
    """The state of the blocksworld that a prompt shows."""
    now, goal = tagged("state", request.last)[-1].split("\nGoal: ")
    task = {"id": "", "question": "", "data": {"goal": facts(goal)}}
    return {"task": task, "facts": facts(now), "plan": [], "done": False}


def foreseen(request: Request) -> str:
    """What the rules say of an action."""
    state, move = blocks_of(request), parse_move(tagged("action", request.last)[-1])
    if move is None or check_move(state["facts"], move):
        return "Impossible: the rules forbid it."
    after = {**state, "facts": apply_move(state["facts"], move)}
    return f"{Blocksworld().public(after)}\nDone: {'yes' if progress(after) == 1 else 'no'}"


def proposed(request: Request, chance: float = 1.0) -> list[tuple[str, float]]:
    """Every legal action with its likelihood; the highest has with this chance one that is on a shortest way."""
    state, dice = blocks_of(request), random.Random(request.last)
    legal, plan = legal_actions(state), solve(state)
    best = plan[0] if plan and dice.random() < chance else dice.choice(legal)
    return [(action, 0.75 if action == best else 0.5) for action in legal]


def planner(chance: float = 1.0, foresee: Callable[[Request], str] = foreseen) -> Script:
    """A model that proposes actions with their likelihoods, and foresees what they bring."""

    def reply(request: Request) -> Reply:
        if "Predict the state" in request.last:
            return foresee(request)
        if "Nothing more can be foreseen" in request.last:
            return "Final Answer: pick up the red block"
        actions = proposed(request, chance)
        return likely("\n".join(action for action, _ in actions), *(likelihood for _, likelihood in actions))

    return reply


def scored(request: Request, scores: dict[str, float]) -> dict[str, Any]:
    """How useful candidates are, by what stands in them; 0.1 if nothing of it does."""
    candidates = tagged("candidate", request.text)
    return {"scores": [next((s for name, s in scores.items() if name in each), 0.1) for each in candidates]}
