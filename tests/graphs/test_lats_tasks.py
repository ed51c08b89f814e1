"""LATS as in the paper, on the tasks of environments: what is graded, simulated, learned, merged and shared."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from reflective_agents.environments.base import State, Transition
from reflective_agents.environments.game24 import Game24
from reflective_agents.graphs.lats import builder, graph
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from tests.graphs.lats_scripts import assert_consistent, judged, kind, run
from tests.strategies import thread

GOLD = "Mont Aiguille"
ARTICLES = [
    ["Alpha", ["Alpha is a peak.", " It was climbed in 1492."]],
    ["Beta", ["Beta is a river.", " It rises on Alpha."]],
]
ASKED: dict[str, Any] = {
    "messages": [("user", "Which peak?")],
    "task": {"id": "1", "question": "Which peak?", "gold": GOLD, "data": {"context": ARTICLES}},
}
GAME: dict[str, Any] = {"messages": [("user", "1 2 3 4")]}


def last_action(request: Request) -> str:
    """The action of the step that a judge has to judge."""
    return request.text.rpartition("<action>\n")[2].split("\n")[0]


def taken(request: Request) -> int:
    """How many steps stand in the prompt of an agent."""
    return sum(message.type == "tool" for message in request.messages)


def agent(steps: Callable[[Request], str], scores: dict[str, float], solved: float = 2.0) -> Callable[[Request], Reply]:
    """An agent that acts, and a judge that scores actions by name (0.1 if it has no name for them)."""

    def reply(request: Request) -> Reply:
        if request.schema == "Judgements":
            actions = [part.split("<action>\n")[1].split("\n")[0] for part in request.text.split("<candidate ")[1:]]
            return {"judgements": [judged(scores.get(action, 0.1)) for action in actions]}
        if request.schema:
            score = scores.get(last_action(request), 0.1)
            return judged(score, score >= solved)
        if kind(request) == "reflect":
            return f"Not {last_action(request)}."
        return "Final Answer: nothing" if kind(request) == "conclude" else f"Thought: so\nAction: {steps(request)}"

    return reply


def each(*actions: str) -> Callable[[Request], str]:
    return lambda request: actions[request.index % len(actions)]


async def research(steps: Callable[[Request], str], scores: dict[str, float] | None = None, **settings: Any) -> Any:
    """Answer the question with these steps; the model that was asked is the second result."""
    solved = settings.pop("solved", 2.0)
    model = FakeChatModel(reply=agent(steps, scores or {}, solved))
    return await run(model, ASKED, environment="questions", **settings), model


def of(model: FakeChatModel, wanted: str) -> list[Request]:
    return [request for request in model.calls if kind(request) == wanted]


def figures(state: Any, *terms: str) -> dict[str, tuple[Any, ...]]:
    """What each child of the root is worth: its action with its score and these terms."""
    nodes = [node for node in state["tree"].values() if node["depth"] == 1]
    return {node["action"]: (node["score"], *(node["terms"][term] for term in terms)) for node in nodes}


# What a step is worth


@pytest.mark.parametrize("grading", ["each", "together"])
async def test_a_score_is_the_judges_mixed_with_the_share_of_the_samples_that_propose_the_same(grading: str) -> None:
    steps = each("Search[Alpha]", "Search[Beta]", "search[ALPHA]", "Search[Beta]", "Finish[Gamma]")
    scores = {"Search[Alpha]": 0.75, "Search[Beta]": 0.5, "Finish[Gamma]": 0.25}
    state, model = await research(steps, scores, max_rollouts=1, max_expansions=1, grading=grading, max_lessons=0)
    assert figures(state, "judge", "consistency") == {
        "Search[Alpha]": (pytest.approx(0.5 * 0.75 + 0.5 * 0.4), 0.75, 0.4),
        "Search[Beta]": (pytest.approx(0.5 * 0.5 + 0.5 * 0.4), 0.5, 0.4),
        "Finish[Gamma]": (pytest.approx(0.5 * 0.25 + 0.5 * 0.2), 0.25, 0.2),
    }
    assert [node.get("samples") for node in state["tree"].values()] == [None, 2, 2, None]
    assert len(of(model, "judge")) == (3 if grading == "each" else 1), "what is the same costs one judgement"


@pytest.mark.parametrize(("weight", "expected", "judgements"), [(1.0, 0.75, 2), (0.25, 0.25 * 0.75 + 0.75 * 0.6, 2)])
async def test_lambda_weighs_the_judge(weight: float, expected: float, judgements: int) -> None:
    steps = each("Search[Alpha]", "Search[Beta]", "Search[Alpha]", "Search[Beta]", "Search[Alpha]")
    state, model = await research(steps, {"Search[Alpha]": 0.75}, judge_weight=weight, max_expansions=1)
    assert figures(state)["Search[Alpha]"] == (pytest.approx(expected),)
    assert len(of(model, "judge")) == judgements


async def test_without_a_weight_the_judge_is_not_asked() -> None:
    steps = each("Search[Alpha]", "Search[Beta]", "Search[Alpha]", "Search[Beta]", "Search[Alpha]")
    state, model = await research(steps, judge_weight=0, max_expansions=1)
    assert figures(state) == {"Search[Alpha]": (pytest.approx(0.6),), "Search[Beta]": (pytest.approx(0.4),)}
    assert of(model, "judge") == []


async def test_labels_are_counted_and_a_list_has_equal_shares() -> None:
    """Of the labels sure counts 20, likely 1, impossible 0.001: so two sure and one impossible make 40.001 of 60. What
    is called impossible takes its part of the share of the samples away."""

    def reply(request: Request) -> Any:
        if kind(request) == "list":
            return "1 + 2 = 3 (left: 3 3 4)\n 1 * 2 = 2 (left: 2 3 4)\n2 - 1 = 1 (left: 1 3 4)\n3 + 4 = 7\n4 / 2 = 2"
        left = request.text.rpartition("Left: ")[2].split("\n")[0]
        return {"3 3 4": ["**sure**", "sure", "impossible"], "2 3 4": "So it goes.\nlikely."}.get(left, "impossible")

    state = await run(FakeChatModel(reply=reply), GAME, environment="game24", max_expansions=1)
    shares = 0.5 / 5
    assert figures(state) == {
        "1 + 2 = 3 (left: 3 3 4)": (pytest.approx(0.5 * 40.001 / 60 + shares * 2 / 3),),
        "1 * 2 = 2 (left: 2 3 4)": (pytest.approx(0.5 * 3 / 60 + shares),),
        "2 - 1 = 1 (left: 1 3 4)": (pytest.approx(0.5 * 0.003 / 60, abs=1e-9),),
        "3 + 4 = 7": (pytest.approx(0.5 * 0.003 / 60, abs=1e-9),),
        "4 / 2 = 2": (pytest.approx(0.5 * 0.003 / 60, abs=1e-9),),
    }
    assert state["tree"]["0.0"]["terms"] == {
        "sure": 2,
        "impossible": 1,
        "judge": pytest.approx(40.001 / 60),
        "consistency": pytest.approx(0.2 * 2 / 3),
    }


async def test_a_reply_without_a_label_adds_nothing_and_is_counted() -> None:
    def reply(request: Request) -> Any:
        return "1 + 2 = 3" if kind(request) == "list" else ["sure", "I cannot say.", "likely"]

    state = await run(FakeChatModel(reply=reply), GAME, environment="game24", max_expansions=1, judge_weight=1)
    assert figures(state) == {"1 + 2 = 3": (pytest.approx(21 / 60),)}
    assert state["usage"]["parse_failures"] == 1


# Simulation and backpropagation


def route(request: Request) -> str:
    """Two steps of research, then an answer; the answer depends on the candidate."""
    if taken(request) < 2:
        return f"Search[{'Alpha' if taken(request) == 0 else 'Beta'} {request.index}]"
    return f"Finish[peak {request.index}]"


async def test_a_rollout_goes_down_to_the_end_of_the_task_and_its_nodes_stay_in_the_tree() -> None:
    scores = {"Search[Alpha 1]": 1.0, "Search[Beta 0]": 0.5, "Finish[peak 1]": 0.75}
    state, _ = await research(route, scores, n=2, max_rollouts=1, judge_weight=1, max_lessons=0)
    assert [(entry["kind"], entry["node"]) for entry in state["log"]] == [
        ("start", None),
        ("expand", "0"),
        ("simulate", "0.1"),
        ("simulate", "0.1.0"),
    ]
    assert list(state["tree"]) == ["0", "0.0", "0.1", "0.1.0", "0.1.1", "0.1.0.0", "0.1.0.1"]
    assert state["answer"] == "peak 1"
    assert state["outcome"]["limit"] == {"name": "max_rollouts", "most": 1, "spent": 1}
    # The best answer's 0.75 is passed up from where it was found; every node has its own score besides.
    seen = {key: (stat["visits"], stat["total"]) for key, stat in state["stats"].items()}
    assert seen["0"] == (2, 0.75), "once for itself"
    assert seen["0.1"] == (2, 1.75)
    assert seen["0.1.0"] == (2, 1.25)
    assert seen["0.1.0.1"] == (1, 0.75)
    assert seen["0.0"] == (1, pytest.approx(0.1, abs=1e-9))


async def test_the_reward_of_the_environment_is_what_is_passed_up() -> None:
    """An exact match is not asked for by `peak 1`: the reward is 0, whatever a judge would say."""
    state, model = await research(route, {"Finish[peak 1]": 1.0}, n=2, max_rollouts=1, gold_reward=True, judge_weight=1)
    answers = [node for node in state["tree"].values() if node["kind"] == "answer"]
    assert [(node["reward"], node["score"], node["terms"]) for node in answers] == [(0, 0, {"reward": 0})] * 2
    assert (state["stats"]["0"]["visits"], state["stats"]["0"]["total"]) == (2, 0)
    assert not any("Finish" in last_action(request) for request in of(model, "judge"))
    assert state["reward"] == 0


async def test_a_rewarded_answer_solves_the_task() -> None:
    def steps(request: Request) -> str:
        return f"Finish[{GOLD}]" if taken(request) == 1 and request.index == 1 else f"Search[Alpha {request.index}]"

    state, _ = await research(steps, n=2, gold_reward=True)
    assert (state["answer"], state["reward"]) == (GOLD, 1)
    assert (state["outcome"]["status"], state["tree"]["0.0.0"]["solved"]) == ("solved", True)
    assert "the search was rewarded by the right answer (gold_reward)" in state["outcome"]["reason"]


async def test_without_simulation_each_expansion_is_a_rollout() -> None:
    state, _ = await research(route, n=2, max_rollouts=3, simulate=False, judge_weight=1)
    assert [entry["kind"] for entry in state["log"]] == ["start", "expand", "expand", "expand"]
    assert_consistent(state)


# Lessons


def answers_only(request: Request) -> str:
    return f"Finish[{'peak' if request.index < 2 else 'river'} {taken(request)}]"


async def test_lessons_are_bounded_and_there_is_one_for_each_answer() -> None:
    def steps(request: Request) -> str:
        if taken(request):
            return f"Finish[peak {request.last.count('Alpha 1')}]"
        return f"Search[Alpha {request.index}]" if request.index < 2 else f"Finish[peak {request.index % 3}]"

    state, model = await research(steps, max_lessons=2, max_rollouts=10)
    assert [lesson["answer"] for lesson in state["lessons"]] == ["peak 2", "peak 0"]
    assert len(of(model, "reflect")) == 2
    answers = [node["action"] for node in state["tree"].values() if node["kind"] == "answer"]
    assert {*answers} == {"Finish[peak 0]", "Finish[peak 1]", "Finish[peak 2]"}
    assert len(answers) > 3


async def test_a_lesson_stands_in_all_later_prompts_of_the_agent_and_the_judge_and_in_none_before() -> None:
    def steps(request: Request) -> str:
        return each("Finish[mud]", "Search[Alpha]", "Search[Beta]")(request) if taken(request) == 0 else "Finish[rock]"

    scores = {"Search[Alpha]": 0.9}
    state, model = await research(steps, scores, n=3, max_rollouts=2)
    assert [(lesson["answer"], lesson["text"]) for lesson in state["lessons"]] == [
        ("mud", "Not Finish[mud]."),
        ("rock", "Not Finish[rock]."),
    ]
    for number, lesson in enumerate(state["lessons"]):
        index = [number for number, request in enumerate(model.calls) if kind(request) == "reflect"][number]
        assert not any(lesson["text"] in request.text for request in model.calls[:index])
        later = [request for request in model.calls[index + 1 :] if kind(request) in ("sample", "judge")]
        assert {kind(request) for request in later} == {"sample", "judge"}
        assert all(f"<lesson>\n{lesson['text']}\n</lesson>" in request.text for request in later)


@pytest.mark.parametrize(("settings", "kind_of_call"), [({}, "judge"), ({"grades": "labels"}, "label")])
async def test_a_judge_is_shown_lessons_as_material_not_as_orders(settings: dict[str, Any], kind_of_call: str) -> None:
    script = agent(each("Search[Alpha]"), {})
    model = FakeChatModel(reply=lambda request: "sure" if kind(request) == "label" else script(request))
    given = {**ASKED, "advice": "Read about Alpha first."}
    await run(model, given, environment="questions", max_expansions=1, **settings)
    acting, judging = of(model, "sample")[0].text, of(model, kind_of_call)[0].text
    assert "Read about Alpha first." in judging
    assert ("plans to follow" in acting, "plans to follow" in judging) == (True, False)
    assert "They are material, no criteria" in judging


async def test_advice_from_earlier_attempts_is_a_lesson_from_the_beginning() -> None:
    model = FakeChatModel(reply=agent(each("Search[Alpha]"), {}))
    given = {**ASKED, "advice": "Read about Alpha first."}
    await run(model, given, environment="questions", max_expansions=1)
    assert all("<lesson>\nRead about Alpha first.\n</lesson>" in request.text for request in model.calls[:2])


async def test_no_lesson_is_paid_for_when_a_sibling_solves() -> None:
    steps = each("Finish[mud]", f"Finish[{GOLD}]")
    state, model = await research(steps, n=2, gold_reward=True)
    assert state["outcome"]["status"] == "solved"
    assert of(model, "reflect") == []


async def test_a_dead_end_without_an_answer_is_a_lesson_too() -> None:
    def reply(request: Request) -> Reply:
        return {"list": "1 + 2 = 3 (left: 3)", "label": "sure", "reflect": "Not by adding."}.get(kind(request), "no")

    given = {"messages": [("user", "1 2")]}
    state = await run(FakeChatModel(reply=reply), given, environment="game24", max_lessons=3)
    assert state["lessons"] == [{"node": "0.0", "answer": "3", "text": "Not by adding."}]
    assert state["tree"]["0.0"]["reward"] == 0


# The right answer


def texts(model: FakeChatModel) -> str:
    return "\n".join(request.text for request in model.calls)


@pytest.mark.parametrize("gold_reward", [False, True])
async def test_the_right_answer_stands_in_no_prompt_and_counts_only_if_it_may(gold_reward: bool) -> None:
    stored = builder.compile(checkpointer=InMemorySaver())
    model = FakeChatModel(reply=agent(answers_only, {}))
    context = LatsContext(model=model, environment="questions", gold_reward=gold_reward, max_rollouts=3)
    result = await stored.ainvoke(ASKED, thread(), context=context)
    assert GOLD not in texts(model)
    assert ("gold_reward" in result["outcome"]["reason"]) is gold_reward
    assert [node.get("reward") for node in result["tree"].values() if node["kind"] == "answer"] == (
        [0.0, 0.0] if gold_reward else [None, None]
    )
    state = (await stored.aget_state(thread())).values
    assert (GOLD in json.dumps(state, default=str)) is gold_reward


async def test_the_judge_accepts_an_answer_where_no_reward_is_given() -> None:
    state, _ = await research(each("Finish[peak]", "Search[Alpha]"), {"Finish[peak]": 0.9}, solved=0.8, judge_weight=1)
    assert (state["answer"], state["reward"], state["outcome"]["status"]) == ("peak", None, "solved")


async def test_what_needs_no_right_answer_says_nothing_of_it() -> None:
    def reply(request: Request) -> Reply:
        return {"list": "Answer: 1 * 2 * 3 * 4 = 24"}.get(kind(request), "sure")

    state = await run(FakeChatModel(reply=reply), GAME, environment="game24", gold_reward=True)
    assert (state["outcome"]["status"], state["outcome"]["verified_by"]) == ("solved", "environment")
    assert state["reward"] == state["tree"]["0.0"]["reward"] == 1


# Fewer calls


def game(lists: dict[str, str]) -> Callable[[Request], Reply]:
    """Lists of steps by what is left; every state is likely."""

    def reply(request: Request) -> Reply:
        left = request.text.rpartition("Left: ")[2].split("\n")[0]
        return lists.get(left, "none") if kind(request) == "list" else "likely"

    return reply


BROAD = {"lists": 1, "simulate": False, "exploration_weight": 100, "max_expansions": 4}
LISTS = {
    "1 2 3 4": "1 + 2 = 3 (left: 3 3 4)\n2 * 3 = 6 (left: 1 4 6)\n3 - 1 = 2 (left: 2 2 4)",
    "3 3 4": "3 + 3 = 6 (left: 4 6)\n3 * 3 = 9 (left: 4 9)",
    "1 4 6": "6 - 1 = 5 (left: 4 5)\n1 * 6 = 6 (left: 4 6)",
    "2 2 4": "2 + 2 = 4 (left: 4 4)\n2 * 2 = 4 (left: 4 4)",
}


@pytest.mark.parametrize("parallel", [1, 4])
async def test_the_same_state_reached_by_two_ways_is_graded_once(parallel: int) -> None:
    model = FakeChatModel(reply=game(LISTS))
    state = await run(model, GAME, environment="game24", **BROAD, parallel=parallel)
    graded = [request.text.rpartition("Left: ")[2].split("\n")[0] for request in of(model, "label")]
    assert sorted(graded) == ["1 4 6", "2 2 4", "3 3 4", "4 4", "4 5", "4 6", "4 9"]
    first, second = (node for node in state["tree"].values() if node.get("state", {}).get("numbers") == ["4", "6"])
    assert (first["terms"], first["score"]) == (second["terms"], second["score"])
    assert first["terms"]["judge"] == pytest.approx(3 / 60)
    (both,) = (node for node in state["tree"].values() if node.get("state", {}).get("numbers") == ["4", "4"])
    assert both["samples"] == 2, "two steps to one state are one child"


async def test_siblings_that_come_to_the_same_are_judged_once() -> None:
    inputs = {"messages": [("user", "A jacket of 80 euros costs 25 percent less. What does it cost?")]}
    steps = each("calculate: 80 * (1 - 0.25)", "calculate: 80 euros * 0.75 = 60 euros", "calculate: 80 / 4")
    model = FakeChatModel(reply=agent(steps, {}))
    state = await run(model, inputs, environment="arithmetic", n=3, max_expansions=1)
    assert [node.get("samples") for node in state["tree"].values()] == [None, 2, None]
    assert len(of(model, "judge")) == 2


async def test_sharing_and_merging_are_events() -> None:
    model = FakeChatModel(reply=game(LISTS))
    events = [event async for event in streamed(model, GAME, environment="game24", **BROAD)]
    names = [event["event"] for event in events]
    assert (names.count("shared"), names.count("merged"), names.count("refused")) == (1, 1, 0)


class Slow(Game24):
    """The game, counting its steps."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, str]] = []

    async def step(self, state: State, action: str) -> Transition:
        self.steps.append((" ".join(state["numbers"]), self.canonical(action)))
        return await super().step(state, action)


