"""What counts as a correct answer: the scorers, and what is told of the form of an answer."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.environments.base import Task
from reflective_agents.environments.plain import PLAIN
from reflective_agents.environments.registry import resolve_environment
from reflective_agents.evals.datasets import Dataset
from reflective_agents.evals.rescore import rescore
from reflective_agents.evals.results import read_run
from reflective_agents.evals.run import evaluate
from reflective_agents.evals.scorers import Scorer, resolve_scorer, short_answer
from reflective_agents.evals.summary import Summary
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.responder import respond
from reflective_agents.testing.script import Reply, Request
from tests.strategies import STRATEGIES, Strategy, name_of

CAPITALS = {"Italy": "Rome", "Peru": "Lima", "Japan": "Tokyo"}
TASKS = [Task(id=land, question=f"What is the capital of {land}?", gold=city) for land, city in CAPITALS.items()]
DATASET = Dataset("capitals", "plain", TASKS)
ANSWERING = [strategy for strategy in STRATEGIES if strategy.name not in ("memory", "town")]


def in_prose(request: Request) -> Reply:
    """Answer in a sentence, and with a label where that is wanted. All but Tokyo is right."""
    if request.schema:
        return respond(request)
    city = next((city for land, city in CAPITALS.items() if land in request.text), "?")
    city = "Kyoto" if city == "Tokyo" else city
    return f"It is {city}.\nAnswer: {city}" if "'Answer: ...'" in request.text else f"It is {city}."


async def run(out: Path, scorer: Any = None, *, strategy: str = "react", **settings: Any) -> Summary:
    [found] = [each for each in STRATEGIES if each.name == strategy]
    context = found.make(**{"model": FakeChatModel(reply=in_prose), "search": "none", **settings})
    return await evaluate(found.graph, DATASET, context=context, out=out, scorer=scorer)


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize("name", ["chain_of_thought", "react", "lats", "best_of_n", "tree_of_thoughts", "trials"])
async def test_whether_an_answer_stands_in_prose_does_not_matter(name: str, tmp_path: Path) -> None:
    summary = await run(tmp_path, strategy=name)
    assert (summary["correct"], summary["measured"]) == (2, 3)


@pytest.mark.parametrize("strategy", ANSWERING, ids=name_of)
async def test_every_strategy_is_told_the_form(strategy: Strategy, tmp_path: Path) -> None:
    model = FakeChatModel(reply=strategy.solving)
    tasks = [Task(id="1", question="Why does reflection help? [alpha]", gold="mistakes")]
    context = strategy.make(model=model, max_model_calls=20)
    await evaluate(strategy.graph, Dataset("one", "plain", tasks), context=context, out=tmp_path)
    assert any(PLAIN.answer_form in call.text for call in model.calls)


async def test_what_was_extracted_stands_beside_the_reply(tmp_path: Path) -> None:
    summary = await run(tmp_path)
    about, results = read_run(tmp_path)
    assert (results["Italy"]["answer"], results["Italy"].get("extracted")) == ("It is Rome.\nAnswer: Rome", "Rome")
    assert about.get("correct_if") == summary["correct_if"] == PLAIN.correct_if
    assert "scorer" not in about


@pytest.mark.parametrize(
    ("reply", "short"),
    [
        ("It is Rome.\nAnswer: Rome", "Rome"),
        ("**Answer:** Rome", "Rome"),
        ("The answer is Rome.", "Rome"),
        ("答案：罗马", "罗马"),
        ("Rome", "Rome"),
        ("Rome is the capital [1].\nAnswer: Rome [1]\n\nReferences:\n[1] Rome, corpus:rome.md", "Rome"),
        ("It may be Rome.", "It may be Rome."),
        ("", ""),
    ],
)
def test_a_short_answer_is_read_by_its_label(reply: str, short: str) -> None:
    assert short_answer(reply) == short


def scorer(name: str) -> Scorer:
    return resolve_scorer(name, PLAIN, Context(model="offline"))


@pytest.mark.parametrize(
    ("name", "gold", "reply", "correct"),
    [
        ("em", "Rome", "Thus.\nAnswer: the Rome.", True),
        ("em", "Rome", "Answer: Rome, Italy", False),
        ("exact", "Rome", "Rome", True),
        ("includes", "Rome", "I think Rome is the one.", True),
        ("includes", "Rome", "Romeo", False),
        ("includes", "3", "It is 13.", False),
        ("includes", "3", "It is 3.5 km", False),
        ("includes", "1,500", "About 1500 metres", True),
        ("includes", "北京", "首都是北京。", True),
        ("includes", "Rome", "", False),
        ("number", "3,485", "41 boxes of 86 are 3526; minus 41 are 3485.", True),
        ("number", "#### 48", "Answer: 48 pens", True),
        ("number", "48", "It is 47.", False),
        ("number", "48", "none", False),
        ("choice", "B", "It must be b.\nAnswer: (b)", True),
        ("choice", "B) Rome", "B. Rome", True),
        ("choice", "A", "A shop sells pens.", False),
        ("choice", "B", "Option B", True),
        ("choice", "A", "Option A is right.", True),
        ("choice", "B", "I choose option b because it is shorter.", True),
        ("choice", "A", "I cannot answer a question like this.", False),
        ("choice", "I", "The best choice I can think of is none.", False),
        ("choice", "B", "C", False),
    ],
)
async def test_scorers(name: str, gold: str, reply: str, correct: bool) -> None:
    made = scorer(name)
    task = Task(id="1", question="?", gold=gold)
    assert made.measurable(task)
    assert made.is_correct((await made.score(task, reply)).scores) == correct


@pytest.mark.parametrize(("name", "gold"), [("number", "Rome"), ("choice", "Rome"), ("em", None), ("includes", None)])
def test_without_a_right_answer_of_its_kind_nothing_is_measured(name: str, gold: str | None) -> None:
    task = Task(id="1", question="?") if gold is None else Task(id="1", question="?", gold=gold)
    assert not scorer(name).measurable(task)


def grading(request: Request) -> Reply:
    """Grade by whether the right answer stands in the answer; else answer in prose without a label."""
    if request.schema != "Grade":
        return str(in_prose(request)).partition("\n")[0]
    right = request.text.rpartition("<right_answer>")[2].partition("</right_answer>")[0].strip()
    return {"reason": "So.", "correct": f"It is {right}." in request.text}


async def test_a_judge_has_its_own_cost_and_is_held_against_the_exact_match(tmp_path: Path) -> None:
    model = FakeChatModel(reply=grading)
    summary = await run(tmp_path / "judged", "judge", model=model)
    plain = await run(tmp_path / "plain", model=FakeChatModel(reply=grading))
    assert (summary["correct"], plain["correct"]) == (2, 0)
    assert summary["grading"]["model_calls"] == 3
    assert summary["grading"]["total_tokens"] > 0
    assert summary["cost"]["model_calls"] == plain["cost"]["model_calls"]
    assert summary["agreement"] == {"tasks": 3, "both": 0, "only_judge": 2, "only_em": 0}
    # Neither a verifier nor the strategy has seen the right answer: it stands in the requests of the judge alone.
    assert {call.schema for call in model.calls if "<right_answer>" in call.text} == {"Grade"}


async def test_a_grade_that_is_not_to_be_had_is_no_wrong_answer(tmp_path: Path) -> None:
    def broken(request: Request) -> Reply:
        return "no form" if request.schema == "Grade" else in_prose(request)

    summary = await run(tmp_path, "judge", model=FakeChatModel(reply=broken))
    assert (summary["finished"], summary["measured"]) == (3, 0)
    assert sum(summary["errors"].values()) == 3
    assert summary["notes"]
    after = (await rescore(tmp_path, scorer="includes")).after
    assert (after["measured"], after["correct"], after["errors"]) == (3, 2, {})


def near(answer: str, task: Task) -> dict[str, float]:
    """As long as the right answer, or longer."""
    return {"score": float(len(answer) >= len(task.get("gold", ""))), "length": min(len(answer) / 100, 1)}


async def test_a_function_of_ones_own_sees_the_task(tmp_path: Path) -> None:
    summary = await run(tmp_path, near)
    assert (summary["correct"], set(summary["scores"])) == (3, {"score", "length"})
    assert "As long as the right answer, or longer" in summary["correct_if"]

    async def later(answer: str, task: Task) -> bool:
        await asyncio.sleep(0)
        return task.get("gold", "") in answer

    assert (await run(tmp_path / "later", later))["correct"] == 2


async def test_a_function_is_loaded_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "def right(answer, task):\n    return task['gold'] in answer\n\ndef one(answer): ...\n\nnumber = 7\n"
    )
    assert (await run(tmp_path / "run", f"{file}:right"))["correct"] == 2
    assert read_run(tmp_path / "run")[0].get("scorer") == f"{file}:right"
    broken = tmp_path / "broken.py"
    broken.write_text("def right(\n")
    for name in (
        f"{file}:left",
        f"{file}:number",
        f"{file}:one",
        f"{broken}:right",
        f"{tmp_path}/none.py:right",
        "f2",
        "em:x",
    ):
        with pytest.raises(Misuse):
            resolve_scorer(name, PLAIN, Context(model="offline"))


@pytest.mark.parametrize("value", [2, "yes", None, {"length": 1}, float("nan")])
async def test_a_function_returns_scores(value: Any, tmp_path: Path) -> None:
    summary = await run(tmp_path, lambda answer, task: value)
    assert summary["errors"] == {"ScorerFailed": 3}


async def test_another_scorer_is_another_run_and_rescoring_says_so(tmp_path: Path) -> None:
    await run(tmp_path, "includes")
    with pytest.raises(Misuse, match="scorer: includes there"):
        await run(tmp_path)
    done = await rescore(tmp_path, scorer="em")
    # Where the right answer may stand anywhere, the model is told no form.
    assert done.before["scores"] == {"includes": 2 / 3}
    assert done.after["scores"] == {"em": 0, "f1": pytest.approx(1 / 3)}
    assert "scorer" not in read_run(tmp_path)[0]
    await run(tmp_path)  # nothing is left to do


async def test_a_note_says_that_words_are_shared_and_no_answer_is_right(tmp_path: Path) -> None:
    model = FakeChatModel(reply=lambda request: str(in_prose(request)).partition("\n")[0])
    assert (await run(tmp_path / "prose", model=model))["notes"]
    assert not (await run(tmp_path / "labelled"))["notes"]


async def test_an_environment_says_what_counts_and_reads_its_own_answers(tmp_path: Path) -> None:
    environment = resolve_environment("questions")
    for given, reads in (("questions", False), (None, True)):
        context = ReactContext(model="offline", environment=given)
        made = resolve_scorer(None, environment, context)
        assert made.correct_if == environment.correct_if
        scored = await made.score(TASKS[0], "So it is.\nAnswer: Rome")
        assert made.is_correct(scored.scores) == reads


def test_a_file_that_a_scorer_misses_is_named(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("open('gold.csv')\n")
    with pytest.raises(Misuse, match=r"own\.py:score': .*'gold\.csv'; name it as"):
        resolve_scorer(f"{tmp_path}/own.py:score", PLAIN, Context(model="offline"))
    with pytest.raises(Misuse, match=r"none\.py:score': No such file; name it as"):
        resolve_scorer(f"{tmp_path}/none.py:score", PLAIN, Context(model="offline"))
