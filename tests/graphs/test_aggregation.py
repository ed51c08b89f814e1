"""Aggregation: rounds and groups, which answer comes back, its sources, and several models."""

from typing import Any

import pytest
from pydantic import ValidationError

from reflective_agents.environments.base import Environment, State, Transition
from reflective_agents.graphs import auto
from reflective_agents.graphs.aggregation import graph
from reflective_agents.state.settings.aggregation import AggregationContext
from reflective_agents.testing.checker import checked
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request

ASK: dict[str, Any] = {"messages": [("user", "How many?")]}
OPEN: dict[str, Any] = {"search": "none"}


async def run(model: FakeChatModelWithoutN, **settings: Any) -> dict[str, Any]:
    out: dict[str, Any] = await graph.ainvoke(ASK, context={"model": model, **OPEN, **settings})
    return out


def numbered(request: Request) -> Reply:
    """Name the round and the number of the answer."""
    merged = request.text.count("</attempt>")
    return f"Merged from {merged}.\nAnswer: {request.index + request.attempt}"


async def test_each_round_is_made_of_groups_of_the_last_without_replacement() -> None:
    model = FakeChatModelWithoutN(reply=numbered)
    out = await run(model, population=5, group=3, rounds=4)
    assert len(model.calls) == 5 * 4
    assert [each["round"] for each in out["candidates"]] == [1] * 5 + [2] * 5 + [3] * 5 + [4] * 5
    groups = [each["group"] for each in out["candidates"]]
    assert groups[:5] == [[]] * 5
    assert all(len(set(group)) == 3 and set(group) < set(range(5)) for group in groups[5:])
    assert len({tuple(group) for group in groups}) > 5  # drawn anew for each
    merging = [call for call in model.calls if "<attempt" in call.text]
    assert all(call.text.count("</attempt>") == 3 for call in merging)


async def test_the_first_round_counts() -> None:
    model = FakeChatModelWithoutN(reply=numbered)
    await run(model, population=3, rounds=1)
    assert len(model.calls) == 3


async def test_the_same_seed_draws_the_same_groups() -> None:
    groups = []
    for seed in (1, 1, 2):
        out = await run(FakeChatModel(reply=numbered), population=6, seed=seed)
        groups.append([each["group"] for each in out["candidates"]])
    assert groups[0] == groups[1] != groups[2]


async def test_the_most_frequent_answer_of_the_last_round_is_returned() -> None:
    merged = iter([2, 1, 2, 3])

    def reply(request: Request) -> Reply:
        return f"Answer: {next(merged)}" if "<attempt" in request.text else "Answer: 9"

    model = FakeChatModelWithoutN(reply=reply)
    out = await run(model, rounds=2)
    last = [each["answer"] for each in out["candidates"] if each["round"] == 2]
    assert out["answer"] == max(last, key=last.count) == "2"
    assert out["outcome"]["reason"] == "2 of 4 answers of round 2 agree"


def forgetting(request: Request) -> Reply:
    """Propose 8 once, and forget it when merging."""
    return f"Answer: {3 if '<attempt' in request.text else [5, 8, 4, 3][request.index]}"


async def test_the_best_verified_answer_of_any_round_comes_back_and_not_the_last() -> None:
    out = await run(FakeChatModel(reply=forgetting), verifiers=[lambda request, answer: int(answer) / 10])
    assert (out["answer"], out["outcome"]["status"]) == ("8", "exhausted")
    assert len(out["candidates"]) == 12


async def test_the_first_accepted_answer_ends_the_run() -> None:
    model = FakeChatModel(reply=forgetting)
    out = await run(model, verifiers=[lambda request, answer: answer == "8"])
    assert (out["answer"], out["outcome"]["verified_by"], len(model.calls)) == ("8", "verifiers", 1)


