"""The builder of recorded runs: each form of log, made by hand, becomes the records that replays read."""

import hashlib
import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from bench.records import making, programs, questions, texts, thoughts
from bench.records.making import write
from bench.records.sources import SOURCES, Clones, RawFile, Source, Unusable, digest, published, to_clone
from bench.replays.records import attempts, load

ROOT = Path(__file__).parents[2]
TABLE = b"Rank,Puzzles,AMT (s),Solved rate\n1,1 1 4 6,4.4,99.20%\n2,2 3 4 6,4.6,98%\n"
CLUES = [f"clue {number}" for number in range(10)]
PUZZLES: Any = [[CLUES, list("ABCDEFGHIJKLMNOPQRSTUVWXY")]] * 100


def log(content: Any) -> bytes:
    return json.dumps(content).encode()


def lines(*rows: Any) -> bytes:
    return b"\n".join(map(log, rows)) + b"\n"


class TestClones:
    """A log is read where it lies, and refused where it is another one."""

    @pytest.fixture
    def clone(self, tmp_path: Path) -> Path:
        folder = tmp_path / "logs"
        folder.mkdir()
        git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
        (folder / "log.txt").write_bytes(b"published")
        for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "logs"]):
            subprocess.run([*git, *command], check=True)
        return folder

    def source(self, content: bytes, path: str = "log.txt", commit: str = "HEAD") -> Source:
        sha256 = hashlib.sha256(content).hexdigest()
        files: dict[str, RawFile] = {path: {"sha256": sha256}}
        return {**SOURCES["tot_game24_bfs"], "repository": "somebody/logs", "commit": commit, "files": files}

    def test_reads_a_file_that_is_right(self, clone: Path) -> None:
        assert Clones(clone.parent).read(self.source(b"published")) == [b"published"]

    def test_reads_the_history_where_the_file_has_changed_or_gone(self, clone: Path) -> None:
        (clone / "log.txt").write_bytes(b"newer")
        assert Clones(clone.parent).read(self.source(b"published")) == [b"published"]
        (clone / "log.txt").unlink()
        assert Clones(clone.parent).read(self.source(b"published")) == [b"published"]

    def test_reads_a_blob_that_no_commit_at_hand_names(self, clone: Path) -> None:
        blob = hashlib.sha1(b"blob 9\0published").hexdigest()
        source = self.source(b"published", "elsewhere.txt")
        source["files"]["elsewhere.txt"]["blob"] = blob
        assert Clones(clone.parent).read(source) == [b"published"]

    def test_names_what_is_missing_or_another_file_with_the_hashes(self, clone: Path) -> None:
        wanted, found = (hashlib.sha256(content).hexdigest() for content in (b"other", b"published"))
        with pytest.raises(Unusable, match=rf"log\.txt \(SHA-256 {wanted}\) is another file: it has {found}"):
            Clones(clone.parent).read(self.source(b"other"))
        with pytest.raises(Unusable, match=rf"gone\.txt \(SHA-256 {wanted}\) is missing"):
            Clones(clone.parent).read(self.source(b"other", "gone.txt"))
        with pytest.raises(Unusable, match="clone somebody/logs into"):
            Clones(clone.parent / "empty").read(self.source(b"other"))


