"""The setting `seed`: it goes with every request, and makes a run one that can be repeated."""

import random
from typing import Any

from reflective_agents.graphs import graph_of
from reflective_agents.testing.fake import FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request
from tests.strategies import ASK, Strategy, every_strategy


@every_strategy
async def test_every_request_carries_the_seed_and_a_run_can_be_repeated(strategy: Strategy) -> None:
    runs = []
    for _ in range(2):
        model = FakeChatModelWithoutN(reply=strategy.endless)
        await strategy.graph.ainvoke(ASK, context=strategy.make(model=model, seed=7, max_model_calls=12))
        runs.append([(call.text, call.schema, call.seed) for call in model.calls])
    seeds = {seed for _, _, seed in runs[0]}
    assert None not in seeds
    assert min(seed or 0 for seed in seeds) == 7
    # Requests that are in flight at once may be noted in any order.
    assert sorted(map(str, runs[0])) == sorted(map(str, runs[1]))


def drawing(request: Request) -> Reply:
    """Answer by chance: a function of the prompt and of the seed, as a server's."""
    chance = random if request.seed is None else random.Random(f"{request.text} {request.seed} {request.index}")
    return f"Answer: {chance.choice('abcdefghijklmnopqrstuvwxyz')}"


async def test_parts_that_are_asked_the_same_have_seeds_of_their_own() -> None:
    settings: dict[str, Any] = {"search": "none", "seed": 7, "max_model_calls": 20}
    model = FakeChatModelWithoutN(reply=drawing)
    trials = {"max_trials": 3, "reflection": "none", "verifiers": [{"pattern": "1"}], "actor": "chain_of_thought"}
    out = await graph_of("trials").ainvoke(ASK, context={**settings, **trials, "model": model})
    assert len({trial["answer"] for trial in out["trials"]}) > 1
    assert [call.seed for call in model.calls] == [7, 10_007, 20_007]
    model = FakeChatModelWithoutN(reply=drawing)
    await graph_of("react").ainvoke(ASK, context={**settings, "step_samples": 3, "model": model})
    assert {call.seed for call in model.calls} >= {7, 8, 9}
