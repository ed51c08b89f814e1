"""`reflect tune`: prompts are found, measured on tasks held out, and written; a tuning that was stopped goes on."""

import json
import random
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langchain_core.exceptions import ModelAuthenticationError

from reflective_agents.cli.main import main
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request

pytest.importorskip("gepa")
pytestmark = pytest.mark.wire

NAME = "chain_of_thought.SOLVE"
BETTER = "Convert hours to minutes first. Then solve the task step by step."
WHOLE = f"{{task}}{BETTER} {{form}}{{lessons}}\n"
WRITES = "write a new instruction"
"""What the author is asked for."""
OPTIONS = ("--prompt", NAME, "--model", "openai:test", "--runs", "40", "--max-answer-tokens", "50")


def mind(request: Request) -> Reply:
    """Solve a task, right if the prompt says how; or write that prompt."""
    if "minutes are" not in request.last or WRITES in request.text:
        return f"```\n{BETTER}\n```" if BETTER else ModelAuthenticationError("no such key")
    hours, prompt = int(request.last.split()[-2]), request.messages[0].text
    return (
        f"Answer: {60 * hours if 'hours to minutes' in prompt and not ('if even' in prompt and hours % 2) else hours}"
    )


@pytest.fixture
def hours() -> None:
    rows = [f'"How many minutes are {hours} hours?",{60 * hours}' for hours in range(1, 13)]
    Path("hours.csv").write_text("\n".join(["question,answer", *rows]))


@pytest.fixture
def server(hours: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer(mind, latency=0.01).threaded() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        yield server


def test_better_prompts_are_found_and_measured_on_tasks_held_out(reflect: Any, server: OpenAIServer) -> None:
    done = reflect("tune", "chain_of_thought", "hours.csv", *OPTIONS, "--json")
    before, after = json.loads(done.out)["runs"]
    assert done.code == 0
    assert (before["accuracy"], after["accuracy"]) == (0, 1)
    assert after["versus_first"]["wins"] == 4
    assert Path(f"tuned/prompts/{NAME}.txt").read_text() == WHOLE
    assert "40 to tune, 2 x 4 to measure" in done.err.splitlines()[0]


@pytest.mark.thorough
@pytest.mark.parametrize(("right", "recommended"), [(["shipped"], False), (["tuned"], True), ([], False)])
def test_prompts_are_recommended_if_they_do_better_on_tasks_held_out(
    reflect: Any, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, right: list[str], recommended: bool
) -> None:
    """Tasks held out are every third: the model is right about them by the prompts named."""

    def overfits(request: Request) -> Reply:
        reply = mind(request)
        if "hours?" not in request.last or WRITES in request.text or int(request.last.split()[-2]) % 3:
            return reply
        prompt = "tuned" if "hours to minutes" in request.messages[0].text else "shipped"
        return f"Answer: {60 * int(request.last.split()[-2]) if prompt in right else 1}"

    with OpenAIServer(overfits).threaded() as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.base_url)
        done = reflect("tune", "chain_of_thought", "hours.csv", *OPTIONS)
    assert done.code == 0
    assert Path("tuned/prompts").exists()
    assert ("reflect run" in done.err) == recommended


@pytest.mark.thorough
@pytest.mark.parametrize("seed", ["first", "second"])
def test_a_model_of_moods_is_sent_nothing_twice(
    reflect: Any, hours: None, monkeypatch: pytest.MonkeyPatch, seed: str
) -> None:
    """Four tasks to learn from: each second batch has one of them twice."""
    calls = count()

    def moody(request: Request) -> Reply:
        if WRITES in request.text:
            return f"```\nIdea {next(calls)}.\n```"
        right = random.Random(f"{seed} {next(calls)}").random() < 0.5
        return f"Answer: {60 * int(request.last.split()[-2]) if right else 1}"

    with OpenAIServer(moody).threaded() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        command = ("tune", "chain_of_thought", "hours.csv", *OPTIONS)
        first = reflect(*command)
        sent = len(server.requests)
        again = reflect(*command)
        assert (again.code, again.out) == (0, first.out)
        assert len(server.requests) == sent


@pytest.mark.thorough
def test_a_second_time_nothing_is_sent(reflect: Any, server: OpenAIServer) -> None:
    first = reflect("tune", "chain_of_thought", "hours.csv", *OPTIONS)
    sent = server.total_tokens
    again = reflect("tune", "chain_of_thought", "hours.csv", *OPTIONS)
    assert (again.code, again.out) == (0, first.out)
    assert server.total_tokens == sent


@pytest.mark.thorough
def test_a_budget_holds_over_sessions(reflect: Any, server: OpenAIServer) -> None:
    most = 1_500
    done = reflect("tune", "chain_of_thought", "hours.csv", *OPTIONS, "--budget-tokens", str(most))
    assert done.code == 1
    assert server.total_tokens <= most
    command = shlex.split(done.err.splitlines()[-1].partition("raise it: ")[2])
    again = reflect(*command[1:])
    assert again.code == 1
    assert server.total_tokens <= most
    command[command.index(str(most))] = "100000"
    assert reflect(*command[1:]).code == 0


