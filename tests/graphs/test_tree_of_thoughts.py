"""Tree of Thoughts: plans and answers, beams, votes, labels, and the depth-first search with pruning."""

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from pydantic import ValidationError

from reflective_agents.environments.game24 import Game24, legal_steps, solve
from reflective_agents.graphs.tree_of_thoughts import graph
from reflective_agents.prompts.lats import NOTHING_DONE
from reflective_agents.state.settings.tree_of_thoughts import TreeOfThoughtsContext
from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.meter import Latency
from reflective_agents.testing.script import Reply, Request, Script, ToolUse

QUESTION = {"messages": [("user", "What do tides do?")]}
Result = dict[str, Any]


def candidates(request: Request) -> list[str]:
    return re.findall(r"<candidate number=\"\d+\">\n(.*?)\n</candidate>", request.text, re.DOTALL)


def judged(scores: list[float], solved: float = 2.0) -> dict[str, Any]:
    return {"judgements": [{"reasoning": f"worth {s}", "score": s, "solved": s >= solved} for s in scores]}


def numbered(request: Request) -> str:
    """A thought named by its level and its number."""
    level = sum(message.type == "ai" for message in request.messages)
    return f"thought {level}.{request.index}"


def by_number(best: dict[str, float], solved: float = 2.0) -> Script:
    """A judge who knows what some thoughts are worth."""

    def reply(request: Request) -> Reply:
        if request.schema is None:
            return numbered(request)
        names = [candidate.rpartition("thought ")[2].split("\n")[0] for candidate in candidates(request)]
        return judged([best.get(name, 0.2) for name in names], solved)

    return reply


async def run(
    reply: Script,
    model: type[FakeChatModelWithoutN] = FakeChatModel,
    given: dict[str, Any] = QUESTION,
    latency: Latency = 0.0,
    **settings: Any,
) -> tuple[Result, FakeChatModelWithoutN]:
    fake = model(reply=reply, latency=latency)
    context = TreeOfThoughtsContext(**{"model": fake, "search": "none", **settings})
    result: Result = await graph.ainvoke(given, context=context)
    assert fake.in_flight == 0
    assert not any("virtual" in stat or "flight" in stat for stat in result["stats"].values())
    return result, fake


def kept(result: Result, level: int) -> list[str]:
    """The nodes of a level that were not pruned."""
    stats = result["stats"]
    return [
        node for node in result["tree"] if node.count(".") == level and not stats[node].get("own", {}).get("pruned")
    ]


# Open questions


async def test_plans_then_answers_each_level_judged_in_one_call() -> None:
    result, model = await run(by_number({"0.3": 0.8, "1.1": 0.9}, solved=0.9))
    assert [request.schema for request in model.calls] == [None, "Judgements", None, "Judgements"]
    assert [request.n for request in model.calls] == [5, 1, 5, 1]
    assert (kept(result, 1), kept(result, 2)) == (["0.3"], ["0.3.1"])
    assert result["answer"] == "thought 1.1"
    assert (result["outcome"]["status"], result["outcome"]["verified_by"]) == ("solved", "judge")
    assert result["tree"]["0.3.1"]["score"] == pytest.approx(0.9)
    assert result["tree"]["0.3"]["thought"] == "thought 0.3"
    assert [result["tree"][node]["kind"] for node in ("0", "0.3", "0.3.1")] == ["root", "action", "answer"]


async def test_the_judge_reads_plans_as_thoughts_and_answers_with_their_plan() -> None:
    _, model = await run(by_number({"0.3": 0.8}))
    assert candidates(model.calls[1])[3] == "<thought>\nthought 0.3\n</thought>"
    assert "<trajectory>\n<thought>\nthought 0.3\n</thought>\n</trajectory>" in model.calls[3].last
    checked = "<checked>\nLength in words: 2; in characters: 11.\n</checked>"
    assert candidates(model.calls[3])[1] == f"<answer>\nthought 1.1\n</answer>\n{checked}"


