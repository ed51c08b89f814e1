"""Programming tasks: reading them, rewarding programs, and what the recorded programs are worth."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from reflective_agents.environments.base import Task
from reflective_agents.environments.program_text import complete, find_examples, find_program
from reflective_agents.environments.programming import Programming, read_task
from reflective_agents.state.errors import Misuse, SandboxMissing

pytestmark = pytest.mark.sandbox

Load = Callable[[str], list[dict[str, Any]]]

PROMPT = '''from typing import List

def helper(x: int) -> int:
    """Return x."""
    return x

def add(numbers: List[int]) -> int:
    """ Add numbers.
    >>> add([1, 2])
    3
    add([]) == 0
    add([5]) -> the number itself
    """
'''
HUMANEVAL = {
    "task_id": "HumanEval/999",
    "prompt": PROMPT,
    "entry_point": "add",
    "canonical_solution": "    return sum(numbers)\n",
    "test": "def check(candidate):\n    assert candidate([4, 5]) == helper(9)\n",
}
MBPP = {
    "task_id": 999,
    "text": "Write a function that sums a chain of nodes.",
    "code": "class Node: ...\ndef deep(node): ...\ndef total(node): ...",
    "test_list": ["assert total(root) == 3", "assert total(None) == 0"],
    "test_setup_code": "root = Node(1)\nroot.next = Node(2)",
    "challenge_test_list": ["assert total(Node(7)) == 7"],
}
NODES = """
class Node:
    def __init__(self, value): self.value, self.next = value, None
def total(node): return node.value + total(node.next) if node else 0
"""


def humaneval() -> Task:
    return read_task(HUMANEVAL)


async def test_a_right_program_ends_the_task() -> None:
    env = Programming()
    action = "```python\nreturn sum(numbers)\n```"
    state, observation, reward, done, valid = await env.step(env.start(humaneval()), action)
    assert observation == "Tests passed:\nassert add([1, 2]) == 3\nassert add([]) == 0\n\nTests failed:"
    assert (reward, done, valid) == (1.0, True, True)
    assert env.answer(state) == f"{PROMPT}    return sum(numbers)"
    assert await env.measure(humaneval(), env.answer(state)) == {"passed": 1.0}


async def test_a_wrong_program_is_told_what_it_did() -> None:
    env = Programming()
    before = env.start(humaneval())
    state, observation, reward, done, valid = await env.step(before, "def add(numbers):\n    return len(numbers)")
    assert observation == ("Tests passed:\nassert add([]) == 0\n\nTests failed:\nassert add([1, 2]) == 3 # output: 2")
    assert (reward, done, valid) == (0.5, False, True)
    assert before == env.start(humaneval())
    assert await env.measure(humaneval(), env.answer(state)) == {"passed": 0.0}


async def test_without_tests_there_is_no_reward() -> None:
    env = Programming()
    state = {**env.start(humaneval()), "tests": []}
    transition = await env.step(state, "    return 1")
    assert (transition.reward, transition.done, transition.valid) == (None, False, True)
    assert "nothing was run" in transition.observation


async def test_an_action_without_a_program_is_refused() -> None:
    env = Programming()
    transition = await env.step(env.start(humaneval()), "```python\n```")
    assert not transition.valid
    assert env.actions not in transition.observation


def test_the_hidden_test_is_not_shown() -> None:
    env = Programming()
    shown = env.public(env.start(humaneval()))
    assert "assert add([1, 2]) == 3" in shown
    assert "candidate" not in shown
    assert "sum(" not in shown


def test_score_measures_outside_a_loop() -> None:
    assert Programming().score(humaneval(), "    return sum(numbers)") == {"passed": 1.0}
    assert Programming().score(humaneval(), "") == {"passed": 0.0}


async def test_score_measures_inside_a_loop_too() -> None:
    assert Programming().score(humaneval(), "    return 0") == {"passed": 0.0}


@pytest.mark.thorough
async def test_mbpp_as_its_file_has_it() -> None:
    env = Programming()
    task = read_task(MBPP)
    assert task["data"]["entry_point"] == "total"
    assert (await env.step(env.start(task), NODES)).reward == 1.0
    assert await env.measure(task, NODES) == {"passed": 1.0}
    assert await env.measure(task, NODES.replace("else 0", "else 1")) == {"passed": 0.0}


@pytest.mark.parametrize("row", [{}, {"prompt": "x"}, {**MBPP, "code": "x = 1"}])
def test_other_rows_are_refused(row: dict[str, Any]) -> None:
    with pytest.raises(Misuse):
        read_task(row)


def test_other_tasks_are_refused() -> None:
    with pytest.raises(Misuse, match="entry_point"):
        Programming().start({"id": "1", "question": "Who?"})


async def test_where_nothing_can_run_it_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    env = Programming()
    with pytest.raises(SandboxMissing):
        await env.step(env.start(humaneval()), "    return 0")
    allowed = Programming(unsafe_subprocess=True)
    transition = await allowed.step(allowed.start(humaneval()), "    return sum(numbers)")
    assert transition.reward == 1.0
    assert "sandbox" not in transition.observation, "that is no concern of the model's"


def test_same_ignores_the_fence_and_blanks() -> None:
    env = Programming()
    for text in ("Here:\n```py\nx = 1  \n\ny = 2\n```\nDone.", "x = 1\ny = 2\n"):
        assert env.canonical(text) == "x = 1\ny = 2"
    assert env.canonical("x = 1") != env.canonical("x = 2")


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("def f():\n    pass\n", "def f():\n    pass"),
        ("    return 1\n", "    return 1"),
        ("So:\n```python\ndef f(): pass\n```\nUse it:\n```\nprint(f(), 'and a longer text')\n```", "def f(): pass"),
        ("```\nx\n```\n```\nlonger\n```", "longer"),
        ("It is\n```python\ndef f(): pass", "def f(): pass"),
        ("  ```\n  y\n  ```", "  y"),
        ("", ""),
    ],
)
def test_finding_the_program(text: str, program: str) -> None:
    assert find_program(text, "f") == program


@pytest.mark.parametrize(
    "text",
    [
        "    y = x\n    return y",
        "y = x\n    return y",
        "y = x\nreturn y",
        "for y in [x]:\n    return y",
        "def f(x):\n    return x",
        "import math\n\ndef f(x):\n    return x",
        "f = lambda x: x",
    ],
)
def test_a_body_or_a_whole_function(text: str) -> None:
    names: dict[str, Any] = {}
    exec(compile(complete("def f(x):\n    '''Return x.'''\n", "f", text), "program", "exec"), names)
    assert names["f"](7) == 7


def test_examples_that_are_no_literal_calls_are_left_out() -> None:
    prompt = (
        'def f(x):\n    """\n    >>> f("a\\nb")\n    [1, 2]\n    >>> g(1)\n    2\n    f(a) -> 1\n    f(1) => 3\n'
        '    f(2) == None if so\n    >>> f(len(\'ab\'))\n    True"""\n'
    )
    assert find_examples(prompt, "f") == [
        'assert f("a\\nb") == [1, 2]',
        "assert f(len('ab')) == True",
        "assert f(1) == 3",
    ]


