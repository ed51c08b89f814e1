"""`reflect memory`, and runs that remember: what one run was told, another one knows, shows, forgets and exports."""

import json
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.state.memories import Topic, new_memory

SAID = "My sister Ada lives in Turin and plays the cello."
WHERE = "Where does my sister live?"


@pytest.fixture(autouse=True)
def quick_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")


@pytest.fixture
def with_memories(reflect: Any) -> Any:
    """Return the command, after a user has told something."""
    assert reflect("run", "memory", SAID, "--user", "ada").code == 0
    return reflect


def rows(with_memories: Any) -> list[list[str]]:
    """The rows of a listing."""
    assert with_memories.code == 0, with_memories.err
    header, *lines = [line.split("\t") for line in with_memories.out.splitlines()]
    assert header == ["id", "when", "kind", "importance", "text"]
    return lines


def test_what_was_told_is_known_in_another_run_and_cited(with_memories: Any) -> None:
    again = with_memories("run", "memory", WHERE, "--user", "ada", "--json")
    data = json.loads(again.out)
    [cited] = [memory for memory in data["memories"] if memory["cited"]]
    assert cited["text"] == SAID
    assert "plays the cello." in data["answer"]
    assert "kept_in=the store of the graph" in again.err
    assert f"retrieved: number={cited['number']}, kind=fact, text=My sister" in again.err
    assert json.loads(with_memories("run", "memory", WHERE, "--user", "bob", "--json").out)["memories"] == []


def test_memories_are_listed_the_latest_first_and_shown_whole(with_memories: Any) -> None:
    listed = rows(with_memories("memory", "list", "--user", "ada"))
    assert [(row[2], row[4].partition(":")[0]) for row in listed[1:]] == [
        ("observation", "assistant"),
        ("observation", "user"),
    ]
    assert (listed[0][2], listed[0][4]) == ("fact", SAID)
    assert rows(with_memories("memory", "list", "--user", "ada", "--limit", "1")) == listed[:1]
    assert rows(with_memories("memory", "list", "--user", "bob")) == rows(with_memories("memory", "list")) == []
    shown = with_memories("memory", "show", listed[2][0], "--user", "ada")
    assert shown.out.startswith("observation of ")
    assert f"\n\nuser: {SAID}\n" in shown.out


