"""Bad input: exit code 2, one line that says what to do, nothing written."""

import os
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.cli.checks import check
from reflective_agents.state.context import Context
from reflective_agents.state.errors import UnknownModel
from reflective_agents.state.settings.aggregation import AggregationContext
from reflective_agents.state.settings.auto import AutoContext

MISUSE = {
    "unknown command": (["rum"], "No such command 'rum'"),
    "a strategy alone": (["lats", "Why?"], "reflect run lats"),
    "a question alone": (["run", "Why not?"], "reflect ask 'Why not?'"),
    "no strategy": (["run"], "see reflect run --help"),
    "unknown strategy": (["run", "lat", "Why?"], "did you mean lats? There are ab_mcts, aggregation, auto, "),
    "unknown strategy drawn": (["draw", "xyz"], "there are ab_mcts, aggregation, auto, best_of_n"),
    "no question": (["run", "lats"], 'the question is empty: reflect run lats "your question"'),
    "no question to ask": (["ask"], 'the question is empty: reflect ask "your question"'),
    "empty question": (["run", "lats", " \n"], "the question is empty"),
    "question without quotes": (["run", "lats", "Why", "not?"], "(not?): put the question in quotes"),
    "question to ask without quotes": (["ask", "Why", "not?"], "(not?): put the question in quotes"),
    "a question without a command": (["Why not?"], "to ask a question: reflect ask 'Why not?'"),
    "a strategy in capitals": (["run", "LATS", "Why?"], "did you mean lats?"),
    "no file to load from": (
        ["run", "react", "Why?", "--environment", "no.py:Env"],
        "'no.py:Env': No such file; name it as",
    ),
    "a list that is no JSON": (["run", "auto", "Why?", "--ladder", "offline"], 'write a list as ["a", "b"], an object'),
    "missing prompts": (["run", "lats", "Why?", "--prompts", "nowhere"], "nowhere cannot be read: No such file or"),
    "unknown option": (["run", "lats", "Why?", "--rounds", "3"], "--rounds"),
    "out of bounds": (["run", "lats", "Why?", "--n", "0"], "--n: must be at least 1 (got 0)"),
    "no number": (["run", "lats", "Why?", "--n", "many"], "--n: must be a whole number"),
    "no such choice": (["run", "lats", "Why?", "--grading", "x"], "--grading: must be 'each' or 'together'"),
    "two at once": (["run", "lats", "Why?", "--n", "0", "--max-depth", "0"], "; --n: "),
    "unknown model": (["run", "lats", "Why?", "--model", "nonsense"], "model 'nonsense'"),
    "misspelt model": (["ask", "Why?", "--model", "offlin"], "did you mean offline? Else write <provider>:<model>"),
    "misspelt provider": (["ask", "Why?", "--model", "OpenAI:x"], "did you mean openai:x?"),
    "a provider before a slash": (["ask", "Why?", "--model", "openai/gpt-4"], "did you mean openai:gpt-4?"),
    "a provider alone": (["ask", "Why?", "--model", "openai"], "cannot be used: write <provider>:<model>"),
    "unknown judge": (["run", "lats", "Why?", "--judge-model", "nonsense"], "model 'nonsense'"),
    "no key for the model": (["run", "lats", "Why?", "--model", "openai:x"], "OPENAI_API_KEY"),
    "no key for the critic": (["run", "reflection", "Why?", "--critic-model", "openai:x"], "OPENAI_API_KEY"),
    "no key for the search": (["run", "reflexion", "Why?", "--search", "tavily"], "TAVILY_API_KEY"),
    "missing corpus": (["run", "lats", "Why?", "--corpus", "nowhere"], "There is no folder nowhere"),
    "empty corpus": (["run", "lats", "Why?", "--corpus", "."], "holds no document"),
    "empty thread": (["run", "lats", "Why?", "--thread", ""], "--thread: the name is empty"),
    "resume with a question": (["run", "lats", "Why?", "--resume"], "leave out the question"),
    "no such file": (["run", "lats", "@nowhere"], "write @@ for a text that begins with @"),
    "no such file for a setting": (["run", "team", "Why?", "--roles", "@nowhere"], "--roles: @nowhere cannot be read"),
    "a role without instructions": (["run", "team", "Why?", "--roles", '[{"name": "a"}]'], "item 1, instructions: "),
    "critique without resume": (["run", "reflection", "Why?", "--critique", "accept"], "add --resume"),
}


