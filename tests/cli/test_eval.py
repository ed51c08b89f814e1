"""`reflect eval` and `reflect compare`: offline, interrupted, killed, and gone on with."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.cli.main import main
from reflective_agents.state.errors import Misuse
from reflective_agents.state.settings import strategy_names
from reflective_agents.testing.openai_server import OpenAIServer

QUICK = ("--max-rounds", "1")


@pytest.fixture
def questions() -> str:
    """A data set of twelve questions, two of them without an answer."""
    rows = [f'"Why is reflection useful, number {number}?",{number if number > 2 else ""}' for number in range(1, 13)]
    Path("questions.csv").write_text("\n".join(["question,answer", *rows]))
    return "questions.csv"


def results(folder: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (Path(folder) / "results.jsonl").read_text().splitlines()]


def the_run() -> Path:
    """The only folder in the data folder."""
    [folder] = (Path(os.environ["REFLECT_HOME"]) / "evals").iterdir()
    return folder


@pytest.mark.matrix
@pytest.mark.parametrize("strategy", strategy_names())
def test_every_strategy_is_evaluated(
    reflect: Any, questions: str, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")  # three days of a town would take half a minute else
    ended = reflect("eval", strategy, questions, "--limit", "3", "--json")
    summary = json.loads(ended.out)
    assert ended.code == 0
    assert (summary["strategy"], summary["finished"], summary["measured"], summary["errors"]) == (strategy, 3, 1, {})
    assert summary["settings"]["model"] == "offline"
    assert summary["cost"]["model_calls"]["total"] >= 3
    assert the_run().name.startswith(f"{strategy}-questions-")


def test_table_on_stdout_and_progress_on_stderr(reflect: Any, questions: str) -> None:
    ended = reflect("eval", "reflection", questions, *QUICK)
    rows = dict(line.split("\t") for line in ended.out.splitlines())
    assert (ended.code, rows["figure"], rows["tasks"]) == (0, "value", "12 of 12")
    assert rows["accuracy"].startswith("0.0% (0 of 10; 95 % interval 0.0% to 27.8%)")
    lines = ended.err.splitlines()
    assert lines[0].startswith("model: offline extractive model")
    assert lines[1] == f"reflection on 12 tasks of questions (plain), in {the_run()}"
    assert lines[2].startswith("1/12 tasks")
    assert lines[2].endswith(" left")
    assert lines[13].startswith("12/12 tasks, 0.0% correct, ")
    assert "\x1b" not in ended.out + ended.err


def test_second_time_nothing_is_left_to_do(reflect: Any, questions: str) -> None:
    first = reflect("eval", "reflection", questions, "--out", "run", *QUICK)
    again = reflect("eval", "reflection", questions, "--out", "run", "--html", "page.html", *QUICK)
    assert (again.code, again.out) == (0, first.out)
    assert "12/12 tasks" not in again.err
    assert "page: page.html" in again.err
    assert Path("page.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.thorough
def test_results_are_exported_as_a_data_frame(reflect: Any, questions: str) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    ended = reflect("eval", "reflection", questions, "--out", "run", "--limit", "3", "--export", "one.parquet", *QUICK)
    assert (ended.code, "export: one.parquet" in ended.err) == (0, True)
    assert pq.read_table("one.parquet")["id"].to_pylist() == [row["id"] for row in results("run")]
    assert reflect("eval", "chain_of_thought", questions, "--out", "other", "--limit", "3").code == 0
    assert reflect("compare", "run", "other", "--export", "all.parquet").code == 0
    assert pq.read_table("all.parquet")["run"].to_pylist() == ["run"] * 3 + ["other"] * 3


def test_environment_of_the_data_set_is_that_of_the_strategy(reflect: Any) -> None:
    Path("24.csv").write_text("Rank,Puzzles\n1,4 6 1 1\n")
    summary = json.loads(reflect("eval", "react", "24.csv", "--json").out)
    assert (summary["environment"], summary["settings"]["environment"]) == ("game24", "game24")
    assert summary["measured"] == 1


def test_missing_articles_are_told(reflect: Any) -> None:
    Path("claims.jsonl").write_text('{"id": 1, "claim": "It is so.", "label": "REFUTES"}\n')
    ended = reflect("eval", "react", "claims.jsonl")
    assert (ended.code, "note: the tasks bring no articles" in ended.err) == (0, True)
    ended = reflect("eval", "chain_of_thought", "claims.jsonl")
    assert (ended.code, "note: " in ended.err) == (0, False)


def test_crashes_are_told_with_the_way_to_run_them_again(
    reflect: Any, questions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: Any) -> None:
        raise OSError("no disk")

    command = ("eval", "reflection", questions, "--limit", "3", "--out", "run")
    with monkeypatch.context() as patch:
        patch.setattr("reflective_agents.nodes.checks.choose_model", crash)
        ended = reflect(*command)
    assert ended.code == 1
    assert "crashed with OSError\t3" in ended.out
    assert ended.err.splitlines()[-2] == "the first that crashed or failed, 1: OSError: no disk"
    assert (
        ended.err.splitlines()[-1]
        == f"run the tasks again that crashed or failed: reflect {' '.join(command)} --retry-failed"
    )
    again = reflect(*command, "--retry-failed")
    assert (again.code, "crashed" in again.out) == (0, False)


def killed_after(process: subprocess.Popen[str], count: int, by: signal.Signals) -> str:
    """Stop an evaluation as soon as it has told so many results, and return what it said then."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(f"{count}/"):
            break
    process.send_signal(by)
    return process.communicate(timeout=60)[1]


