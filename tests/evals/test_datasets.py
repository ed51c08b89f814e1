"""Data sets in the forms in which they are published, and what is said of files that are none."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from reflective_agents import environments
from reflective_agents.cli.main import main
from reflective_agents.environments.arithmetic import final_number
from reflective_agents.environments.base import Task
from reflective_agents.evals.datasets import Dataset, load_dataset
from reflective_agents.evals.exchange_formats import WRITTEN
from reflective_agents.state.errors import Misuse
from reflective_agents.tools.arithmetic import evaluate

MBPP = {
    "task_id": 11,
    "code": "def double(x):\n    return 2 * x",
    "test_list": ["assert double(2) == 4", "assert double(0) == 0"],
}
HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": 'def half(x):\n    """Return half of x.\n    >>> half(4)\n    2\n    """\n',
    "entry_point": "half",
    "canonical_solution": "    return x // 2\n",
    "test": "def check(candidate):\n    assert candidate(8) == 4\n",
}
HOTPOT = {
    "_id": "5a8b57f25542995d1e6f1371",
    "answer": "yes",
    "question": "Were both of the same nationality?",
    "supporting_facts": [["A", 0]],
    "context": [["A", ["First. ", "Second."]], ["B", ["Third."]]],
    "type": "comparison",
    "level": "hard",
}
FEVER = {
    "id": 91198,
    "verifiable": "NOT VERIFIABLE",
    "label": "NOT ENOUGH INFO",
    "claim": "It happened in 1912.",
    "evidence": [[[108548, None, None, None]]],
}
GAME24 = (
    "Rank,Puzzles,AMT (s),Solved rate,1-sigma Mean (s),1-sigma STD (s)\n"
    "1,1 1 4 6,4.4,99.20%,4.67,1.48\n"
    "2,1 1 11 11,4.41,99.60%,4.68,1.45\n"
)
CROSSWORDS = [[[f"Clue {number}" for number in range(10)], list("agendwireramoverisenexert")]]

BLOCKS = ["instances/generated_basic/instance-1.pddl", "(unstack b a)\n(put-down b)\n(pick-up a)\n(stack a b)\n", 4]
FACTS = {
    "id": "f1",
    "init": ["on blue red", "ontable red", "clear blue", "handempty"],
    "goal": ["on red blue"],
    "gold_plan": ["unstack blue red", "put-down blue", "pick-up red", "stack red blue"],
}


def jsonl(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


FILES = {
    "hotpotqa, distractor": (json.dumps([HOTPOT]), "questions", HOTPOT["_id"]),
    "hotpotqa, without articles": (json.dumps([{**HOTPOT, "context": []}]), "questions", HOTPOT["_id"]),
    "fever": (jsonl(FEVER), "fever", "91198"),
    "fever, test set": (jsonl({"id": 7, "claim": "It is so."}), "fever", "7"),
    "humaneval": (jsonl(HUMANEVAL), "programming", "HumanEval/0"),
    "mbpp": (jsonl({**MBPP, "text": "Double a number.", "challenge_test_list": []}), "programming", "11"),
    "mbpp, sanitized": (json.dumps([{**MBPP, "prompt": "Double it.", "test_imports": []}]), "programming", "11"),
    "24.csv": (GAME24, "game24", "1"),
    "crosswords": (json.dumps(CROSSWORDS), "crosswords", "1"),
    "blocks, rap": (json.dumps([BLOCKS]), "blocksworld", "1"),
    "blocks, with facts": (jsonl(FACTS), "blocksworld", "f1"),
    "gsm8k": (jsonl({"question": "Six times eight?", "answer": "6 * 8 = 48.\n#### 48"}), "arithmetic", "1"),
    "langsmith": (jsonl({"id": "e1", "inputs": {"question": "Why?"}, "outputs": {"answer": "so"}}), "plain", "e1"),
    "inspect": (jsonl({"id": 4, "input": "Why?", "target": "so"}), "plain", "4"),
    "csv": ("question,answer\nWhy?,because\n", "plain", "1"),
    "jsonl": (jsonl({"question": "Why?", "answer": "because"}), "plain", "1"),
    "jsonl with numbers": (jsonl({"id": 3, "question": "How many?", "answer": 42}), "plain", "3"),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "set.of.tasks"


def loaded(file: Path, text: str, **options: Any) -> Dataset:
    file.write_text(text, "utf-8")
    return load_dataset(file, **options)


@pytest.mark.parametrize(("text", "environment", "name"), FILES.values(), ids=FILES)
def test_published_forms_are_told_apart(file: Path, text: str, environment: str, name: str) -> None:
    plain = loaded(file, text)
    assert (plain.name, plain.environment, plain.tasks[0]["id"]) == ("set", environment, name)
    file.write_bytes(gzip.compress(text.encode()))
    assert load_dataset(file) == plain


LANGSMITH = {
    "one text of another name": {"inputs": {"topic": "Why?"}, "outputs": {"verdict": 42}},
    "the usual name among others": {"inputs": {"style": "x", "input": "Why?"}, "outputs": {"output": "42", "x": "y"}},
    "reference_outputs": {"inputs": {"query": "Why?"}, "reference_outputs": {"label": "42"}, "metadata": {"x": "a"}},
}


@pytest.mark.parametrize("row", LANGSMITH.values(), ids=LANGSMITH)
def test_examples_of_langsmith(file: Path, row: Any) -> None:
    assert first(file, jsonl(row)) == {"id": "1", "question": "Why?", "gold": "42"}


def test_samples_of_inspect_with_messages_and_several_targets(file: Path) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    assert first(file, jsonl({"input": messages, "target": ["42", "so"]})) == {
        "id": "1",
        "question": "Why?",
        "gold": "42",
    }
    assert first(file, jsonl({"input": "Why?", "target": ""})) == {"id": "1", "question": "Why?"}


@pytest.mark.parametrize("form", WRITTEN)
def test_tasks_that_are_written_are_read_again(file: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = [Task(id="a", question="Why? \u2028 Ω", gold="so"), Task(id="b", question="Who?")]
    file.write_text(jsonl(*tasks), encoding="utf-8")
    assert main(["dataset", str(file), "--to", form]) == 0
    assert loaded(file, capsys.readouterr().out).tasks == tasks


@pytest.mark.parametrize("form", WRITTEN)
def test_articles_of_a_question_are_its_metadata(file: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(jsonl(HOTPOT, HOTPOT | {"_id": "2"}))
    assert main(["dataset", str(file), "--to", form, "--limit", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["metadata"] == {"context": HOTPOT["context"]}


def first(file: Path, text: str) -> Task:
    return loaded(file, text).tasks[0]


def test_question_answer_and_articles(file: Path) -> None:
    assert first(file, json.dumps([HOTPOT])) == {
        "id": HOTPOT["_id"],
        "question": HOTPOT["question"],
        "gold": "yes",
        "data": {"context": HOTPOT["context"]},
    }


def test_claim_and_label(file: Path) -> None:
    assert first(file, jsonl(FEVER)) == {"id": "91198", "question": FEVER["claim"], "gold": "NOT ENOUGH INFO"}


def test_numbers_of_the_game(file: Path) -> None:
    assert loaded(file, GAME24).tasks == [
        {"id": "1", "question": "1 1 4 6"},
        {"id": "2", "question": "1 1 11 11"},
    ]


def test_clues_and_letters(file: Path) -> None:
    task = first(file, json.dumps(CROSSWORDS))
    assert task["gold"] == "AGENDWIRERAMOVERISENEXERT"
    assert task["data"]["clues"] == CROSSWORDS[0][0]


def test_blocks_goal_and_plan(file: Path) -> None:
    task = first(file, jsonl(FACTS))
    assert task["data"] == {"init": sorted(FACTS["init"]), "goal": ["on red blue"], "shortest": 4}
    assert first(file, json.dumps([BLOCKS])) == {**task, "id": "1"}
    assert task["gold"].startswith("unstack the blue block from on top of the red block\nput down the blue block\n")
    unplanned = {name: value for name, value in FACTS.items() if name != "gold_plan"}
    assert first(file, jsonl(unplanned))["data"] == {"init": sorted(FACTS["init"]), "goal": ["on red blue"]}


def test_number_without_the_way_to_it(file: Path) -> None:
    row = {"question": "Six times eight?", "answer": "6 * 8 = <<6*8=48>>48.\n#### 1,048"}
    assert first(file, jsonl(row)) == {"id": "1", "question": "Six times eight?", "gold": "1,048"}
    given = loaded(file, jsonl({"id": "a", "question": "How many?", "gold": 7}), form="arithmetic")
    assert given.tasks == [{"id": "a", "question": "How many?", "gold": "7"}]


def test_shipped_questions_are_answered_as_they_are_worked_out() -> None:
    shipped = Path(environments.__file__).parent / "data" / "arithmetic.jsonl"
    tasks = load_dataset(shipped)
    assert (tasks.environment, len(tasks.tasks)) == ("arithmetic", 10)
    rows = [json.loads(line) for line in shipped.read_text("utf-8").splitlines()]
    for task, row in zip(tasks.tasks, rows, strict=True):
        worked_out = re.findall(r"([-+*/.\d ]*[-+*/][-+*/.\d ]*) = ([\d.]+)", row["answer"])
        assert worked_out
        assert all(evaluate(left) == evaluate(right.rstrip(".")) for left, right in worked_out), row
        assert final_number(worked_out[-1][1]) == final_number(task["gold"]) is not None, row


def test_programs_have_visible_and_hidden_tests(file: Path) -> None:
    data = first(file, jsonl(HUMANEVAL))["data"]
    assert data["tests"] == ["assert half(4) == 2"]
    assert data["hidden"].endswith("check(half)\n")
    assert first(file, jsonl({**MBPP, "text": "Double."}))["data"]["tests"] == MBPP["test_list"]


def test_csv_with_a_byte_order_mark_line_breaks_and_no_answer(file: Path) -> None:
    file.write_bytes('\ufeffid,question,answer\r\na,"Why,\r\nand how?",\r\nb,Who?,"he ""himself"""\r\n'.encode())
    assert load_dataset(file).tasks == [
        {"id": "a", "question": "Why,\r\nand how?"},
        {"id": "b", "question": "Who?", "gold": 'he "himself"'},
    ]