async def test_the_same_action_in_the_same_state_is_carried_out_once() -> None:
    world = Slow()
    steps = each("1 + 2 = 3", "2 + 1 = 3", "1 + 2 = 3 (left: 3 3 4)", "2 * 3 = 6", "3 * 2 = 6")
    model = FakeChatModel(reply=agent(steps, {}))
    settings = {"environment": world, "proposals": "samples", "grades": "judge", "max_expansions": 1}
    state = await run(model, GAME, **settings)
    assert world.steps[:-1] == [("1 2 3 4", "1 + 2 = 3"), ("1 2 3 4", "2 * 3 = 6")]
    assert [node.get("samples") for node in state["tree"].values()] == [None, 3, 2]
    assert state["usage"]["tool_calls"] == 2


async def test_of_a_long_list_the_first_ones_that_are_possible_are_taken() -> None:
    lists = {"1 2 3 4": "9 + 9 = 18\nnonsense\n1 + 2 = 3\n1 + 3 = 4\n1 + 4 = 5\n2 + 1 = 3"}
    state = await run(FakeChatModel(reply=game(lists)), GAME, environment="game24", n=2, max_expansions=1)
    assert [node.get("action") for node in state["tree"].values()] == [None, "1 + 2 = 3", "1 + 3 = 4"]
    assert state["usage"]["tool_errors"] == 2