@pytest.fixture
def slow_model(slow_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The option that names a model which leaves time to stop an evaluation, on however busy a machine."""
    monkeypatch.setenv("OPENAI_BASE_URL", slow_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    return "--model", "openai:test"


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.process
def test_kill_9_loses_at_most_what_was_under_way(
    reflect: Any, start: Callable[..., Any], questions: str, slow_model: tuple[str, str]
) -> None:
    options = ("--limit", "8", "--concurrency", "2", "--out", "run")
    command = ("eval", "reflection", questions, *QUICK, *slow_model, *options)
    process = start(*command)
    killed_after(process, 3, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    before = (Path("run") / "results.jsonl").read_bytes()
    whole = before[: before.rfind(b"\n") + 1]
    assert whole.count(b"\n") >= 3
    ended = reflect(*command, "--json")
    assert (ended.code, json.loads(ended.out)["finished"]) == (0, 8)
    after = (Path("run") / "results.jsonl").read_bytes()
    assert after.startswith(whole)
    assert sorted(result["id"] for result in results("run")) == sorted(map(str, range(1, 9)))


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.process
@pytest.mark.matrix
def test_interrupted_evaluation_goes_on(
    reflect: Any,
    start: Callable[..., Any],
    questions: str,
    slow_model: tuple[str, str],
    by: signal.Signals,
) -> None:
    process = start("eval", "reflection", questions, *QUICK, *slow_model, "--limit", "4", "--concurrency", "1")
    errors = killed_after(process, 1, by)
    assert process.returncode == 130
    line = errors.splitlines()[-1]
    done = len(results(the_run()))
    assert done < 4
    assert line.startswith(f"interrupted with {done} of 4 results; go on with: reflect eval reflection questions.csv ")
    command = shlex.split(line.partition("go on with: reflect ")[2])
    ended = reflect(*command, "--json")
    assert (ended.code, json.loads(ended.out)["finished"]) == (0, 4)
    assert len(results(the_run())) == 4


def test_command_that_goes_on_says_everything_that_was_asked() -> None:
    from reflective_agents.cli.eval import Evaluation

    evaluation = Evaluation(
        "lats", Path("my set.csv"), {"n": "3", "revise_answers": False}, "plain", 5, 7, 9, Path("o"), as_json=True
    )
    assert evaluation.command() == (
        "reflect eval lats 'my set.csv' --format plain --limit 5 --shuffle 7 --concurrency 9 --out o --json "
        "--n 3 --no-revise-answers"
    )


MISUSE = {
    "no strategy": (["eval"], "see reflect eval --help"),
    "unknown strategy": (["eval", "lat", "x.csv"], "did you mean lats?"),
    "no data set": (["eval", "lats"], "see reflect eval lats --help"),
    "missing data set": (["eval", "lats", "x.csv"], "x.csv cannot be read (No such file or directory)"),
    "no task at a time": (["eval", "lats", "questions.csv", "--concurrency", "0"], "--concurrency"),
    "unknown format": (["eval", "lats", "questions.csv", "--format", "xml"], "unknown format 'xml'"),
    "out of bounds": (["eval", "lats", "questions.csv", "--n", "0"], "--n: must be at least 1"),
    "unknown model": (["eval", "lats", "questions.csv", "--model", "nonsense"], "model 'nonsense'"),
    "a person": (["eval", "reflection", "questions.csv", "--critic", "human"], "nobody is asked during an evaluation"),
    "nothing to compare": (["compare"], "see reflect compare --help"),
    "no run": (["compare", "here", "there"], "here holds no run"),
}


@pytest.mark.parametrize(("args", "line"), MISUSE.values(), ids=MISUSE)
def test_misuse(reflect: Any, questions: str, args: list[str], line: str) -> None:
    ended = reflect(*args)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith("reflect: ")
    assert line in ended.err
    assert not Path(os.environ["REFLECT_HOME"]).exists()


def test_folder_of_another_run(reflect: Any, questions: str) -> None:
    assert reflect("eval", "reflection", questions, "--out", "run", "--limit", "1").code == 0
    ended = reflect("eval", "reflection", questions, "--out", "run", "--limit", "1", *QUICK)
    assert (ended.code, ended.out) == (2, "")
    assert "run holds another run (max_rounds: 3 there, 1 now): choose another --out" in ended.err


def test_page_that_cannot_be_written(reflect: Any, questions: str) -> None:
    ended = reflect("eval", "reflection", questions, "--limit", "1", "--html", "nowhere/page.html")
    assert (ended.code, ended.out) == (2, "")
    assert "--html: there is no folder nowhere" in ended.err.splitlines()[-1]


def test_figures_are_printed_whatever_becomes_of_the_page(
    reflect: Any, questions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise Misuse("--html: page.html cannot be written (No space left on device)")

    monkeypatch.setattr("reflective_agents.cli.eval.write", full)
    ended = reflect("eval", "reflection", questions, "--limit", "1", "--html", "page.html", *QUICK)
    assert ended.code == 2
    assert "model calls" in ended.out


def test_runs_are_compared_by_folder_or_name(reflect: Any, questions: str) -> None:
    reflect("eval", "reflection", questions, *QUICK, "--limit", "4", "--out", "short")
    reflect("eval", "reflection", questions, "--limit", "5")
    ended = reflect("compare", "short", the_run().name)
    header, first, second = (line.split("\t") for line in ended.out.splitlines())
    assert ended.code == 0
    rows = [dict(zip(header, row, strict=True)) for row in (first, second)]
    assert [row["run"] for row in rows] == ["short", the_run().name]
    assert [row["max_rounds"] for row in rows] == ["1", "3"]
    assert [row["p (McNemar)"] for row in rows] == ["-", "1.0000"]
    assert float(rows[0]["model_calls"]) < float(rows[1]["model_calls"])
    assert rows[1]["calls - first"].startswith("+")
    assert rows[1]["tokens - first"].startswith("+")
    assert "[" in rows[1]["seconds - first"]
    assert ended.err.startswith("over the 2 tasks that all runs have measured; 1 others are left out. 95 % intervals")
    as_json = json.loads(reflect("compare", "short", the_run().name, "--json").out)
    assert (as_json["shared"], as_json["runs"][1]["versus_first"]["wins"]) == (2, 0)
    assert "-0.0" not in reflect("compare", the_run().name, "short").out, "zero has no sign of its own"


def test_what_can_be_written_is_though_something_else_cannot(reflect: Any, questions: str) -> None:
    for rounds in ("1", "2"):
        reflect("eval", "reflection", questions, "--max-rounds", rounds, "--limit", "4", "--out", f"runs/{rounds}")
    Path("figures/table.csv").mkdir(parents=True)  # where a file has to be
    ended = reflect("compare", "runs/1", "runs/2", "--html", "page.html", "--figures", "figures")
    assert (ended.code, ended.err.splitlines()[-1][:20]) == (2, "reflect: --figures: ")
    assert ended.out.startswith("run\t")
    assert Path("page.html").exists()


@pytest.mark.thorough
def test_a_run_that_lies_elsewhere_has_a_name(reflect: Any, questions: str) -> None:
    for folder, rounds in (("a/run", "1"), ("b/run", "2")):
        reflect("eval", "reflection", questions, "--max-rounds", rounds, "--limit", "4", "--out", folder)
    ended = reflect("compare", "reflection-questions", "--json")
    assert {run["run"] for run in json.loads(ended.out)["runs"]} == {"a/run", "b/run"}


def test_a_run_elsewhere_needs_no_data_folder(
    reflect: Any, questions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("REFLECT_HOME", str(tmp_path / "file" / "home"))
    assert reflect("eval", "reflection", questions, *QUICK, "--limit", "1", "--out", "run").code == 0


@pytest.mark.thorough
def test_figures_to_publish(reflect: Any, questions: str) -> None:
    pytest.importorskip("matplotlib")
    Path("mine.py").write_text("def right(answer, task):\n    return True\n")
    run = ("eval", "reflection", questions, "--limit", "4", "--scorer", "mine.py:right")
    for rounds in ("1", "3"):
        reflect(*run, "--max-rounds", rounds, "--out", rounds)
    ended = reflect("compare", "1", "3", "--figures", "figures")
    assert ended.code == 0, ended.err
    written = {file.name for file in Path("figures").iterdir()}
    assert written >= {"table.csv", "table.svg", "table.png", "curve-seconds.csv", "curve-seconds.svg"}
    caption, *rows = Path("figures/table.csv").read_text().splitlines()
    assert caption.startswith("# reflect compare 1 3 --figures figures (20")
    assert "95 % intervals" in caption
    assert [row.split(",")[0] for row in rows][:3] == ["run", "strategy", "max_rounds"]
    for name in ("table", "curve-seconds"):
        assert Path(f"figures/{name}.png").read_bytes()[:4] == b"\x89PNG"
        before = Path(f"figures/{name}.svg").read_bytes()
        assert b"reflect compare 1 3" in before
        assert reflect("compare", "1", "3", "--figures", "figures").code == 0
        assert Path(f"figures/{name}.svg").read_bytes() == before
    assert reflect(*run, "--out", "3", "--figures", "one").code == 0
    assert Path("one/table.png").exists()


@pytest.mark.parametrize(("library", "option"), [("matplotlib", "--figures"), ("pyarrow", "--export")])
def test_a_comparison_begins_with_what_its_files_need(
    library: str, option: str, reflect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    ended = reflect("compare", "no-run", option, "written")
    assert (ended.code, ended.out, library in ended.err) == (2, "", True)


def test_figures_of_a_run_that_solves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from reflective_agents.evals.figures import Publication, write_figures

    solving = [(1_234_567.0, 0.25, 0.1, 0.5), (2_000_000.0, 0.5, 0.2, 0.75)]
    rows = [["prices", "$1_ and $2_"], ["prompt", r"$\nothing$"]]
    publication = Publication(("a", "b"), rows, ["one $_$", "none"], {"total_tokens": [solving, []]}, "caption")
    assert len(write_figures(tmp_path, publication)) == 6
    _, _, *points = (tmp_path / "curve-total_tokens.csv").read_text().splitlines()
    assert points == ["one $_$,1234567,0.25,0.1,0.5", "one $_$,2000000,0.5,0.2,0.75"]


def test_answers_are_scored_as_the_user_chooses(reflect: Any, questions: str) -> None:
    own = "def long(answer, task):\n    return len(answer) > 0\n\ndef fragile(answer, task):\n    return 1 / 0\n"
    Path("mine.py").write_text(own)
    run = ("eval", "reflection", questions, *QUICK, "--limit", "3")
    ended = reflect(*run, "--scorer", "mine.py:long", "--json")
    assert json.loads(ended.out)["scores"] == {"score": 1.0}
    refused = reflect("eval", "--rescore", the_run().name, "--scorer", "mine.py:fragile")
    assert (refused.code, "scorer fragile raises ZeroDivisionError" in refused.err) == (2, True)
    ended = reflect("eval", "--rescore", the_run().name[:12], "--scorer", "includes")
    assert (ended.code, "correct if\t" in ended.out, "mean includes\t" in ended.out) == (0, True, True)
    ended = reflect(*run, "--scorer", "nonsense")
    assert (ended.code, "choose em, includes, number, choice, judge" in ended.err) == (2, True)


@pytest.mark.thorough
def test_runs_that_begin_alike_are_compared_on_one_page(reflect: Any, questions: str) -> None:
    for rounds in ("1", "2", "3"):
        assert reflect("eval", "reflection", questions, "--max-rounds", rounds, "--limit", "3").code == 0
    ended = reflect("compare", "reflection-", "--html", "page.html")
    assert (ended.code, len(ended.out.splitlines())) == (0, 4), ended.err
    assert "page: page.html" in ended.err
    html = Path("page.html").read_text("utf-8")
    refused = reflect("compare", "reflection-", "--html", "page.html")
    assert (refused.code, refused.out) == (2, "")
    assert "page.html is there already; add --force to replace it" in refused.err
    assert reflect("compare", "reflection-", "--html", "page.html", "--force").code == 0
    shown = json.loads(html.partition('id="results">')[2].partition("</script>")[0])
    assert len(shown["runs"]) == 3
    assert [row[0] for row in shown["figures"]][:4] == ["strategy", "max_rounds", "correct", "accuracy"]
    assert [len(row) for row in shown["figures"]] == [4] * len(shown["figures"])
    assert all(cell["at"] is not None for task in shown["tasks"] for cell in task["cells"])
    assert shown["curves"] == {}, "nothing is solved, and so there is no curve"


def test_model_text_cannot_command_the_terminal(
    reflect: Any, questions: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(*_: Any) -> None:
        raise type("\x1b[31mRed", (Exception,), {})("\x1b]0;owned\x07")

    monkeypatch.setattr("reflective_agents.nodes.checks.choose_model", crash)
    assert main(["eval", "reflection", questions, "--limit", "1"]) == 1
    captured = capsys.readouterr()
    assert "crashed with Red\t1" in captured.out
    assert "\x1b" not in captured.out + captured.err


@pytest.mark.wire
@pytest.mark.parametrize("setting", ["--judge-model", "--model"])
def test_a_budget_of_money_needs_the_price_of_every_model(
    reflect: Any, questions: str, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    models = {"--model": "openai:priced", "--judge-model": "openai:priced"} | {setting: "openai:unpriced"}
    prices = '{"priced": {"input": 1, "output": 1}}'
    with OpenAIServer(lambda request: "Because.").threaded() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        options = [word for option in models.items() for word in option]
        ended = reflect("eval", "lats", questions, *options, "--prices", prices, "--max-total-cost", "1")
    assert (ended.code, server.requests) == (2, [])
    assert "unpriced costs" in ended.err


@pytest.mark.wire
def test_calls_of_unknown_price_are_reported(reflect: Any, questions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with OpenAIServer(lambda request: "Because.").threaded() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        options = ["--samples", "1", "--model", "openai:test", "--limit", "2"]
        rows = dict(
            line.split("\t") for line in reflect("eval", "chain_of_thought", questions, *options).out.splitlines()
        )
    assert rows["calls of unknown price"] == "2"


def test_a_run_is_not_compared_with_itself(reflect: Any, questions: str) -> None:
    reflect("eval", "chain_of_thought", questions, "--limit", "3", "--out", "run")
    ended = reflect("compare", "run", "run")
    assert (ended.code, ended.err) == (2, "reflect: run and run name the same run: name two different ones\n")
