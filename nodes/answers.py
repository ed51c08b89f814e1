"""Answers inside texts, and the material that they are to be drawn from."""

from reflective_agents.environments.base import Environment, State
from reflective_agents.nodes.written import read_move


def read_answer(text: str, environment: Environment | None) -> str | None:
    """Read the answer of an agent that was asked for its best one; None if it wants to go on acting instead."""
    move = read_move(text)
    said = move["answer"] or move["action"] or move["thought"]
    answer = environment.find_answer(said) if environment else said
    gives_it = environment is not None and environment.final_action(answer) == answer
    wants_to_act = move["action"] and answer == said and not gives_it
    return None if wants_to_act else answer or None


def material(world: State) -> str:
    """Return the articles that a task brings with it, as text; empty if there are none."""
    data = (world.get("task") or {}).get("data") or {}
    articles = data.get("supporting") or []
    return "".join(f"{title}: {''.join(sentences)}\n\n" for title, sentences in articles)
