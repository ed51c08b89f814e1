"""What is shown: cleaned texts, trees and rounds that fit."""

import io
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from rich.console import Console

from reflective_agents.cli.artefact import replay
from reflective_agents.cli.output import clean, one_line, print_table, shown, wrapped
from reflective_agents.cli.progress import Progress, line, tree_view
from reflective_agents.cli.report import cost_line
from reflective_agents.state.run import NOTHING_SPENT
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.state.settings.reflection import ReflectionContext
from reflective_agents.text.structure import Json

COST = {"model_calls": 3, "total_tokens": 1200, "seconds": 0.0}


def node(node_id: str, score: float | None = 0.5, solved: bool = False, does: str = "sea") -> dict[str, object]:
    parent = node_id.rpartition(".")[0] or None
    position = {"id": node_id, "parent_id": parent, "depth": node_id.count(".")}
    return {
        "seq": 1,
        "event": "node",
        **position,
        "expansions": 1,
        "kind": "answer",
        "score": score,
        "solved": solved,
        "does": does,
        **COST,
    }


def drawn(progress: Progress, height: int = 24, width: int = 80) -> list[str]:
    console = Console(width=width, height=height, color_system=None)
    with console.capture() as captured:
        console.print(progress)
    return captured.get().splitlines()


def test_clean() -> None:
    for text, cleaned in [
        ("plain\n\ttext", "plain\n\ttext"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x1bcb", "ab"),
        ("\x9b2Jx\x90q", "xq"),
        ("over\rwritten\r\nline", "overwritten\nline"),
        ("\x1b", ""),
        ("\u202eevil\u2066", "evil"),
        ("family 👨‍👩‍👧 é 日本", "family 👨‍👩‍👧 é 日本"),
        ("[bold]no markup[/bold] :smile:", "[bold]no markup[/bold] :smile:"),
        ("lone \ud800", "lone "),
    ]:
        assert clean(text) == cleaned


class Terminal(io.StringIO):
    """A stdout that is a terminal, of 80 columns."""

    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    made = Terminal()
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdout", made)
    return made


def test_an_answer_is_broken_between_words_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch)
    answer = "Reflections carry lessons from one branch of a tree to another, so failures are not wasted.\n\n[1] LATS"
    assert wrapped(answer).splitlines() == [
        "Reflections carry lessons from one branch of a tree to another, so failures are",
        "not wasted.",
        "",
        "[1] LATS",
    ]


def test_an_answer_is_passed_on_as_it_is_where_there_is_no_terminal() -> None:
    assert wrapped("word " * 100) == "word " * 100


@pytest.mark.parametrize(("width", "heads"), [(3, ["run", "accuracy"]), (90, ["run", "first"])])
def test_a_table_wider_than_the_terminal_is_turned(
    width: int, heads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = terminal(monkeypatch)
    print_table(("run", "accuracy"), [("first", "x" * width)], turn=True)
    assert screen.getvalue().splitlines()[0].split() == heads


def test_one_line_is_short() -> None:
    assert one_line("a\n b\t c" + "x" * 500, 10) == "a b cxxxx…"
    assert one_line("x" * 10, 10) == "x" * 10


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (True, "yes"), (0.5, "0.50"), (3, "3"), (["a", "b"], "a; b"), ([], "-"), ("", "-")]
)
def test_values_are_shown(value: Json, text: str) -> None:
    assert shown(value) == text


def test_line_tells_an_event_without_its_cost() -> None:
    event = {"seq": 4, "event": "search", "query": "a\x1b[31m\nb", "results": 2, **COST}
    assert line(event) == "search: query=a b, results=2"


def test_tree_is_shown_with_its_scores() -> None:
    progress = Progress(LatsContext())
    for event in (node("0", None), node("0.0", 0.25), node("0.1", 1.0, solved=True)):
        progress.add(event)
    tree, status = drawn(progress)[:3], drawn(progress)[-1]
    assert tree == ["0 answer -  sea", "├── 0.0 answer 0.25  sea", "└── 0.1 answer 1.00 solved  sea"]
    assert status.startswith("expansions 1/10  calls 3/150  tokens 1,200/1,000,000  ")


def test_tree_fits_on_the_screen_and_keeps_the_best() -> None:
    progress = Progress(LatsContext())
    progress.add(node("0"))
    for first in range(10):
        progress.add(node(f"0.{first}", 0.1))
        for second in range(10):
            progress.add(node(f"0.{first}.{second}", 0.9 if (first, second) == (7, 7) else 0.1))
    lines = drawn(progress, height=12, width=30)
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 30
    assert any("0.7.7 answer 0.90" in line for line in lines)
    assert sum(int(line.partition("(+")[2].partition(" ")[0]) for line in lines if "(+" in line) > 0


