"""Reward models over the wire: what their logits come to, what their faults do, and what they decide."""

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from reflective_agents.graphs import graph_of
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers.finding import Case, NoVerdict
from reflective_agents.nodes.verifiers.reward import as_score, verify
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.state.verifier_forms import Reward, VerifiedRun
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.responder import respond
from reflective_agents.testing.reward_server import RewardFault, RewardServer
from reflective_agents.testing.script import Reply, Request, ToolUse

ASK = {"messages": [("user", "How do I sell honey?")]}


def pooled(data: Any) -> dict[str, Any]:
    return {"data": [{"index": 0, "object": "pooling", "data": data}]}


@pytest.mark.parametrize(
    ("data", "label", "score"),
    [
        ([0.0], -1, 0.5),
        ([2.0], -1, 0.8807970779778823),
        ([-800.0], -1, 0.0),
        ([800.0], 0, 1.0),
        ([1.0, 1.0], -1, 0.5),
        ([0.0, 2.0], -1, 0.8807970779778823),
        ([2.0, 0.0], 0, 0.8807970779778823),
        ([[5.0], [0.0]], -1, 0.5),
        ([[0.0, 9.0], [0.0, 2.0]], 1, 0.8807970779778823),
    ],
)
def test_logits_become_a_score(data: Any, label: int, score: float) -> None:
    assert as_score(pooled(data), label) == pytest.approx(score)


@pytest.mark.parametrize(
    "reply",
    [{}, [], None, "x", {"data": []}, pooled([]), pooled([[]]), pooled("AAAA"), pooled([float("nan")]), pooled([None])],
)
def test_what_holds_no_logit_is_no_verdict(reply: Any) -> None:
    with pytest.raises(NoVerdict):
        as_score(reply, -1)


def test_a_label_that_there_is_not_is_no_verdict() -> None:
    with pytest.raises(NoVerdict):
        as_score(pooled([0.0, 1.0]), 2)


def likes_honey(text: str) -> float:
    return 2.0 if "honey" in text else -2.0


async def found(reward: Reward, answer: str, **settings: Any) -> float:
    step = Step(ReactContext(**settings), {}, lambda _: None)
    case = Case("Why?", answer, VerifiedRun(messages=[HumanMessage("Why?")], sources={}))
    return (await verify(step, reward, case)).score