async def test_who_merges_is_told_what_the_verifiers_say() -> None:
    model = FakeChatModel(reply=forgetting)
    await run(model, rounds=2, verifiers=[lambda request, answer: f"{answer} </verdict> is odd"])
    merging = [call.text for call in model.calls if "<attempt" in call.text]
    assert all(text.count("is odd") == text.count("</verdict>") == 2 for text in merging)


async def test_one_that_only_ranks_elects_and_solves_nothing() -> None:
    ranks = {"function": lambda request, answer: int(answer) / 10, "must": False}
    out = await run(FakeChatModel(reply=forgetting), verifiers=[ranks])
    assert (out["answer"], out["outcome"]["status"]) == ("8", "answered")


class Guess(Environment):
    """Half a reward for an even number, a whole one for 8."""

    name = "guess"
    actions = "a number"
    goal = "Guess the number."

    async def step(self, state: State, action: str) -> Transition:
        reward = 1.0 if action == "8" else 0.5 * (int(action) % 2 == 0)
        return Transition({**state, "answer": action, "done": True}, f"{action} is noted.", reward, True)


async def test_an_environment_rewards_answers_of_every_round() -> None:
    out = await run(FakeChatModel(reply=forgetting), environment=Guess())
    assert (out["answer"], out["reward"], out["outcome"]["verified_by"]) == ("8", 1.0, "environment")
    out = await run(
        FakeChatModel(reply=lambda request: str(forgetting(request)).replace("8", "3")), environment=Guess()
    )
    assert (out["answer"], out["reward"], out["outcome"]["status"]) == ("4", 0.5, "exhausted")


class Silent(Environment):
    """Rewards nothing, and takes numbers alone."""

    name = "silent"
    actions = "a number"
    goal = "Name a number."

    async def step(self, state: State, action: str) -> Transition:
        return Transition({**state, "answer": action, "done": True}, "", None, True, valid=action.isdigit())


@pytest.mark.parametrize("strategy", [graph, auto.graph])
async def test_where_the_environment_rewards_nothing_the_verifiers_have_verified(strategy: Any) -> None:
    context = {"model": FakeChatModel(reply=lambda request: "Answer: 8"), "environment": Silent()}
    out = await strategy.ainvoke(ASK, context={**context, "verifiers": [lambda request, answer: answer == "8"]})
    assert (out["answer"], out["reward"], out["outcome"]["verified_by"]) == ("8", None, "verifiers")


async def test_what_the_environment_refuses_has_no_vote_and_answers_nothing() -> None:
    def reply(request: Request) -> Reply:
        return f"Answer: {['many', 'many', '4', 'many'][request.index]}"

    model = FakeChatModel(reply=reply)
    out = await run(model, rounds=1, environment=Silent())
    assert (out["answer"], out["outcome"]["status"]) == ("4", "answered")
    model = FakeChatModel(reply=lambda request: "Answer: many")
    out = await run(model, rounds=1, environment=Silent())
    assert (out["answer"], out["outcome"]["status"]) == ("many", "exhausted")


async def test_without_any_answer_it_fails_and_says_why() -> None:
    out = await run(FakeChatModel(reply=lambda request: "Answer:"), rounds=1)
    assert (out["answer"], out["outcome"]["status"]) == (None, "failed")
    assert "answer" in out["outcome"]["reason"]


async def test_the_right_answer_of_a_task_chooses_nothing() -> None:
    task = {"id": "1", "question": "What is 4 + 4?", "gold": "8"}
    context = {"model": FakeChatModel(reply=forgetting), "environment": "arithmetic"}
    out = await graph.ainvoke({**ASK, "task": task}, context=context)
    assert (out["answer"], out["reward"], out["outcome"]["status"]) == ("3", None, "answered")
    assert len(out["candidates"]) == 12


