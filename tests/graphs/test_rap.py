"""Reasoning via planning: what is foreseen and when, rewards, the weighing of answers, and who has the last word."""

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from bench.replays.records import load
from reflective_agents.environments.base import Task
from reflective_agents.environments.blocksworld import Blocksworld
from reflective_agents.environments.blocksworld_rows import read_task
from reflective_agents.graphs.rap import builder, graph
from reflective_agents.models.providers import close_models
from reflective_agents.prompts import rap as prompts
from reflective_agents.state.settings.rap import RapContext
from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request, likely
from tests.graphs.rap_scripts import blocks_of, foreseen, planner, proposed, scored, tagged

QUESTION = {"messages": [("user", "How many eggs does Ann sell?")]}
FINAL = "Now we can answer the question: How many eggs does Ann sell?"
KNOWING = ("predict", "phrase")
"""What is asked together with what the search finds."""
Asked = dict[str, Any]
ONE_BY_ONE: Asked = {"proposals": "samples"}


async def run(reply: Any, given: Any = QUESTION, **settings: Any) -> tuple[Any, FakeChatModel]:
    model = settings.pop("model", None) or FakeChatModel(reply=reply)
    context = RapContext.model_validate({"model": model, "search": "none", **settings})
    return await graph.ainvoke(given, context=context), model


def kinds(model: FakeChatModelWithoutN) -> Counter[str]:
    """How often the model was asked to propose, to predict, to rate, to phrase the answer, and to give one at all."""
    return Counter(map(kind, model.calls))


def kind(request: Request) -> str:
    if request.schema:
        return "rate"
    words = {"Write": "propose", "List": "propose", "Answer": "predict", "Predict": "predict", "Phrase": "phrase"}
    return next((words[line.split(" ")[0]] for line in request.last.splitlines() if line.split(" ")[0] in words), "end")


def phrased(request: Request) -> str:
    """The answer that was found, as it stands."""
    return tagged("answer", request.last)[-1]


def eggs(request: Request) -> Reply:
    """Two ways to ask, `a` and `b`, which lead to 12 and 13; `a` is the more useful one, and the surer."""
    if request.schema:
        return scored(request, {"way a": 0.64, "way b": 0.36, "Now": 0.81})
    if kind(request) == "phrase":
        return phrased(request)
    if kind(request) == "propose":
        ways = "ab" if "possibilities" in request.last else "ab"[request.index % 2]
        listed = "\n".join(f"Which way {way}?" for way in ways)
        return FINAL if tagged("asked", request.last) else f"Sub-question 1: {listed}"
    if "whole question" in request.last:
        return f"Well.\nAnswer: {12 if 'way a' in request.last else 13} eggs"
    sure = "way a" in request.last or request.index % 2 == 0
    return f"Let me see.\nAnswer: {'four' if sure else 'five'}"


async def test_a_question_is_answered_by_way_of_sub_questions() -> None:
    out, model = await run(eggs, n=2, confidence_samples=4, max_rollouts=2)
    tree = out["tree"]
    assert {key: step.get("action") for key, step in tree.items()} == {
        "0": None,
        "0.0": "Which way a?",
        "0.1": "Which way b?",
        "0.0.0": FINAL,
        "0.1.0": FINAL,
    }
    assert [tree[key].get("observation") for key in ("0.0", "0.1", "0.0.0")] == ["four", "four", "12 eggs"]
    assert tree["0.0"]["terms"] == {"r0": 0.64, "r1": 1.0}
    assert tree["0.1"]["terms"] == {"r0": 0.36, "r1": 0.5}
    assert [tree[key]["score"] for key in ("0.0", "0.1", "0.0.0")] == pytest.approx([0.8, 0.18**0.5, 0.9])
    assert out["outcome"]["status"] == "exhausted"
    assert kinds(model) == {"propose": 3, "rate": 3, "predict": 4, "phrase": 1}


