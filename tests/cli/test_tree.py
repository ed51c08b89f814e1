"""`reflect tree`: the tree of a run as text, and in files."""

import json
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.cli.tree import tree_view
from reflective_agents.viewer.picture import complete

QUESTION = "Why is reflection useful in AI?"
EXPORTS = ("--json", "--mermaid", "--html", "--preferences", "--finetune")


@pytest.fixture
def thread(reflect: Any) -> str:
    """Return the thread of a search that has been run."""
    assert reflect("run", "lats", QUESTION, "--thread", "t").code == 0
    return "t"


def test_tree_is_printed(reflect: Any, thread: str) -> None:
    ended = reflect("tree", thread)
    lines = ended.out.splitlines()
    assert ended.code == 0
    assert lines[0].startswith("0 action N=")
    assert all(" UCT=" in line for line in lines[1:])
    assert len([line for line in lines if " solved best  " in line]) == 1
    assert reflect("draw", "lats", "--thread", thread).out == ended.out


@pytest.mark.thorough
def test_a_planned_step_is_worth_the_highest_that_was_passed_up_and_before_that_its_prior(reflect: Any) -> None:
    assert reflect("run", "rap", QUESTION, "--thread", "p").code == 0
    drawn = json.loads(reflect("tree", "p", "--json", "-").out)
    known = {key: own for frame in drawn["frames"] for key, own in frame["stats"].items()}
    worth = {key: own["best"] if own["visits"] else own["prior"] for key, own in known.items()}
    lines = [line.strip("│├└─ ").split() for line in reflect("tree", "p").out.splitlines()]
    assert {line[0]: line[2:4] for line in lines} == {
        key: [f"N={own['visits']}", f"Q={worth[key]:.2f}"] for key, own in known.items()
    }
    assert all(line[4].startswith("UCT=") for line in lines[1:])
    assert drawn["aggregate"] == "max"
    assert any(own["visits"] and own["total"] / own["visits"] < own["best"] for own in known.values())
    assert not all(own["visits"] for own in known.values())


@pytest.mark.thorough
def test_last_search_is_the_default(reflect: Any, thread: str) -> None:
    assert reflect("run", "reflection", QUESTION).code == 0
    assert reflect("tree").out == reflect("tree", thread).out


def test_exports_go_into_files(reflect: Any, thread: str) -> None:
    ended = reflect("tree", thread, *[word for option in EXPORTS for word in (option, f"out{option}")])
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.splitlines() == [
        f"{'page' if option == '--html' else option.removeprefix('--')}: out{option}" for option in EXPORTS
    ]
    assert {path.name for path in Path().iterdir()} == {f"out{option}" for option in EXPORTS}
    drawn = json.loads(Path("out--json").read_text())
    assert (drawn["strategy"], drawn["question"], drawn["weight"]) == ("lats", QUESTION, 1.0)
    assert Path("out--mermaid").read_text().startswith("flowchart LR\n")
    assert QUESTION in Path("out--html").read_text()
    for line in Path("out--preferences").read_text().splitlines():
        assert json.loads(line).keys() == {"prompt", "chosen", "rejected"}
    (example,) = map(json.loads, Path("out--finetune").read_text().splitlines())
    assert example["messages"][-1] == {"role": "assistant", "content": drawn["answer"]}


def test_export_goes_to_stdout(reflect: Any, thread: str) -> None:
    ended = reflect("tree", thread, "--json", "-", "--html", "page.html")
    assert json.loads(ended.out)["path"][0] == "0"
    assert ended.err == "page: page.html\n"


def test_files_are_replaced_only_if_that_is_asked_for(reflect: Any, thread: str) -> None:
    Path("page.html").write_text("mine")
    ended = reflect("tree", thread, "--json", "data.json", "--html", "page.html")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "reflect: --html: page.html is there already; add --force to replace it\n"
    assert Path("page.html").read_text() == "mine"
    assert not Path("data.json").exists(), "nothing is written if not everything can be"
    assert reflect("tree", thread, "--html", "page.html", "--force").code == 0
    assert Path("page.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["--html", "no/page.html"], "--html: there is no folder no"),
        (["--json", "."], "--json: . is not a file: use - for stdout"),
        (["--json", ""], "--json: the name of the file is empty"),
        (["--json", "-", "--mermaid", "-"], "only one of --json, --mermaid can go to stdout (-)"),
        (["--html", "x" * 300], "cannot be written (File name too long)"),
        (["--preferences", "p", "--margin", "1"], "--preferences: nothing to write, for no two siblings differ by 1"),
        (["--preferences", "p", "--pairs", "cousins"], "--pairs: "),
        (["--finetune", "f", "--min-score", "2"], "--min-score: "),
    ],
)
def test_what_cannot_be_written(reflect: Any, thread: str, args: list[str], line: str) -> None:
    ended = reflect("tree", thread, *args)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert line in ended.err
    assert [*Path().iterdir()] == []


@pytest.mark.thorough
def test_unsolved_search_is_no_example_unless_its_score_will_do(reflect: Any) -> None:
    question = "What does UCT balance, and how do agents keep lessons from failures?"
    reflect("run", "lats", question, "--thread", "u", "--max-expansions", "1", "--min-score", "0.95")
    ended = reflect("tree", "u", "--finetune", "-")
    assert ended.code == 2
    assert "--finetune: nothing to write, for the best trajectory is not solved; --min-score takes it" in ended.err
    assert reflect("tree", "u", "--finetune", "-", "--min-score", "0.1").code == 0
    assert "is not worth 0.99" in reflect("tree", "u", "--finetune", "-", "--min-score", "0.99").err


@pytest.mark.thorough
def test_runs_without_a_tree(reflect: Any) -> None:
    assert "no run has left a tree: make one with" in reflect("tree").err
    assert "there is no thread x" in reflect("tree", "x").err
    reflect("run", "reflection", QUESTION, "--thread", "r")
    ended = reflect("tree", "r")
    assert (ended.code, ended.out) == (2, "")
    assert "thread r holds no tree: reflect draw reflection --thread r shows what it holds" in ended.err
    assert "no run has left a tree" in reflect("tree").err


def test_terminal_is_not_commanded(reflect: Any, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.md").write_text("# Tides\n\nTides are \x1b[31mred\x1b[0m \u202e useful waves of the sea.\n")
    reflect("run", "lats", "Why are tides useful?", "--corpus", str(corpus), "--thread", "e")
    ended = reflect("tree", "e")
    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out


def test_a_tree_is_drawn_with_one_look_at_each_node() -> None:
    class Counted(dict[str, Any]):
        """Nodes, or one of them, that count how often they are looked at."""

        looks = 0

        def __getitem__(self, key: str) -> Any:
            Counted.looks += 1
            return super().__getitem__(key)

    def looks(size: int) -> int:
        parents = [None, *(str((number - 1) // 3) for number in range(1, size))]
        nodes = {
            str(number): {"parent_id": parent, "depth": 0, "kind": "action"} for number, parent in enumerate(parents)
        }
        search = complete({"nodes": nodes, "frames": [{"stats": {key: {"visits": 1, "total": 1.0} for key in nodes}}]})
        search["nodes"] = Counted({key: Counted(node) for key, node in search["nodes"].items()})
        Counted.looks = 0
        tree_view(search)
        return Counted.looks

    assert looks(2_000) < 2.2 * looks(1_000)