async def test_a_refused_action_is_told_as_an_event_and_is_no_node() -> None:
    steps = each("Fly[away]", "Search[Alpha]", "Lookup[peak]")
    model = FakeChatModel(reply=agent(steps, {}))
    events = [event async for event in streamed(model, ASKED, environment="questions", n=3, max_expansions=1)]
    refused = [(event["action"], event["why"]) for event in events if event["event"] == "refused"]
    assert [action for action, _ in refused] == ["Fly[away]", "Lookup[peak]"]
    assert "Search" not in refused[0][1], "nothing to copy"
    assert [event["id"] for event in events if event["event"] == "node"] == ["0", "0.0"]


class Wordless(Game24):
    """Refuses without a word."""

    async def step(self, state: State, action: str) -> Transition:
        """Play, and do not say why something is refused."""
        return (await super().step(state, action))._replace(observation="")


async def test_an_environment_may_refuse_without_a_word() -> None:
    lists = {"1 2 3 4": "9 + 9 = 18\n1 + 2 = 3"}
    state = await run(FakeChatModel(reply=game(lists)), GAME, environment=Wordless(), n=2, max_expansions=1)
    assert [node.get("action") for node in state["tree"].values()] == [None, "1 + 2 = 3"]


async def streamed(model: FakeChatModel, given: Any, **settings: Any) -> Any:
    """The progress events of a run."""
    context = LatsContext.model_validate({"model": model, **settings})
    async for event in graph.astream(given, context=context, stream_mode="custom"):
        yield event


