"""What version 0.1.0 has written is read, shown and gone on with: threads, memories, lessons, evaluations, exports."""

import json
import lzma
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.types import Command

from reflective_agents.cli.main import main
from reflective_agents.cli.threads import config_of, open_saver
from reflective_agents.evals.datasets import load_dataset
from reflective_agents.evals.run import evaluate
from reflective_agents.graphs import chain_of_thought, reflexion, team
from reflective_agents.state.settings import strategy_names
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.state.settings.reflexion import ReflexionContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from tests.old_data.reading import read_memories, read_thread, the_store
from tests.persistence.old_data import (
    EXPECTED,
    IN_POSTGRES,
    NEXT,
    THREADS,
    V1,
    Told,
    assert_goes_on,
    lay_out,
    of_state,
    owner_options,
    settings_of,
    unpacked,
)

Reflect = Callable[..., Told]
TREES = [name for name, thread in THREADS.items() if thread["tree"]]
REVIEWED = [name for name in of_state("waiting") if THREADS[name]["strategy"] == "reflection"]
QUICK = {"failed-lats": ["--n", "1", "--max-expansions", "1"], "finished-town": ["--max-steps", "1"]}
"""How a conversation goes on, where that is not as it began."""
LESSON = "Who won the chess championship of 1972?"


@pytest.fixture(scope="session")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home as 0.1.0 left it, to be copied."""
    home = tmp_path_factory.mktemp("v1") / "home"
    lay_out(home)
    return home


@pytest.fixture
def home(laid_out: Path, index_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the command find a copy of that home."""
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")
    monkeypatch.setenv("REFLECT_CACHE_DIR", index_folder)
    folder = tmp_path / "cwd"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Path(shutil.copytree(laid_out, os.environ["REFLECT_HOME"]))


@pytest.fixture
def reflect(home: Path, capsys: pytest.CaptureFixture[str]) -> Reflect:
    """Return the command, called in this process."""

    def call(*args: str) -> Told:
        code = main(list(args))
        captured = capsys.readouterr()
        return Told(code, captured.out, captured.err)

    return call


async def assert_threads(threads: dict[str, dict[str, Any]]) -> None:
    """Each thread holds what it held."""
    async with open_saver() as saver:
        for name, thread in threads.items():
            found = await read_thread(saver, thread["strategy"], name)
            assert found == {key: thread[key] for key in found}, name


async def assert_memories(memories: dict[str, Any]) -> None:
    """Each memory holds what it held, and finds the same for the same question."""
    async with the_store() as store:
        for name, remembered in memories.items():
            assert await read_memories(store, name) == remembered


def test_every_strategy_has_left_a_run_that_has_ended_and_one_that_has_not() -> None:
    younger = {"auto"}
    for state in ("finished", "mid-run"):
        assert {THREADS[name]["strategy"] for name in of_state(state)} == set(strategy_names()) - younger


async def test_threads_hold_what_they_held(home: Path) -> None:
    await assert_threads(THREADS)


def test_threads_are_listed(reflect: Reflect) -> None:
    rows = [line.split("\t") for line in reflect("threads", "--limit", "100").out.splitlines()[1:]]
    listed = {row[0]: (row[1], row[3], row[4]) for row in rows if row[0] in THREADS}
    assert listed == {name: (one["strategy"], one["status"], one["question"]) for name, one in THREADS.items()}


def test_runs_are_drawn(reflect: Reflect) -> None:
    for name, thread in THREADS.items():
        told = reflect("draw", thread["strategy"], "--thread", name)
        if told.code == 2 and (thread["state"] != "finished" or name == "failed-lats"):
            assert "holds no step yet" in told.err or "its run ended before the first step" in told.err
            continue
        assert (told.code, bool(told.out)) == (0, True), name
        if thread["tree"]:
            assert len(told.out.splitlines()) == thread["tree"]


def test_a_day_of_a_town_is_shown(reflect: Reflect) -> None:
    told = reflect("town", "--show", "--thread", "finished-town", "--html", "day.html")
    assert (told.code, told.err) == (0, "page: day.html\n")
    assert THREADS["finished-town"]["question"] in Path("day.html").read_text("utf-8")


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize("thread", TREES)
def test_trees_are_exported(reflect: Reflect, thread: str) -> None:
    told = reflect("tree", thread, "--json", "-", "--mermaid", "tree.mmd", "--html", "tree.html")
    drawn = json.loads(told.out)
    assert len(drawn["nodes"]) == THREADS[thread]["tree"]
    assert Path("tree.mmd").read_text("utf-8").startswith("flowchart LR\n")
    assert picture_in(Path("tree.html").read_text("utf-8")) == drawn


