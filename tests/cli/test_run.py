"""`reflect run` offline: answers, threads, JSON, a person as the critic, and what the other commands show of it."""

import json
import os
import re
import shlex
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.state.settings import strategy_names

QUESTION = "Why is reflection useful in AI?"
ARTEFACTS = {
    "auto": {"tree", "stats", "log", "lessons", "expansions", "reward", "samples", "evidence", "turns"},
    "reflection": {"drafts"},
    "reflexion": {"answers", "sources"},
    "lats": {"tree", "stats", "log", "lessons", "expansions", "reward"},
    "tree_of_thoughts": {"tree", "stats", "log", "lessons", "expansions", "reward"},
    "rap": {"tree", "stats", "log", "lessons", "expansions", "reward", "weights"},
    "ab_mcts": {"tree", "stats", "log", "lessons", "expansions", "reward"},
    "aggregation": {"candidates", "sources", "reward"},
    "best_of_n": {"tree", "stats", "log", "lessons", "expansions", "reward"},
    "chain_of_thought": {"samples", "reward", "observation", "refused"},
    "react": {"steps", "reward"},
    "trials": {"trials"},
    "plan": {"subgoals"},
    "team": {"rounds"},
    "town": {"day", "conversations", "retrievals", "agents", "spread"},
    "memory": {"memories"},
}


