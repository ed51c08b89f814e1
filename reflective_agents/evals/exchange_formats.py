"""The forms in which LangSmith and inspect_ai exchange tasks, which are read and written."""

from collections.abc import Callable

from pydantic import AliasChoices, Field

from reflective_agents.environments.base import Task
from reflective_agents.environments.plain import PLAIN
from reflective_agents.evals.format_base import Format, Gold, Row, Text, new_task
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonObject


class LangSmith(Format):
    """Examples as LangSmith exports them: named inputs and outputs."""

    environment = PLAIN.name
    expects = '{"inputs": {"question": ...}, "outputs": {"answer": ...}}'
    marks = (frozenset({"inputs"}),)

    id: Gold = None
    inputs: JsonObject
    outputs: JsonObject | None = Field(None, validation_alias=AliasChoices("outputs", "reference_outputs"))

    def task(self, number: int) -> Task:
        """Return the question, and the answer if there is one."""
        question = _the_text(self.inputs, "inputs", "question", "input", "query", "text")
        gold = _the_text(self.outputs, "outputs", "answer", "output", "label", "expected") if self.outputs else None
        return new_task(self.id or str(number), question, gold)


class Inspect(Format):
    """Samples as inspect_ai reads and writes them: an input, as text or as messages, and a target."""

    environment = PLAIN.name
    expects = '{"input": ..., "target": ...}'
    marks = (frozenset({"input", "target"}),)

    id: Gold = None
    input: Text | list[JsonObject]
    target: str | list[str] = ""

    def task(self, number: int) -> Task:
        """Return the last message of the user, and the target; of several targets, the first."""
        question = self.input if isinstance(self.input, str) else _last_user_text(self.input)
        target = self.target if isinstance(self.target, str) else (self.target or [""])[0]
        return new_task(self.id or str(number), question, target.strip() or None)


def _the_text(named: JsonObject, what: str, *usual: str) -> str:
    """Return the one text among named values: that of a usual name, else the only one."""
    texts = {name: str(value) for name, value in named.items() if isinstance(value, str | int | float)}
    for name in usual:
        if name in texts:
            return texts[name]
    if len(texts) == 1:
        return texts.popitem()[1]
    raise Misuse(f"{what}: expected is one text, or one named {' or '.join(usual)}; there are {', '.join(named)}")


def _last_user_text(messages: list[JsonObject]) -> str:
    texts = [str(message.get("content", "")) for message in messages if message.get("role") == "user"]
    if not texts or not texts[-1].strip():
        raise Misuse("input: the messages hold none of a user with text")
    return texts[-1]


def as_langsmith(task: Task) -> JsonObject:
    """Return a task as an example of LangSmith; what an environment knows of it becomes its metadata."""
    example: JsonObject = {"id": task["id"], "inputs": {"question": task["question"]}}
    if "gold" in task:
        example["outputs"] = {"answer": task["gold"]}
    return example | _metadata(task)


def as_inspect(task: Task) -> JsonObject:
    """Return a task as a sample of inspect_ai; what an environment knows of it becomes its metadata."""
    return {"id": task["id"], "input": task["question"], "target": task.get("gold", "")} | _metadata(task)


WRITTEN: dict[str, Callable[[Task], Row]] = {"langsmith": as_langsmith, "inspect": as_inspect}
"""The forms that are written, too."""


def _metadata(task: Task) -> dict[str, object]:
    return {"metadata": task["data"]} if "data" in task else {}
