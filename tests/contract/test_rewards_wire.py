"""Reward models over the wire in every strategy that answers: what they decide, and what their faults do."""

from typing import Any

import pytest

from reflective_agents.testing.reward_server import RewardFault, RewardServer
from tests.contract.test_verifiers import ANSWERING, every_answering, run
from tests.strategies import Strategy, every_case

pytestmark = pytest.mark.wire
KINDS: dict[str, dict[str, Any]] = {
    "outcome": {"threshold": 0.5},
    "process": {"threshold": 0.5, "task": "token_classify"},
}
FAULTS: dict[str, RewardFault] = {"fails": "500", "hangs": "timeout", "breaks off": "reset", "not a number": "nan"}


@pytest.mark.matrix
@every_case("kind", KINDS, ANSWERING)
async def test_what_it_accepts_is_solved(strategy: Strategy, kind: str) -> None:
    async with RewardServer(lambda text: 2.0) as server:
        out = await run(strategy, [{"reward": server.address, **KINDS[kind]}])
    assert (out["outcome"]["status"], out["outcome"].get("verified_by")) == ("solved", "verifiers"), out["outcome"]


@pytest.mark.matrix
@every_case("kind", KINDS, ANSWERING)
async def test_what_it_refuses_is_not(strategy: Strategy, kind: str) -> None:
    async with RewardServer(lambda text: [2.0, -2.0]) as server:
        out = await run(strategy, [{"reward": server.address, **KINDS[kind]}])
    assert out["outcome"]["status"] in ("exhausted", "limit_reached"), out["outcome"]


@pytest.mark.matrix
@every_case("fault", FAULTS, ANSWERING)
async def test_its_faults_solve_nothing(strategy: Strategy, fault: str) -> None:
    async with RewardServer(lambda text: 2.0, fault=FAULTS[fault]) as server:
        out = await run(strategy, [{"reward": server.address, "threshold": 0.5}], verifier_timeout=0.1)
    assert out["outcome"]["status"] != "solved", out["outcome"]
    assert "no verdict" in out["outcome"]["reason"]


@pytest.mark.matrix
@every_answering
async def test_where_it_only_ranks_its_faults_forbid_nothing(strategy: Strategy) -> None:
    async with RewardServer(lambda text: 2.0, fault="500") as server:
        ranks = {"reward": server.address, "task": "token_classify"}
        out = await run(strategy, [ranks, lambda request, answer: True])
    assert (out["outcome"]["status"], out["outcome"].get("verified_by")) == ("solved", "verifiers"), out["outcome"]
