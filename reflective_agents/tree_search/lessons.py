"""What is shown of lessons and hints, to who acts and to who judges."""

from collections.abc import Sequence

from langchain_core.messages import HumanMessage

from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.remembering.lessons import recalled_text
from reflective_agents.prompts import lats as prompts
from reflective_agents.prompts import search as search_prompts
from reflective_agents.state.tree import Lesson, TreeNode
from reflective_agents.tree_search.candidates import Branch


def lessons_text(branch: Branch) -> str:
    """Return the lessons from earlier runs and from failed trajectories and the hints of people, as text that ends its
    line, or empty."""
    parts = []
    if branch.earlier:
        parts.append(f"{recalled_text(branch.earlier)}\n")
    if branch.lessons:
        lessons = "\n".join(quoted("lesson", lesson) for lesson in branch.lessons)
        parts.append(prompts.LESSONS.format(lessons=lessons))
    return "".join([*parts, hints_text(branch.path)])


def lessons_messages(branch: Branch) -> list[HumanMessage]:
    """Return the same as a message, if there are any."""
    text = lessons_text(branch)
    return [HumanMessage(text)] if text else []


def own_lessons(lessons: Sequence[Lesson]) -> list[str]:
    """Return the lessons that were learned on this task, as text."""
    return [lesson["text"] for lesson in lessons if not lesson.get("earlier")]


def earlier_lessons(lessons: Sequence[Lesson]) -> list[str]:
    """Return the lessons that earlier runs have learned, as text."""
    return [lesson["text"] for lesson in lessons if lesson.get("earlier")]


def hints_text(path: Sequence[TreeNode]) -> str:
    """Return the hints of people on a path, as text that ends its line; empty if there are none."""
    hints = _hints(path)
    return search_prompts.HINTS.format(hints=hints) if hints else ""


def lessons_to_judge(branch: Branch) -> str:
    """Return lessons and hints for a judge, as text that ends its line: as material, for only the agent has to follow
    them."""
    parts = []
    if branch.lessons:
        lessons = "\n".join(quoted("lesson", lesson) for lesson in branch.lessons)
        parts.append(prompts.LESSONS_TO_JUDGE.format(lessons=lessons))
    if hints := _hints(branch.path):
        parts.append(search_prompts.HINTS_TO_JUDGE.format(hints=hints))
    return "".join(parts)


def _hints(path: Sequence[TreeNode]) -> str:
    hints = [node.get("hint", "") for node in path]
    return "\n".join(quoted("hint", hint) for hint in hints if hint)