async def test_plans_are_judged_by_a_scale_of_their_own() -> None:
    _, model = await run(by_number({"0.3": 0.8}))
    judges = [request.text for request in model.calls if request.schema]
    assert len(judges) == 2
    assert all("A plan is no answer yet: 0.1 if it misses the request" in text for text in judges)


async def test_a_finished_answer_is_not_taken_for_a_plan() -> None:
    def at_once(request: Request) -> Reply | Sequence[Reply]:
        reply = by_number({"0.1": 0.9}, solved=0.9)(request)
        return "**Answer:** thought 0.1\nis all." if reply == "thought 0.1" else reply

    result, model = await run(at_once)
    assert "after the word 'Answer:'" in model.calls[0].text
    assert "<answer>\nthought 0.1\nis all.\n</answer>" in candidates(model.calls[1])[1]
    assert "<thought>\nthought 0.2\n</thought>" in candidates(model.calls[1])[2]
    assert (result["answer"], result["outcome"]["status"]) == ("thought 0.1\nis all.", "solved")
    assert len(model.calls) == 2


async def test_the_answer_is_asked_for_with_the_plan_and_its_critique() -> None:
    _, model = await run(by_number({"0.3": 0.8}))
    plan, answer = model.calls[0], model.calls[2]
    assert [message.type for message in plan.messages] == ["system", "human"]
    assert "does not answer yet" in plan.messages[0].text
    assert [message.type for message in answer.messages] == ["system", "human", "ai", "human"]
    assert answer.messages[:2] == plan.messages
    assert answer.messages[2].text == "thought 0.3"
    assert "<critique>\nworth 0.8\n</critique>" in answer.last
    assert "Write the whole answer" in answer.last


async def test_without_n_each_thought_is_a_request_of_its_own() -> None:
    names = (f"thought {number}" for number in range(100))
    script = by_number({})
    _, model = await run(lambda r: script(r) if r.schema else next(names), FakeChatModelWithoutN)
    assert len(model.calls) == 5 + 1 + 5 + 1


async def test_a_single_level_has_no_plans() -> None:
    result, model = await run(by_number({"0.2": 0.6}), max_depth=1)
    assert result["answer"] == "thought 0.2"
    assert len(model.calls) == 2
    assert "plan" not in model.calls[0].text


async def test_deeper_levels_improve_the_answer() -> None:
    result, model = await run(by_number({"2.4": 0.6}), max_depth=3)
    assert result["answer"] == "thought 2.4"
    assert "better than the last one" in model.calls[4].last
    assert result["outcome"]["status"] == "exhausted"


async def test_an_earlier_answer_wins_if_it_is_the_best() -> None:
    result, _ = await run(by_number({"1.2": 0.7}), max_depth=3)
    assert result["answer"] == "thought 1.2"


@pytest.mark.parametrize("method", ["breadth_first", "depth_first"])
@pytest.mark.parametrize("min_gain", [0.0, 0.2])
async def test_what_is_still_to_be_judged_may_gain(method: str, min_gain: float) -> None:
    def reply(request: Request) -> Any:
        if request.schema == "Judgement":
            [judgement] = judged([0.95 if "thought 0.1" in request.text else 0.2], solved=0.9)["judgements"]
            return {**judgement}
        return by_number({"0.1": 0.95}, solved=0.9)(request)

    result, _ = await run(reply, method=method, min_gain=min_gain, max_depth=1, n=3)
    assert (result["answer"], result["outcome"]["status"]) == ("thought 0.1", "solved")
    assert result["tree"]["0.1"]["score"] == pytest.approx(0.95)