class TestThoughts:
    """The logs of Tree of Thoughts."""

    def test_games_have_their_place_in_the_table(self) -> None:
        first, second = thoughts.puzzles([TABLE])
        assert first == {"id": "game24/0", "input": "1 1 4 6", "rank": 1, "human_solved_rate": "99.20%"}
        assert second["id"] == "game24/1"

    def test_samples(self) -> None:
        game = {"idx": 1, "ys": ["Answer: 1", "Answer: 4 * 6"], "infos": [{"r": 0}, {"r": 1}], "usage_so_far": {}}
        (record,) = thoughts.samples([log([game]), TABLE])
        assert record["task"] == {"input": "2 3 4 6", "idx": 1}
        assert [output["text"] for output in record["outputs"]] == game["ys"]
        assert record["verdict"] == {"r": "01"}

    def game(self) -> dict[str, Any]:
        first, second = "2 * 3 = 6 (left: 4 6)\n", "3 - 2 = 1 (left: 1.5 4 6)\n"
        steps = [
            {
                **{"step": 0, "x": "2 3 4 6", "ys": [""], "new_ys": [first, second, first]},
                **{"values": [41.0, 0.002, 0], "select_new_ys": [first, second]},
            },
            {
                **{"step": 1, "x": "2 3 4 6", "ys": [first, second], "new_ys": [f"{first}4 * 6 = 24 (left: 24)\n"]},
                **{"values": [0.0], "select_new_ys": [f"{first}4 * 6 = 24 (left: 24)\n"]},
            },
        ]
        infos, usage = [{"r": 0}, {"r": 1}], {"completion_tokens": 9, "cost": 1.5}
        return {"idx": 900, "steps": steps, "ys": ["a", "b"], "infos": infos, "usage_so_far": usage}

    def test_beams_have_proposals_by_state_and_each_candidate_once_with_its_labels(self) -> None:
        game = self.game()
        (record, later) = thoughts.beams([log([game, {**game, "usage_so_far": {"completion_tokens": 11, "cost": 2}}])])
        propose, value, other, again, empty, last = record["outputs"]
        assert propose["text"] == "2 * 3 = 6 (left: 4 6)\n3 - 2 = 1 (left: 1.5 4 6)\n2 * 3 = 6 (left: 4 6)"
        assert (value["samples"], other["samples"]) == (["sure", "sure", "likely"], ["impossible", "impossible", "?"])
        assert (again["state"], again["text"]) == (value["state"], "4 * 6 = 24 (left: 24)")
        assert (empty["text"], last["samples"]) == ("", ["?", "?", "?"])
        assert record["verdict"] == {"r": [0, 1], "any": 1, "first": 0}
        assert record["stats"]["candidates"] == 4
        assert later["stats"]["usage"] == {"completion_tokens": 2, "cost": 0.5}

    def test_the_same_by_the_numbers_that_are_left(self) -> None:
        found = [*thoughts.by_numbers([*thoughts.beams([log([self.game()])])])]
        assert [(row["role"], row["key"]) for row in found] == [
            ("propose", "2 3 4 6"),
            ("propose", "4 6"),
            ("propose", "3/2 4 6"),
            ("value", "4 6"),
            ("value", "3/2 4 6"),
        ]

    def test_crosswords_follow_the_visits_and_find_what_was_proposed_by_the_board(self) -> None:
        def visit(actions: list[str], impossible: int) -> dict[str, Any]:
            count = {"sure": 1, "maybe": 0, "impossible": impossible}
            return {"actions": actions, "info": {"r_word": len(actions) / 10, "r_letter": 0.2}, "count": count}

        visits = [visit(["h1. abcde"], 0), visit(["h1. abcde", "v1. xfkpu"], 1)]
        clues = "".join(f"h{n}. clue {n - 1}: _____\n" for n in range(1, 6))
        down = "".join(f"v{n}. clue {n + 4}: _____\n" for n in range(1, 6))
        empty = "Current Board:\n" + "_____\n" * 5 + f"\nUnfilled:\n{clues}{down}\nFilled:\n\nChanged:\n"
        cache = {empty: {"h1. abcde": 1.5999999999999999, "v1. afkpu": 8}}
        searched = [visits] * 20
        record, *_ = thoughts.depth_first([log(searched), log(searched), log(cache), log(PUZZLES)])
        propose, value, pruned = record["outputs"]
        assert propose == {
            **{"role": "propose", "state": f"{'_' * 25}|0000000000"},
            "candidates": [["h1. abcde", 1.6], ["v1. afkpu", 8]],
        }
        assert value["state"] == f"ABCDE{'_' * 20}|1000000000"
        assert pruned["state"] == "XBCDEF____K____P____U____|2000010000"  # the word across is overwritten
        assert record["verdict"]["deepest"]["actions"] == ["h1. abcde", "v1. xfkpu"]

    def test_sampled_boards(self) -> None:
        game = {"idx": 5, "ys": ["A B"], "infos": [{"r_letter": 1, "r_word": 1, "r_game": True}]}
        (record,) = thoughts.boards([log([game]), log([game]), log(PUZZLES)])
        assert [output["kind"] for output in record["outputs"]] == ["cot", "io"]
        assert record["verdict"]["io"] == [{"r_letter": 1, "r_word": 1, "solved": 1}]

    def test_texts_with_their_votes(self) -> None:
        plan, other, text = "Plan:\n1\n", "Plan:\n2\n", "Plan:\n2\nPassage:\nx"
        steps = [
            {"step": 0, "x": "in", "ys": [""], "new_ys": [plan, other], "values": [1, 4], "select_new_ys": [other]},
            {"step": 1, "x": "in", "ys": [other], "new_ys": [text], "values": [4], "select_new_ys": [text]},
        ]
        (record,) = thoughts.texts([log([{"idx": 7, "steps": steps}])])
        assert [output.get("text", output.get("counts")) for output in record["outputs"]] == [
            *(plan, other, [1, 4]),
            *("Passage:\nx", [4]),
        ]
        assert record["verdict"] == {"chosen": [1, 0], "valid_votes": [5, 4]}


