"""The forms of data sets that are read: one class each, whose fields are what a row must have.

A new one is one more class in `FORMATS`. Every form is read as its makers publish it, and with the names `id` and
`gold` in place of theirs.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from reflective_agents.environments import arithmetic, crosswords, game24
from reflective_agents.environments.arithmetic import final_number
from reflective_agents.environments.base import Task
from reflective_agents.environments.blocksworld import Blocksworld as Blocks
from reflective_agents.environments.blocksworld_rows import read_task as read_blocks
from reflective_agents.environments.fever import FactChecking
from reflective_agents.environments.plain import PLAIN
from reflective_agents.environments.programming import Programming, read_task
from reflective_agents.environments.questions import Questions
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonObject

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
T = TypeVar("T")
Row = Any
"""What a file holds for one task: an object with names, or a list."""


def _unless_blank(value: T) -> T | None:
    """Take an empty cell for a missing one."""
    return None if isinstance(value, str) and not value.strip() else value


Gold = Annotated[str | None, BeforeValidator(_unless_blank)]


class Format(BaseModel):
    """A row of a data set, checked."""

    model_config = ConfigDict(coerce_numbers_to_str=True, extra="allow", frozen=True)

    environment: ClassVar[str]
    """The name of the environment that its tasks belong to."""
    expects: ClassVar[str]
    """What a row must have, in words."""
    marks: ClassVar[tuple[frozenset[str], ...]]
    """Sets of names: a row that has all of one set is of this form."""

    @classmethod
    def fits(cls, row: Row) -> bool:
        """Return whether a row seems to be of this form."""
        return isinstance(row, dict) and any(mark <= row.keys() for mark in cls.marks)

    @abstractmethod
    def task(self, number: int) -> Task:
        """Return the task of a row; `number`, from 1, is its place in the file, for rows without a name.

        Raises:
            Misuse: if the environment cannot make a task of it.
        """


class HotpotQA(Format):
    """Questions with articles or without (HotpotQA: the files of the distractor and the full wiki setting)."""

    environment = Questions.name
    expects = '{"_id": ..., "question": ..., "answer": ..., "context": [[title, [sentence, ...]], ...]}'
    marks = (
        frozenset({"_id", "question"}),
        frozenset({"question", "context"}),
        frozenset({"question", "gold", "type"}),
    )

    id: Text = Field(validation_alias=AliasChoices("_id", "id"))
    question: Text
    gold: Gold = Field(None, validation_alias=AliasChoices("answer", "gold"))
    context: list[tuple[str, list[str]]] = []

    def task(self, number: int) -> Task:
        """Return the question with its articles."""
        context = [[title, sentences] for title, sentences in self.context]
        return _task(self.id, self.question, self.gold, {"context": context} if context else {})


class Fever(Format):
    """Claims (FEVER)."""

    environment = FactChecking.name
    expects = '{"id": ..., "claim": ..., "label": "SUPPORTS" | "REFUTES" | "NOT ENOUGH INFO"}'
    marks = (frozenset({"claim"}),)

    id: Text
    claim: Text
    label: Literal["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"] | None = Field(
        None, validation_alias=AliasChoices("label", "gold")
    )

    def task(self, number: int) -> Task:
        """Return the claim."""
        return _task(self.id, self.claim, self.label)


class HumanEval(Format):
    """Functions to be completed (HumanEval)."""

    environment = Programming.name
    expects = '{"task_id": ..., "prompt": ..., "entry_point": ..., "test": ...}'
    marks = (frozenset({"prompt", "entry_point"}),)

    task_id: Text = Field(validation_alias=AliasChoices("task_id", "id"))
    prompt: str
    entry_point: Text
    test: Text

    def task(self, number: int) -> Task:
        """Return the task with its tests."""
        return read_task(self.model_dump(include={"task_id", "prompt", "entry_point", "test"}))


class Mbpp(Format):
    """Functions to be written (MBPP, in full or sanitized)."""

    environment = Programming.name
    expects = '{"task_id": ..., "text" or "prompt": ..., "code": ..., "test_list": [...]}'
    marks = (frozenset({"test_list"}),)

    task_id: Text
    text: Text = Field(validation_alias=AliasChoices("text", "prompt"))
    code: Text
    test_list: list[Text] = Field(min_length=1)
    test_setup_code: str = ""
    test_imports: list[str] = []
    challenge_test_list: list[str] = []

    def task(self, number: int) -> Task:
        """Return the task with its tests."""
        return read_task(self.model_dump())


class Game24(Format):
    """Numbers to make 24 of (24.csv of Tree of Thoughts)."""

    environment = game24.Game24.name
    expects = "the columns Rank and Puzzles, such as 1 and 4 5 6 10"
    marks = (frozenset({"Puzzles"}), frozenset({"input", "rank"}))

    id: str = Field(validation_alias=AliasChoices("id", "Rank"))
    numbers: Annotated[str, StringConstraints(pattern=r"^\s*[0-9]{1,6}(\s+[0-9]{1,6}){0,5}\s*$")] = Field(
        validation_alias=AliasChoices("Puzzles", "input")
    )

    def task(self, number: int) -> Task:
        """Return the numbers."""
        return _task(self.id, " ".join(self.numbers.split()))


class Crosswords(Format):
    """Mini crosswords (the JSON files of Tree of Thoughts: a list of clues and letters)."""

    environment = crosswords.Crosswords.name
    expects = "[[ten clues], [25 letters]]"
    marks = (frozenset({"clues"}),)

    id: str = ""
    clues: list[str] = Field(min_length=10, max_length=10)
    letters: Annotated[str, StringConstraints(pattern=r"^[A-Za-z]{25}$", to_upper=True)] | None = Field(
        None, validation_alias=AliasChoices("letters", "board_gt")
    )

    @classmethod
    def fits(cls, row: Row) -> bool:
        """Return whether a row is a pair of lists, or has clues."""
        return super().fits(row) or isinstance(row, list)

    def task(self, number: int) -> Task:
        """Return the clues, and the solution if it is known."""
        question = "\n".join(self.clues)
        return _task(self.id or str(number), question, self.letters, {"clues": self.clues})


class Blocksworld(Format):
    """Blocks to be put on each other (RAP's lists of PDDL file, plan and length, or rows with the facts)."""

    environment = Blocks.name
    expects = '{"init": [fact, ...], "goal": [fact, ...], "gold_plan": [action, ...]}, or [PDDL file, plan, length]'
    marks = (frozenset({"init", "goal"}), frozenset({"raw"}))

    id: str = ""
    init: list[Text] = []
    goal: list[Text] = []
    gold_plan: list[Text] = []
    raw: tuple[Text, Text, int] | None = None

    @classmethod
    def fits(cls, row: Row) -> bool:
        """Return whether a row has facts, or is a list that holds a plan."""
        return super().fits(row) or (isinstance(row, list) and "raw" in as_row(row))

    def task(self, number: int) -> Task:
        """Return the blocks, the goal, and the plan if there is one."""
        fields = {"raw"} if self.raw else {"init", "goal", "gold_plan"}
        task = read_blocks({"id": self.id or str(number), **self.model_dump(include=fields)})
        Blocks().start(task)  # refuses what makes no sense
        return task


class Arithmetic(Format):
    """Word questions with a number as the answer (GSM8K: the number follows "####")."""

    environment = arithmetic.Arithmetic.name
    expects = '{"question": ..., "answer": "... #### 48"}'
    marks = (frozenset({"question", "answer"}),)

    id: Gold = None
    question: Text
    answer: Gold = Field(None, validation_alias=AliasChoices("answer", "gold"))

    @classmethod
    def fits(cls, row: Row) -> bool:
        """Return whether the answer of a row ends as GSM8K's do."""
        return super().fits(row) and "####" in str(row["answer"])

    def task(self, number: int) -> Task:
        """Return the question, and the number without the way to it."""
        gold = self.answer and self.answer.rpartition("####")[2].strip()
        if gold is not None and final_number(gold) is None:
            raise Misuse(f"answer: {gold!r} is not a number: expected is {self.expects}")
        return _task(self.id or str(number), self.question, gold)


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
        return _task(self.id or str(number), question, gold)


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
        return _task(self.id or str(number), question, target.strip() or None)


class Plain(Format):
    """Any questions, with their answers or without."""

    environment = PLAIN.name
    expects = 'question and answer, as the columns of a CSV file or as {"question": ..., "answer": ...}'
    marks = (frozenset({"question"}),)

    id: Gold = None
    question: Text
    answer: Gold = Field(None, validation_alias=AliasChoices("answer", "gold"))

    def task(self, number: int) -> Task:
        """Return the question."""
        return _task(self.id or str(number), self.question, self.answer)


# The most particular first: a question with an answer fits several.
FORMATS: dict[str, type[Format]] = {
    "hotpotqa": HotpotQA,
    "fever": Fever,
    "mbpp": Mbpp,
    "humaneval": HumanEval,
    "game24": Game24,
    "blocksworld": Blocksworld,
    "crosswords": Crosswords,
    "arithmetic": Arithmetic,
    "langsmith": LangSmith,
    "inspect": Inspect,
    "plain": Plain,
}
"""The forms by name, in the order in which they are tried."""


def as_row(row: Row) -> Row:
    """Give a row that is a list, as those of crosswords and of plans are, its names; leave any other as it is."""
    match row:
        case [list() as clues, list() as letters]:
            return {"clues": clues, "letters": "".join(map(str, letters))}
        case [str(), str(), int()]:
            return {"raw": row}
        case _:
            return row


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


def _task(name: str, question: str, gold: str | None = None, data: JsonObject | None = None) -> Task:
    task = Task(id=name, question=question)
    if gold is not None:
        task["gold"] = gold
    if data:
        task["data"] = data
    return task