async def test_plans_may_search_and_answers_may_not(tmp_path: Path) -> None:
    (tmp_path / "moon.md").write_text("# Moon\n\nThe moon moves the water of the ocean every single day.\n")

    def reply(request: Request) -> Reply:
        if request.schema:
            return judged([0.5] * len(candidates(request)))
        if request.tools and request.tool_choice != "none":
            return ToolUse("search", {"query": f"moon {request.index}"})
        return numbered(request)

    result, model = await run(reply, search="local", corpus=str(tmp_path), n=2)
    assert "corpus:moon.md" in model.calls[1].last
    assert model.calls[2].messages[3].text in result["tree"]["0.0"]["messages"][1].text
    assert result["answer"] == "thought 1.0"
    assert result["usage"]["tool_calls"] == 2


async def test_a_beam_compares_the_children_of_all_its_nodes() -> None:
    result, model = await run(by_number({"0.0": 0.5, "0.2": 0.8}), n=3, beam=2)
    assert [node["node"] for node in result["log"] if node["kind"] == "expand"] == ["0", "0.2", "0.0"]
    shown = candidates(model.calls[-1])
    assert len(shown) == 6
    assert [text.split("\n")[1] for text in shown] == ["thought 0.2"] * 3 + ["thought 0.0"] * 3


def test_the_nodes_of_a_level_are_expanded_at_once() -> None:
    (result, model), _ = virtually(run(by_number({}), n=4, beam=3, latency=1.0))
    assert TreeOfThoughtsContext(beam=3).parallel == 3
    assert (len(model.calls), model.waves, model.max_in_flight) == (6, 4, 3)
    assert len(result["tree"]) == 1 + 4 + 12


@pytest.mark.thorough
@pytest.mark.parametrize("parallel", [1, 2, 8])
def test_the_order_of_arrival_does_not_matter(parallel: int) -> None:
    def reply(request: Request) -> Reply:
        if request.schema is None:
            return f"thought {request.key[:4]} {request.index}"
        return judged([random.Random(text).random() for text in candidates(request)])

    chance = random.Random(parallel)
    settings: dict[str, Any] = {"n": 3, "beam": 3, "max_depth": 4}
    (straight, _), _ = virtually(run(reply, parallel=1, **settings))
    (late, _), _ = virtually(run(reply, parallel=parallel, latency=lambda _: chance.random(), **settings))
    assert late["stats"] == straight["stats"]
    assert {key: node["score"] for key, node in late["tree"].items()} == {
        key: node["score"] for key, node in straight["tree"].items()
    }
    assert late["answer"] == straight["answer"]


async def test_equal_thoughts_are_one() -> None:
    def reply(request: Request) -> Reply:
        return judged([0.5] * len(candidates(request))) if request.schema else f"always {len(request.messages)}"

    result, _ = await run(reply)
    assert [node.get("samples") for node in result["tree"].values()] == [None, 5, 5]
    assert result["log"][1]["merged"] == 4


async def test_many_thoughts_are_judged_in_as_few_calls_as_their_judgements_have_room_in() -> None:
    _, model = await run(by_number({}), n=30, max_depth=1)
    assert [len(candidates(request)) for request in model.calls[1:]] == [10, 10, 10]


async def test_each_thought_may_be_judged_alone() -> None:
    def reply(request: Request) -> Reply:
        return {"reasoning": "So.", "score": 0.5, "solved": False} if request.schema else numbered(request)

    _, model = await run(reply, grading="each", n=3)
    assert [request.schema for request in model.calls] == [None, *["Judgement"] * 3] * 2


async def test_a_judge_that_never_judges_leaves_an_answer() -> None:
    result, _ = await run(lambda request: AIMessage("no") if request.schema else numbered(request))
    assert result["answer"] == "thought 1.0", "it is asked for from the first thought"
    assert (result["outcome"]["status"], result["usage"]["parse_failures"] % 3) == ("exhausted", 0)
    assert not any(stat.get("own", {}).get("pruned") for stat in result["stats"].values())


@pytest.mark.parametrize("calls", range(1, 6))
async def test_few_calls_still_give_an_answer(calls: int) -> None:
    result, model = await run(by_number({}), max_model_calls=calls, max_depth=9)
    assert result["answer"].startswith("thought")
    assert result["outcome"]["status"] == "limit_reached"
    assert (result["outcome"]["limit"]["name"], result["outcome"]["limit"]["most"]) == ("max_model_calls", calls)
    assert len(model.calls) <= calls