QUESTIONS = [
    {"id": f"hotpot/{n}", "idx": n, "question": text, "gold": gold, "type": "bridge"}
    for n, (text, gold) in enumerate([("Where is the mill?", "Bath"), ("Who?", "Ann"), ("Where?", "Rome")])
]
HEAD = "\n####\nBEGIN TRIAL {}\nTrial summary: Correct: 1\n####\n"
SECTION = "------------- BEGIN {} AGENTS -------------\n\n"
REACT = (
    HEAD.format(1)
    + SECTION.format("CORRECT")
    + "Question: Who?\nThought 1: I ask.\nAction 1: Search[Ann]\nObservation 1: One line.\nAnother line.\n"
    "Thought 2: Ann.\nAction 2: Finish[ann]\nObservation 2: Answer is CORRECT\nCorrect answer: Ann\n\n"
    + SECTION.format("INCORRECT")
    + "Question: Where is the mill?\nThought 1: Bristol.\nAction 1: Finish[Bristol]\n"
    "Observation 1: Answer is INCORRECT\nCorrect answer: Bath\n\n"
    + SECTION.format("HALTED")
    + "Question: Where?\nThought 1: Hm.\nAction 1: Search[x]\nObservation 1: Nothing.\n"
    "Thought 2: so\nCorrect answer: Rome\n"
    + HEAD.format(2)
    + SECTION.format("CORRECT")
    + "Question: Who?\nThought 1: I ask.\nAction 1: Finish[ann]\nObservation 1: Answer is CORRECT\n"
    "Correct answer: Ann\n\n"
    + SECTION.format("INCORRECT")
    + "Question: Where is the mill?You have attempted to answer following question before and failed.\nReflections:\n"
    "- Look it up.\n- Do not guess. \nThought 1: Bath.\nAction 1: Finish[Wells]\n"
    "Observation 1: Answer is INCORRECT\nCorrect answer: Bath\n"
)


