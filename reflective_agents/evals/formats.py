"""The forms of data sets that are read: one class each, whose fields are what a row must have.

A new one is one more class in `FORMATS`. Every form is read as its makers publish it, and with the names `id` and
`gold` in place of theirs.
"""

from typing import Annotated, Literal

from pydantic import AliasChoices, Field, StringConstraints

from reflective_agents.environments import arithmetic, crosswords, game24
from reflective_agents.environments.arithmetic import final_number
from reflective_agents.environments.base import Task
from reflective_agents.environments.blocksworld import Blocksworld as Blocks
from reflective_agents.environments.blocksworld_rows import read_task as read_blocks
from reflective_agents.environments.fever import FactChecking
from reflective_agents.environments.plain import PLAIN
from reflective_agents.environments.programming import Programming, read_task
from reflective_agents.environments.questions import Questions
from reflective_agents.evals.exchange_formats import Inspect, LangSmith
from reflective_agents.evals.format_base import Format, Gold, Row, Text, as_row, new_task
from reflective_agents.state.errors import Misuse


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
    context: list[tuple[str, list[str]]] = Field(default=[])

    def task(self, number: int) -> Task:
        """Return the question with its articles."""
        context = [[title, sentences] for title, sentences in self.context]
        return new_task(self.id, self.question, self.gold, {"context": context} if context else {})


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
        return new_task(self.id, self.claim, self.label)


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
    test_imports: list[str] = Field(default=[])
    challenge_test_list: list[str] = Field(default=[])

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
        return new_task(self.id, " ".join(self.numbers.split()))


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
        return new_task(self.id or str(number), question, self.letters, {"clues": self.clues})


class Blocksworld(Format):
    """Blocks to be put on each other (RAP's lists of PDDL file, plan and length, or rows with the facts)."""

    environment = Blocks.name
    expects = '{"init": [fact, ...], "goal": [fact, ...], "gold_plan": [action, ...]}, or [PDDL file, plan, length]'
    marks = (frozenset({"init", "goal"}), frozenset({"raw"}))

    id: str = ""
    init: list[Text] = Field(default=[])
    goal: list[Text] = Field(default=[])
    gold_plan: list[Text] = Field(default=[])
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
        return new_task(self.id or str(number), self.question, gold)


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
        return new_task(self.id or str(number), self.question, self.answer)


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
