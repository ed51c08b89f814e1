"""Programming tasks: an action is a program, its observation how the visible tests went (HumanEval, MBPP).

Inside a run there are the visible tests only: the examples of the task, or tests that the agent wrote itself. The
hidden tests run once, in `score`.
"""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Self

from reflective_agents.environments.base import (
    Act,
    Environment,
    Example,
    Presets,
    State,
    Task,
    Transition,
    check_task,
    refuse,
)
from reflective_agents.environments.program_text import complete, find_examples, find_program, is_test
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonObject
from reflective_agents.text.joined import joined
from reflective_agents.tools.sandbox import choose_enclosure
from reflective_agents.tools.verdict import Report, run_tests


class Programming(Environment):
    """Functions to be written.

    A task's `question` describes the function. Its `data` holds `entry_point`, the function's name; `prompt`, the
    source to which a body is appended, which may be empty; `tests`, the visible tests; `hidden`, the others as one
    text. See `read_task`. The state's "tests" are those that a program has to pass.
    """

    name = "programming"
    actions = "a Python program that defines the function, in a ```python block"
    goal = "Write the Python function that is asked for, so that it passes all tests, also those that are not shown."
    rules = "The program is whole: it defines the function under its name, with all that it needs."
    effects = "Each program is run against the visible tests, and replaces the one before."
    answer_form = "Write the whole function in one ```python block."
    figure = "passed"
    correct_if = "the program passes all hidden tests"
    verifier = "tests"
    multiline = True
    scores_by_data = True
    runs_tests = True
    presets: ClassVar[Presets] = {"lats": {"max_depth": 7, "max_expansions": 50, "max_lessons": 4, "grading": "each"}}
    examples = (
        Example(
            "Write initial(word), which returns the first letter in upper case.\n\n"
            "Tests:\nassert initial('tree') == 'T'",
            (Act("The first letter is word[0].", "```python\ndef initial(word):\n    return word[0].upper()\n```"),),
            "The first letter is word[0].\n```python\ndef initial(word):\n    return word[0].upper()\n```",
        ),
        Example(
            "Write largest(xs), which returns the largest item, or None if there is none.\n\n"
            "Tests:\nassert largest([1, 3]) == 3\nassert largest([]) is None",
            (
                Act(
                    "max does that.",
                    "```python\ndef largest(xs):\n    return max(xs)\n```",
                    "Tests passed:\nassert largest([1, 3]) == 3\n\nTests failed:\nassert largest([]) is None "
                    "# output: ValueError: max() iterable argument is empty",
                ),
            ),
            "max does that.\n```python\ndef largest(xs):\n    return max(xs)\n```",
            solved=False,
            why="The empty list was overlooked: max(xs, default=None) passes both tests.",
        ),
    )

    def __init__(self, *, timeout: float = 5.0, memory_mb: int = 512, unsafe_subprocess: bool = False) -> None:
        """Choose the limits.

        Args:
            timeout: seconds that each test may take, above 0.
            memory_mb: memory that each process may have, in MiB.
            unsafe_subprocess: whether programs may run as plain processes where there is no sandbox.
        """
        self._timeout, self._memory_mb, self._unsafe = timeout, memory_mb, unsafe_subprocess

    @classmethod
    def from_settings(cls, docstore: str | None, unsafe_code: bool) -> Self:
        """Make it with or without a sandbox."""
        return cls(unsafe_subprocess=unsafe_code)

    async def ready(self) -> None:
        """Look for a sandbox."""
        await choose_enclosure(self._unsafe)

    def start(self, task: Task) -> State:
        """Return the state before the first program."""
        check_task(task)
        data = task.get("data", {})
        if not {"entry_point", "hidden"} <= data.keys():
            raise Misuse(f"Task {task.get('id', '')!r} is no programming task: its data needs entry_point and hidden.")
        return {"task": task, "tests": list(data.get("tests", [])), "answer": "", "done": False}

    def public(self, state: State) -> str:
        """Return the description of the function, and the visible tests."""
        tests = "\n".join(state["tests"])
        return f"{state['task']['question'].strip()}\n\nTests:\n{tests or 'none'}"

    def key(self, state: State) -> str:
        """Return a fingerprint of the last program and of the visible tests; empty before the first program."""
        if not state["answer"]:
            return ""
        text = "\0".join([self.canonical(state["answer"]), *state["tests"]])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    async def step(self, state: State, action: str) -> Transition:
        """Run the visible tests. The reward is the share that passes; without a test there is none.

        Raises:
            SandboxMissing: if programs cannot be run here, which no other action would change.
        """
        task = state["task"]
        program = self._program(task, action)
        if not program:
            return refuse(state, "There is no program in this.")
        if not state["tests"]:
            return Transition({**state, "answer": program}, "There is no visible test, so nothing was run.")
        report = await self._run(task, program, state["tests"])
        done = all(case.passed for case in report.cases)
        return Transition({**state, "answer": program, "done": done}, observe(report), report.fraction, done)

    def canonical(self, action: str) -> str:
        """Return the program without blank lines and blanks at the ends of lines."""
        lines = [line.rstrip() for line in find_program(action).split("\n")]
        return joined(lines)

    def with_final_reward(self, transition: Transition) -> Transition:
        """Return the transition unchanged: the value of a program without tests is unknown."""
        return transition

    def find_answer(self, text: str) -> str:
        """Return the whole text, from which the program is read."""
        return text.strip()

    def normal(self, answer: str) -> str:
        """Return the text as it is: in a program every character may count."""
        return answer.strip()

    def measurable(self, task: Task) -> bool:
        """Return True: the hidden tests say what is right."""
        return True

    def wants_tests(self, task: Task) -> bool:
        """Return whether a task shows no tests."""
        return not task.get("data", {}).get("tests")

    def with_own_tests(self, task: Task, text: str, most: int) -> Task:
        """Return the task with the assertions on its function that stand in a text, one a line."""
        data = task.get("data", {})
        lines = [line.strip() for line in text.splitlines()]
        tests = [line for line in lines if is_test(line, data.get("entry_point", ""))]
        return {**task, "data": {**data, "tests": tests[:most]}}

    async def passed(self, task: Task, answer: str, tests: Sequence[str]) -> list[bool]:
        """Return which tests a program passes.

        Raises:
            SandboxMissing: if programs cannot be run here.
        """
        program = self._program(task, answer)
        if not program:
            return [False] * len(tests)
        report = await self._run(task, program, list(tests))
        return [case.passed for case in report.cases]

    def request(self, task: Task) -> str:
        """Return the description of the function, and the form of a program."""
        question = task["question"]
        return f"Write this Python function. Give the whole program in one ```python block.\n\n{question}"

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Return whether a program passes the hidden tests ("passed"). Blocks: within a loop, use `measure`."""
        # In a thread of its own: `asyncio.run` refuses a thread in which a loop is running.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self.measure(task, answer)).result()

    async def measure(self, task: Task, answer: str) -> dict[str, float]:
        """Return the same as `score`."""
        report = await self._run(task, self._program(task, answer), [task.get("data", {})["hidden"]])
        return {"passed": report.fraction}

    def _program(self, task: Task, text: str) -> str:
        data = task.get("data", {})
        program = find_program(text, data["entry_point"])
        return complete(data.get("prompt", ""), data["entry_point"], program) if program else ""

    async def _run(self, task: Task, program: str, tests: list[str]) -> Report:
        prompt = task.get("data", {}).get("prompt", "")
        # HumanEval's prompts use names such as List, end within the function, and may define helpers for the tests.
        setup = f"from typing import *\n{prompt}\n    pass\n" if prompt else "from typing import *\n"
        return await run_tests(
            program,
            tests,
            task.get("data", {})["entry_point"],
            setup=setup,
            timeout=self._timeout,
            memory_mb=self._memory_mb,
            unsafe_subprocess=self._unsafe,
        )


def observe(report: Report) -> str:
    """Return the observation: the tests that passed, and those that failed, with their output."""
    passed: list[str] = []
    failed: list[str] = []
    for case in report.cases:
        if case.passed:
            passed.append(case.test)
        else:
            failed.append(f"{case.test} # output: {case.output}")
    return "\n".join(["Tests passed:", *passed, "", "Tests failed:", *failed])


def read_task(row: JsonObject) -> Task:
    """Read one row of HumanEval or of MBPP (either of its forms), as their files have it.

    The visible tests are HumanEval's examples and MBPP's given assertions.

    Raises:
        Misuse: if the row is neither.
    """
    if "test_list" in row and "code" in row:
        return _read_mbpp(row)
    if not {"prompt", "entry_point", "test"} <= row.keys():
        raise Misuse(f"Neither HumanEval nor MBPP: a row with {', '.join(row) or 'nothing'}.")
    prompt = str(row["prompt"])
    name = str(row["entry_point"])
    test = str(row["test"])
    # Some forms of HumanEval end with the call of `check`, the original leaves it to whoever runs the test.
    is_called = re.search(r"^(?:check|test_check)\(", test, re.MULTILINE)
    data = {
        "entry_point": name,
        "prompt": prompt,
        "tests": find_examples(prompt, name),
        "hidden": test if is_called else f"{test}\ncheck({name})\n",
    }
    return {"id": str(row.get("task_id", row.get("id"))), "question": prompt, "data": data}


def _read_mbpp(row: JsonObject) -> Task:
    """Read a row of MBPP. The setup of its tests may use the program, so each test contains it."""
    tests = [str(test) for test in row["test_list"]]
    setup = "\n".join([*row.get("test_imports", []), row.get("test_setup_code", "")]).strip()
    defined = re.findall(r"^def\s+(\w+)", str(row["code"]), re.MULTILINE)
    called = [name for name in defined if re.search(rf"\b{name}\s*\(", tests[0])]
    if not called:
        raise Misuse(f"MBPP task {row.get('task_id')}: the first test calls no function of the code.")
    visible = [f"{setup}\n{test}".strip() for test in tests]
    data = {"entry_point": called[0], "prompt": "", "tests": visible}
    hidden = "\n".join([setup, *tests, *row.get("challenge_test_list", [])])
    return {
        "id": str(row["task_id"]),
        "question": str(row.get("text") or row["prompt"]),
        "data": {**data, "hidden": hidden},
    }