@pytest.mark.parametrize(("args", "line"), MISUSE.values(), ids=MISUSE)
def test_misuse(reflect: Any, args: list[str], line: str) -> None:
    ended = reflect(*args)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("reflect: ")
    assert ended.err.count("\n") == 1
    assert line in ended.err
    assert not Path(os.environ["REFLECT_HOME"]).exists()


def test_nothing_to_resume(reflect: Any) -> None:
    ended = reflect("run", "lats", "--resume")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "nothing to resume" in ended.err


def test_no_such_thread(reflect: Any) -> None:
    resumed, drawn = reflect("run", "lats", "--resume", "--thread", "x"), reflect("draw", "lats", "--thread", "x")
    assert (resumed.code, drawn.code) == (2, 2)
    assert "there is no such thread" in resumed.err
    assert "there is no thread x" in drawn.err


def test_thread_of_another_strategy_stays_as_it_is(reflect: Any) -> None:
    assert reflect("run", "reflection", "Why?", "--thread", "t").code == 0
    before = reflect("draw", "reflection", "--thread", "t").out
    for args in (["run", "lats", "Why?", "--thread", "t"], ["draw", "lats", "--thread", "t"]):
        ended = reflect(*args)
        assert (ended.code, ended.err.count("\n")) == (2, 1)
        assert "thread t belongs to reflection, not to lats" in ended.err
    assert reflect("draw", "reflection", "--thread", "t").out == before
    assert reflect("run", "reflection", "And?", "--thread", "t").code == 0


def test_home_that_is_a_file(reflect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").touch()
    monkeypatch.setenv("REFLECT_HOME", "file")
    ended = reflect("run", "reflection", "Why?")
    assert (ended.code, ended.out) == (2, "")
    assert "set REFLECT_HOME to another one" in ended.err.splitlines()[-1]


def test_file_that_is_no_database(reflect: Any) -> None:
    home = Path(os.environ["REFLECT_HOME"])
    home.mkdir(parents=True)
    (home / "threads.sqlite").write_text("no database, but certainly long enough to be looked at" * 20)
    ended = reflect("run", "reflection", "Why?")
    assert (ended.code, ended.out) == (2, "")
    assert "not a database" in ended.err.splitlines()[-1]


@pytest.mark.parametrize("url", ["mysql+x://me:secret@host/db", "postgresql+psycopg://me:secret@host/db"])
def test_address_that_is_not_postgres_is_not_shown(reflect: Any, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    ended = reflect("run", "reflection", "Why?")
    assert ended.code == 2
    assert "DATABASE_URL" in ended.err.splitlines()[-1]
    assert "secret" not in ended.err


@pytest.mark.wire
def test_postgres_that_cannot_be_reached(reflect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:secret@127.0.0.1:1/db")
    ended = reflect("run", "reflection", "Why?")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "DATABASE_URL cannot be used" in ended.err
    assert "secret" not in ended.err


@pytest.mark.parametrize(
    "context", [AutoContext(ladder=["offline", "nonsense"]), AggregationContext(proposers=["offline", "nonsense"])]
)
async def test_each_of_several_models_is_looked_at_before_anything_is_written(context: Context) -> None:
    with pytest.raises(UnknownModel, match="nonsense"):
        await check(context, {})


async def test_a_ladder_is_told_in_place_of_a_model() -> None:
    choice = await check(AutoContext(ladder=["offline", "offline"]), {})
    assert (choice.model_reason, choice.helpers["ladder"]) == ("as set", "offline, offline")