# The end


async def test_a_search_in_which_every_action_is_refused_is_exhausted_and_still_answers() -> None:
    state, model = await research(each("Fly[away]"), n=2)
    assert (state["outcome"]["status"], state["answer"]) == ("exhausted", "nothing")
    assert [kind(request) for request in model.calls] == ["sample", "sample", "conclude"]


async def test_where_all_steps_are_refused_the_model_is_told_why_once() -> None:
    def steps(request: Request) -> str:
        return "Search[Alpha]" if "can be taken" in request.last else "Fly[away]"

    state, model = await research(steps, n=2, max_expansions=1)
    first, second = [request for request in model.calls if kind(request) == "sample"]
    assert "can be taken" not in first.last
    assert "None of the steps that you proposed can be taken" in second.last
    assert second.last.count("can be read") == 1
    assert [node.get("action") for node in state["tree"].values()] == [None, "Search[Alpha]"]


WON = "Answer: 1 * 2 * 3 * 4 = 24"


async def test_a_proposal_that_solves_the_task_is_never_cut_and_its_siblings_are_not_graded() -> None:
    steps = ["1 + 2 = 3 (left: 3 3 4)", "1 + 3 = 4 (left: 2 4 4)", "2 * 3 = 6 (left: 1 4 6)", WON]
    for reply in ("\n".join(steps), "\n".join(reversed(steps))):
        model = FakeChatModel(reply=game({"1 2 3 4": reply}))
        state = await run(model, GAME, environment="game24", n=2)
        assert (state["outcome"]["status"], state["tree"]["0.0"]["action"]) == ("solved", WON)
        assert len(model.calls) == 1


