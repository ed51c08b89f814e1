"""A second question on a thread: sources keep their numbers, whatever strategy answers."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from reflective_agents.graphs import builder_of
from reflective_agents.testing.checker import checked
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
QUESTIONS = ("What of the moon?", "And what of the sea?")
PAGES = {"sea": "The sea is deep.", "moon": "The moon is round."}
MOON, SEA = "[1] Moon, https://moon.example/", "[2] Sea, https://sea.example/"
ROLES = [{"name": "anna", "instructions": "Look it up.", "strategy": "react"}]
STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "react": {},
    "reflexion": {},
    "rap": {"n": 1, "confidence_samples": 1, "max_rollouts": 1, "proposals": "samples"},
    "plan": {"worker": "react"},
    "team": {"roles": ROLES},
    "trials": {"actor": "react"},
    "lats": {"n": 1},
    "best_of_n": {"n": 1},
    "ab_mcts": {},
    "tree_of_thoughts": {"n": 1},
    "auto": {},
}


def shelf(query: str) -> list[dict[str, str]]:
    """Find the page on the sea where that is named, else the one on the moon."""
    name = "sea" if "sea" in query.lower() else "moon"
    return [{"title": name.title(), "url": f"https://{name}.example/", "content": PAGES[name]}]


def marks(text: str) -> dict[str, str]:
    """Return the marks by which a prompt lets its reader cite: as results, or in answers and reports, have them."""
    shown = {name.lower(): number for number, name in re.findall(r'"number": (\d+), "title": "(\w+)"', text)}
    cited = dict(re.findall(r"The (sea|moon) is \w+ \[(\w+)\]", text))
    return cited | shown


def reading(request: Request) -> Reply:
    """Cite what was read, by the marks that it was shown with."""
    asks_more = QUESTIONS[1] in request.text or "goal: the sea" in request.text
    topic, known = "sea" if asks_more else "moon", marks(request.text)
    statements = [f"{PAGES[name][:-1]} [{known[name]}]." for name in PAGES if name in known]
    if request.schema:
        return form(request, topic, " ".join(statements), done=topic in known)
    if "Write sub-question" in request.last:
        return "Now we can answer the question."
    if topic not in known:
        return ToolUse("search", {"query": topic}) if request.tools else f"So.\nAnswer: On the {topic}."
    return " ".join(statements)


def form(request: Request, topic: str, answer: str, done: bool) -> Reply:
    """Fill in a form: everything is accepted."""
    judgement = {"reasoning": "So.", "score": 0.9, "solved": True}
    candidates = max(request.last.count("<candidate"), 1)
    reports = request.last.count('<candidate number="')
    task = {"to": "anna", "task": f"Your goal: the {topic}."}
    reflection = {"missing": "", "superfluous": "", "complete": done}
    written = {"answer": answer or "Nothing.", "reflection": reflection, "search_queries": [] if done else [topic]}
    forms: dict[str, Reply] = {
        "Judgement": judgement,
        "Judgements": {"judgements": [judgement] * candidates},
        "Usefulness": {"scores": [0.9] * candidates},
        "Plan": {"subgoals": [{"id": f"find-{topic}", "goal": f"The goal: the {topic}.", "needs": []}]},
        "Delegation": {
            "critique": "So.",
            "best": reports,
            "score": 0.9 if reports else 0,
            "done": bool(reports),
            "tasks": [] if reports else [task],
        },
        "AnswerQuestion": written,
        "ReviseAnswer": written,
    }
    return forms[request.schema or ""]


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_sources_keep_their_numbers_through_a_thread(strategy: str) -> None:
    stored: Any = builder_of(strategy).compile(checkpointer=InMemorySaver())
    context = {"model": FakeChatModel(reply=checked(reading)), "search": shelf, **STRATEGIES[strategy]}
    first, second = [
        await stored.ainvoke({"messages": [("user", question)]}, CONFIG, context=context) for question in QUESTIONS
    ]
    assert first["answer"] == f"The moon is round [1].\n\nReferences:\n{MOON}"
    body, _, references = second["answer"].partition("\n\nReferences:\n")
    assert "The sea is deep [2]." in body
    assert "The moon" not in body or "The moon is round [1]." in body
    assert references.splitlines() == [*([MOON] if "The moon" in body else []), SEA]
