"""The ladder of models in auto: when it goes up, who answers, and what each rung has cost."""

import asyncio
from typing import Any

import pytest
from langchain_core.exceptions import ModelAuthenticationError
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError

from reflective_agents.graphs.auto import builder, graph
from reflective_agents.state.settings.auto import AutoContext
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.responder import respond
from reflective_agents.testing.script import Reply, Request

ASK: dict[str, Any] = {"messages": [("user", "How many?")]}


def answering(*answers: Any) -> FakeChatModel:
    """A model whose samples are these answers, in turns."""

    def reply(request: Request) -> Reply:
        if request.schema:
            return respond(request)
        answer = answers[(request.index + request.attempt) % len(answers)]
        return answer if isinstance(answer, Exception) else f"So.\nAnswer: {answer}"

    return FakeChatModel(reply=reply)


async def run(*ladder: FakeChatModelWithoutN, **settings: Any) -> dict[str, Any]:
    context = {"ladder": list(ladder), "search": "none", **settings}
    out: dict[str, Any] = await graph.ainvoke(ASK, context=context)
    return out


def stages(out: dict[str, Any]) -> list[str]:
    return [turn["stage"] for turn in out["turns"] if turn["stage"]]


async def test_where_the_cheap_samples_agree_the_strong_model_is_not_asked() -> None:
    cheap, strong = answering(7), answering(8)
    out = await run(cheap, strong)
    assert (out["answer"], out["outcome"]["status"], len(strong.calls)) == ("7", "answered", 0)
    [rung] = out["outcome"]["rungs"]
    assert rung["model_calls"] == len(cheap.calls)


async def test_where_they_disagree_the_strong_one_answers_and_each_bill_is_its_own() -> None:
    cheap, strong = answering(1, 2, 3), answering(8)
    out = await run(cheap, strong)
    assert (out["answer"], out["outcome"]["status"]) == ("8", "answered")
    assert stages(out) == ["sample", "climb", "sample", *stages(out)[3:]]
    bills = out["outcome"]["rungs"]
    assert [bill["model_calls"] for bill in bills] == [len(cheap.calls), len(strong.calls)] == [1, 1]
    assert sum(bill["total_tokens"] for bill in bills) == out["usage"]["total_tokens"]


async def test_where_the_verifier_says_no_it_goes_up_and_stops_where_it_says_yes() -> None:
    cheap, middle, strong = answering(7), answering(8), answering(9)
    out = await run(cheap, middle, strong, verifiers=[lambda request, answer: answer == "8"])
    assert (out["answer"], out["outcome"]["verified_by"], len(strong.calls)) == ("8", "verifiers", 0)
    assert len(out["outcome"]["rungs"]) == 2


async def test_the_cheap_answer_comes_back_where_the_verifiers_score_it_higher() -> None:
    out = await run(
        answering(7), answering(3), verifiers=[lambda request, answer: int(answer[-1]) / 10], max_model_calls=9
    )
    assert out["answer"] == "7"


async def test_a_cheap_model_that_fails_is_left_for_the_next() -> None:
    out = await run(answering(ModelAuthenticationError("no such key")), answering(8))
    assert (out["answer"], out["outcome"]["status"]) == ("8", "answered")


async def test_the_outcome_says_which_model_has_answered() -> None:
    out = await run(answering(1, 2, 3), answering(8))
    metadata = out["messages"][-1].response_metadata
    assert out["outcome"]["model"] == metadata["model_name"] == out["outcome"]["rungs"][-1]["model"]


async def test_a_cheap_answer_that_the_tree_returns_is_told_as_the_cheap_models() -> None:
    cheap, strong = FakeChatModelWithoutN(reply=lambda request: "So.\nAnswer: 7"), answering(3)
    out = await run(cheap, strong, verifiers=[lambda request, answer: int(answer[-1]) / 10], max_model_calls=12)
    assert "search" in stages(out)
    assert out["answer"] == "7"
    assert out["outcome"]["model"] == "FakeChatModelWithoutN"