async def test_the_answers_of_all_paths_are_weighed() -> None:
    """A path weighs the mean of its rewards: (0.8 + 0.9) / 2, and (sqrt 0.18 + 0.9) / 2."""
    out, _ = await run(eggs, n=2, confidence_samples=4, max_rollouts=2)
    first, other = (0.8 + 0.9) / 2, (0.18**0.5 + 0.9) / 2
    assert out["weights"] == [
        {
            "answer": "12 eggs",
            "node": "0.0.0",
            "paths": 1,
            "weight": pytest.approx(first),
            "share": pytest.approx(first / (first + other)),
        },
        {
            "answer": "13 eggs",
            "node": "0.1.0",
            "paths": 1,
            "weight": pytest.approx(other),
            "share": pytest.approx(other / (first + other)),
        },
    ]
    assert out["answer"] == "12 eggs"
    assert out["stats"]["0"]["total"] == pytest.approx(first + other)
    assert out["stats"]["0"]["own"]["best"] == pytest.approx(first)


async def test_many_light_paths_outweigh_a_heavy_one() -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return scored(request, {"Which 0": 1.0, "Which": 0.5, "Now": 1.0})
        if kind(request) == "propose":
            return FINAL if tagged("asked", request.last) else f"Which {request.index}?"
        if "whole question" in request.last:
            return "Answer: The wrong one." if "Which 0" in request.last else "So. Answer:\nthe right one"
        return phrased(request) if kind(request) == "phrase" else "Answer: yes"

    out, _ = await run(reply, n=3, min_paths=9, **ONE_BY_ONE)
    assert out["answer"] == "the right one"
    assert [(each["paths"], each["node"]) for each in out["weights"]] == [(2, "0.1.0"), (1, "0.0.0")]
    assert out["weights"][1]["weight"] > out["weights"][0]["weight"] / 2


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Answer: 12", "12"),
        ("3 * 4 = 12\n**Answer:** 12", "12"),
        (
            "So the answer: hm.\nFinal Answer: 12\n\nReferences:\n[1] x\nAnswer: no",
            "12\n\nReferences:\n[1] x\nAnswer: no",
        ),
        ("It is 12. Answer: 12", "12"),
        ("It is 12.", "It is 12."),
        ("Answer:", "Answer:"),
    ],
)
async def test_answers_are_read_as_models_write_them(reply: str, answer: str) -> None:
    out, _ = await run(
        lambda request: reply if "whole question" in request.last else eggs(request), n=1, max_rollouts=1
    )
    assert out["answer"] == answer


async def test_paths_that_agree_end_the_search() -> None:
    def reply(request: Request) -> Reply:
        return "Answer: 12 eggs." if "whole question" in request.last else eggs(request)

    out, _ = await run(reply, n=2, min_paths=2)
    assert out["outcome"]["status"] == "answered"
    assert (out["answer"], [each["paths"] for each in out["weights"]]) == ("12 eggs.", [2])
    assert (await run(reply, n=2, min_paths=3))[0]["outcome"]["status"] == "exhausted"


async def test_nothing_is_foreseen_before_a_rollout_comes_by() -> None:
    out, model = await run(eggs, n=2, max_rollouts=1)
    assert [key for key, step in out["tree"].items() if step["score"] is None] == ["0", "0.1"]
    assert kinds(model) == {"propose": 2, "rate": 2, "predict": 2, "phrase": 1}
    assert out["usage"]["model_calls"] == 7


@pytest.mark.parametrize(("alpha", "score"), [(0.0, 0.5), (1.0, 0.36), (0.25, 0.36**0.25 * 0.5**0.75)])
async def test_alpha_is_the_part_of_the_action(alpha: float, score: float) -> None:
    out, _ = await run(eggs, n=2, confidence_samples=4, max_rollouts=2, alpha=alpha)
    assert out["tree"]["0.1"]["score"] == pytest.approx(score)


async def test_the_last_step_before_the_greatest_depth_is_the_question_itself() -> None:
    def endless(request: Request) -> Reply:
        if request.schema:
            return scored(request, {})
        asks = kind(request) == "propose"
        return f"What about {len(tagged('asked', request.last))}?" if asks else "Answer: so"

    out, model = await run(endless, max_depth=3, n=1, max_rollouts=1)
    assert [step.get("action") for step in out["tree"].values()] == [None, "What about 0?", "What about 1?", FINAL]
    assert (out["answer"], out["tree"]["0.0.0.0"]["terms"]["r0"]) == ("so", 1.0)
    assert kinds(model) == {"propose": 2, "rate": 2, "predict": 3, "phrase": 1}, (
        "where there is no choice, nobody is asked"
    )


