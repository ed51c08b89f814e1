"""Random settings of all strategies, with a model that answers at random, faults included: what a run says of itself
fits together."""

import pytest
from tenacity import wait_none

from tests.contract.contradictions import contradictions
from tests.contract.random_runs import random_run
from tests.contract.random_settings import STRATEGIES

RUNS = 60
"""Random runs of one test; a test takes a few seconds."""
TESTS = 8


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries do not wait."""
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("first", range(0, RUNS * TESTS, RUNS))
async def test_status_answer_verifier_score_and_citations_fit_together(first: int) -> None:
    found: dict[str, list[str]] = {}
    for seed in range(first, first + RUNS):
        run = await random_run(seed)
        if run and (problems := await contradictions(run)):
            found[f"seed {seed}, {run.strategy}"] = [*problems, str(run.out["outcome"]), str(run.settings)]
    assert not found


@pytest.mark.thorough
async def test_a_seed_gives_the_same_run_again() -> None:
    first, again = [await random_run(len(STRATEGIES)) for _ in range(2)]
    assert first
    assert again
    assert (first.out["answer"], first.out["outcome"]) == (again.out["answer"], again.out["outcome"])
