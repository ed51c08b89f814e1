"""Answers inside texts: where they stand, and when two of them are the same."""

import re
from typing import Any

from environments.actions import parse_action
from environments.arithmetic import Arithmetic
from environments.metrics import normalise_answer
from nodes.acting import read_move

_FINISH = re.compile(r"finish\s*\[", re.IGNORECASE)
_LABEL = re.compile(r"(?:final\s+)?answer\s*:\s*", re.IGNORECASE)


WHOLE = ("programming", "crosswords", "blocksworld")
"""Environments whose answers are whole texts."""


def find_answer(text: str, environment: str = "") -> str:
    """The answer that a text ends with: after `Finish[`, else after the last `Answer:`, else the last line.

    A program, a board of letters or a plan is the whole text, from which the environment reads it.
    """
    if environment in WHOLE:
        return text.strip()
    if finishes := list(_FINISH.finditer(text)):
        action = parse_action(text[finishes[-1].start() :])
        return action.argument if action else ""
    if labels := list(_LABEL.finditer(text)):
        return text[labels[-1].end() :].strip().split("\n")[0].strip()
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def read_answer(text: str, environment: str = "") -> str | None:
    """The answer of an agent that was asked for its best one; None if it wants to act on instead."""
    move = read_move(text)
    said = move["answer"] or move["action"] or move["thought"]
    answer = find_answer(said, environment) if environment else said
    wants_to_act = move["action"] and answer == said and environment != "programming"
    return None if wants_to_act else answer or None


def normal_form(answer: str, environment: str = "") -> str:
    """What is counted when samples vote: answers that differ only in form are one."""
    if environment == "game24":
        return re.sub(r"\s+", "", answer.casefold())
    if environment in WHOLE:
        return answer.strip()
    if environment == "arithmetic":
        return Arithmetic().same(f"Answer: {answer}")
    return normalise_answer(answer)


def material(world: dict[str, Any]) -> str:
    """The articles that a task brings with it, as text; empty if it brings none."""
    data = (world.get("task") or {}).get("data") or {}
    articles = data.get("supporting") or []
    return "".join(f"{title}: {''.join(sentences)}\n\n" for title, sentences in articles)