async def test_a_sub_question_is_not_asked_twice_on_a_path() -> None:
    def stubborn(request: Request) -> Reply:
        if request.schema:
            return scored(request, {})
        return "1. What is  an egg?" if kind(request) == "propose" else "Answer: so"

    out, _ = await run(stubborn, n=3, **ONE_BY_ONE)
    assert [step.get("action") for step in out["tree"].values()] == [None, "What is  an egg?", FINAL]
    assert out["tree"]["0.0"]["samples"] == 3


async def test_sub_questions_come_as_one_list_in_which_each_asks_for_something_else() -> None:
    def listing(request: Request) -> Reply:
        if kind(request) == "propose":
            return (
                "1. Which year was the mill built in?\n2. In what year was the mill built?\n3. Who built the mill?\n"
                "4. Where does the mill stand?"
            )
        return eggs(request)

    out, model = await run(listing, max_rollouts=1)
    steps = [step["action"] for step in out["tree"].values() if step["depth"] == 1]
    assert steps == ["Which year was the mill built in?", "Who built the mill?", "Where does the mill stand?"]
    [first] = [request for request in model.calls if "sub-question 1" in request.last]
    assert "Write up to 4 possibilities" in first.last
    assert prompts.ASK_SEVERAL.format(width=4, number=1) in first.last


async def test_predictions_agree_whatever_words_of_the_whole_question_they_repeat() -> None:
    def priced(request: Request) -> Reply:
        if kind(request) == "predict":
            return f"Answer: {['924 euros', '924', '924 euros for each egg'][request.index]}"
        return eggs(request)

    inputs = {"messages": [("user", "How much is it in euros for each egg?")]}
    out, model = await run(priced, inputs, n=1, max_rollouts=1, action_reward="judge")
    assert out["tree"]["0.0"]["terms"]["r1"] == 1
    [rated, *_] = [request for request in model.calls if request.schema]
    assert "'Now we can answer the question: ...' is exactly right once" in rated.text
    assert "or the same in other words as a candidate above" in rated.text


async def test_what_was_asked_on_the_path_is_not_asked_in_other_words() -> None:
    def again(request: Request) -> Reply:
        if kind(request) == "propose":
            return "Which year was it built in?" if not tagged("asked", request.last) else "In what year was it built?"
        return eggs(request)

    out, _ = await run(again, n=1, max_rollouts=1)
    assert [step.get("action") for step in out["tree"].values()] == [None, "Which year was it built in?", FINAL]


async def test_what_is_the_same_in_prompts_stands_first_byte_for_byte() -> None:
    _, model = await run(eggs, n=2, max_rollouts=2)
    texts = [[message.text for message in request.messages] for request in model.calls if not request.schema]
    assert len({(system, question) for system, question, _ in texts}) == 1
    known = [text.rpartition("</answer>")[0] for _, _, text in texts]
    assert all(any(other.startswith(text) for other in known) for text in known)


async def test_what_is_found_for_a_sub_question_is_shown_where_it_is_answered(tmp_path: Path) -> None:
    (tmp_path / "hens.md").write_text("# Hens\n\nA hen that goes her own way A or way B lays eggs which Ann sells.\n")
    out, model = await run(eggs, n=2, search="local", corpus=str(tmp_path), verify_sources=False)
    shown = [tagged("observation", request.last) for request in model.calls if kind(request) in KNOWING]
    assert all(len(each) == 1 and "corpus:hens.md" in each[0] for each in shown)
    numbered = [request for request in model.calls if '"number": 1' in request.last]
    assert numbered == [request for request in model.calls if "Phrase it for the user" in request.last], "who may cite"
    assert not any("corpus:" in request.text for request in model.calls if kind(request) not in KNOWING)
    count = len(tagged("asked", model.calls[-1].last))
    assert out["usage"]["tool_calls"] == len(shown) + count, "the answer is phrased from all that was found on its path"


