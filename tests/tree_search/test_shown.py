"""What agents and judges of tree searches are shown: what they need, once, and nothing that is superseded."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool

from reflective_agents.graphs import graph_of
from reflective_agents.graphs.lats import StateValue
from reflective_agents.prompts import lats as prompts
from reflective_agents.prompts import search as search_prompts
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from reflective_agents.tree_search.base import Job
from reflective_agents.tree_search.candidates import Branch, Candidate, Grade, trajectory_text
from reflective_agents.tree_search.label_values import grade_from_labels, hope
from reflective_agents.tree_search.values import Value, candidates_text

QUESTION = {"messages": [("user", "What do 14 planks cost?")]}
SEARCHES = ("lats", "tree_of_thoughts", "ab_mcts", "best_of_n")


@tool
def price(planks: int) -> str:
    """Return what planks cost."""
    return f"{23.69 * planks:.2f}"


async def first_prompt(strategy: str, **settings: Any) -> str:
    model = FakeChatModel(reply=lambda _: "331.66 euros")
    given = {"model": model, "max_model_calls": 2, **settings}
    await graph_of(strategy).ainvoke(QUESTION, context=given)
    return model.calls[0].messages[0].text


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("strategy", SEARCHES)
async def test_only_who_can_search_is_told_how_to_cite(strategy: str) -> None:
    own = await first_prompt(strategy, search="none", tools=[price])
    assert search_prompts.CITE not in own
    assert search_prompts.TOOL_MATERIAL in own
    both = await first_prompt(strategy, search="local", tools=[price])
    assert search_prompts.CITE in both
    assert search_prompts.TOOL_MATERIAL in both
    assert search_prompts.MATERIAL in await first_prompt(strategy, search="local")


async def test_results_of_ones_own_tool_may_be_cited_once_there_are_any() -> None:
    @tool
    def archive(query: str) -> str:
        """Look something up."""
        return json.dumps([{"url": "https://a.example/", "title": "A", "content": "Planks cost 23.69."}])

    def reply(request: Request) -> Reply:
        if request.schema:
            return {"judgements": [{"reasoning": "So.", "score": 0.3, "solved": False}]}
        call = {"name": "archive", "args": {"query": "planks"}, "id": "1"}
        return AIMessage("", tool_calls=[call]) if len(request.messages) == 2 else "331.66 [1]"

    model = FakeChatModel(reply=reply)
    given = {"model": model, "max_model_calls": 4, "n": 1, "search": "none", "tools": [archive]}
    await graph_of("lats").ainvoke(QUESTION, context=given)
    first, second = [request for request in model.calls if not request.schema][:2]
    assert search_prompts.CITE not in first.text
    assert search_prompts.CITE in second.text


@pytest.mark.parametrize(
    ("text", "words"), [("创办人陆文远出生于婺源。他捐建的文远桥建成于1748年。", 14), ("one two three", 3)]
)
def test_a_judge_is_told_a_length_that_holds_in_every_script(text: str, words: int) -> None:
    shown = trajectory_text([Candidate(0, messages=[AIMessage(text)], answers=True)])
    assert search_prompts.LENGTH.format(words=words, characters=len(text)) in shown


def searched(query: str, *pages: str, number: int = 0) -> Candidate:
    results = [
        {"number": i, "url": f"https://{page}.example/", "content": f"All of {page}."} for i, page in enumerate(pages)
    ]
    call = AIMessage("", tool_calls=[{"name": "search", "args": {"query": query}, "id": "1"}])
    return Candidate(number, messages=[call, ToolMessage(json.dumps(results), tool_call_id="1")])


def test_a_result_that_siblings_have_in_common_stands_once() -> None:
    shown = candidates_text([searched("a", "x", "y"), searched("b", "y", "z"), searched("c", "y")])
    assert [shown.count(f"All of {page}.") for page in "xyz"] == [1, 1, 1]
    assert shown.count('"content": "as in candidate 1"') == 2
    assert shown.count("https://y.example/") == 3


def test_answers_that_others_supersede_are_not_shown() -> None:
    answers = [Candidate(i, messages=[AIMessage(f"answer {i}")], answers=True) for i in range(3)]
    shown = trajectory_text([searched("a", "x"), *answers])
    assert [f"answer {i}" in shown for i in range(3)] == [False, False, True]
    assert "All of x." in shown
    assert "answer" not in trajectory_text(answers, goes_on=True)


async def test_who_goes_wider_is_shown_the_earlier_answers() -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return {"reasoning": "So.", "score": 0.1, "solved": False}
        return f"answer {request.seed}"

    model = FakeChatModel(reply=reply)
    given = {"model": model, "seed": 1, "search": "none", "max_expansions": 6}
    out = await graph_of("ab_mcts").ainvoke(QUESTION, context=given)
    wider = [request for request in model.calls if not request.schema and prompts.EARLIER_ANSWERS[:30] in request.text]
    children = [node for node in out["tree"].values() if node["depth"] == 1]
    assert len(children) > 1
    assert len(wider) >= len(children) - 1
    assert all("<answer>\nanswer " in request.last for request in wider)


class Fixed(Value):
    """A judge whose grades are there already."""

    def calls(self, width: int) -> int:
        return width


@pytest.mark.parametrize("dead", [grade_from_labels(["impossible"] * 3), Grade(0.0)])
async def test_a_dead_end_stands_below_a_live_state_however_often_it_is_proposed(dead: Grade) -> None:
    alive = grade_from_labels(["likely", "likely", "sure"])
    steps = [Candidate(0, samples=8, grade=dead), Candidate(1, samples=2, grade=alive)]
    job, root = Job(node="0", kind="expand", first=0, width=8), Candidate(0).as_node("0", None)
    await StateValue(Fixed(), 0.5).compare(Branch(job, [], "", [root]), steps)
    assert steps[0].grade
    assert steps[1].grade
    assert steps[0].grade.score < 0.001 < steps[1].grade.score


def test_labels_leave_as_much_hope_as_do_not_say_impossible() -> None:
    mixes = [["impossible"] * 3, ["impossible", "impossible", "likely"], ["likely"] * 3, ["", "", ""]]
    assert [hope(grade_from_labels(mix)) for mix in mixes] == [0, pytest.approx(1 / 3), 1, 1]


async def test_the_last_answer_is_asked_for_with_the_lessons() -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return {"judgements": [{"reasoning": "So.", "score": 0.1, "solved": False}] * 2}
        return AIMessage("", tool_calls=[{"name": "price", "args": {"planks": 1}, "id": "1"}])

    model = FakeChatModel(reply=reply)
    given = {"model": model, "search": "none", "tools": [price], "n": 2, "max_expansions": 1}
    state = {**QUESTION, "advice": "Multiply the price."}
    await graph_of("lats").ainvoke(state, context=given)
    assert "Multiply the price." in model.calls[-1].text
    assert prompts.CONCLUDE in model.calls[-1].text