async def test_the_last_expansion_is_judged() -> None:
    result, model = await run(by_number({"1.4": 0.6}), max_expansions=2, max_depth=9)
    assert result["outcome"]["limit"] == {"name": "max_expansions", "most": 2, "spent": 2}
    assert (result["expansions"], model.calls[-1].schema, result["answer"]) == (2, "Judgements", "thought 1.4")


async def test_the_log_and_the_events_tell_what_was_judged_and_pruned() -> None:
    context = TreeOfThoughtsContext(model=FakeChatModel(reply=by_number({"0.1": 0.9})), search="none", n=2)
    events = [event async for event in graph.astream(QUESTION, context=context, stream_mode="custom")]
    seen = [(event["event"], event.get("id") or event.get("node")) for event in events[1:-1]]
    assert seen[:8] == [
        ("node", "0"),
        ("node", "0.0"),
        ("node", "0.1"),
        ("visited", "0"),
        ("judged", "0.0"),
        ("judged", "0.1"),
        ("visited", "0"),
        ("pruned", "0.0"),
    ]
    result = await graph.ainvoke(QUESTION, context=context)
    assert [(entry["kind"], entry["added"], entry.get("pruned")) for entry in result["log"]] == [
        ("start", ["0"], None),
        ("expand", ["0.0", "0.1"], None),
        ("judge", [], ["0.0"]),
        ("expand", ["0.1.0", "0.1.1"], None),
        ("judge", [], ["0.1.1"]),
    ]


# Votes


def voting(votes: Callable[[Request], str]) -> Script:
    return lambda request: votes(request) if "best choice" in request.messages[0].text else numbered(request)


async def test_the_thought_with_the_most_votes_goes_on() -> None:
    choices = ["The best choice is 3"] * 3 + ["The best choice is 1"] * 2
    result, model = await run(voting(lambda request: choices[request.index]), grades="vote")
    assert [request.n for request in model.calls] == [5, 5, 5, 5]
    assert [node["terms"]["votes"] for node in result["tree"].values() if node["depth"] == 1] == [2, 0, 3, 0, 0]
    assert [round(node["score"], 3) for node in result["tree"].values() if node["depth"] == 2] == [0.4, 0, 0.6, 0, 0]
    assert (kept(result, 1), result["answer"]) == (["0.2"], "thought 1.2")
    votes = [request.last for request in model.calls if "best choice" in request.last]
    assert [NOTHING_DONE in vote for vote in votes] == [True, False]
    assert result["outcome"]["status"] == "exhausted"


async def test_an_answer_with_enough_votes_is_solved() -> None:
    choices = ["The best choice is 2"] * 4 + ["The best choice is 1"]
    result, _ = await run(voting(lambda request: choices[request.index]), grades="vote")
    assert (result["outcome"]["status"], result["outcome"]["verified_by"]) == ("solved", "judge")
    assert result["tree"]["0.1.1"]["score"] == pytest.approx(0.8)


async def test_votes_that_name_nobody_are_counted_and_left_out() -> None:
    choices = ["The best choice is 2", "The best choice is 9", "Hm."]
    result, _ = await run(voting(lambda request: choices[request.index]), grades="vote", grade_samples=3, max_depth=1)
    assert result["usage"]["parse_failures"] == 2
    assert (result["answer"], result["tree"]["0.1"]["score"]) == ("thought 0.1", 1)


async def test_a_vote_is_held_again_if_nobody_was_elected() -> None:
    def votes(request: Request) -> str:
        return "The best choice is 4" if "names none" in request.last else "All are fine."

    result, model = await run(voting(votes), grades="vote", grade_samples=2, max_depth=1)
    assert (result["answer"], len(model.calls), result["usage"]["parse_failures"]) == ("thought 0.3", 3, 2)


