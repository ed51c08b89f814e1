"""What single verifiers find: what a function returns, and what code measures."""

import math
from pathlib import Path
from typing import Any, get_args

import pytest

from reflective_agents.models.language import _SCRIPTS, _SMALL, name_of
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers.finding import LONGEST, Case, Finding, NoVerdict
from reflective_agents.nodes.verifiers.function import read_reply
from reflective_agents.nodes.verifiers.program import check_program
from reflective_agents.nodes.verifiers.verdict import VERIFY
from reflective_agents.state.errors import Misuse
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.state.verifier_forms import Language, VerifiedRun, arguments
from reflective_agents.state.verifiers import read_verifier


@pytest.mark.parametrize(
    ("reply", "finding"),
    [
        (True, Finding(1)),
        (False, Finding(0)),
        (0.25, Finding(0.25)),
        (1, Finding(1)),
        (None, Finding(1)),
        ("", Finding(1)),
        ("Too cold.", Finding(0, "Too cold.")),
        ({"score": 0.5, "feedback": "Warm it."}, Finding(0.5, "Warm it.")),
        ({"score": True}, Finding(1)),
        ("a\0b\ud800", Finding(0, "ab\ufffd")),
    ],
)
def test_what_a_function_may_return(reply: object, finding: Finding) -> None:
    assert read_reply(reply) == finding


@pytest.mark.parametrize(
    "reply", [math.nan, math.inf, -0.1, 1.1, 10**400, [], object(), {}, {"score": 1, "feedback": 3}]
)
def test_what_is_no_verdict(reply: object) -> None:
    with pytest.raises(NoVerdict):
        read_reply(reply)


def test_feedback_is_cut() -> None:
    assert len(read_reply("x" * 10_000_000).feedback) == LONGEST


def test_a_function_takes_two_or_three_arguments() -> None:
    assert arguments(lambda request, answer: True) == 2
    assert arguments(lambda request, answer, run=None: True) == 3
    assert arguments(lambda *given: True) == 3
    assert arguments(lambda request, answer, most=3: True) == 2
    assert arguments(lambda request, answer, run, most=3: True) == 3
    assert arguments(lambda answer: True) is None


@pytest.mark.parametrize(
    ("verifier", "answer", "accepted"),
    [
        ({"min_words": 3}, "One two three", True),
        ({"min_words": 4}, "One two three", False),
        ({"max_words": 2}, "One two three", False),
        ({"min_characters": 3, "max_characters": 3}, "abc", True),
        ({"max_characters": 2}, "abc", False),
        ({"pattern": "^[A-Z]"}, "Abc", True),
        ({"pattern": "^[A-Z]"}, "abc", False),
        ({"pattern": "(a*)*$b"}, "a" * 5_000, False),
        ({"schema": {"type": "object", "required": ["a"]}}, '{"a": 1}', True),
        ({"schema": {"type": "object", "required": ["a"]}}, '{"b": 1}', False),
        ({"schema": {"type": "object"}}, "[1]", False),
        ({"schema": {"type": "object"}}, "[" * 100_000, False),
        ({"schema": {"type": "object"}}, "So: {}", False),
        ({"schema": {"type": "object"}}, '{"a": NaN}', False),
        ({"language": "English"}, "The bees come back when the lindens bloom.", True),
        ({"language": "English"}, "Die Bienen kommen nach Hause, wenn die Linden und der Klee blühen.", False),
        ({"language": "German"}, "Die Bienen kommen nach Hause, wenn die Linden und der Klee blühen.", True),
        ({"language": "German"}, "The bees come back when the lindens bloom.", False),
        ({"language": "Chinese"}, "蜜蜂在椴树开花时回来。", True),
        ({"language": "Japanese"}, "蜜蜂在椴树开花时回来。", False),
        ({"language": "German"}, "Мёд стоит дорого.", False),
        ({"language": "Greek"}, "Honey costs 150 crowns.", False),
    ],
)
async def test_what_code_measures(verifier: dict[str, Any], answer: str, accepted: bool) -> None:
    found = await verify(verifier, answer)
    assert (found.score == 1) is accepted
    assert bool(found.feedback) is not accepted


async def verify(verifier: Any, answer: str) -> Finding:
    form = read_verifier(verifier)
    step = Step(ReactContext(), {}, lambda _: None)
    case = Case("Why?", answer, VerifiedRun(messages=[], sources={}))
    return await VERIFY[type(form)](step, form, case)