class TestQuestions:
    """The logs of HotpotQA and FEVER."""

    def test_trials_of_react(self) -> None:
        mill, who, where = questions.trials([REACT.encode()], QUESTIONS)
        assert [verdict["status"] for verdict in who["verdict"]] == ["correct", "solved_earlier"]
        assert [verdict["status"] for verdict in where["verdict"]] == ["halted", "absent"]
        first, second = attempts(mill)
        assert (first.lessons, second.lessons) == ((), ("Look it up.", "Do not guess."))
        assert second.turns[0].act == "Finish[Wells]"
        assert mill["verdict"][1]["reflections_in_prompt"] == 2
        assert attempts(who)[0].turns[0].observation == "One line.\nAnother line."
        assert who["verdict"][0]["em"] == 1  # as HotpotQA compares
        assert [len(attempt.turns) for attempt in attempts(where)] == [1]

    @pytest.mark.parametrize(
        "shown",
        [
            "Solve it by having a Thought, then Finish.\nReflections:\n- Think.\n\nRelevant Context: x\n\ny \n"
            "Question: Who?\nThought: Ann it is.\nAction: Finish[Ann]\nObservation: Answer is CORRECT\n",
            "Context: x. Question: Who?\nThought: Ann it is.\nAction: Finish[Ann]\nObservation: Answer is CORRECT\n"
            "Reflections: Think.\n",
        ],
    )
    def test_a_chain_of_thought_with_its_reflections_above_or_below(self, shown: str) -> None:
        text = HEAD.format(1) + SECTION.format("CORRECT") + shown + "Correct answer: Ann\n"
        (record,) = questions.trials([text.encode()], QUESTIONS[1:2])
        assert [(output["role"], output["text"]) for output in record["outputs"]] == [
            ("reflect", "Think."),
            ("thought", "Ann it is."),
            ("act", "Finish[Ann]"),
            ("observation", "Answer is CORRECT"),
        ]

    def test_reflections_that_do_not_go_on_are_all_new(self) -> None:
        def trial(number: int, lesson: str) -> str:
            attempt = f"Question: Who?x\nReflections:\n- {lesson}\nThought: a\nAction: Finish[b]\nObservation: no\n"
            return HEAD.format(number) + SECTION.format("INCORRECT") + attempt + "Correct answer: Ann\n"

        text = trial(1, "A") + trial(2, "A\n- B") + trial(3, "C\n- B")
        (record,) = questions.trials([text.encode()], QUESTIONS[1:2])
        assert [attempt.lessons for attempt in attempts(record)] == [("A",), ("B",), ("C", "B")]

    def test_claims_from_what_a_notebook_printed(self) -> None:
        end = {"steps": 2, "answer": "REFUTES", "gt_answer": "REFUTES", "question_idx": 7, "em": True, "f1": 1}
        text = (
            "7 Claim: Ann is a mill.\nThought 1: I look.\nAction 1: Search[Ann]\nObservation 1: Ann is a person.\n\n"
            f"Thought 2: No.\nAction 2: Finish[REFUTES]\nObservation 2: Episode finished, reward = 1\n\n"
            f"\n{end} \n\n1 1\n"
        )
        printed = [{"name": "stdout", "text": [part]} for part in (text[:40], text[40:])]
        (record,) = questions.claims([log({"cells": [{"outputs": printed}, {"cell_type": "markdown"}]})])
        assert record["task"] == {"idx": 7, "claim": "Ann is a mill.", "gold": "REFUTES"}
        assert record["verdict"] == {"answer": "REFUTES", "em": 1, "env_steps": 2, "finished": 1}
        assert [output["step"] for output in record["outputs"]] == [1, 1, 1, 2, 2, 2]

    def test_tasks(self) -> None:
        row = {
            **{"id": "5a", "question": "Who?", "answer": "Ann", "type": "bridge", "level": "hard"},
            **{"supporting_facts": {"title": ["Ann"], "sent_id": [0]}},
            **{"context": {"title": ["Ann"], "sentences": [["She is. ", "So."]]}},
        }
        (record,) = questions.with_articles([row])
        assert (record["id"], record["supporting_facts"]) == ("hotpot/5a", [["Ann", 0]])
        assert record["context"] == [["Ann", ["She is. ", "So."]]]
        (plain,) = questions.questions([log([row])])
        assert plain == {"id": "hotpotdev/0", "question": "Who?", "gold": "Ann", "type": "bridge"}
        (claim,) = questions.facts([lines({"claim": "x", "label": "SUPPORTS"})])
        assert claim == {"id": "fever/0", "claim": "x", "gold": "SUPPORTS"}


