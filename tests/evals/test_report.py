"""The page of a run: what is listed in it, and the figures in words. tests/viewer opens it in a browser."""

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.evals.report import curves, facts, page
from reflective_agents.evals.results import Result, read_run
from reflective_agents.evals.store import Store
from reflective_agents.evals.summary import summarise, wilson
from reflective_agents.evals.transcripts import Transcript
from tests.evals.fakes import attempts, make_about, make_result

EVIL = "</div></td></table><script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"
SPOOF = "{{ summary }} \u202e &amp; \ud800 \x00"


def results() -> list[Result]:
    crash = make_result("<i>c</i>", False, usage=None, outcome=None, answer=None, error=f"ValueError: {EVIL}")
    evil = make_result("a", answer=EVIL, question=EVIL, gold=EVIL, trials=attempts(False, True))
    return [evil, make_result("b", False, answer=SPOOF, calls=7), crash, make_result("d", None)]


def made() -> str:
    return page(summarise(make_about(settings={"model": EVIL}), results()), results())


def embedded(html: str) -> Any:
    """What the page lists."""
    return json.loads(html.partition('id="results">')[2].partition("</script>")[0])


def test_page_lists_what_the_results_say() -> None:
    listed = embedded(made())
    assert [task["id"] for task in listed["tasks"]] == ["a", "b", "<i>c</i>", "d"]
    assert listed["tasks"][0]["question"] == EVIL
    cells = [task["cells"][0] for task in listed["tasks"]]
    assert [(cell["correct"], cell["calls"]) for cell in cells] == [(True, 2), (False, 7), (False, None), (None, 2)]
    assert cells[2]["error"] == f"ValueError: {EVIL}"
    assert "<" not in made().partition('id="results">')[2].partition("</script>")[0]


def test_curve_of_what_is_solved_for_so_many_calls() -> None:
    solved = [make_result(str(number), number != 3, calls=number) for number in range(1, 5)]
    [points] = curves([solved])["model_calls"]
    assert [point[:2] for point in points] == [(1.0, 0.25), (2.0, 0.5), (4.0, 0.75)]
    assert points[0][2:] == pytest.approx(wilson(1, 4))
    assert curves([[make_result("x", None)]]) == {}
    many = [make_result(str(number), calls=number) for number in range(1, 1000)]
    [points] = curves([many])["model_calls"]
    assert (len(points), points[0][0], points[-1][:2]) == (60, 1.0, (999.0, 1.0))


def test_transcripts_are_in_the_page_those_of_wrong_answers_first(tmp_path: Path) -> None:
    right, wrong = make_result("right"), make_result("wrong", False)
    store = Store(tmp_path, make_about())
    for result in (right, wrong):
        left = Transcript(id=result["id"], messages=[], trials=[], reflections=["Look twice."], shown={})
        store.append(result, left)
    store.close()
    _, results = read_run(tmp_path)
    html = page(summarise(make_about(), results.values()), results.values(), tmp_path)
    packed = html.partition('id="pack-0">')[2].partition("</script>")[0]
    transcripts = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert [transcript["id"] for transcript in transcripts] == ["wrong", "right"]
    assert [task["cells"][0]["at"] for task in embedded(html)["tasks"]] == [[0, 1], [0, 0]]


@pytest.mark.parametrize("answered", [[], [make_result("a", None)], [make_result("a", False, usage=None, error="E")]])
def test_page_of_little(answered: list[Result]) -> None:
    summary = summarise(make_about(), answered)
    assert len(embedded(page(summary, answered))["tasks"]) == len(answered)
    assert dict(facts(summary))["accuracy"].startswith("not measured" if summary["accuracy"] is None else "0.0%")


def test_figures_in_words() -> None:
    rows: dict[str, Any] = dict(facts(summarise(make_about(), results())))
    assert rows["tasks"] == "4 of 4"
    assert rows["model calls per task"] == "mean 3.7, median 2.0, 11 in total"
    assert rows["correct after trial 2"] == "33.3%"
    assert rows["crashed with ValueError"] == "1"
