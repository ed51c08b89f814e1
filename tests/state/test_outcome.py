"""The one rule that makes a status of what ended a run and what is known of its answer."""

import pytest

from reflective_agents.state.errors import ModelFailed
from reflective_agents.state.outcome import DECLINED, Appraisal, Outcome, accepts, decide, limited, stopped

LIMIT = limited({"name": "max_rounds", "most": 3, "spent": 3})
DONE = Outcome(status="answered", reason="it answers")
LEFT = Outcome(status="exhausted", reason="nothing is left")
JUDGED = Outcome(status="solved", reason="accepted", verified_by="judge")
CHECKED = Outcome(status="solved", reason="all checks pass", verified_by="checks")
FAULT = stopped(ModelFailed("no route"))
RIGHT, WRONG = Appraisal("environment", True, "reward 1"), Appraisal("environment", False, "reward 0")


@pytest.mark.parametrize(
    ("reached", "answer", "appraisal", "status", "by"),
    [
        (JUDGED, None, Appraisal(), "failed", None),
        (LIMIT, "42", RIGHT, "solved", "environment"),
        (FAULT, "42", RIGHT, "solved", "environment"),
        (LEFT, "42", RIGHT, "solved", "environment"),
        (JUDGED, "42", Appraisal(), "solved", "judge"),
        (JUDGED, "42", WRONG, "exhausted", None),
        (LIMIT, "42", WRONG, "limit_reached", None),
        (LIMIT, "42", Appraisal(), "limit_reached", None),
        (DONE, "42", WRONG, "exhausted", None),
        (FAULT, "42", Appraisal(), "exhausted", None),
        (LEFT, "42", Appraisal(), "exhausted", None),
        (None, "42", Appraisal(), "exhausted", None),
        (DONE, "42", Appraisal(), "answered", None),
        (DONE, "I do not know.", Appraisal(), "exhausted", None),
        (JUDGED, "I do not know.", Appraisal(), "solved", "judge"),
        (CHECKED, "I do not know.", Appraisal(), "exhausted", None),
        (
            CHECKED,
            "The height could not be found; the page on it [1] does not give it.",
            Appraisal(),
            "exhausted",
            None,
        ),
        (DONE, "I do not know.", Appraisal(answered=True), "answered", None),
        (DONE, "It stands there.", Appraisal(answered=False), "exhausted", None),
        (LIMIT, "It stands there.", Appraisal(answered=False), "limit_reached", None),
        (DONE, "It stands there.", Appraisal("environment", True, "reward 1", answered=False), "solved", "environment"),
        (LIMIT, "I do not know.", Appraisal(), "limit_reached", None),
        (DONE, "NOT ENOUGH INFO", RIGHT, "solved", "environment"),
        (DONE, "I do not know you yet.", Appraisal(accepted=True), "answered", None),
        (Outcome(status="solved", reason="as 0.1.0 said"), "42", Appraisal(), "answered", None),
    ],
)
def test_the_first_rule_that_applies_wins(
    reached: Outcome | None, answer: str | None, appraisal: Appraisal, status: str, by: str | None
) -> None:
    outcome = decide(reached, answer, appraisal)
    assert (outcome["status"], outcome.get("verified_by")) == (status, by)
    assert outcome.get("limit") == (reached.get("limit") if reached else None)


@pytest.mark.parametrize(
    ("reached", "answer", "appraisal", "reason"),
    [
        (LIMIT, "42", RIGHT, f"{LIMIT['reason']}; reward 1"),
        (LIMIT, "42", WRONG, f"{LIMIT['reason']}; reward 0"),
        (DONE, "42", RIGHT, "it answers; reward 1"),
        (JUDGED, "42", Appraisal("judge", True, "score 0.9"), "accepted"),
        (DONE, "I do not know.", Appraisal(), f"it answers; {DECLINED}"),
        (FAULT, None, WRONG, "no route"),
    ],
)
def test_the_reason_adds_what_is_known_of_the_answer(
    reached: Outcome, answer: str | None, appraisal: Appraisal, reason: str
) -> None:
    assert decide(reached, answer, appraisal)["reason"] == reason


@pytest.mark.parametrize(
    ("answer", "appraisal", "answered"),
    [
        ("I do not know.", Appraisal(), False),
        ("42", Appraisal(answered=False), False),
        ("42", Appraisal(), None),
        ("I do not know.", RIGHT, None),
    ],
)
def test_an_answer_that_declines_is_data(answer: str, appraisal: Appraisal, answered: bool | None) -> None:
    assert decide(DONE, answer, appraisal).get("answered") is answered


@pytest.mark.parametrize(("solved", "score", "accepted"), [(True, 0.7, True), (True, 0.6, False), (False, 1.0, False)])
def test_a_judge_accepts_from_its_least_score_on(solved: bool, score: float, accepted: bool) -> None:
    assert accepts(solved, score, 0.7) is accepted
    assert not accepts(solved, 0.0)
