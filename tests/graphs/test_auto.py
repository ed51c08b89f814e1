"""Auto: which stages it takes, what each begins with, and why it stops."""

from typing import Any

import pytest

from reflective_agents.graphs._auto.policy import Progress, choose, options
from reflective_agents.graphs.auto import graph
from reflective_agents.state.settings.auto import AutoContext
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request

GAME: dict[str, Any] = {"messages": [("user", "4 9 10 13")]}
RIGHT = "Answer: (13 - 9) * (10 - 4) = 24"
WRONG = "Answer: 13 + 10 + 9 - 4 = 24"
PLENTY = Progress(calls=100, search_calls=100, rollout=7, checked=True)
CONTEXT = AutoContext(model="offline")


def stages(out: Any) -> list[str]:
    """The stages of a run, each once in a row."""
    names = [turn["stage"] for turn in out["turns"]]
    return [name for place, name in enumerate(names) if not place or names[place - 1] != name]


async def play(reply: Any, **settings: Any) -> tuple[Any, FakeChatModelWithoutN]:
    model = FakeChatModelWithoutN(reply=reply)
    context = AutoContext(model=model, environment="game24", search="none", **settings)
    return await graph.ainvoke(GAME, context=context), model


def player(request: Request) -> Reply:
    """Wrong whole answers; the right steps, one at a time."""
    if "thinking step by step" in request.text:
        return WRONG
    if request.schema == "Judgements":
        score = 0.9 if "(left: 24)" in request.last else 0.5
        return {
            "judgements": [{"reasoning": "So.", "score": score, "solved": False}] * request.last.count("<candidate ")
        }
    steps = {
        "Left: 4 9 10 13": "13 - 9 = 4 (left: 4 4 10)",
        "Left: 4 4 10": "10 - 4 = 6 (left: 4 6)",
        "Left: 4 6": "4 * 6 = 24 (left: 24)",
    }
    left = request.last[request.last.rindex("Left: ") :].splitlines()[0].rstrip(".") if "Left: " in request.last else ""
    return steps.get(left, RIGHT)


async def test_the_first_right_answer_ends_it() -> None:
    out, model = await play(lambda request: RIGHT)
    assert (out["outcome"]["status"], out["outcome"]["verified_by"], len(model.calls)) == ("solved", "environment", 1)
    assert stages(out) == ["sample"]


async def test_a_budget_that_holds_no_rollout_is_sampled() -> None:
    out, model = await play(player, max_model_calls=5)
    assert stages(out) == ["sample", ""]
    assert len(model.calls) == len(out["samples"]) == 5
    assert out["outcome"]["limit"]["name"] == "max_model_calls"


async def test_samples_leave_room_for_a_rollout_and_are_its_first_nodes() -> None:
    out, _ = await play(player, max_model_calls=20)
    assert stages(out)[:2] == ["sample", "search"]
    assert out["outcome"]["status"] == "solved"
    earlier = [node for node in out["tree"].values() if node.get("action") == WRONG]
    assert [(node["parent_id"], node["reward"]) for node in earlier] == [("0", 0.0)]


async def test_the_last_call_goes_to_the_best_trajectory() -> None:
    out, model = await play(player, max_model_calls=8)
    assert stages(out) == ["sample", "search", "conclude"]
    assert (out["outcome"]["status"], len(model.calls)) == ("solved", 8)


async def test_few_tokens_are_spent_on_answers_with_no_more_room_than_such_answers_take() -> None:
    out, model = await play(lambda request: WRONG, max_total_tokens=1500, max_answer_tokens=1200, examples=False)
    assert stages(out) == ["sample"]
    each = out["usage"]["total_tokens"] / len(model.calls)
    assert 1500 - 3 * each < out["usage"]["total_tokens"] <= 1500
    assert model.calls[0].max_tokens == 1200
    assert {request.max_tokens for request in model.calls[-2:]} != {1200}
    assert out["outcome"]["limit"]["name"] == "max_total_tokens"


async def test_an_answer_longer_than_all_before_is_cut_where_no_more_is_left() -> None:
    def reply(request: Request) -> Reply:
        return WRONG if request.attempt < 5 else WRONG * 100

    out, model = await play(reply, max_total_tokens=1500, max_answer_tokens=1200, examples=False)
    assert len(model.calls) == 6
    assert out["usage"]["total_tokens"] <= 1500
    assert out["samples"][-1]["normal"] == ""