def picture_in(page: str) -> Any:
    """The tree that a page holds."""
    return json.loads(page.partition('<script type="application/json" id="picture">')[2].partition("</script>")[0])


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize("thread", of_state("finished"))
def test_a_conversation_goes_on(reflect: Reflect, thread: str) -> None:
    kept = THREADS[thread]
    told = reflect("run", kept["strategy"], NEXT, "--thread", thread, *QUICK.get(thread, settings_of(kept)))
    assert told.code == 0, told.err
    assert f"thread {thread} (continued)" in told.err
    assert told.outcome in ("solved", "answered", "limit_reached", "exhausted")


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize("thread", of_state("mid-run"))
def test_a_run_that_was_killed_goes_on(reflect: Reflect, thread: str) -> None:
    kept = THREADS[thread]
    told = reflect("run", kept["strategy"], "--thread", thread, "--resume", *owner_options(kept))
    assert_goes_on(told, kept)


@pytest.mark.parametrize("thread", REVIEWED)
def test_a_run_that_waits_for_a_person_takes_the_critique(reflect: Reflect, thread: str) -> None:
    told = reflect("run", "reflection", "--thread", thread, "--resume", "--critique", "accept", "--json")
    data = json.loads(told.out)
    assert (told.code, bool(data["answer"])) == (0, True)
    assert (data["outcome"]["status"], data["outcome"]["verified_by"]) == ("solved", "person")
    said = ["too short", ""] if thread == "waiting-second-draft" else [""]
    assert [draft["critique"] for draft in data["drafts"]] == said


async def test_a_member_that_waits_for_a_person_takes_the_critique(home: Path) -> None:
    async with open_saver() as saver:
        graph = team.builder.compile(checkpointer=saver, name="team")
        result = await graph.ainvoke(Command(resume="accept"), config_of("waiting-member"))
    assert "__interrupt__" not in result
    assert result["outcome"]["status"] == "limit_reached"
    assert [report["answer"] is not None for report in result["rounds"][-1]["reports"]] == [True]


async def test_a_run_that_was_stopped_in_python_goes_on(home: Path) -> None:
    async with open_saver() as saver:
        graph = reflexion.builder.compile(checkpointer=saver, name="reflexion")
        assert (await graph.aget_state(config_of("python"))).next == ("execute_tools",)
        context = ReflexionContext(model="offline", search="local")
        result = await graph.ainvoke(None, config_of("python"), context=context)
    assert result["outcome"]["status"] == "solved"
    assert [message.type for message in result["messages"]] == ["human", "ai"]


async def test_memories_are_found(home: Path) -> None:
    await assert_memories(EXPECTED["memories"])


def test_a_conversation_remembers_and_goes_on_remembering(reflect: Reflect) -> None:
    before = reflect("memory", "export", "--user", "ada").out.splitlines()
    told = reflect("run", "memory", "What does my sister Ada play?", "--user", "ada", "--retrieved", "20", "--json")
    data = json.loads(told.out)
    assert "cello" in data["answer"]
    assert any(memory["cited"] for memory in data["memories"])
    after = reflect("memory", "export", "--user", "ada").out.splitlines()
    assert len(after) == len(before) + 2
    assert {line["id"] for line in memories_in(before)} < {line["id"] for line in memories_in(after)}


def memories_in(lines: list[str]) -> list[dict[str, Any]]:
    return [one for one in map(json.loads, lines) if "mark" not in one]


def test_an_insight_is_shown_with_what_it_rests_on(reflect: Reflect) -> None:
    told = reflect("memory", "list", "--user", "ada", "--limit", "99")
    rows = [line.split("\t") for line in told.out.splitlines()]
    insight = next(row[0] for row in rows if row[2] == "reflection")
    assert "\nrests on:\nid\twhen\tkind" in reflect("memory", "show", insight, "--user", "ada").out


def test_an_export_of_memories_is_imported(reflect: Reflect) -> None:
    old = V1 / "exports" / "memory.jsonl"
    count = len(memories_in(old.read_text("utf-8").splitlines()))
    assert f"{count} memories added" in reflect("memory", "import", str(old), "--user", "eve").err
    assert reflect("memory", "export", "--user", "eve").out == old.read_text("utf-8")


def test_experience_is_recalled(reflect: Reflect) -> None:
    told = reflect("run", "react", LESSON, "--experience", "chess", "--max-actions", "1")
    kept = EXPECTED["memories"]["experience:chess"]["kinds"]["reflection"]
    assert f"recalled: lessons={kept}," in told.err


def run_of(name: str) -> dict[str, Any]:
    run: dict[str, Any] = EXPECTED["evaluations"][name]
    return run