def test_csv_with_an_index_of_pandas(file: Path) -> None:
    file.write_text(",question,answer\n0,Why?,so\n1,Who?,me\n")
    assert load_dataset(file).tasks == [
        {"id": "1", "question": "Why?", "gold": "so"},
        {"id": "2", "question": "Who?", "gold": "me"},
    ]
    file.write_text(",question,answer\n0,Why?,so,more\n")
    with pytest.raises(Misuse, match="line 2: expected are 3 columns"):
        load_dataset(file)


def test_the_name_of_a_column_may_hold_other_separators(file: Path) -> None:
    file.write_text('question;answer;"notes, sources, links"\nWhy?;so;none\n')
    assert [(task["question"], task["gold"]) for task in load_dataset(file).tasks] == [("Why?", "so")]


@pytest.mark.parametrize("separator", [";", "\t", ",", ", "])
def test_csv_as_spreadsheet_programs_and_hands_write_it(separator: str, file: Path) -> None:
    file.write_text(f'question{separator}answer\n"Why, and how?"{separator}so\n')
    assert load_dataset(file).tasks == [{"id": "1", "question": "Why, and how?", "gold": "so"}]


def test_csv_with_a_long_field(file: Path) -> None:
    question = "Why? " * 40_000
    file.write_text(f"question,answer\n{question},so\n")
    assert load_dataset(file).tasks[0]["question"] == question.strip()