async def test_nothing_is_graded_beside_a_candidate_that_solves_the_task() -> None:
    state, model = await research(each("Search[Alpha]", "Search[Beta]", f"Finish[{GOLD}]"), n=3, gold_reward=True)
    assert (state["outcome"]["status"], len(state["tree"])) == ("solved", 4)
    assert [kind(request) for request in model.calls] == ["sample"]


async def test_an_answer_that_was_asked_for_at_the_end_is_rewarded_as_well() -> None:
    def reply(request: Request) -> Reply:
        if kind(request) == "conclude":
            return f"Final Answer: {GOLD}"
        return agent(each("Search[Alpha]"), {})(request)

    state = await run(FakeChatModel(reply=reply), ASKED, environment="questions", max_expansions=1, gold_reward=True)
    assert (state["answer"], state["reward"], state["outcome"]["status"]) == (GOLD, 1, "solved")


@pytest.mark.parametrize(("least", "expansions"), [(None, 6), (0.0, 3), (0.1, 1)])
async def test_a_search_ends_when_no_open_leaf_can_gain_enough(least: float | None, expansions: int) -> None:
    """The best answer has 0.8. An open leaf has 0.85; below it is one of 0.82, and below that nothing worth it."""

    def steps(request: Request) -> str:
        if taken(request) == 0:
            return each("Search[first]", "Finish[good]", "Search[second]")(request)
        return f"Search[more {request.index}{taken(request)}]"

    scores = {"Search[first]": 0.85, "Finish[good]": 0.8, "Search[more 01]": 0.82}
    settings = {"n": 3, "judge_weight": 1, "simulate": False, "max_lessons": 0, "max_expansions": 6}
    state, _ = await research(steps, scores, min_gain=least, exploration_weight=0, **settings)
    assert (state["answer"], state["expansions"]) == ("good", expansions)
    assert state["outcome"]["status"] == ("limit_reached" if least is None else "exhausted")