def lines_of(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


@pytest.mark.matrix(keep=4)
@pytest.mark.parametrize("strategy", strategy_names())
def test_answer_and_outcome_on_stdout_the_rest_on_stderr(reflect: Any, strategy: str) -> None:
    ended = reflect("run", strategy, QUESTION)
    *answer, blank, outcome = ended.out.splitlines()
    assert ended.code == 0
    assert "".join(answer)
    assert blank == ""
    assert outcome.partition(":")[0] in ("solved", "answered", "limit_reached", "exhausted")
    assert "model: offline extractive model (because" in ended.err
    assert lines_of(ended.err, "cost: ")
    assert "\x1b" not in ended.out + ended.err


def test_who_just_asks_gets_a_strategy(reflect: Any) -> None:
    ended = reflect("ask", QUESTION, "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["outcome"]["status"] == "solved"
    assert "auto on thread" in ended.err
    assert "--corpus" not in ended.err


@pytest.mark.matrix
@pytest.mark.parametrize("command", [["ask"], ["run", "reflexion"]])
def test_who_asks_what_no_document_says_hears_how_to_go_on(reflect: Any, command: list[str]) -> None:
    ended = reflect(*command, "潮汐是什么造成的？")
    assert ended.code == 0
    assert "--corpus" in ended.err


def test_only_who_searches_names_where(reflect: Any) -> None:
    assert "search: local corpus (" in reflect("run", "react", QUESTION).err
    assert "search" not in reflect("run", "chain_of_thought", QUESTION).err


@pytest.mark.matrix
@pytest.mark.parametrize("strategy", strategy_names())
def test_json_is_one_object_with_the_artefact(reflect: Any, strategy: str) -> None:
    ended = reflect("run", strategy, QUESTION, "--json")
    data = json.loads(ended.out)
    common = {"strategy", "thread", "model", "model_reason", "search", "search_reason", "answer", "outcome", "usage"}
    common |= {"support", "experience"}
    assert data.keys() == common | ARTEFACTS[strategy] | {"waiting_for"}
    assert (data["strategy"], data["model"], data["waiting_for"]) == (strategy, "offline", None)
    assert data["usage"]["model_calls"] > 0
    assert data["search"] == (None if strategy in ("reflection", "town", "memory") else "local")


def test_messages_in_json_are_plain(reflect: Any) -> None:
    tree = json.loads(reflect("run", "lats", QUESTION, "--json").out)["tree"]
    messages = [message for node in tree.values() for message in node["messages"]]
    assert {frozenset(message) for message in messages} == {frozenset({"type", "content", "tool_calls"})}
    assert {message["type"] for message in messages} == {"ai", "tool"}


def test_piped_progress_is_one_line_an_event(reflect: Any) -> None:
    ended = reflect("run", "lats", QUESTION, "--max-expansions", "1")
    nodes = [line for line in ended.err.splitlines() if ": node: " in line]
    assert len(nodes) == len(
        json.loads(reflect("run", "lats", QUESTION, "--max-expansions", "1", "--json").out)["tree"]
    )
    assert "id=0, parent_id=-, depth=0" in nodes[0]


def test_run_without_an_answer_fails(reflect: Any) -> None:
    ended = reflect("run", "lats", QUESTION, "--max-total-tokens", "1")
    assert ended.code == 1
    assert re.match("failed: .*max_total_tokens", ended.out)


def test_limit_is_an_answer(reflect: Any) -> None:
    ended = reflect("run", "reflection", "Why?", "--min-words", "9999", "--max-rounds", "2")
    assert ended.code == 0
    assert re.search("limit_reached: .*max_rounds", ended.out)


def test_thread_goes_on(reflect: Any) -> None:
    first = reflect("run", "reflection", QUESTION, "--thread", "t")
    again = reflect("run", "reflection", "Say more.", "--thread", "t")
    assert (first.code, again.code) == (0, 0)
    assert "thread t (new)" in first.err
    assert "thread t (continued)" in again.err
    header, row = reflect("threads").out.splitlines()
    assert header == "thread\tstrategy\tlast step\tstatus\tquestion"
    assert row.split("\t")[:2] == ["t", "reflection"]
    assert row.endswith("Say more.")


@pytest.mark.thorough
def test_thread_without_a_name_gets_one_and_says_so(reflect: Any) -> None:
    ended = reflect("run", "reflection", QUESTION)
    [line] = lines_of(ended.err, "continue with: ")
    command = shlex.split(line.removeprefix("continue with: reflect "))
    assert command[3].startswith("reflection-20")
    assert "(continued)" in reflect(*command[:-1], "And then?").err


def test_file_lies_in_the_home_for_its_owner_only(reflect: Any) -> None:
    reflect("run", "reflection", QUESTION)
    home = Path(os.environ["REFLECT_HOME"])
    assert home.stat().st_mode & 0o077 == 0
    assert sqlite3.connect(home / "threads.sqlite").execute("SELECT count(*) > 0 FROM checkpoints").fetchone() == (1,)


def test_person_is_waited_for(reflect: Any) -> None:
    waiting = reflect("run", "reflection", QUESTION, "--critic", "human", "--thread", "t")
    assert (waiting.code, waiting.out) == (3, "")
    assert waiting.err.endswith(
        'waits for a critique; give it with: reflect run reflection --thread t --resume --critique "accept"\n'
    )
    blocked = reflect("run", "reflection", "Another question", "--thread", "t")
    assert blocked.code == 2
    assert "thread t has an unfinished run: go on with it: reflect run reflection --thread t --resume" in blocked.err
    assert reflect("threads").out.splitlines()[1].split("\t")[3] == "waiting for a person"


def test_critique_goes_on_with_the_settings_of_the_run(reflect: Any) -> None:
    settings = ["--critic", "human", "--max-rounds", "2"]
    assert reflect("run", "reflection", QUESTION, *settings, "--thread", "t").code == 3
    rejected = reflect("run", "reflection", "--resume", "--critique", "too short")
    assert rejected.code == 3
    assert "round=1, score=0.50, accepted=no" in rejected.err
    accepted = reflect("run", "reflection", "--resume", "--thread", "t", "--critique", "accept", "--json")
    data = json.loads(accepted.out)
    assert (accepted.code, data["outcome"]["status"], data["outcome"]["verified_by"]) == (0, "solved", "person")
    assert [draft["critique"] for draft in data["drafts"]] == ["too short", ""]


@pytest.mark.thorough
def test_workers_that_wait_for_a_person_are_answered_one_after_the_other(reflect: Any) -> None:
    own = ("--worker", "reflection", "--worker-settings", '{"critic": "human"}', "--max-replans", "0")
    ended = reflect("run", "plan", "What is Reflexion? What is LATS?", *own, "--thread", "t")
    errors = [ended.err]
    for _ in range(2):
        assert ended.code == 3
        ended = reflect("run", "plan", "--thread", "t", "--resume", "--critique", "accept")
        errors.append(ended.err)
    assert ended.code != 3
    drafts = [line for error in errors for line in error.splitlines() if line.startswith("draft for: ")]
    assert ["Reflexion" in drafts[0], "LATS" in drafts[1], len(drafts)] == [True, True, 2]


def test_waiting_in_json_says_for_what(reflect: Any) -> None:
    ended = reflect("run", "reflection", QUESTION, "--critic", "human", "--json", "--thread", "t")
    again = reflect("run", "reflection", "--resume", "--json")
    assert (ended.code, again.code) == (3, 3)
    data = json.loads(ended.out)
    assert data == json.loads(again.out)
    assert (data["answer"], data["waiting_for"]["draft"]) == (None, data["drafts"][0]["text"])


def test_critique_that_nobody_waits_for(reflect: Any, slow_thread: str) -> None:
    ended = reflect("run", "reflection", "--resume", "--thread", slow_thread, "--critique", "x")
    assert ended.code == 2
    assert "does not wait for a critique" in ended.err


@pytest.fixture
def slow_thread(reflect: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a thread that was broken off before its first step."""

    def no_progress(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("reflective_agents.cli.progress.Progress.add", no_progress)
        ended = reflect("run", "reflection", QUESTION, "--thread", "broken")
    assert ended.code == 130
    assert "go on with: reflect run reflection --thread broken --resume" in ended.err
    return "broken"


def test_interrupted_before_the_run_began(reflect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("reflective_agents.cli.run.check", interrupted)
    ended = reflect("run", "reflection", QUESTION)
    assert (ended.code, ended.err) == (130, "interrupted before the run began; nothing was written\n")
    assert not Path(os.environ["REFLECT_HOME"]).exists()


def test_broken_off_run_goes_on(reflect: Any, slow_thread: str) -> None:
    assert reflect("threads").out.splitlines()[1].split("\t")[3] == "unfinished"
    ended = reflect("run", "reflection", "--resume")
    assert ended.code == 0
    assert f"thread {slow_thread} (resumed)" in ended.err


@pytest.mark.matrix(keep=4)
@pytest.mark.parametrize("strategy", strategy_names())
def test_strategy_is_drawn_as_mermaid(reflect: Any, strategy: str) -> None:
    ended = reflect("draw", strategy)
    assert ended.code == 0
    assert "graph TD;" in ended.out
    assert "finish --> __end__;" in ended.out


def test_tree_of_a_run_is_drawn(reflect: Any) -> None:
    run = json.loads(reflect("run", "lats", QUESTION, "--thread", "t", "--n", "2", "--json").out)
    lines = reflect("draw", "lats", "--thread", "t").out.splitlines()
    assert len(lines) == len(run["tree"])
    assert lines[0].startswith(f"0 {run['tree']['0']['kind']} N={run['stats']['0']['visits']} Q=")
    assert "UCT" not in lines[0]
    assert all(" UCT=" in line for line in lines[1:])
    assert len([line for line in lines if " best " in line]) == 1
    assert len([line for line in lines if " solved " in line]) == sum(n["solved"] for n in run["tree"].values())


def test_rounds_of_a_run_are_drawn(reflect: Any) -> None:
    reflect("run", "reflection", "Why?", "--min-words", "9999", "--max-rounds", "2", "--thread", "t")
    header, *rounds = reflect("draw", "reflection", "--thread", "t").out.splitlines()
    assert header == "round\twords\tscore\taccepted\tcritique"
    assert [line.split("\t")[0] for line in rounds] == ["1", "2"]


def test_strategies_are_listed_with_when_to_use_them_first(reflect: Any) -> None:
    header, *rows = reflect("strategies").out.splitlines()
    assert header.split("\t") == ["strategy", "use it when", "what it does"]
    assert [row.split("\t")[0] for row in rows] == list(strategy_names())
    assert all(len(set(row.split("\t"))) == 3 for row in rows)


@pytest.mark.thorough
def test_a_run_that_has_ended_shows_its_answer_when_it_is_resumed(reflect: Any) -> None:
    """It may have been killed before it could show it; nothing is run again."""
    first = reflect("run", "lats", "What does UCT balance?", "--thread", "t")
    again = reflect("run", "lats", "--thread", "t", "--resume")
    assert (again.code, again.out) == (first.code, first.out)
    advice = reflect("run", "lats", "--resume")
    assert (advice.code, advice.out) == (2, "")
    assert advice.err.rstrip().endswith("reflect run lats --thread t --resume")


def test_who_names_documents_is_not_told_to_name_some(reflect: Any) -> None:
    Path("notes").mkdir()
    Path("notes/a.md").write_text("# Tides\n\nThe moon pulls at the sea, and so the water rises twice a day.\n")
    for options, advice in ((["--corpus", "notes"], "try other words or --model"), ([], "try --corpus or --model")):
        ended = reflect("run", "reflexion", "Who won the zebra cup?", *options)
        assert advice in ended.err