def test_limit_and_shuffling(file: Path) -> None:
    text = jsonl(*({"question": f"{number}?"} for number in range(20)))
    assert [task["question"] for task in loaded(file, text, limit=2).tasks] == ["0?", "1?"]
    shuffled = load_dataset(file, seed=3).tasks
    assert shuffled != load_dataset(file).tasks
    assert sorted(task["id"] for task in shuffled) == sorted(map(str, range(1, 21)))
    assert load_dataset(file, seed=3, limit=5).tasks == shuffled[:5]


def test_format_can_be_given(file: Path) -> None:
    rows = jsonl({"id": "1", "question": "Why?", "context": "none", "answer": "because"})
    with pytest.raises(Misuse, match=r"line 1: context"):
        loaded(file, rows)
    assert loaded(file, rows, form="plain").environment == "plain"


def test_fingerprint_tells_tasks_apart(file: Path) -> None:
    why, who = jsonl({"question": "Why?"}), jsonl({"question": "Who?"})
    prints = [loaded(file, text).fingerprint for text in (why, who, why)]
    assert prints[0] == prints[2] != prints[1]
    assert len(prints[0]) == 16


BAD = {
    "empty": ("", "holds no task"),
    "header only": ("question,answer\n", "holds no task"),
    "another table": ("name,age\nx,3\n", "line 2: no known format in (name, age); expected are hotpotqa, fever, mbpp"),
    "names in capitals": ("Question,Answer\nWhy?,so\n", "in (Question, Answer); expected"),
    "another separator": ("question|answer\nWhy?|so\n", "in (question|answer); expected"),
    "objects of others": (jsonl({"q": "Why?", "a": "so"}), "line 1: no known format in (q, a); expected"),
    "a name of two lines": ('"the\nname",age\nx,3\n', "in (the name, age); expected"),
    "a long name": (f"{'n' * 1000},age\nx,3\n", f"in ({'n' * 200}...); expected"),
    "a name of two lines, too few cells": ('question,"the\nanswer"\nWhy?\n', "2 columns (question, the answer)"),
    "no names": ("{}", "line 1: no known format; expected"),
    "too many cells": ("question,answer\nWhy?,so,else\n", "line 2: expected are 2 columns (question, answer)"),
    "too few cells": ("question,answer\nWhy?,so\nWho?\n", "line 3: expected are 2 columns"),
    "open quotation": ('question,answer\n"Why?,so\n', "no CSV"),
    "no question": (jsonl({"question": "Why?"}, {"question": " "}), "line 2: question: must have at least 1"),
    "broken line": (jsonl({"question": "Why?"}) + '{"question": "Wh', "line 2: not valid JSON"),
    "broken list": ('[{"question": "Why?"},\n{"question"]', "line 2: not valid JSON"),
    "list of numbers": ("[1, 2]", "item 1: no known format"),
    "another label": (jsonl({**FEVER, "label": "MAYBE"}), "line 1: label: must be 'SUPPORTS', 'REFUTES' or"),
    "no numbers": (GAME24.replace("1 1 11 11", "one two"), "line 3: Puzzles: must match"),
    "nine clues": (json.dumps([[["x"] * 9, ["a"] * 25]]), "item 1: clues: must have at least 10 items"),
    "few letters": (json.dumps([[["x"] * 10, ["a"] * 24]]), "item 1: letters: must match"),
    "no test": (jsonl({key: value for key, value in HUMANEVAL.items() if key != "test"}), "line 1: test: is missing"),
    "test of nothing": (jsonl({**MBPP, "text": "x", "test_list": ["assert True"]}), "line 1: MBPP task 11: the first"),
    "half a world": (jsonl({**FACTS, "init": ["on blue red"]}), "line 1: The facts contradict each other"),
    "no fact": (jsonl({**FACTS, "init": ["blue over red"]}), "line 1: 'blue over red' is no fact"),
    "no goal": (jsonl({**FACTS, "goal": ["blue over red"]}), "line 1: 'blue over red' is no goal"),
    "empty goal": (jsonl({**FACTS, "goal": []}), "line 1: Task f1: the goal must be of its blocks, blue, red"),
    "impossible plan": (json.dumps([[*BLOCKS[:1], "(stack a b)\n(stack a b)", 2]]), "item 1: The plan can be carried"),
    "no plan": (json.dumps([[*BLOCKS[:1], "(fly a)", 1]]), "item 1: The plan holds a line that is none"),
    "reached goal": (jsonl({**FACTS, "goal": ["on blue red"]}), "line 1: Task f1: the goal must be of its blocks"),
    "no number": (jsonl({"question": "Why?", "answer": "#### so"}), "line 1: answer: 'so' is not a number"),
    "one id twice": (jsonl({"id": "a", "question": "1?"}, {"id": "a", "question": "2?"}), "line 2: the id a is there"),
    "two inputs": (jsonl({"inputs": {"a": "1", "b": "2"}}), "line 1: inputs: expected is one text, or"),
    "no user": (jsonl({"input": [{"role": "system", "content": "x"}], "target": ""}), "line 1: input: the messages"),
    "deep": ("[" * 100_000, "not valid JSON"),
}


