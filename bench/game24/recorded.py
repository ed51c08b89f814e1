"""A model that plays the game of 24 in every search: it says what GPT-4 was recorded to say of the same numbers.

It answers whatever a search may ask: for a list of next steps or for one, for a label, a judgement or a rating, and
for the state that a step leads to. It reads the numbers that are left out of the prompt, as a model does.
"""

import random
import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from bench.replays.records import Record
from reflective_agents.environments.game24 import Game24, Step, check_step, parse_step
from reflective_agents.testing.script import Reply, Request, likely
from reflective_agents.tree_search.label_values import grade_from_labels

GAME = Game24()
_LEFT = re.compile(r"Left: ((?:-?\d+(?:[./]\d+)?\b *)+)")
_STEP = re.compile(r"^(?:Action \d+: )?(\(?-?[\d./]+\)? [-+*/] .+)$", re.MULTILINE)
_ACTION = re.compile(r"<action>\n(.*)\n</action>")
_STATE = re.compile(r"<state>\n(.*?)\n</state>", re.DOTALL)


def left(text: str) -> str:
    """Return the numbers that are left at the end of a prompt, as the records write them."""
    matches = _LEFT.findall(text)
    if not matches:
        return ""
    return " ".join(map(str, sorted(map(Fraction, matches[-1].split()))))


def shown(request: Request) -> str:
    """Return what a request shows of a game: its last message, or all turns where steps are calls and results."""
    if _LEFT.search(request.last):
        return request.last
    lines: list[str] = []
    for message in request.messages:
        lines.append(message.text)
        lines += [call["args"].get("action", "") for call in getattr(message, "tool_calls", ())]
    return "\n".join(lines)


def after(numbers: str, action: str) -> str | None:
    """Return the numbers that are left after a step; None if it is illegal."""
    exact, step = tuple(map(Fraction, numbers.split())), parse_step(action)
    return left(f"Left: {_rest(exact, step)}") if step and check_step(exact, step) is None else None


def _rest(numbers: Sequence[Fraction], step: Step) -> str:
    rest = list(numbers)
    rest.remove(step.a)
    rest.remove(step.b)
    return " ".join(map(str, [*rest, step.c]))


def taken(text: str) -> list[str]:
    """Return the steps that a prompt contains."""
    return [line for line in _STEP.findall(text) if parse_step(line)]


class Player(ABC):
    """A model that plays. Subclasses say which steps come to its mind, and which labels it gives."""

    @abstractmethod
    def steps(self, numbers: str, request: Request) -> list[str]:
        """Return the next steps that the model thinks of, in order."""

    @abstractmethod
    def labels(self, numbers: str) -> Sequence[str]:
        """Return what the model says of numbers when it is asked several times."""

    def likelihood(self, numbers: str, step: str) -> float:
        """Return how likely the model thinks a step is, more than 0 and at most 1."""
        return 1.0

    def reflection(self, text: str) -> str:
        """Return what the model learns from a trajectory that has failed."""
        return "Other numbers should come first."

    def __call__(self, request: Request) -> Reply:
        """Answer a request."""
        numbers = left(shown(request))
        if request.schema:
            return self._form(request.schema, numbers, request.last)
        if "sure (it can be reached)" in request.text:
            labels = self.labels(numbers)
            return labels[request.index % len(labels)]
        if request.last.endswith("Reflection:"):
            return self.reflection(request.last)
        if "Predict the state" in request.last:
            return foreseen(numbers, request.last)
        return self._proposed(numbers, request)

    def _proposed(self, numbers: str, request: Request) -> Reply:
        """Reply with a list of steps, or with one of them at random."""
        steps = self.steps(numbers, request)
        if "Possible next steps:" in request.last:
            return "\n".join(steps) or "none"
        if "List up to" in request.last:
            return likely("\n".join(steps), *(self.likelihood(numbers, step) for step in steps)) if steps else "none"
        chosen = random.Random(f"{request.key} {request.index} {request.attempt}").choice(steps) if steps else "none"
        if "Write the most promising next action" in request.last:
            return likely(chosen, self.likelihood(numbers, chosen))
        return f"Thought: next.\nAction: {chosen}"

    def _form(self, schema: str, numbers: str, text: str) -> dict[str, Any]:
        parts = text.split("<candidate ")[1:]
        if schema == "Usefulness":
            return {"scores": [self._useful(numbers, part.partition("\n")[2].partition("\n")[0]) for part in parts]}
        if schema == "Judgements":
            return {"judgements": [self._judgement(left(part)) for part in parts]}
        return self._judgement(numbers)

    def _judgement(self, numbers: str) -> dict[str, Any]:
        return {"reasoning": f"{numbers} left", "score": grade_from_labels(self.labels(numbers)).score, "solved": False}

    def _useful(self, numbers: str, action: str) -> float:
        reached = after(numbers, action)
        return 0.0 if reached is None else grade_from_labels(self.labels(reached)).score


def foreseen(numbers: str, text: str) -> str:
    """Predict by arithmetic the state after the step at the end of a prompt."""
    (*_, state), (*_, action) = _STATE.findall(text), _ACTION.findall(text)
    reached = after(numbers, action)
    if reached is None:
        return "Impossible"
    ended = " " not in reached
    return f"{state.rpartition('Left:')[0]}{action}\nLeft: {reached}\nDone: {'yes' if ended else 'no'}"


class Recorded(Player):
    """GPT-4 as it was recorded: what it proposed and how it valued, by the numbers that were left.

    `asked` counts what it was asked, and `misses` what of that it was never asked in the recorded run: it then proposes
    nothing, and has no opinion.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self.proposals: dict[str, list[str]] = {r["key"]: r["texts"] for r in records if r["role"] == "propose"}
        self.values: dict[str, list[str]] = {r["key"]: r["samples"] for r in records if r["role"] == "value"}
        self.calls: Counter[str] = Counter()
        self.misses: Counter[str] = Counter()

    def steps(self, numbers: str, request: Request) -> list[str]:
        """Return the lines of a recorded list: the next list for each candidate, and each time it is asked."""
        texts = self.proposals.get(numbers, [])
        self.calls["propose"] += 1
        self.misses["propose"] += not texts
        return texts[(request.index + request.attempt) % len(texts)].splitlines() if texts else []

    def labels(self, numbers: str) -> Sequence[str]:
        """Return the recorded labels."""
        self.calls["value"] += 1
        self.misses["value"] += numbers not in self.values
        return self.values.get(numbers, ["?"])

    def likelihood(self, numbers: str, step: str) -> float:
        """Average 1 / the step's place over the recorded lists; a little where no list has the step."""
        texts = self.proposals.get(numbers, [])
        shares: defaultdict[str, float] = defaultdict(float)
        for text in texts:
            for rank, line in enumerate(text.splitlines(), 1):
                shares[GAME.canonical(line)] = max(shares[GAME.canonical(line)], 0.0) + 1 / rank / len(texts)
        return min(max(shares[GAME.canonical(step)], 1e-6), 1.0)


def reachable(task: str, lists: Mapping[str, list[str]]) -> bool:
    """Tell whether recorded proposals lead from a task's numbers to 24 at all."""
    seen: set[str] = set()
    todo = [left(f"Left: {task}")]
    while todo:
        numbers = todo.pop()
        if numbers == "24":
            return True
        if numbers not in seen:
            seen.add(numbers)
            for line in "\n".join(lists.get(numbers, [])).splitlines():
                reached = after(numbers, line)
                if reached:
                    todo.append(reached)
    return False