TASK = {
    **{"prompt": "def one() -> int:\n    '''Return 1.'''\n", "entry_point": "one"},
    "test": "def check(candidate):\n    assert candidate() == 1\n",
}


class TestPrograms:
    """The logs of programs."""

    def rows(self) -> bytes:
        first, last = "def one():\n    return 2", "def one():\n    return 1"
        done = {
            **{"name": "HumanEval_3_one", **TASK, "solution": last, "is_solved": True},
            **{"reflections": ["a", "b"], "implementations": [first, last], "test_feedback": ["no", "yes"]},
        }
        return lines(done, {"task_id": "HumanEval/4", "entry_point": "two"})

    def test_first_and_last_program_around_the_reflections(self) -> None:
        done, nothing = programs.attempts([self.rows()], making.WHOLE, most=1)
        assert [(output["role"], output.get("final", output.get("last"))) for output in done["outputs"]] == [
            *(("implement", None), ("evaluate", None), ("reflect", None), ("implement", 1), ("evaluate", 1)),
        ]
        assert (done["id"], done["verdict"]) == ("humaneval/3", {"recorded_solved": 1, "n_reflections": 2})
        assert (nothing["id"], nothing["outputs"], nothing["verdict"]["recorded_solved"]) == ("humaneval/4", [], None)

    @pytest.mark.thorough
    @pytest.mark.sandbox
    @pytest.mark.process
    def test_hidden_tests_say_which_programs_are_right(self) -> None:
        records = [*programs.attempts([self.rows()], making.WHOLE)]
        programs.execute(records, [self.rows()], first=False)
        assert "root_exec_pass" not in records[0]["verdict"]
        programs.execute(records, [self.rows()], first=True)
        assert records[0]["verdict"]["exec_pass"] == 1
        assert records[0]["verdict"]["root_exec_pass"] == 0
        assert "exec_pass" not in records[1]["verdict"]

    def test_tasks_and_samples(self) -> None:
        (named,) = programs.tasks([lines({"name": "mbpp_77_one", "language": "py", **TASK})])
        assert (named["id"], named["name"], "language" in named) == ("mbpp/77", "mbpp_77_one", False)
        wrote = lines({"prompt": "def a():\n", "samples": ["    return 1"]})
        tested = lines({"prompt": "def a():\n    pass\nassert ", "samples": ["a() == 1"]})
        (record,) = programs.sampled([wrote, tested])
        assert (record["id"], record["tests_prompt"]) == ("humaneval/0", "    pass\nassert ")


class TestTexts:
    """Conversations and paragraphs."""

    def test_conversations_with_mended_evidence(self) -> None:
        spoken = {
            **{"speaker_a": "Ann", "speaker_b": "Ben", "session_1_date_time": "1:56 pm on 8 May, 2023"},
            "session_1": [{"dia_id": "D1:1", "speaker": "Ann", "text": "Hi.", "blip_caption": "a photo"}],
        }
        questions = [
            {"question": "When?", "answer": 2022, "category": 2, "evidence": ["D:1:01; D9:17"]},
            {"question": "What?", "adversarial_answer": "x", "category": 5, "evidence": []},
        ]
        rows = [{"sample_id": name, "conversation": spoken, "qa": questions} for name in ("conv-26", *texts.KEPT_BACK)]
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("data/locomo10.json", json.dumps(rows))
        (record,) = texts.conversations([packed.getvalue()])
        assert record["sessions"][0]["at"] == "2023-05-08T13:56"
        assert record["sessions"][0]["turns"][0]["caption"] == "a photo"
        assert [(question["answer"], question["evidence"]) for question in record["questions"]] == [
            ("2022", ["D1:1"]),
            (None, []),
        ]

    def test_paragraphs_are_drawn_by_their_english_text(self) -> None:
        def squad(*contexts: str) -> bytes:
            questions = [{"question": "?", "answers": [{"text": "a"}, {"text": "a"}]}]
            return log({"data": [{"title": "T", "paragraphs": [{"context": c, "qas": questions} for c in contexts]}]})

        english = [f"paragraph {number}" for number in range(50)]
        own, drawn = squad(*("x" for _ in english)), squad(*english)
        kept = [*texts.paragraphs([own, drawn], "xquad")]
        assert [row["id"] for row in kept] == [row["id"] for row in texts.paragraphs([drawn], "xquad")]
        assert 0 < len(kept) < 50
        assert kept[0]["questions"] == [{"question": "?", "answers": ["a"]}]