@pytest.mark.parametrize(("text", "line"), BAD.values(), ids=BAD)
def test_bad_file_is_named_with_its_line(file: Path, text: str, line: str) -> None:
    with pytest.raises(Misuse) as misuse:
        loaded(file, text)
    error = str(misuse.value)
    assert error.startswith(str(file))
    assert line in error
    assert "\n" not in error


@pytest.mark.parametrize("data", [b"question\nWhy\xff?\n", gzip.compress(b"question\nWhy?\n", mtime=0)[:-9]])
def test_file_that_cannot_be_read(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    with pytest.raises(Misuse, match=r"line 2: no text in UTF-8|cannot be read \("):
        load_dataset(file)


def test_missing_file_and_unknown_format(file: Path) -> None:
    with pytest.raises(Misuse, match=r"cannot be read \(No such file"):
        load_dataset(file)
    with pytest.raises(Misuse, match="unknown format 'xml': there are hotpotqa, fever"):
        loaded(file, "question\nWhy?\n", form="xml")


RECORDED = {
    "bench_hotpot100_distractor": (67, "questions"),
    "bench_hotpot_dev": (4492, "questions"),
    "bench_fever_dev": (5985, "fever"),
    "bench_humaneval": (105, "programming"),
    "bench_humaneval_multipl_e": (102, "programming"),
    "bench_mbpp": (205, "programming"),
    "bench_game24": (819, "game24"),
    "bench_crosswords": (97, "crosswords"),
    "bench_rap_blocksworld": (126, "blocksworld"),
    "bench_blocksworld_v1": (354, "blocksworld"),
}


@pytest.mark.parametrize(("name", "expected"), RECORDED.items())
def test_recorded_data_sets_are_read_in_full(recorded: Path, name: str, expected: tuple[int, str]) -> None:
    tasks = load_dataset(recorded / f"{name}.dev.jsonl.gz")
    assert (len(tasks.tasks), tasks.environment) == expected
    assert all(task["question"] for task in tasks.tasks)