async def test_limits_of_depth_and_of_rollouts() -> None:
    deep, _ = await research(lambda request: f"Search[x {request.index} {taken(request)}]", n=1, max_depth=3)
    assert max(node["depth"] for node in deep["tree"].values()) == 3
    assert deep["outcome"]["status"] == "exhausted"
    few, _ = await research(route, n=2, max_rollouts=2, judge_weight=1)
    assert few["outcome"]["status"] == "limit_reached"
    assert few["outcome"]["limit"] == {"name": "max_rollouts", "most": 2, "spent": 2}
    assert [entry["kind"] for entry in few["log"]].count("expand") == 2


# Programs

TASK: dict[str, Any] = {
    "messages": [("user", "Write double(x).")],
    "task": {
        "id": "p",
        "question": "Write double(x), which returns twice x.",
        "data": {"entry_point": "double", "tests": ["assert double(2) == 4", "assert double(3) == 6"], "hidden": ""},
    },
}


def programs(*bodies: str) -> Callable[[Request], Reply]:
    """A programmer whose attempts are better after each lesson."""

    def reply(request: Request) -> Reply:
        if request.schema:
            return judged(0.9 if "2 * x" in request.text else 0.2, solved="2 * x" in request.text)
        if kind(request) == "reflect":
            return "Multiply instead."
        body = bodies[min(request.text.count("<lesson>"), len(bodies) - 1)]
        return f"Thought: so\nAction: ```python\ndef double(x):\n    return {body}\n```"

    return reply


@pytest.mark.sandbox
async def test_a_program_is_worth_the_share_of_the_visible_tests_that_pass() -> None:
    model = FakeChatModel(reply=programs("x + 2", "2 * x"))
    state = await run(model, TASK, environment="programming", n=2)
    assert [(node["score"], node.get("reward"), node["solved"]) for node in state["tree"].values()] == [
        (None, None, False),
        (0.5, 0.5, False),
        (1.0, 1.0, True),
    ]
    assert state["outcome"]["status"] == "solved"
    assert [kind(request) for request in model.calls] == ["sample", "reflect", "sample"]
    assert "Tests failed:\nassert double(3) == 6 # output: 5" in model.calls[-1].text
    assert "2 * x" in state["answer"]


@pytest.mark.sandbox
async def test_where_no_visible_test_can_be_run_the_judge_decides() -> None:
    untested = {**TASK, "task": {**TASK["task"], "data": {"entry_point": "double", "tests": [], "hidden": ""}}}
    state = await run(FakeChatModel(reply=programs("x + 2", "2 * x")), untested, environment="programming", n=2)
    assert (state["outcome"]["status"], state["reward"]) == ("solved", None)
    assert "2 * x" in state["answer"]