async def test_a_safe_vote_of_the_cheap_model_stands_where_a_look_up_is_not_worth_it() -> None:
    cheap, strong = answering(7), answering(8)
    found = [{"title": "Eggs", "url": "https://pages.example/eggs", "content": "There are seven."}]
    out = await run(cheap, strong, search=lambda query: found, call_cost=0.2)
    assert (out["answer"], len(strong.calls)) == ("7", 0)


@pytest.mark.parametrize("later", [{"model": answering(8)}, {"ladder": [answering(5), answering(8)]}])
async def test_a_run_can_be_resumed_with_a_shorter_ladder(later: dict[str, Any]) -> None:
    kept: Any = builder.compile(checkpointer=InMemorySaver(), interrupt_after=["climb"])
    thread, context = {"configurable": {"thread_id": "1"}}, {"search": "none"}
    first = {**context, "ladder": [answering(1, 2, 3), answering(4, 5, 6), answering(7)]}
    for request in (ASK, None):
        await kept.ainvoke(request, thread, context=first)
    out = await kept.ainvoke(None, thread, context={**context, **later})
    assert (out["answer"], out["outcome"]["status"]) == ("8", "answered")


async def test_where_no_comparison_decides_the_strong_model_answers() -> None:
    def reply(*answers: int) -> Any:
        sampled: Any = answering(*answers).reply

        def compare(request: Request) -> Reply:
            same = {"reasoning": "So.", "better": 1}
            return same if request.schema == "Comparison" else sampled(request)

        return FakeChatModel(reply=compare)

    out = await run(reply(1, 2, 3), reply(4, 5, 6), choose="pairs", call_cost=0.3, max_model_calls=20)
    assert out["answer"] == "4"


async def test_limits_hold_for_all_rungs_together() -> None:
    for most in range(1, 8):
        cheap, strong = answering(1, 2, 3), answering(4, 5, 6)
        out = await run(cheap, strong, max_model_calls=most)
        assert out["usage"]["model_calls"] == len(cheap.calls) + len(strong.calls) <= most
        assert sum(rung["model_calls"] for rung in out["outcome"]["rungs"]) == out["usage"]["model_calls"]
        assert out["answer"]


async def test_without_a_ladder_there_are_no_rungs() -> None:
    out = await graph.ainvoke(ASK, context={"model": answering(7), "search": "none"})
    assert "rungs" not in out["outcome"]
    assert "model" not in out["outcome"]


@pytest.mark.parametrize("ladder", [["offline"], ["offline", None], "offline"])
def test_a_ladder_has_two_models_with_names(ladder: Any) -> None:
    with pytest.raises(ValidationError):
        AutoContext(ladder=ladder)


def test_a_model_beside_a_ladder_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ladder = ["openai:a", "openai:b"]
    with pytest.raises(ValidationError, match="ladder"):
        AutoContext(model="openai:b", ladder=ladder)
    with pytest.raises(ValidationError, match="ladder"):
        AutoContext.merged({}, {"model": "openai:b", "ladder": ladder})
    assert AutoContext(model="openai:a", ladder=ladder).model == "openai:a"
    monkeypatch.setenv("MODEL", "openai:c")
    assert AutoContext(ladder=ladder).model == "openai:a"
    assert AutoContext(ladder=ladder).resumed({"ladder": ladder, "samples": 2}).model == "openai:a"


def test_a_callers_model_takes_the_place_of_the_graphs_own_ladder() -> None:
    ladder = ["openai:a", "openai:b"]
    merged = AutoContext.merged({"ladder": ladder, "samples": 2}, {"model": "openai:c"})
    assert (merged.model, merged.ladder, merged.samples) == ("openai:c", None, 2)
    assert AutoContext.merged({"ladder": ladder}, {"samples": 2}).ladder == ladder


def test_a_ladder_can_be_given_as_json() -> None:
    assert AutoContext(ladder='["offline", "openai:x"]').ladder == ["offline", "openai:x"]


async def test_runs_beside_each_other_climb_apart() -> None:
    outs = await asyncio.gather(*(run(answering(1, 2, 3), answering(number)) for number in range(4)))
    assert [out["answer"] for out in outs] == ["0", "1", "2", "3"]