async def test_passages_that_do_not_bear_on_a_sub_question_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "hens.md").write_text("# Hens\n\nThe way to keep hens, and what they sell for.\n")
    (tmp_path / "ways.md").write_text("# Ways\n\nFor eggs there is a way, and Ann sells by it.\n")
    _, model = await run(eggs, n=1, search="local", corpus=str(tmp_path), max_rollouts=1)
    [whole, *_] = [request for request in model.calls if "whole question" in request.last]
    assert "corpus:ways.md" in whole.last
    assert prompts.FOUND in whole.last
    assert "corpus:hens.md" not in whole.last, "it has no more than a word in common"


# The likelihood of actions


def loud(request: Request) -> Reply:
    """Like `eggs`, with log-probabilities."""
    reply = eggs(request)
    chances = [0.25 if "way b" in line else 0.5 for line in reply.splitlines()] if isinstance(reply, str) else []
    return likely(reply, *chances) if isinstance(reply, str) else reply


@pytest.mark.wire
async def test_log_probabilities_of_the_provider_are_the_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    async with OpenAIServer(loud) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        context = RapContext(model="openai:gpt-4.1", search="none", n=2, max_rollouts=1)
        out = await graph.ainvoke(QUESTION, context=context)
        bodies = {kind(request): exchange.body for request, exchange in zip(server.calls, server.requests, strict=True)}
    await close_models()
    assert {key: step["terms"]["r0"] for key, step in out["tree"].items() if key != "0"} == {
        "0.0": pytest.approx(0.5),
        "0.1": pytest.approx(0.25),
        "0.0.0": pytest.approx(0.5),
    }
    assert bodies.keys() == {"propose", "predict", "phrase"}, "no judge is asked"
    assert bodies["propose"]["logprobs"] is True
    assert "logprobs" not in bodies["predict"]


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(
    ("settings", "rated", "r0"),
    [
        ({}, 0, [0.5, 0.25]),
        ({"action_reward": "judge"}, 1, [0.64, 0.36]),
        ({"action_reward": "judge", "grading": "each"}, 2, [0.64, 0.36]),
        ({"action_reward": "likelihood"}, 0, [0.5, 0.25]),
        ({"action_reward": "likelihood", "n": 3, "max_expansions": 1, **ONE_BY_ONE}, 0, [2 / 3, 1 / 3]),
    ],
)
async def test_who_says_how_likely_or_useful_a_step_is(settings: Asked, rated: int, r0: list[float]) -> None:
    script = eggs if "proposals" in settings else loud
    out, model = await run(script, **{"n": 2, "max_expansions": 1, **settings})
    assert [out["tree"][key]["terms"]["r0"] for key in ("0.0", "0.1")] == pytest.approx(r0)
    assert kinds(model)["rate"] == rated


async def test_without_n_each_sample_is_a_request_of_its_own() -> None:
    count = itertools.count()

    def reply(request: Request) -> Reply:
        if kind(request) == "propose" and not tagged("asked", request.last):
            return f"Which way {'ab'[next(count) % 2]}?"
        return eggs(request)

    model = FakeChatModelWithoutN(reply=reply)
    out, _ = await run(None, model=model, n=2, max_rollouts=1, **ONE_BY_ONE)
    assert kinds(model) == {"propose": 4, "rate": 2, "predict": 6, "phrase": 1}
    assert out["usage"]["model_calls"] == 13


def _counts(request: Request) -> tuple[int, int]:
    scores: Any = request.schemas["Usefulness"]["properties"]["scores"]
    return scores["minItems"], scores["maxItems"]


async def test_a_judge_that_rates_too_few_is_told_so() -> None:
    def reply(request: Request) -> Reply:
        return {"scores": [0.4]} if request.schema else eggs(request)

    out, model = await run(reply, n=2)
    assert [_counts(request) for request in model.calls if request.schema] == [(2, 2)] * 3, "in the schema itself"
    assert out["outcome"]["status"] == "exhausted"
    assert "at least 2 items" in out["outcome"]["reason"]
    assert out["answer"] == "12 eggs", "it is asked for from the step that was not rated"