SOME = slice(None, None, 8)
"""Rows that are run, to stay quick. The programs of the other logs are all run by `tests/replays`."""


async def passing(programs: list[tuple[Task, str]]) -> list[bool]:
    """Return which programs pass the hidden tests, two measured at a time."""
    two, env = asyncio.Semaphore(2), Programming(timeout=200, memory_mb=1024)

    async def measure(task: Task, program: str) -> bool:
        async with two:
            return (await env.measure(task, program))["passed"] == 1

    return await asyncio.gather(*(measure(task, program) for task, program in programs))


@pytest.fixture
def tasks(load: Load) -> dict[str, Task]:
    return {row["id"]: read_task(row) for name in ("bench_humaneval", "bench_mbpp") for row in load(name)}


@pytest.mark.thorough
async def test_the_solutions_of_humaneval_pass_what_is_hidden_and_what_is_visible(
    load: Load, tasks: dict[str, Task]
) -> None:
    env = Programming()
    rows = load("bench_humaneval")[SOME]
    solutions = [(tasks[row["id"]], row["canonical_solution"]) for row in rows]
    assert len(solutions) > 12
    assert all(await passing(solutions))
    examples = [(env.start(task), text) for task, text in solutions if task["data"]["tests"]]
    assert len(examples) > len(rows) / 3
    assert [(await env.step(state, text)).reward for state, text in examples] == [1.0] * len(examples)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        "reflexion_humaneval_gpt4",
        "simple_humaneval_gpt4",
        "simple_humaneval_gpt4_b",
        "reflexion_mbpp_gpt4",
        "simple_mbpp_gpt4",
    ],
)
async def test_recorded_programs_pass_as_recorded(name: str, load: Load, tasks: dict[str, Task]) -> None:
    rows = [row for row in load(name) if any(out.get("final") for out in row["outputs"])][SOME]
    programs = [(tasks[row["id"]], out["text"]) for row in rows for out in row["outputs"] if out.get("final")]
    recorded = {row["id"]: bool(row["verdict"]["exec_pass"]) for row in rows}
    assert len(programs) == len(rows) > 12
    assert dict(zip(recorded, await passing(programs), strict=True)) == recorded