@pytest.mark.parametrize("refusal", ["I'm not sure.", "Je ne sais pas.", "I don't have that information."])
async def test_samples_that_all_decline_are_no_safe_vote(refusal: str) -> None:
    context = AutoContext(model=FakeChatModel(reply=lambda _: f"Answer: {refusal}"), search="none", max_model_calls=6)
    out = await graph.ainvoke({"messages": [("user", "How tall is the lighthouse?")]}, context=context)
    assert stages(out) == ["sample", "search"]
    assert (out["outcome"]["status"], out["outcome"]["answered"]) == ("exhausted", False)


async def test_evidence_lies_at_the_root_of_the_tree() -> None:
    def reply(request: Request) -> Reply:
        missing = {"missing": "Proof.", "superfluous": "", "complete": False}
        if request.schema == "AnswerQuestion":
            return {"answer": "A draft.", "reflection": missing, "search_queries": ["reflection"]}
        if request.schema == "ReviseAnswer":
            return {"answer": "It helps [1].", "reflection": missing, "search_queries": ["mistakes"]}
        if request.schema == "Judgements":
            many = request.last.count("<candidate ")
            return {"judgements": [{"reasoning": "So.", "score": 0.9, "solved": True}] * many}
        return f"Answer: {request.index}"

    context = AutoContext(model=FakeChatModel(reply=reply), search="local", n=2)
    out = await graph.ainvoke({"messages": [("user", "Why does reflection help?")]}, context=context)
    assert stages(out) == ["sample", "look_up", "search"]
    assert out["evidence"]["sources"]
    assert out["evidence"]["sources"][0]["url"] in out["tree"]["0"]["messages"][1].text
    answers = [node["messages"][0].text for node in out["tree"].values() if node["kind"] == "answer"]
    assert any(text.startswith("It helps [1].") for text in answers)


async def test_each_turn_is_an_event() -> None:
    model = FakeChatModel(reply=lambda request: "Answer: 7")
    context = AutoContext(model=model, search="none")
    parts = graph.astream({"messages": [("user", "How many?")]}, context=context, stream_mode="custom")
    told = [part for part in [part async for part in parts] if part["event"] == "stage"]
    assert [one["stage"] for one in told] == ["sample", "none"]
    assert "0.94" in told[1]["why"]


@pytest.mark.parametrize(
    ("at", "stage"),
    [
        (PLENTY, "sample"),
        (PLENTY._replace(samples=3), "search"),
        (PLENTY._replace(calls=7, search_calls=7), "search"),
        (PLENTY._replace(calls=6, search_calls=6, samples=3), "sample"),
        (PLENTY._replace(samples=1, search_calls=8, search_cost=3), "sample"),
        (PLENTY._replace(samples=1, search_calls=7, search_cost=3), "search"),
        (PLENTY._replace(samples=3, may_look_up=True, checked=False, certainty=0.5), "look_up"),
        (PLENTY._replace(samples=3, searched=True, search_over=True, may_try=True), "trial"),
        (PLENTY._replace(samples=3, searched=True, search_over=True), "sample"),
        (PLENTY._replace(samples=3, searched=True, search_over=True, promise=0.6), "conclude"),
        (PLENTY._replace(calls=0), None),
        (PLENTY._replace(samples=3, checked=False, certainty=0.95), None),
        (PLENTY._replace(samples=200, fruitless=20), None),
    ],
)
def test_the_cheapest_stage_that_may_still_pay_comes_next(at: Progress, stage: str | None) -> None:
    assert choose(at, CONTEXT).stage == stage


def test_a_call_that_costs_nothing_is_always_worth_it() -> None:
    at = PLENTY._replace(samples=200, fruitless=20)
    assert choose(at, AutoContext(model="offline", call_cost=0)).stage == "search"


def test_chances_fall_with_each_failure() -> None:
    gains = [max(option.gain for option in options(PLENTY._replace(samples=many))) for many in (0, 5, 50)]
    assert gains == sorted(gains, reverse=True)