# Arithmetic


def task(question: str = "3 hens lay 16 eggs each. How many?", **more: Any) -> dict[str, Any]:
    made = {"id": "t", "question": question, **more}
    return {"messages": [("user", question)], "task": made}


@pytest.mark.parametrize(
    ("given", "status", "reward"), [({}, "answered", None), ({"gold_reward": True}, "solved", 1.0)]
)
async def test_arithmetic_is_answered_with_a_number(given: Asked, status: str, reward: float | None) -> None:
    def reply(request: Request) -> Reply:
        if "whole question" in request.last:
            return f"3 * 16 = 48\nAnswer: {['48', '48.0', '$48', '49'][request.index]}"
        return eggs(request)

    settings = {"environment": "arithmetic", "n": 2, "confidence_samples": 4, "min_paths": 2, **given}
    out, model = await run(reply, task(gold="48"), **settings)
    assert (out["outcome"]["status"], out["reward"], out["answer"]) == (status, reward, "48")
    assert out["tree"]["0.0.0"]["terms"]["r1"] == 0.75
    assert "phrase" not in kinds(model), "the number is the answer"
    assert not any("gold" in str(request.messages) for request in model.calls)
    assert ("gold_reward" in out["outcome"]["reason"]) == (reward is not None)


async def test_an_answer_that_is_no_number_is_none() -> None:
    def reply(request: Request) -> Reply:
        return "Answer: many" if "whole question" in request.last else eggs(request)

    out, _ = await run(reply, task(), environment="arithmetic", n=2)
    ends = [step for step in out["tree"].values() if step["depth"] == 2]
    assert [(end["kind"], end["score"], end["critique"]) for end in ends] == [
        ("action", 0.0, "The answer must be a number.")
    ] * 2
    assert out["weights"] == []


# Plans


async def solved(row: Any, reply: Any, **settings: Any) -> tuple[Any, FakeChatModel]:
    made = row if "data" in row else read_task(row)
    given = {"messages": [("user", "Build it.")], "task": made}
    return await run(reply, given, environment="blocksworld", **settings)