def test_rounds_are_a_table_of_what_was_told() -> None:
    progress = Progress(ReflectionContext())
    progress.add({"event": "begin", "strategy": "reflection", **COST})
    progress.add({"event": "draft", "round": 1, "words": 12, **COST})
    progress.add({"event": "critique", "round": 1, "score": 0.5, "accepted": False, **COST})
    progress.add({"event": "draft", "round": 2, "words": 15, **COST})
    progress.add({"event": "invalid_output", "schema": "Critique", "problem": "[red]bad[/red]", **COST})
    header, first, second, note, status = [" ".join(line.split()) for line in drawn(progress)]
    assert (header, first, second) == ("round words score accepted", "1 12 0.50 no", "2 15 - -")
    assert note == "invalid_output: schema=Critique, problem=[red]bad[/red]"
    assert status.startswith("rounds 2/3 calls 3/150")


def test_a_tree_shows_what_the_search_knows_of_its_nodes() -> None:
    progress = Progress(LatsContext())
    events = [
        node("0", 0.5),
        node("0.0", 0.25),
        node("0.1", 0.75),
        {"event": "visited", "node": "0", "kind": "expand", "stats": {"0": [3, 1.5]}, "calls": 3, "tokens": 40, **COST},
        {"event": "merged", "index": 2, **COST},
        {"event": "refused", "action": "Fly[]", "why": "Invalid action.", **COST},
        {"event": "pruned", "node": "0.0", **COST},
    ]
    for event in events:
        progress.add(event)
    *tree, note, _ = drawn(progress)
    assert tree == [
        "0 answer 0.50  N 3 Q 0.50  sea",
        "├── 0.0 answer 0.25 given up  sea",
        "└── 0.1 answer 0.75  sea",
    ]
    assert note == "refused: action=Fly[], why=Invalid action."


def test_a_run_that_is_gone_on_with_shows_its_tree_as_it_was() -> None:
    def known(node_id: str, score: float) -> dict[str, object]:
        kept = {key: value for key, value in node(node_id, score).items() if key not in ("seq", "event", "does", *COST)}
        return {**kept, "messages": [AIMessage("sea")]}

    stats = {"0": {"visits": 2, "total": 1.0, "children": 1}, "0.0": {"visits": 1, "total": 0.5, "children": 0}}
    values = {"tree": {"0": known("0", 0.5), "0.0": known("0.0", 0.5)}, "stats": stats, "expansions": 1}
    progress = Progress(LatsContext())
    for event in replay(values):
        progress.add(event)
    assert drawn(progress)[:2] == ["0 answer 0.50  N 2 Q 0.50  sea", "└── 0.0 answer 0.50  sea"]


def test_figures_stand_in_a_line_without_braces() -> None:
    event = {"event": "node", "id": "0.1", "terms": {"judge": 0.75, "consistency": 0.4}, **COST}
    assert line(event) == "node: id=0.1, terms=judge 0.75; consistency 0.40"
    visited = {"event": "visited", "node": "0", "stats": {"0": [3, 1.5]}, "calls": 6, "terms": {}, **COST}
    assert line(visited) == "visited: node=0, calls=6"


def test_the_cost_of_a_run_is_told_in_dollars_where_there_is_a_price() -> None:
    assert "$" not in cost_line({**NOTHING_SPENT, "model_calls": 2})
    paid = cost_line({**NOTHING_SPENT, "model_calls": 3, "cost": 0.0125, "unpriced_calls": 1})
    assert "$0.012500 (without 1 call of unknown price)" in paid


def test_a_tree_is_drawn_anew_only_when_something_has_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    progress, drawn = Progress(LatsContext()), list[int]()

    def counted(*arguments: Any) -> Any:
        drawn.append(1)
        return tree_view(*arguments)

    monkeypatch.setattr("reflective_agents.cli.progress.tree_view", counted)
    node = {"event": "node", "kind": "action", "score": 0.5, "solved": False, "does": "x", "expansions": 1}
    progress.add({**node, "id": "0", "parent_id": None})
    console = Console(width=80, height=20, file=io.StringIO())
    for number in range(3):
        progress.add({**node, "id": f"0.{number}", "parent_id": "0"})
        for _ in range(4):
            console.print(progress)
    assert len(drawn) == 3


def test_a_redraw_looks_at_each_node_once() -> None:
    class Counted(dict[str, Any]):
        reads = 0

        def __getitem__(self, key: str) -> Any:
            Counted.reads += 1
            return super().__getitem__(key)

    def reads(size: int) -> int:
        progress = Progress(LatsContext())
        for number in range(size):
            parent = None if number == 0 else str((number - 1) // 3)
            node = Counted(id=str(number), parent_id=parent, kind="action", score=0.5, solved=False, does="x")
            progress.add(Counted(node, event="node", expansions=1))
        Counted.reads = 0
        tree_view(progress, 40)
        return Counted.reads

    assert reads(2_000) < 2.2 * reads(1_000)