@pytest.mark.parametrize("answer", ["42", "Paris", "", "Honey costs 150 crowns."])
async def test_a_few_words_may_be_of_any_language(answer: str) -> None:
    assert (await verify({"language": "German"}, answer)).score == 1


async def test_a_language_that_cannot_be_told_is_no_verdict() -> None:
    polish = "Pszczoły wracają do domu wieczorem, kiedy kwitną lipy, koniczyna, gryka oraz rzepak."
    with pytest.raises(NoVerdict):
        await verify({"language": "German"}, polish)


def test_the_languages_are_those_that_are_told_apart() -> None:
    names = {name_of(text) for text in ("蜜蜂在椴树开花时回来。", "みつばちが帰る。")}
    assert {"Japanese"} < names
    listed = set(get_args(Language.model_fields["language"].annotation))
    assert listed == {*_SMALL, *_SCRIPTS, "English", "Chinese", "Japanese"}


class Tensor:
    """Raises as tensors of several numbers do."""

    def __float__(self) -> float:
        raise RuntimeError("a tensor with 2 elements is no number")

    def __bool__(self) -> bool:
        raise RuntimeError("a tensor with 2 elements is no truth")


async def exits(request: str, answer: str) -> bool:
    raise SystemExit(3)


@pytest.mark.parametrize(
    "function",
    [lambda request, answer: Tensor(), lambda request, answer: {"score": 1, "feedback": Tensor()}, exits],
    ids=["score", "feedback", "exits"],
)
async def test_what_raises_when_it_is_read_is_no_verdict(function: Any) -> None:
    with pytest.raises(NoVerdict, match="it raises"):
        await verify(function, "x")


PROGRAM = "So:\n```python\ndef double(n):\n    return 2 * n\n```"
FILE = "CASES = [(1, 2), (3, 6)]\n\ndef test_small():\n    for n, twice in CASES:\n        assert double(n) == twice\n"


@pytest.mark.matrix(keep=2)
@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("tests", "score"),
    [
        (["assert double(2) == 4"], 1.0),
        (["assert double(2) == 4", "assert double(2) == 5"], 0.5),
        (FILE, 1.0),
        (FILE + "\ndef test_other():\n    assert double(0) == 1\n", 0.5),
        ("assert double(1) == 2", 1.0),
    ],
)
async def test_the_program_of_an_answer_is_tested(tests: str | list[str], score: float, tmp_path: Path) -> None:
    if isinstance(tests, str):
        (tmp_path / "double_tests.py").write_text(tests)
        tests = str(tmp_path / "double_tests.py")
    found = await verify({"tests": tests, "entry_point": "double"}, PROGRAM)
    assert found.score == score
    assert ("# output:" in found.feedback) is (score < 1)
    assert "CASES" not in found.feedback


CHECK = """import sys
if "honey" in sys.stdin.read():
    sys.exit(0)
print("Say", sys.argv[1])
sys.exit(1)
"""


@pytest.mark.thorough
@pytest.mark.sandbox
async def test_a_command_reads_the_answer(tmp_path: Path) -> None:
    check = tmp_path / "check.py"
    check.write_text(CHECK)
    verifier = {"command": [str(check), "honey"]}
    assert await verify(verifier, "I sell honey.") == Finding(1)
    assert await verify(verifier, "I sell wax.") == Finding(0, "Say honey")
    for broken in ("1 / 0", "while True: pass", "import os\nos.kill(os.getpid(), 9)"):
        check.write_text(broken)
        with pytest.raises(NoVerdict):
            await verify_within(verifier, "x")


async def verify_within(verifier: Any, answer: str) -> Finding:
    form = read_verifier(verifier)
    step = Step(ReactContext(verifiers=[verifier], verifier_timeout=2), {}, lambda _: None)
    return await VERIFY[type(form)](step, form, Case("Why?", answer, VerifiedRun(messages=[], sources={})))


@pytest.mark.parametrize("verifier", [{"tests": "none.py", "entry_point": "f"}, {"command": ["none.py"]}])
async def test_a_file_that_cannot_be_read_is_refused_at_the_start(verifier: dict[str, Any]) -> None:
    with pytest.raises(Misuse, match=r"none\.py"):
        await check_program(read_verifier(verifier))