TOWER: Task = {
    "id": "b",
    "question": "",
    "data": {
        "init": ["on red blue", "ontable blue", "ontable white", "clear red", "clear white", "handempty"],
        "goal": ["on blue red", "on red white"],
    },
}
PLAN = """unstack the red block from on top of the blue block
stack the red block on top of the white block
pick up the blue block
stack the blue block on top of the red block"""


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [{}, {"parallel": 8}, {"aggregate": "mean", "seed": 1}])
async def test_recorded_tasks_are_solved_in_the_head(recorded: Path, settings: Asked) -> None:
    rows = load(recorded, "bench_rap_blocksworld")
    for row in rows[:: len(rows) // 4]:
        out, model = await solved(row, planner(), **settings)
        assert out["outcome"]["status"] == "solved"
        assert Blocksworld().score(read_task(row), out["answer"]) == {"solved": 1.0, "optimal": 1.0}
        assert out["reward"] == 1.0
        if "parallel" not in settings:
            assert kinds(model) == {"propose": row["steps"], "predict": row["steps"]}
            assert out["usage"]["tool_calls"] == row["steps"], "actions are carried out at the end of the path"


async def test_what_a_model_foresees_is_the_state_of_a_step_until_the_path_ends() -> None:
    out, model = await solved(TOWER, planner(), n=2)
    assert out["answer"] == PLAN
    *steps, end = [step for step in out["tree"].values() if "observation" in step]
    assert all(step["observation"].startswith("Now: ") and "state" not in step for step in steps)
    assert (end["observation"], end["state"]["plan"]) == ("The goal is reached.", PLAN.split("\n"))
    assert {len(tagged("state", request.last)) for request in model.calls} == {1}
    assert "The hand holds one block at most" in model.calls[0].messages[0].text


async def test_a_model_that_sees_the_goal_too_early_is_refuted() -> None:
    def eager(request: Request) -> str:
        reply = foreseen(request)
        return reply.replace("Done: no", "Done: yes") if "white" in tagged("action", request.last)[0] else reply

    out, _ = await solved(TOWER, planner(0.5, eager), n=4, max_rollouts=30, max_model_calls=300)
    ends = [step for step in out["tree"].values() if step.get("done")]
    refuted = [end for end in ends if end.get("reward") == 0.0]
    assert refuted
    assert all(end["score"] == 0.0 and end["kind"] == "action" for end in refuted)
    assert "Of the goal, " in refuted[0]["observation"]


async def test_a_model_that_never_sees_the_goal_is_corrected_at_the_greatest_depth() -> None:
    def blind(request: Request) -> str:
        return foreseen(request).replace("Done: yes", "Done: no")

    out, _ = await solved(TOWER, planner(1.0, blind), max_depth=4, n=2)
    assert (out["outcome"]["status"], out["answer"]) == ("solved", PLAN)
    assert out["reward"] == 1.0


async def test_a_model_that_knows_no_world_is_survived() -> None:
    def lost(request: Request) -> str:
        return f"{Blocksworld().public(blocks_of(request))}\nThere are {len(request.last)} signs.\nDone: no"

    out, _ = await solved(TOWER, planner(1.0, lost), max_depth=3, max_rollouts=4)
    assert out["outcome"]["limit"] == {"name": "max_rollouts", "most": 4, "spent": 4}
    assert (out["reward"], out["answer"]) == (0.0, "pick up the red block")
    assert {end["reward"] for end in out["tree"].values() if end.get("done")} == {0.0}
    assert any("Not possible" in end["observation"] for end in out["tree"].values() if end.get("done"))


async def test_steps_that_are_impossible_or_lead_back_end_a_path() -> None:
    def reply(request: Request) -> Reply:
        if "Predict" in request.last:
            return foreseen(request)
        if not tagged("state", request.last) or "Nothing more" in request.last:
            return "I do not know."
        held = "holding the white" in request.last
        return likely("put down the white block" if held else "pick up the white block\npick up the blue block", 0.5)

    out, _ = await solved(TOWER, reply)
    scores = {step["action"]: (step["score"], step["critique"]) for step in out["tree"].values() if step.get("done")}
    assert scores == {
        "put down the white block": (0.0, "It leads back to where the path has been."),
        "pick up the blue block": (0.0, "By its own prediction this step is not possible."),
    }
    assert out["outcome"]["status"] == "exhausted"


async def test_equal_actions_are_merged_and_keep_the_higher_likelihood() -> None:
    def reply(request: Request) -> Reply:
        if "Predict" in request.last:
            return foreseen(request)
        return likely("- (pick-up white)\n- Pick up the white block.\n- unstack red blue", 0.25, 0.5, 0.25)

    out, _ = await solved(TOWER, reply, max_expansions=1)
    actions = [(step["action"], step["terms"], step.get("samples")) for key, step in out["tree"].items() if key != "0"]
    assert actions == [
        ("(pick-up white)", {"r0": pytest.approx(0.5)}, 2),
        ("unstack red blue", {"r0": pytest.approx(0.25)}, None),
    ]


async def test_a_state_that_is_reached_twice_is_thought_through_once() -> None:
    """Three blocks on the table: the same towers are built in many ways, and torn down again in others."""
    flat = [*(f"{fact} {block}" for fact in ("ontable", "clear") for block in ("red", "blue", "white")), "handempty"]
    crossing: Task = {"id": "c", "question": "", "data": {"init": flat, "goal": ["on red blue", "on blue white"]}}

    def wandering(request: Request) -> Reply:
        if "Predict" in request.last:
            return foreseen(request)
        return likely("\n".join(action for action, _ in proposed(request)), 0.5)

    settings: Asked = {"n": 9, "max_depth": 20, "max_rollouts": 100, "max_model_calls": 500, "exploration_weight": 3}
    out, model = await solved(crossing, wandering, **settings)
    prompts = [request.last for request in model.calls]
    assert len(prompts) == len(set(prompts)), "no question is put twice"
    states = Counter(step["observation"] for step in out["tree"].values() if not step.get("done") and step["score"])
    assert max(states.values()) > 1


# The run


async def test_events_tell_each_node_once_and_then_what_became_of_it() -> None:
    model = FakeChatModel(reply=eggs)
    context = RapContext(model=model, search="none", n=2)
    events = [event async for event in graph.astream(QUESTION, context=context, stream_mode="custom")]
    nodes = [event["id"] for event in events if event["event"] == "node"]
    judged = [event for event in events if event["event"] == "judged"]
    assert sorted(nodes) == sorted(set(nodes)) == ["0", "0.0", "0.0.0", "0.1", "0.1.0"]
    assert [(event["id"], event["kind"]) for event in judged] == [
        ("0.0", "action"),
        ("0.0.0", "answer"),
        ("0.1", "action"),
        ("0.1.0", "answer"),
    ]
    assert sum(event["calls"] for event in events if event["event"] == "visited") == len(model.calls) - 1


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_tree_whenever_replies_arrive() -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return {"scores": [len(each) % 7 / 7 for each in tagged("candidate", request.text)]}
        if kind(request) == "propose":
            return FINAL if request.index == 3 else f"Which {(request.seed or 0) + request.index} {request.key[:4]}?"
        return f"Answer: {request.index % 2} {request.key[:4]}"

    trees = []
    for seed, latency in ((1, 0.0), (1, lambda request: len(request.text) % 3), (2, 0.0)):
        model = FakeChatModel(reply=reply, latency=latency)
        (out, _), _ = virtually(run(None, model=model, seed=seed, max_rollouts=4))
        trees.append((out["tree"], out["stats"], out["weights"]))
    assert trees[0] == trees[1]
    assert trees[0] != trees[2]


@pytest.mark.matrix
@pytest.mark.parametrize("parallel", [1, 8])
def test_rollouts_in_parallel_leave_nothing_in_flight(parallel: int) -> None:
    def reply(request: Request) -> Reply:
        if kind(request) == "propose":
            return f"Which {request.index} {request.key[:3]}?"
        return eggs(request) if request.schema else f"Answer: {request.key[:4]}"

    model = FakeChatModel(reply=reply, latency=1.0)
    (out, _), _ = virtually(run(None, model=model, parallel=parallel, max_rollouts=12, n=6, max_depth=3, **ONE_BY_ONE))
    assert out["outcome"]["limit"] == {"name": "max_rollouts", "most": 12, "spent": 12}
    assert not any("virtual" in stat or "flight" in stat for stat in out["stats"].values())
    assert out["stats"]["0"]["visits"] == 12 == sum(each["paths"] for each in out["weights"])
    assert (model.max_in_flight > 3) == (parallel == 8)


async def test_what_was_learned_before_stands_in_the_prompts() -> None:
    _, model = await run(eggs, {**QUESTION, "advice": "Count the hens."}, n=2)
    assert all("<lesson>\nCount the hens.\n</lesson>" in request.last for request in model.calls if not request.schema)


@pytest.mark.thorough
async def test_a_second_question_has_weights_of_its_own() -> None:
    thread = builder.compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    await thread.ainvoke(QUESTION, config, context=RapContext(model=FakeChatModel(reply=eggs), search="none"))
    broken = RapContext(model=FakeChatModel(reply=lambda _: ValueError("no route")), search="none")
    out = await thread.ainvoke({"messages": [("user", "And why?")]}, config, context=broken)
    assert (out["weights"], out["answer"], out["outcome"]["status"]) == ([], None, "failed")


async def test_the_offline_model_asks_and_answers() -> None:
    out, _ = await run(
        None, {"messages": [("user", "Why is reflection useful in AI?")]}, model="offline", search="local"
    )
    assert (out["outcome"]["status"], out["outcome"]["verified_by"]) == ("solved", "sources")
    assert "What is reflection?" in {step.get("action") for step in out["tree"].values()}
    assert "corpus:reflection.md" in out["answer"]


async def test_a_model_that_calls_a_tool_instead_is_asked_again_and_then_given_up() -> None:
    call = AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "1"}])
    out, _ = await run(lambda request: call)
    assert out["outcome"]["status"] == "failed"
    assert out["usage"]["parse_failures"] >= 3
