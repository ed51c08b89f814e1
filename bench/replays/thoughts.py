"""What the replays of Tree of Thoughts share: a model for each record, keyed by role and state, and its run."""

import re
from typing import Any, NamedTuple

from bench.replays.keyed import Recorded
from reflective_agents.environments.base import Task
from reflective_agents.graphs import tree_of_thoughts
from reflective_agents.state.settings.tree_of_thoughts import TreeOfThoughtsContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Request, Script
from reflective_agents.text.labels import without_marker

LIMITS: dict[str, Any] = {"search": "none", "max_model_calls": 100_000, "max_total_tokens": 10**9, "max_seconds": 9999}
"""Settings under which nothing but the end of a search ends it."""
MARK = "\u2063"
"""A character that nobody sees: it tells texts apart that are the same."""

Result = dict[str, Any]


class Key(NamedTuple):
    """What a model is asked: in which role, and about which state of which task, as the prompt shows it."""

    role: str
    shown: str


class Model(Recorded[Key, str]):
    """A script for the fake chat models that answers what the log answers to the same state."""

    def __call__(self, request: Request) -> str:
        """Answer a request with what the log answers."""
        return self.take(key_of(request))


def key_of(request: Request) -> Key:
    """Return what a request of the graph asks for."""
    found = re.search(r"<task>\n(.*?)\n</task>", request.last, re.DOTALL)
    if found is None:
        return Key("conclude", request.last)
    return Key("propose" if request.last.endswith("Possible next steps:") else "value", found[1])


def run_of(task: Task, model: Script, settings: TreeOfThoughtsContext) -> Any:
    """Return the run of a task with its own model, to be awaited."""
    context = settings.model_copy(update={"model": FakeChatModel(reply=model)})
    return tree_of_thoughts.graph.ainvoke({"messages": [("user", task["question"])], "task": task}, context=context)


def marked(line: str, again: int) -> str:
    """Return a text so that all of it is read and no two are equal, with a mark for each time it came before."""
    return f"{MARK}{line}{MARK}{MARK * again}" if again or not line or line != without_marker(line) else line


def unmarked(text: str) -> tuple[str, bool]:
    """Return the text itself, and whether it has come before."""
    found = re.fullmatch(f"{MARK}(.*?){MARK}({MARK}*)", text, re.DOTALL)
    return (found[1], bool(found[2])) if found else (text, False)