def test_every_set_has_a_maker_and_nothing_else() -> None:
    assert set(SOURCES) == {*making.FORMS, *making.TRIALS, *making.DRAWN, making.CACHE}
    assert {source["commit"] for source in SOURCES.values() if len(source["commit"]) < 7} <= {"HEAD"}
    assert len(to_clone()) == len({source["repository"] for source in SOURCES.values()})


def test_what_was_written_is_read(tmp_path: Path) -> None:
    records = [{"id": "a", "text": "é\u2028"}, {"id": "b"}]
    write(tmp_path, "mine", records)
    assert load(tmp_path, "mine") == records


def test_verdicts_of_running_programs_are_no_part_of_the_hash() -> None:
    known, ran = {"verdict": {"n": 1}}, {"verdict": {"n": 1, "exec_pass": 1}}
    assert digest([known]) == digest([ran]) != digest([{"verdict": {"n": 2}}])


@pytest.mark.thorough
def test_the_recorded_files_are_the_published_ones(recorded: Path) -> None:
    wrong = {name for name in SOURCES if making.differs(name, load(recorded, name))}
    assert wrong == set()
    assert all(published(row["id"]) for name in making.FORMS for row in load(recorded, name))


def run(*arguments: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *arguments], cwd=cwd, env=env, capture_output=True, text=True)


@pytest.mark.process
class TestCommand:
    """What somebody with a fresh clone sees."""

    @pytest.mark.thorough
    def test_says_what_to_clone(self) -> None:
        output = run("bench.records").stdout
        assert re.findall(r"^git clone \S+/([\w-]+/[\w-]+) ", output, re.MULTILINE) == [
            *dict.fromkeys(source["repository"] for source in SOURCES.values())
        ]

    def test_names_each_missing_log_with_its_hash(self, tmp_path: Path) -> None:
        done = run("bench.records", str(tmp_path), "--to", str(tmp_path / "made"), "--quick")
        assert done.returncode == 1
        for source in SOURCES.values():
            assert all(known.get("sha256", path) in done.stderr for path, known in source["files"].items())
        assert not (tmp_path / "made").exists()

    @pytest.mark.thorough
    @pytest.mark.parametrize("script", ["bench.replays", "bench.retrieval"])
    def test_a_script_without_records_says_how_to_make_them(
        self, script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("RECORDED", str(tmp_path / "nowhere"))
        done = run(script, "--quick")
        assert (done.returncode, "python -m bench.records" in done.stderr) == (1, True)
        assert "Traceback" not in done.stderr


def test_the_readme_counts_the_sets_that_meet_the_published_figures() -> None:
    rows = re.findall(
        r"^\| \w+ \| [^|]* \| ([^|]*) \| ([^|]*) \|", (ROOT / "docs/replays.md").read_text(), re.MULTILINE
    )
    theirs = ["; ".join(part.partition(" ")[2] for part in published.split("; ")) for published, _ in rows]
    met = sum(their == ours for their, (_, ours) in zip(theirs, rows, strict=True))
    assert (
        f"{met} of {len(rows)}\n" in (ROOT / "README.md").read_text()
        or f"{met} of {len(rows)} " in (ROOT / "README.md").read_text()
    )