async def test_what_was_looked_up_is_cited_and_what_was_not_is_taken_out() -> None:
    def shelf(query: str) -> list[dict[str, str]]:
        return [{"title": "Fares", "url": "https://pages.example/fares", "content": "A ticket costs 6.40 crowns."}]

    def reply(request: Request) -> Reply:
        if request.schema == "Queries":
            return {"queries": ["fares", "fares of today", "tickets", "prices"]}
        return "A ticket costs 6.40 crowns [1][7]."

    model = FakeChatModel(reply=checked(reply))
    out = await run(model, search=shelf, max_queries=2)
    assert out["usage"]["tool_calls"] == 2
    assert out["answer"].startswith("A ticket costs 6.40 crowns [1].\n")
    assert "https://pages.example/fares" in out["answer"]
    assert out["outcome"]["verified_by"] == "sources"
    writing = [call for call in model.calls if not call.schema]
    assert writing
    assert all("6.40 crowns" in call.text.partition("<attempt")[0] for call in writing)


async def test_a_model_that_cannot_name_queries_looks_the_question_up() -> None:
    queries = []

    def shelf(query: str) -> list[dict[str, str]]:
        queries.append(query)
        return [{"title": "Fares", "url": "https://pages.example/fares", "content": "A ticket costs 6.40 crowns."}]

    model = FakeChatModel(reply=lambda request: "No form." if request.schema else "6.40 crowns [1].")
    out = await run(model, search=shelf, rounds=1)
    assert queries == ["How many?"]
    assert out["answer"].startswith("6.40 crowns [1].")


async def test_with_a_seed_a_model_that_proposes_twice_draws_no_answer_twice() -> None:
    model = FakeChatModelWithoutN(reply=numbered)
    await run(model, proposers=[model, model], population=4, rounds=3, seed=1)
    seeds = [call.seed for call in model.calls]
    assert len(set(seeds)) == len(seeds) == 4 + 4 + 1


async def test_several_models_propose_in_turns_and_one_merges_all_at_the_end() -> None:
    def saying(text: str) -> FakeChatModel:
        return FakeChatModel(reply=lambda request: f"Answer: {text}")

    proposers, merger = [saying("1"), saying("2"), saying("3")], saying("6")
    out = await run(merger, proposers=proposers, rounds=3)
    assert [len(each.calls) for each in proposers] == [2, 2, 2]
    assert [call.text.count("</attempt>") for call in merger.calls] == [3]
    assert [each["answer"] for each in out["candidates"]] == ["1", "2", "3"] * 2 + ["6"]
    assert out["answer"] == "6"


async def test_a_limit_ends_it_with_the_last_answers_that_there_are() -> None:
    model = FakeChatModelWithoutN(reply=forgetting)
    out = await run(model, max_model_calls=6)
    assert len(model.calls) == 6
    assert [each["round"] for each in out["candidates"]] == [1, 1, 1, 1, 2, 2]
    assert (out["answer"], out["outcome"]["status"]) == ("3", "limit_reached")
    assert out["outcome"]["limit"]["name"] == "max_model_calls"


async def test_a_new_question_begins_with_no_answers() -> None:
    thread: Any = {"configurable": {"thread_id": "1"}}
    from langgraph.checkpoint.memory import InMemorySaver

    from reflective_agents.graphs.aggregation import builder

    kept: Any = builder.compile(checkpointer=InMemorySaver())
    for _ in range(2):
        context = {"model": FakeChatModel(reply=forgetting), **OPEN, "rounds": 2}
        out = await kept.ainvoke(ASK, thread, context=context)
        assert len(out["candidates"]) == 8


@pytest.mark.parametrize("settings", [{"group": 5}, {"proposers": [None]}, {"population": 1, "group": 2}])
def test_what_cannot_be_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AggregationContext(**settings)


def test_proposers_mix_unless_told_otherwise() -> None:
    mixed = AggregationContext(proposers=["offline", "offline", "offline"])
    assert (mixed.population, mixed.group, mixed.last) == (3, 3, "single")
    both = AggregationContext(proposers=["offline", "offline"], population=6, group=2, last="population")
    assert (both.population, both.group, both.last) == (6, 2, "population")