def assert_same_figures(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """The summaries are the same, but for the order in which seconds were added up."""
    costs = found.pop("cost")
    assert costs.keys() == expected["cost"].keys()
    assert all(costs[name] == pytest.approx(spread) for name, spread in expected["cost"].items())
    assert found.pop("cached_calls", 0) == 0
    assert found == {name: value for name, value in expected.items() if name != "cost"}


@pytest.fixture
def dataset(home: Path) -> Path:
    """Return the tasks, in the folder in which the command is called."""
    return Path(shutil.copy(V1 / "arithmetic.jsonl", Path.cwd()))


def test_an_evaluation_that_has_ended_is_shown_and_not_run_again(reflect: Reflect, dataset: Path, home: Path) -> None:
    results = home / "evals" / run_of("offline")["folder"] / "results.jsonl"
    before = results.read_bytes()
    told = reflect(*run_of("offline")["command"], "--json")
    assert_same_figures(json.loads(told.out), run_of("offline")["summary"])
    assert results.read_bytes() == before


async def test_an_evaluation_in_python_is_not_run_again(home: Path) -> None:
    def never(_: Request) -> Reply:
        raise AssertionError("a task was run again")

    context = ChainOfThoughtContext(model=FakeChatModel(reply=never), environment="arithmetic")
    tasks = load_dataset(V1 / "arithmetic.jsonl")
    found = await evaluate(chain_of_thought.graph, tasks, context=context, out=home / "evals" / "scripted")
    assert_same_figures(json.loads(json.dumps(found)), run_of("scripted")["summary"])
    assert (found["correct"], found["errors"]) == (7, {})


def test_an_evaluation_that_was_killed_goes_on(reflect: Reflect, dataset: Path, home: Path) -> None:
    results = home / "evals" / run_of("stopped")["folder"] / "results.jsonl"
    before = results.read_bytes()
    told = reflect(*run_of("stopped")["command"], "--json")
    assert (told.code, json.loads(told.out)["finished"]) == (0, 10)
    assert results.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    assert len({json.loads(line)["id"] for line in results.read_text().splitlines()}) == 10
    assert [line.partition(" ")[0] for line in told.err.splitlines() if "/10 tasks" in line] == [
        f"{number}/10" for number in range(5, 11)
    ]


def test_evaluations_are_compared(reflect: Reflect) -> None:
    folders = [run_of(name)["folder"] for name in ("offline", "scripted", "stopped")]
    told = json.loads(reflect("compare", *folders, "--json").out)
    assert (told["shared"], [run["correct"] for run in told["runs"]]) == (4, [0, 4, 0])


def test_exports_are_what_they_were(reflect: Reflect) -> None:
    assert reflect("tree", "limit-lats", "--json", "-").out == exported("tree.json")
    assert reflect("tree", "finished-rap", "--json", "-").out == exported("rap.json")
    assert reflect("tree", "limit-lats", "--mermaid", "-").out == exported("tree.mmd")
    assert reflect("tree", "finished-lats", "--preferences", "-").out == exported("preferences.jsonl")
    assert reflect("tree", "finished-lats", "--finetune", "-").out == exported("finetune.jsonl")
    assert reflect("memory", "export", "--experience", "chess").out == exported("experience.jsonl")
    assert picture_in(unpacked("exports/tree.html").decode()) == json.loads(exported("tree.json"))


def exported(name: str) -> str:
    return (V1 / "exports" / name).read_text("utf-8")


def test_what_is_kept_is_small_and_names_no_machine() -> None:
    files = [path for path in V1.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 300_000
    for path in files:
        data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        assert not re.search(rb"/(tmp|work|home|root|Users)/|sk-\w{8}", data), path.name


@pytest.fixture
def database(home: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Load what 0.1.0 left in Postgres, and let the command use it."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute(unpacked("postgres.sql"))
    monkeypatch.setenv("DATABASE_URL", postgres_url)


@pytest.mark.postgres
async def test_a_database_holds_what_it_held(database: None) -> None:
    await assert_threads(IN_POSTGRES)
    await assert_memories(EXPECTED["memories of postgres"])


@pytest.mark.postgres
def test_threads_in_a_database_go_on(database: None, reflect: Reflect) -> None:
    for name, thread in IN_POSTGRES.items():
        way = ["--thread", name, *owner_options(thread)]
        match thread["state"]:
            case "mid-run":
                assert_goes_on(reflect("run", thread["strategy"], *way, "--resume"), thread)
            case "waiting":
                assert reflect("run", thread["strategy"], *way, "--resume", "--critique", "accept").code == 0
            case "finished":
                assert "(continued)" in reflect("run", thread["strategy"], NEXT, *way).err
    assert {line.split("\t")[3] for line in reflect("threads").out.splitlines()[1:]} <= {
        "solved",
        "answered",
        "exhausted",
        "limit_reached",
    }
