"""How a run ends: the facts that its nodes leave, and the one rule that makes a status of them (docs/outcomes.md)."""

from typing import Literal, NamedTuple, NotRequired

from typing_extensions import TypedDict

from reflective_agents.state.errors import LimitReached, ReflectError
from reflective_agents.state.limits import Limit, sentence
from reflective_agents.text.declining import declines
from reflective_agents.text.joined import joined

Status = Literal["solved", "answered", "limit_reached", "exhausted", "failed"]
VerifiedBy = Literal["environment", "tests", "verifiers", "checks", "sources", "judge", "person"]
"""What has verified an answer (docs/outcomes.md)."""


class Rung(TypedDict):
    """A model of a ladder, and what it has cost: calls, tokens, and dollars where the prices are known."""

    model: str
    model_calls: int
    total_tokens: int
    cost: float


class Outcome(TypedDict):
    """How a run ended. `failed` means that there is no answer; otherwise the best answer found is returned.

    `verified_by` is there if the answer is `solved`: who has verified it. `limit` is there if a limit ended the run.
    `answered` is there, and false, if the answer only declares that there is none. `rungs` are there in a run with a
    ladder of models, those that were tried, and `model` says which of them has answered.
    `reason` says the same in words, for people. Until the run is over, `status` is what the node that ends it makes of
    it; `decide` has the last word.
    """

    status: Status
    reason: str
    verified_by: NotRequired[VerifiedBy]
    limit: NotRequired[Limit]
    answered: NotRequired[bool]
    rungs: NotRequired[list[Rung]]
    model: NotRequired[str]


class Appraisal(NamedTuple):
    """What is known of the answer that is returned: who has checked it, whether it is accepted (None if nobody has
    checked it), and that in words.

    What is accepted `by` nobody is a reply that may be anything, such as one in a conversation. `answered` is what a
    form that was filled in says of the answer: whether it gives what was requested; None if no form says so.
    """

    by: VerifiedBy | None = None
    accepted: bool | None = None
    reason: str = ""
    answered: bool | None = None


_BLIND = ("checks", "verifiers")
"""What may accept an answer that only declares that there is none."""
UNCHECKED = Appraisal()
"""Nobody has checked the answer."""
DECLINED = "the answer declares that there is none"


def pluralize(count: int, noun: str) -> str:
    """Return a count with its noun: 1 action, 2,000 actions."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def limited(limit: Limit, detail: str = "") -> Outcome:
    """Return the outcome of a run that a limit has ended."""
    return Outcome(status="limit_reached", reason=sentence(limit, detail), limit=limit)


def stopped(error: ReflectError) -> Outcome:
    """Return the outcome of a run that a limit or a failure has ended."""
    if isinstance(error, LimitReached):
        return limited(error.limit, error.detail)
    return Outcome(status="failed", reason=str(error))


def with_reason(reached: Outcome | None, reason: str) -> Outcome | None:
    """Return what has ended a run with more said in its reason; None where nothing has ended it."""
    if reached is None:
        return None
    return {**reached, "reason": joined([reached["reason"], reason], "; ")}


def accepts(verdict: bool, score: float, least: float = 0.0) -> bool:
    """Tell whether a judge accepts: it says so, and its score (0..1) reaches the least and is not 0."""
    return verdict and score > 0 and score >= least


def decide(reached: Outcome | None, answer: str | None, appraisal: Appraisal = UNCHECKED) -> Outcome:
    """Decide how a run has ended.

    Args:
        reached: What has ended the run, if anything did.
        answer: The answer; None if there is none.
        appraisal: What is known of it.
    """
    reached = reached or Outcome(status="exhausted", reason="nothing was left to do")
    by, accepted, reason, answered = appraisal
    # The node that ended the run has verified the answer.
    if accepted is None and "verified_by" in reached:
        by, accepted = reached["verified_by"], True
    is_open = accepted is None or by in _BLIND  # what a judge, an environment or a person has decided stands
    declined = is_open and answer is not None and (declines(answer) if answered is None else not answered)
    if declined:
        accepted, reason = False, DECLINED
    status = _status(reached, answer, accepted, by)
    is_explained = status in ("failed", reached["status"]) and status not in ("limit_reached", "exhausted")
    if not is_explained:
        reached = {**reached, "reason": joined([reached["reason"], reason], "; ")}
    outcome = Outcome(status=status, reason=reached["reason"])
    if status == "solved" and by:
        outcome["verified_by"] = by
    if "limit" in reached:
        outcome["limit"] = reached["limit"]
    if declined:
        outcome["answered"] = False
    return outcome


def _status(reached: Outcome, answer: str | None, accepted: bool | None, by: VerifiedBy | None) -> Status:
    """Return the first status that applies."""
    if answer is None:
        return "failed"
    if accepted and by:
        return "solved"
    if "limit" in reached:
        return "limit_reached"
    gave_up = reached["status"] not in ("solved", "answered")
    return "exhausted" if gave_up or accepted is False else "answered"