async def test_a_model_that_never_votes_leaves_an_answer() -> None:
    result, _ = await run(voting(lambda request: "All are fine."), grades="vote", max_depth=1)
    assert result["answer"] == "thought 0.0"
    assert (result["outcome"]["status"], result["tree"]["0.0"]["score"]) == ("exhausted", None)


@pytest.mark.parametrize(("score", "status"), [(0.9, "solved"), (0.0, "exhausted")])
@pytest.mark.parametrize("n", [1, 5])
async def test_a_thought_without_a_rival_is_elected_without_a_vote_and_accepted_by_a_judge(
    n: int, score: float, status: str
) -> None:
    def reply(request: Request) -> Reply:
        return judged([score], solved=score) if request.schema else f"always {len(request.messages)}"

    result, model = await run(reply, grades="vote", n=n)
    assert (len(model.calls), result["outcome"]["status"], result["answer"]) == (3, status, "always 4")
    assert [request.schema for request in model.calls] == [None, None, "Judgements"]


# Tasks


def game(request: Request) -> Reply:
    """Proposes every legal step of the game of 24, and knows whether it can still be won."""
    left = re.findall(r"^Left: (.*)$", request.last, re.MULTILINE)[-1]
    if not request.last.endswith("Possible next steps:"):
        return "Let me see.\n" + ("sure" if solve(left.split()) else "impossible")
    if left == "24":
        return f"Answer: {solve(re.findall(r'^Numbers: (.*)$', request.last, re.MULTILINE)[0].split())} = 24"
    return "\n".join(["1 + 1 = 3", *legal_steps({"numbers": left.split(), "done": False})])


async def test_the_game_of_24_is_won_with_a_beam() -> None:
    given = {"messages": [("user", "4 5 6 10")]}
    result, model = await run(game, given=given, environment="game24", n=100, max_model_calls=1000, beam=2)
    assert result["outcome"]["status"] == "solved"
    assert result["reward"] == 1
    assert Game24().score({"id": "", "question": "4 5 6 10"}, result["answer"])["solved"] == 1
    assert {request.n for request in model.calls} == {1, 3}
    assert not any("1 + 1" in node.get("action", "") for node in result["tree"].values())


def test_a_state_that_is_reached_in_two_ways_is_valued_once_and_stands_once_in_the_beam() -> None:
    def reply(request: Request) -> Reply:
        if not request.last.endswith("Possible next steps:"):
            return "likely"
        left = re.findall(r"^Left: (.*)$", request.last, re.MULTILINE)[-1]
        steps = {"1 2 3 4": ["1 + 2 = 3", "3 + 4 = 7"], "3 3 4": ["3 + 4 = 7"], "1 2 7": ["1 + 2 = 3", "1 * 2 = 2"]}
        return "\n".join(steps.get(left, ["nothing"]))

    given = {"messages": [("user", "1 2 3 4")]}
    (result, model), _ = virtually(run(reply, given=given, latency=1.0, environment="game24", max_depth=2, beam=2))
    assert [node["state"]["numbers"] for node in result["tree"].values() if node["depth"] == 2] == [
        ["3", "7"],
        ["3", "7"],
        ["2", "7"],
    ]
    assert sum(request.n == 3 for request in model.calls) == 4
    assert result["stats"]["0"]["own"]["frontier"] == ["0.0.0", "0.1.1"]


CLUES = {"id": "p", "question": "Fill in.", "gold": "A" * 25, "data": {"clues": [f"clue {i}" for i in range(10)]}}
PROPOSED = {
    "_____": "h1. grape (certain)\nh1. apple (medium)\nh1. apple (high)\nh2. berry (low)\nh3. cider (high)\nh9. wrong",
    "APPLE": "h2. berry (certain)\nh1. grape (certain)\nv1. xxxxx (high)",
    "BERRY": "h1. apple (high)\nh3. cider (low)",
}


