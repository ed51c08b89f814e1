"""Questions and claims: by hand, and against the recorded runs."""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from reflective_agents.environments.actions import parse_action
from reflective_agents.environments.base import Environment, State, Task, Transition
from reflective_agents.environments.docstore import Article, LocalDocstore
from reflective_agents.environments.fever import LABELS, FactChecking
from reflective_agents.environments.questions import MAX_OBSERVATION, Questions
from reflective_agents.state.errors import SearchFailed

TASK: Task = {"id": "1", "question": "Which river flows through Paris?", "gold": "the Seine"}
ARTICLES = [
    Article("Paris", "Paris is a city. It is old.\nThe Seine flows through Paris.\nMany live in Paris."),
    Article("Long", "word " * 1_000),
    Article("Empty", ""),
]


async def run(environment: Environment, task: Task, *actions: str) -> Transition:
    transition = Transition(environment.start(task), "")
    for action in actions:
        transition = await environment.step(transition.state, action)
    return transition


def questions() -> Questions:
    return Questions(LocalDocstore(ARTICLES))


async def test_search_shows_the_first_paragraph() -> None:
    found = await run(questions(), TASK, "Search[paris]")
    assert found[1:] == ("Paris is a city. It is old.", None, False, True)
    assert found.state["page"] == "Paris"


async def test_search_offers_similar_titles_and_closes_the_page() -> None:
    found = await run(questions(), TASK, "Search[Paris]", "Search[Paris, France]")
    assert found.observation == "Could not find [Paris, France]. Similar: ['Paris']"
    assert found.state["page"] is None
    assert (await run(questions(), TASK, "Search[empty]")).observation == "Could not find [empty]. Similar: ['Empty']"


async def test_lookup_goes_from_sentence_to_sentence() -> None:
    environment = questions()
    state = (await run(environment, TASK, "Search[Paris]")).state
    seen = []
    for keyword in ["paris", "PARIS", "old", "Paris", "Paris", "Paris", "Paris"]:
        transition = await environment.step(state, f"Lookup[{keyword}]")
        seen.append(transition.observation)
        state = transition.state
    assert seen == [
        "(Result 1 / 3) Paris is a city.",
        "(Result 2 / 3) The Seine flows through Paris.",
        "(Result 1 / 1) It is old.",
        "(Result 1 / 3) Paris is a city.",
        "(Result 2 / 3) The Seine flows through Paris.",
        "(Result 3 / 3) Many live in Paris.",
        "No more results.",
    ]
    assert (await environment.step(state, "Lookup[Rhine]")).observation == "No results."


async def test_a_new_page_is_read_from_its_beginning() -> None:
    again = await run(questions(), TASK, "Search[Paris]", "Lookup[Paris]", "Search[Paris]", "Lookup[Paris]")
    assert again.observation.startswith("(Result 1 / 3)")


async def test_branches_from_one_state_do_not_see_each_other() -> None:
    environment = questions()
    state = (await run(environment, TASK, "Search[Paris]", "Lookup[Paris]")).state
    await environment.step(state, "Search[Long]")
    assert (await environment.step(state, "Lookup[Paris]")).observation.startswith("(Result 2 / 3)")


@pytest.mark.parametrize(("answer", "reward"), [("Seine", 1.0), ("The  seine.", 1.0), ("river Seine", 0.0)])
async def test_finish_is_rewarded(answer: str, reward: float) -> None:
    end = await run(questions(), TASK, f"Finish[{answer}]")
    assert end[1:] == ("Finished.", reward, True, True)
    assert questions().score(TASK, questions().answer(end.state))["em"] == reward


async def test_without_a_right_answer_there_is_no_reward() -> None:
    end = await run(questions(), {"id": "2", "question": "?"}, "Finish[Seine]")
    assert (end.reward, end.done) == (None, True)
    assert questions().score({"id": "2", "question": "?"}, "Seine") == {}


@pytest.mark.parametrize("action", ["Login", "Compare[a]", "Search[ ]", "", "Lookup[city]"])
async def test_what_cannot_be_done_is_refused(action: str) -> None:
    state = questions().start(TASK)
    refused = await questions().step(state, action)
    assert (refused.state, refused.reward, refused.done, refused.valid) == (state, None, False, False)
    assert "[" not in refused.observation, "nothing to copy"


async def test_articles_that_the_task_brings() -> None:
    task: Task = {**TASK, "data": {"context": [["Seine", ["The Seine is a river.", " It is long."]]]}}
    found = await run(Questions(), task, "Search[seine]", "Lookup[long]")
    assert found.observation == "(Result 1 / 1) It is long."
    assert (await run(Questions(), TASK, "Search[seine]")).observation == "Could not find [seine]. Similar: []"


async def test_long_paragraphs_are_cut() -> None:
    observation = (await run(questions(), TASK, "Search[long]")).observation
    assert MAX_OBSERVATION - 10 < len(observation) < MAX_OBSERVATION + 10
    assert observation.endswith(" ...")


async def test_a_docstore_that_fails_is_told_and_changes_nothing() -> None:
    class Broken(LocalDocstore):
        async def article(self, title: str) -> Article | None:
            raise SearchFailed("Nobody answers.")

    state = Questions(Broken([])).start(TASK)
    transition = await Questions(Broken([])).step(state, "Search[Paris]")
    assert transition == (state, "Nobody answers. Try again, or try something else.", None, False, True)