@pytest.mark.wire
async def test_a_whole_answer_is_sent_as_a_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWARD_KEY", "sk-reward")
    async with RewardServer(likes_honey, key="sk-reward") as server:
        reward = Reward(reward=server.address, model="rm", key_variable="REWARD_KEY")
        assert await found(reward, "Sell honey.") == pytest.approx(0.8807970779778823)
        with pytest.raises(NoVerdict, match="401"):
            await found(Reward(reward=server.address), "Sell honey.")
    [request, _] = server.requests
    assert request["messages"] == [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Sell honey."}]
    assert (request["model"], request["task"], request["use_activation"]) == ("rm", "classify", False)


@pytest.mark.wire
async def test_a_process_reward_scores_the_last_step() -> None:
    async with RewardServer(likes_honey, step_tag="<extra_0>") as server:
        reward = Reward(reward=server.address, task="token_classify", step_tag="<extra_0>")
        assert await found(reward, "Take honey.\n\nSell it.") < 0.5
        assert await found(reward, "Take it.\n\nSell honey.") > 0.5
    assert server.requests[0]["messages"][-1]["content"] == "Take honey.<extra_0>Sell it.<extra_0>"


FAULTS: list[RewardFault] = ["401", "500", "timeout", "reset", "truncated_json", "nan", "flood", "no_data"]


@pytest.mark.matrix(keep=3)
@pytest.mark.wire
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_no_verdict_and_tells_no_address(fault: RewardFault) -> None:
    async with RewardServer(likes_honey, fault=fault) as server:
        reward = Reward(reward=server.address)
        with pytest.raises(NoVerdict) as raised:
            await found(reward, "x", verifiers=[{"reward": server.address}], verifier_timeout=0.5)
    assert str(server.port) not in str(raised.value)


def selling() -> FakeChatModel:
    """Make a model whose second and third text sell honey."""
    number = count(1)

    def reply(request: Request) -> Reply:
        if request.schema:
            return respond(request)
        return "I sell honey." if (written := next(number)) in (2, 3) else f"I sell wax {written}."

    return FakeChatModel(reply=reply)


@pytest.fixture
async def server() -> AsyncIterator[RewardServer]:
    async with RewardServer(likes_honey) as running:
        yield running


@pytest.mark.matrix(keep=2)
@pytest.mark.wire
@pytest.mark.parametrize("name", ["best_of_n", "trials", "chain_of_thought", "auto"])
async def test_it_only_ranks_unless_there_is_a_threshold(name: str, server: RewardServer) -> None:
    samples: dict[str, Any] = {"best_of_n": {"n": 4}, "chain_of_thought": {"samples": 4}}.get(name, {})
    context = {"max_model_calls": 12, **samples}
    for threshold, status in (({}, "ranked"), ({"threshold": 0.6}, "solved")):
        verifiers = [{"reward": server.address, **threshold}]
        out = await graph_of(name).ainvoke(ASK, context={**context, "model": selling(), "verifiers": verifiers})
        assert (out["outcome"].get("verified_by") == "verifiers") is (status == "solved"), out["outcome"]
        assert name == "auto" or "honey" in out["answer"]


@pytest.mark.wire
async def test_where_it_fails_and_only_ranks_others_decide() -> None:
    async with RewardServer(likes_honey, fault="500") as server:
        context = {"model": selling(), "verifiers": [{"reward": server.address}], "n": 3}
        out = await graph_of("best_of_n").ainvoke(ASK, context=context)
    assert out["outcome"]["verified_by"] == "judge"


def looking(request: Request) -> Reply:
    """Look at a shelf first, and answer then."""
    if request.schema == "Judgements":
        return {"judgements": [{"reasoning": "So.", "score": 0.4, "solved": False}] * request.text.count("<candidate ")}
    if request.schema:
        return {"reasoning": "So.", "score": 0.4, "solved": False}
    if any(message.type == "tool" for message in request.messages):
        return f"I sell honey {request.index}."
    return ToolUse("look", {"at": f"shelf {request.index}"})


def look(at: str) -> str:
    """Look somewhere."""
    return f"Found on {at}."


@pytest.mark.wire
@pytest.mark.parametrize("grading", ["each", "together"])
async def test_a_process_reward_grades_the_inner_nodes_of_a_tree(grading: str) -> None:
    async with RewardServer(lambda text: 3.0 if "shelf 0" in text else -3.0) as server:
        verifiers = [{"reward": server.address, "task": "token_classify"}]
        context = {
            "model": FakeChatModel(reply=looking),
            "search": "none",
            "tools": [look],
            "n": 2,
            "max_expansions": 2,
            "grading": grading,
            "verifiers": verifiers,
        }
        out = await graph_of("lats").ainvoke(ASK, context=context)
    inner = [node for node in out["tree"].values() if node["kind"] == "action"]
    assert [node["score"] for node in inner] == [pytest.approx(0.952574)]
    assert server.requests[0]["task"] == "token_classify"


async def test_what_no_request_can_hold_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWARD_KEY", "clé")
    for reward in (
        Reward(reward="http://127.0.0.1:1", key_variable="REWARD_KEY"),
        Reward(reward="http://127.0.0.1:1/\x00"),
    ):
        with pytest.raises(NoVerdict):
            await found(reward, "x")


def test_one_that_must_accept_needs_a_threshold() -> None:
    with pytest.raises(ValueError, match="threshold"):
        Reward(reward="http://127.0.0.1:1", must=True)
    with pytest.raises(ValueError, match="address"):
        Reward(reward="file:///etc/passwd")
    with pytest.raises(ValueError, match="Port"):
        Reward(reward="http://127.0.0.1:99999999")