def crosswords(request: Request) -> Reply:
    """Proposes by the longest word that stands there, and holds what begins with a G for impossible."""
    board = dict(re.findall(r"^([hv]\d)\. .*: (.*)$", request.last, re.MULTILINE))
    if not request.last.endswith("Possible next steps:"):
        return "impossible" if board["h1"] == "GRAPE" else "sure"
    return PROPOSED["BERRY" if board["h2"] == "BERRY" else board["h1"]]


def visits(result: Result) -> list[str]:
    """What was visited, as the words that stand there."""
    tree = result["tree"]
    boards = [tree[entry["node"]]["state"]["board"] for entry in result["log"] if entry["kind"] == "judge"]
    return [" ".join(re.findall(r"[A-Z]{5}", board)) for board in boards]


async def solve_crosswords(**settings: Any) -> tuple[Result, FakeChatModelWithoutN]:
    given = {"messages": [("user", "Fill in.")], "task": CLUES}
    return await run(crosswords, given=given, environment="crosswords", lists=1, **settings)


async def test_depth_first_the_surest_comes_first_and_what_is_impossible_is_pruned() -> None:
    result, model = await solve_crosswords(max_depth=3)
    assert visits(result)[:4] == ["GRAPE", "APPLE", "APPLE BERRY", "APPLE BERRY CIDER"]
    assert [node["terms"]["confidence"] for node in result["tree"].values() if node["depth"] == 1] == [1.0, 0.7, 0.5]
    assert [key for key, stat in result["stats"].items() if stat.get("own", {}).get("pruned")] == ["0.0", "0.2.0"]
    assert result["answer"].startswith("A P P L E\nB E R R Y\nC I D E R")
    assert (result["outcome"]["status"], result["tree"]["0.1.0.0"]["score"]) == ("exhausted", 1)
    assert not any("A" * 25 in request.text for request in model.calls)


async def test_depth_first_no_state_is_visited_twice() -> None:
    result, _ = await solve_crosswords(max_depth=3, n=4)
    assert len(set(visits(result))) == len(visits(result))
    assert sum(entry.get("merged", 0) for entry in result["log"]) > 0


async def test_depth_first_the_number_of_states_is_bounded() -> None:
    result, _ = await solve_crosswords(max_states=2)
    assert visits(result) == ["GRAPE", "APPLE"]
    assert result["outcome"]["status"] == "limit_reached"
    assert result["outcome"]["limit"] == {"name": "max_states", "most": 2, "spent": 2}
    assert result["answer"].startswith("A P P L E")


async def test_depth_first_an_open_question_is_planned_and_answered() -> None:
    def reply(request: Request) -> Reply:
        if request.schema is None:
            return numbered(request)
        score = 0.0 if "thought 0.0" in request.last else 0.9
        return {"reasoning": "So.", "score": score, "solved": "<answer>" in request.last}

    result, model = await run(reply, method="depth_first", n=3)
    assert [request.schema for request in model.calls] == [None, "Judgement", "Judgement", None, "Judgement"]
    assert (result["answer"], result["outcome"]["status"]) == ("thought 1.0", "solved")
    assert "<thought>\nthought 0.1\n</thought>\n<answer>\nthought 1.0\n</answer>" in model.calls[-1].last
    assert result["stats"]["0.0"]["own"]["pruned"]


def test_settings_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(ValidationError, match="choose grades=judge, grades=labels, or breadth_first"):
        TreeOfThoughtsContext(method="depth_first", grades="vote")


def test_the_games_of_the_paper_have_its_settings() -> None:
    game24, crossword = (TreeOfThoughtsContext(environment=name) for name in ("game24", "crosswords"))
    assert (game24.method, game24.beam, game24.grades, game24.grade_samples) == ("breadth_first", 5, "labels", 3)
    assert (game24.parallel, TreeOfThoughtsContext(environment="game24", parallel=1).parallel) == (5, 1)
    assert (crossword.method, crossword.n, crossword.max_states, crossword.parallel) == ("depth_first", 3, 100, 1)