def test_equivalent_actions() -> None:
    same = questions().canonical
    assert same("Search[ Paris ]") == same("search[PARIS]") != same("Search[Rome]")
    assert same("Finish[The Seine.]") == same("finish[seine]")
    assert same("Lookup[a]") != same("Search[a]")


async def test_what_a_prompt_may_show() -> None:
    environment = FactChecking(LocalDocstore(ARTICLES))
    open_page = await run(environment, {"id": "f", "question": "Paris is old.", "gold": "SUPPORTS"}, "Search[Paris]")
    assert environment.public(open_page.state) == "Claim: Paris is old.\nOpen page: Paris"
    assert questions().public(questions().start(TASK)) == "Question: Which river flows through Paris?"


@pytest.mark.parametrize("label", LABELS)
async def test_labels(label: str) -> None:
    task: Task = {"id": "f", "question": "Paris is old.", "gold": "REFUTES"}
    end = await run(FactChecking(), task, f"Finish[{label.lower()}.]")
    assert (end.reward, end.state["answer"]) == (float(label == "REFUTES"), label)
    assert FactChecking().score(task, label) == {"em": end.reward}


async def test_other_labels_are_refused() -> None:
    refused = await run(FactChecking(), {"id": "f", "question": "Paris is old.", "gold": "REFUTES"}, "Finish[true]")
    assert (refused.done, refused.valid) == (False, False)
    assert "Finish" not in refused.observation


HOTPOT = ["reflexion_hotpot_react_davinci003", "react_hotpot_base_davinci003", "reflexion_hotpot_react_claude"]
HOTPOT_COT = ["reflexion_hotpot_cot_davinci003", "reflexion_hotpot_cotgt_gpt4", "cot_hotpot_base_davinci003"]


async def replay(task: Task, acts: list[str]) -> tuple[list[bool], Transition]:
    """Take recorded actions; return which were valid, and the last transition."""
    environment = Questions(LocalDocstore([Article("Page", "A page.")]))
    transition, valid = Transition(environment.start(task), ""), []
    for act in acts:
        state: State = {**transition.state, "page": "Page"}  # the recorded articles are not stored
        transition = await environment.step(state, act)
        valid.append(transition.valid)
    return valid, transition


@pytest.mark.parametrize("name", [*HOTPOT, *HOTPOT_COT])
async def test_recorded_questions(name: str, load: Callable[[str], Any], expected: Callable[[str], Any]) -> None:
    figures = expected(name)
    right, refused = [0] * len(figures["em_after_trial"]), []
    for record in load(name):
        task: Task = {"id": record["id"], "question": record["task"]["question"], "gold": record["task"]["gold"]}
        acts = defaultdict(list)
        for output in record["outputs"]:
            if output["role"] == "act":
                acts[output["trial"]].append(output["text"])
        for verdict in record["verdict"]:
            trial = verdict["trial"]
            if trial in acts:
                valid, last = await replay(task, acts[trial])
                refused += [act for act, taken in zip(acts[trial], valid, strict=True) if not taken]
                assert (last.reward == 1.0) == (verdict["status"] == "correct"), record["id"]
                assert last.done == (verdict["status"] in ("correct", "incorrect")), record["id"]
            right[trial - 1] += verdict["status"] in ("correct", "solved_earlier")
    assert right == figures["em_after_trial"]
    assert all(act.startswith("Compare[") for act in refused)


async def test_recorded_claims(load: Callable[[str], Any], expected: Callable[[str], Any]) -> None:
    environment = FactChecking(LocalDocstore([Article("Page", "A page.")]))
    right, finished, refused = 0, 0, []
    for record in load("react_fever_gpt3"):
        task: Task = {"id": record["id"], "question": record["task"]["claim"], "gold": record["task"]["gold"]}
        transition = Transition(environment.start(task), "")
        for act in [output["text"] for output in record["outputs"] if output["role"] == "act"]:
            transition = await environment.step({**transition.state, "page": "Page"}, act)
            refused += [] if transition.valid else [act]
        assert (transition.reward or 0) == record["verdict"]["em"], record["id"]
        right += transition.reward == 1
        finished += transition.done
    figures = expected("react_fever_gpt3")
    assert (right, finished) == (figures["em"], figures["n"] - figures["unfinished_7_steps"])
    assert refused == ["Login"]


def test_results_are_written_as_recorded(load: Callable[[str], Any]) -> None:
    texts = [output["text"] for record in load("react_fever_gpt3") for output in record["outputs"]]
    results = [text for text in texts if text.startswith("(Result")]
    assert len(results) > 10
    assert [text for text in results if not re.match(r"\(Result \d+ / \d+\) \S", text)] == []


async def test_every_recorded_distractor_article_is_found(load: Callable[[str], Any]) -> None:
    environment = Questions()
    for record in load("bench_hotpot100_distractor"):
        data = {"context": record["context"]}
        task: Task = {"id": record["id"], "question": record["question"], "gold": record["gold"], "data": data}
        state = environment.start(task)
        assert json.loads(json.dumps(state)) == state
        for title, sentences in record["context"]:
            found = await environment.step(state, f"Search[{title}]")
            assert found.state["page"] == title
            assert "".join(sentences).strip().startswith(found.observation.removesuffix(" ..."))


def test_every_recorded_action_can_be_read(load: Callable[[str], Any]) -> None:
    acts = [
        output["text"]
        for name in HOTPOT
        for record in load(name)
        for output in record["outputs"]
        if output["role"] == "act"
    ]
    assert len(acts) > 1_000
    assert [act for act in acts if parse_action(act) is None] == []
