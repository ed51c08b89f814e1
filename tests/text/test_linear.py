"""No reader of model text can be frozen: a long text takes about as much work as ten texts of a tenth of it."""

import time
from collections.abc import Callable

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import invalid_tool_call

from reflective_agents.environments.arithmetic import Arithmetic
from reflective_agents.nodes.acting.react_text import as_call, parse_answer, parse_step
from reflective_agents.nodes.evidence.citation_reader import CitationReader
from reflective_agents.nodes.evidence.citations import resolve_citations
from reflective_agents.nodes.evidence.support import read_sentences
from reflective_agents.state.tool_calls import with_call_ids
from reflective_agents.text.declining import declines
from reflective_agents.text.labels import answer_in, bare, choice_in, last_word, sections, without_label, without_marker
from reflective_agents.text.normal import normal_form
from reflective_agents.text.structure import read_calls, read_object

ARITHMETIC = Arithmetic()
READERS: list[Callable[[str], object]] = [
    answer_in,
    bare,
    without_marker,
    choice_in,
    normal_form,
    declines,
    lambda text: without_label(text, "answer"),
    lambda text: last_word(text, ["sure"]),
    lambda text: list(sections(text)),
    lambda text: read_object(text, ["a"], "a"),
    lambda text: read_calls(text, ["a"]),
    lambda text: parse_step(text, ["a"]),
    lambda text: parse_step(text, environment=ARITHMETIC),
    lambda text: parse_answer(text, None),
    lambda text: parse_answer(text, ARITHMETIC),
    ARITHMETIC.canonical,
    lambda text: as_call(text, []),
    lambda text: resolve_citations(text, ['[{"url": "https://a.example", "content": "A."}]']),
    lambda text: read_sentences(text, {"1": text[:1_000]}),
]
UNITS = [
    "Orra costs 6.40 [1]. ",
    *(sign for sign in map(chr, range(32, 127)) if not sign.isalnum()),
    *"aI1",
    "\n",
    "\t",
    "：",
    "“",
    "［",
    "Action:",
    "Answer:",
    "Final Answer: ",
    " Action 1: ",
    "\nAction 1: calculate: 1 (a",
    "1 a/b ",
    "<answer>",
    "</answer>",
    "answer is ",
    "best choice is",
    "References",
    "**",
]
UNITS += ["1. ", "- ", '{"', '{"a":', "[{", '{"a": 1, ', '"a",', "[1,", "<think>", "\nObservation", "\n\n", "a[", "1,"]
BEFORE = ["", '{"a": "', "Action: a[", "Answer", "\nReferences:\n"]


def streamed(text: str) -> None:
    reader = CitationReader([1])
    for begin in range(0, len(text), 5):
        reader.feed(text[begin : begin + 5])


def growth(read: Callable[[str], object], short: str, long: str) -> float:
    """The CPU time of one long text, in that of ten short ones: 1 if reading is linear, 10 if it is quadratic."""
    return cpu(lambda: read(long)) / max(cpu(lambda: [read(short) for _ in range(10)]), 1e-9)


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.mark.thorough
@pytest.mark.parametrize("unit", [*reversed(UNITS)])
def test_long_runs_take_linear_time(unit: str) -> None:
    for before in {"", BEFORE[UNITS.index(unit) % len(BEFORE)]}:  # each beside some units, and all before each reader
        short, long = (before + unit * (size // len(unit)) for size in (1_000, 10_000))
        for read in READERS:
            # One measurement may be disturbed by whatever else the machine does, but hardly each of ten.
            assert any(growth(read, short, long) < 5 for _ in range(10)), (read, before)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "unit",
    [
        *["A ticket to Orra costs 6.40 [1]. ", "去奥拉的一张单程船票要六点四克朗[1]。", "Plain words. "],
        *["Ada [1], ", "[[0, 1], [1, 0]], ", "[", "a[1] "],
    ],
)
def test_a_long_line_is_streamed_in_linear_time(unit: str) -> None:
    short, long = (unit * (size // len(unit)) for size in (1_000, 10_000))
    assert any(growth(streamed, short, long) < 5 for _ in range(10))


@pytest.mark.thorough
@pytest.mark.parametrize("name", [None, "search"])
def test_calls_get_ids_of_their_own_in_linear_time(name: str | None) -> None:
    def read(text: str) -> AIMessage:
        return with_call_ids(AIMessage("", invalid_tool_calls=[invalid_tool_call(id=name) for _ in text]))

    assert any(growth(read, "x" * 500, "x" * 5_000) < 5 for _ in range(10))