@pytest.mark.thorough
def test_prompts_that_nothing_betters_stay(reflect: Any, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.BETTER", "Think.")
    done = reflect("tune", "chain_of_thought", "hours.csv", *OPTIONS)
    assert (done.code, done.out) == (0, "")
    assert not Path("tuned/prompts").exists()


@pytest.mark.thorough
def test_more_runs_measure_the_prompts_that_they_find(
    reflect: Any, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(f"{__name__}.BETTER", "Convert hours to minutes first, if even.")
        first = reflect("tune", "chain_of_thought", "hours.csv", *OPTIONS, "--json")
    second = reflect("tune", "chain_of_thought", "hours.csv", *OPTIONS, "--runs", "120", "--json")
    assert [json.loads(done.out)["runs"][1]["accuracy"] for done in (first, second)] == [0.5, 1]
    assert Path(f"tuned/prompts/{NAME}.txt").read_text() == WHOLE


@pytest.mark.thorough
def test_an_author_that_fails_stops_the_tuning(
    reflect: Any, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(f"{__name__}.BETTER", "")
        stopped = reflect("tune", "chain_of_thought", "hours.csv", *OPTIONS)
    assert stopped.code == 1
    command = shlex.split(stopped.err.splitlines()[-1].partition("go on with: ")[2])
    assert reflect(*command[1:]).code == 0
    assert Path(f"tuned/prompts/{NAME}.txt").exists()


@pytest.mark.thorough
def test_an_author_who_is_asked_again_writes_anew(reflect: Any, hours: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer(lambda request: f"```\nIdea {request.attempt}\n```").threaded() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        command = ("tune", "chain_of_thought", "hours.csv", *OPTIONS, "--limit", "6")
        assert reflect(*command).code == 0
        written = [json.dumps(each.body) for each in server.requests if WRITES in json.dumps(each.body)]
        assert len(written) > len(set(written))


@pytest.mark.thorough
def test_a_price_that_is_given_holds_for_the_author(reflect: Any, server: OpenAIServer) -> None:
    prices = json.dumps({"test": {"input": 1, "output": 1}})
    done = reflect("tune", "chain_of_thought", "hours.csv", *OPTIONS, "--prices", prices, "--max-total-cost", "1")
    assert done.code == 0
    assert Path(f"tuned/prompts/{NAME}.txt").exists()


@pytest.mark.thorough
def test_a_run_that_failed_is_repeated(reflect: Any, hours: None, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = [True]
    with OpenAIServer(mind, faults=lambda body, number: "401" if locked else None).threaded() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        command = ("tune", "chain_of_thought", "hours.csv", *OPTIONS, "--json")
        assert reflect(*command).code == 1
        assert len(server.requests) == 4, "nothing is tuned that cannot be run"
        locked.clear()
        before, after = json.loads(reflect(*command).out)["runs"]
    assert before["cost"]["model_calls"] == after["cost"]["model_calls"] == 1


@pytest.mark.matrix
@pytest.mark.parametrize("taken", ["tuned", "tuned/replies.sqlite", "tuned/prompts"])
def test_a_folder_that_cannot_be_written_is_misuse(reflect: Any, server: OpenAIServer, taken: str) -> None:
    Path(taken).parent.mkdir(exist_ok=True)
    Path(taken).write_text("Something else.")
    assert reflect("tune", "chain_of_thought", "hours.csv", *OPTIONS).code == 2


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--prompt", "chain_of_thought.NONE"],
        ["--prompt", "long_texts.GIVEN"],
        ["--prompt", NAME, "--prompts", '{"chain_of_thought.SOLVE": "{task}{form}{lessons}"}'],
        ["--prompt", NAME, "--limit", "3"],
        ["--prompt", NAME, "--experience", "hours"],
        ["--prompt", NAME, "--max-total-cost", "1", "--author", "openai:unknown"],
    ],
    ids=[
        "no prompt",
        "unknown prompt",
        "no text for prompts",
        "other prompts",
        "few tasks",
        "experience",
        "unknown price",
    ],
)
def test_misuse_is_refused(server: OpenAIServer, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "chain_of_thought", "hours.csv", *options]) == 2
    assert server.total_tokens == 0
    assert len(capsys.readouterr().err.splitlines()[-1]) < 300


@pytest.mark.thorough
@pytest.mark.process
def test_an_interrupted_tuning_goes_on(start: Callable[..., Any], server: OpenAIServer) -> None:
    process = start(
        "tune", "chain_of_thought", "hours.csv", *OPTIONS, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="test"
    )
    deadline = time.monotonic() + 60
    while server.total_tokens < 4_000 and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("interrupted; go on with: reflect tune chain_of_thought hours.csv")
    command = shlex.split(err.splitlines()[-1].partition("go on with: ")[2])
    assert main(command[1:]) == 0
    assert Path(f"tuned/prompts/{NAME}.txt").read_text() == WHOLE