def test_the_default_user_is_that_of_the_environment(with_memories: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_USER", "ada")
    assert len(rows(with_memories("memory", "list"))) == 3


def test_one_memory_is_forgotten_or_all(with_memories: Any) -> None:
    [fact, answer, statement] = rows(with_memories("memory", "list", "--user", "ada"))
    forgotten = with_memories("memory", "forget", statement[0], "--user", "ada")
    assert rows(forgotten) == [fact]
    assert "1 memories that rest on it stay: --derived forgets them, too" in forgotten.err
    assert rows(with_memories("memory", "list", "--user", "ada")) == [fact, answer]
    assert with_memories("memory", "forget", statement[0], "--user", "ada").code == 2
    assert with_memories("memory", "forget", statement[0], "--derived", "--user", "ada").code == 0
    assert rows(with_memories("memory", "list", "--user", "ada")) == [answer]
    assert with_memories("memory", "forget", "--all", "--user", "bob").code == 0
    assert rows(with_memories("memory", "list", "--user", "ada")) == [answer]
    assert with_memories("memory", "forget", "--all", "--user", "ada").code == 0
    assert rows(with_memories("memory", "list", "--user", "ada", "--archived")) == []


@pytest.mark.thorough
def test_a_fact_is_corrected_under_its_id(with_memories: Any) -> None:
    fact = rows(with_memories("memory", "list", "--user", "ada"))[0]
    assert with_memories("memory", "edit", fact[0], "My sister Ada lives in Lyon.", "--user", "ada").code == 0
    changed = rows(with_memories("memory", "list", "--user", "ada"))[0]
    assert changed == [*fact[:4], "My sister Ada lives in Lyon."]
    assert (
        "Lyon"
        in json.loads(with_memories("run", "memory", WHERE, "--user", "ada", "--json").out)["memories"][0]["text"]
    )
    assert with_memories("memory", "edit", "0" * 32, "No.", "--user", "ada").code == 2
    assert with_memories("memory", "edit", fact[0], " ", "--user", "ada").code == 2


def test_what_is_superseded_is_listed_as_such(reflect: Any, tmp_path: Path) -> None:
    ward = new_memory("The user works in a ward.", created=0, kind="fact", importance=5)
    left = new_memory("The user has quit.", created=86_400, kind="fact", importance=5, supersedes=[ward["id"]])
    file = tmp_path / "facts.jsonl"
    file.write_text("".join(json.dumps(memory) + "\n" for memory in (ward, left)))
    assert reflect("memory", "import", str(file), "--user", "ada").code == 0
    assert [row[4] for row in rows(reflect("memory", "list", "--user", "ada"))] == [
        "The user has quit.",
        "(superseded 1970-01-02 00:00) The user works in a ward.",
    ]
    shown = reflect("memory", "show", ward["id"], "--user", "ada").out
    assert "superseded: no longer holds since 1970-01-02 00:00" in shown
    assert "\n\nThe user works in a ward." in shown


@pytest.mark.thorough
def test_an_insight_is_shown_with_its_evidence_and_stays_when_that_is_forgotten(with_memories: Any) -> None:
    assert with_memories("run", "memory", WHERE, "--user", "ada", "--reflect-at", "1").code == 0
    insight = next(row for row in rows(with_memories("memory", "list", "--user", "ada")) if row[2] == "reflection")
    shown = with_memories("memory", "show", insight[0], "--user", "ada").out
    assert "\nrests on:\nid\twhen\tkind" in shown
    below = shown.rpartition("rests on:\n")[2].splitlines()[1].split("\t")[0]
    assert below not in [row[0] for row in rows(with_memories("memory", "list", "--user", "ada"))]
    assert below in [
        row[0] for row in rows(with_memories("memory", "list", "--user", "ada", "--archived", "--limit", "99"))
    ]
    assert insight[0] in with_memories("memory", "show", below, "--user", "ada").out.partition("is the ground of:")[2]
    forgotten = with_memories("memory", "forget", below, "--user", "ada")
    assert insight[0] in forgotten.out


def test_memories_travel_as_json_lines(with_memories: Any, tmp_path: Path) -> None:
    file = tmp_path / "ada.jsonl"
    assert with_memories("memory", "export", str(file), "--user", "ada").code == 0
    assert with_memories("memory", "export", "--user", "ada").out == file.read_text()
    assert [json.loads(line)["importance"] for line in file.read_text().splitlines()] == [5.0, 1.0, 5.0]
    assert "3 memories added" in with_memories("memory", "import", str(file), "--user", "bob").err
    assert "0 memories added" in with_memories("memory", "import", str(file), "--user", "bob").err
    assert rows(with_memories("memory", "list", "--user", "bob")) == rows(
        with_memories("memory", "list", "--user", "ada")
    )
    assert with_memories("memory", "export", str(file), "--user", "ada").code == 2
    assert with_memories("memory", "export", str(file), "--user", "ada", "--force").code == 0


def test_a_memory_cannot_command_the_terminal(reflect: Any) -> None:
    planted = "\x1b]0;owned\x07\x1b[31mRed\x1b[0m \u202e news.\u2028End."
    reflect("run", "memory", planted, "--user", "ada")
    listed = reflect("memory", "list", "--user", "ada")
    shown = reflect("memory", "show", rows(listed)[1][0], "--user", "ada")
    assert "Red" in listed.out
    assert not {"\x1b", "\u202e", "\x07"} & set(listed.out + shown.out + listed.err)
    exported = reflect("memory", "export", "--user", "ada").out
    assert json.loads(exported.split("\n")[0])["text"] == planted


def test_the_profile_is_what_holds_by_topic_with_the_words_it_rests_on(reflect: Any, tmp_path: Path) -> None:
    turn = new_memory("I'm Ada, I eat no nuts, and I once saw a whale.", created=0, speaker="user", conversation="c")
    kept: list[tuple[str, Topic, int]] = [
        ("Ada eats no nuts.", "diet", 9),
        ("The user is Ada.", "name", 5),
        ("Ada saw a whale.", "other", 10),
    ]
    facts = [
        new_memory(text, created=1, kind="fact", importance=weight, topic=topic, evidence=[turn["id"]])
        for text, topic, weight in kept
    ]
    facts.append(new_memory("Ada ate nuts.", created=0, kind="fact", topic="diet"))
    facts[0]["supersedes"] = [facts[-1]["id"]]
    file = tmp_path / "ada.jsonl"
    file.write_text("\n".join(map(json.dumps, [turn, *facts])))
    assert reflect("memory", "import", str(file), "--user", "ada").code == 0
    header, *lines = [line.split("\t") for line in reflect("memory", "profile", "--user", "ada").out.splitlines()]
    assert header == ["topic", "id", "fact", "since", "in the words"]
    assert [(line[0], line[2], line[4]) for line in lines] == [
        ("name", "The user is Ada.", turn["text"]),
        ("diet", "Ada eats no nuts.", turn["text"]),
    ]


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["show", "x"], "there is no memory x here"),
        (["forget"], "name the memory"),
        (["forget", "x", "--all"], "name the memory"),
        (["list", "--user", ""], "--user: "),
        (["list", "--embeddings", "nobody:x"], "nobody:x"),
        (["import", "nowhere.jsonl"], "nowhere.jsonl cannot be read"),
        (["list", "--limit", "0"], "--limit"),
    ],
)
def test_misuse_is_one_line_that_says_what_to_do(reflect: Any, words: list[str], advice: str) -> None:
    ended = reflect("memory", *words)
    assert (ended.code, ended.out) == (2, "")
    assert advice in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.thorough
def test_what_is_no_export_is_not_imported(with_memories: Any, tmp_path: Path) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text(with_memories("memory", "export", "--user", "ada").out + '{"id": 1}\n')
    ended = with_memories("memory", "import", str(file), "--user", "bob")
    assert (ended.code, rows(with_memories("memory", "list", "--user", "bob"))) == (2, [])
    assert "line 4 is no memory" in ended.err


@pytest.mark.thorough
def test_a_thread_belongs_to_its_user_and_the_way_on_names_them(with_memories: Any) -> None:
    first = with_memories("run", "memory", WHERE, "--user", "ada", "--thread", "t")
    assert 'continue with: reflect run memory --thread t --user ada "..."' in first.err
    refused = with_memories("run", "memory", WHERE, "--user", "bob", "--thread", "t")
    assert refused.code == 2
    assert "belongs to user 'ada', not to 'bob'" in refused.err
    assert with_memories("run", "memory", WHERE, "--thread", "t", "--user", "ada").code == 0


def test_what_a_run_remembered_is_drawn_with_its_thread(with_memories: Any) -> None:
    with_memories("run", "memory", WHERE, "--user", "ada", "--thread", "t")
    header, *lines = with_memories("draw", "memory", "--thread", "t").out.splitlines()
    assert header.split("\t") == ["number", "kind", "text", "score", "recency", "importance", "relevance", "cited"]
    assert [line.split("\t")[0] for line in lines] == ["1", "2"]
