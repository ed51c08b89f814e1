"""Which stage of `graphs.auto` comes next: the cheapest that may still pay, or none."""

from collections.abc import Mapping
from typing import NamedTuple

from reflective_agents.graphs._auto.state import Stage
from reflective_agents.state.settings.auto import AutoContext


class Progress(NamedTuple):
    """What a run has found and what it may still spend; all that a decision rests on.

    Attributes:
        calls: Calls that may still be sent.
        search_calls: The same for calls of the tree search, whose prompts are longer.
        rollout: Calls that one rollout of the tree search takes.
        search_cost: How many calls one of the tree search is worth: more than one where tokens are what is limited.
        samples: Whole answers that were sampled.
        certainty: How safe their vote is, 0..1.
        checked: Whether something other than a model says what an answer is worth.
        may_look_up: Whether there is something to look things up with that was not used yet.
        checks_sources: Whether an answer that was looked up is checked against its sources.
        searched: Whether the tree search has begun: its judge then decides, and no vote.
        search_over: Whether nothing is left to search for, or the search has begun and the calls do not suffice.
        fruitless: Rollouts since the last that has found a better answer.
        promise: The score of the best trajectory of a search that is over without an answer; 0 where there is none.
        trials: Reflections so far.
        may_try: Whether another trial is allowed, and something has failed to reflect on.
        rungs_left: How many stronger models there are. What is known of samples is known of the present model's.
    """

    calls: int
    search_calls: int
    rollout: int
    search_cost: float = 1.0
    samples: int = 0
    certainty: float = 0.0
    checked: bool = False
    may_look_up: bool = False
    checks_sources: bool = False
    searched: bool = False
    search_over: bool = False
    fruitless: int = 0
    promise: float = 0.0
    trials: int = 0
    may_try: bool = False
    rungs_left: int = 0

    @property
    def votes_decide(self) -> bool:
        """Whether a safe vote of the samples ends the run: nothing else can tell what is right."""
        return not (self.checked or self.searched or self.may_look_up)


class Option(NamedTuple):
    """A stage that could come next: the calls that it takes, and the chance that it finds a better answer."""

    stage: Stage
    calls: float
    chance: float

    @property
    def gain(self) -> float:
        """What each of its calls is expected to gain."""
        return self.chance / self.calls


class Choice(NamedTuple):
    """What comes next, and why; no stage if the run is over."""

    stage: Stage | None
    why: str


LOOKING_UP = 3
"""Calls of a draft, a revision, and one to spare."""
CHECKING = 1
"""Calls of the check of an answer against its sources."""


def options(at: Progress) -> list[Option]:
    """List the stages that are possible, each with its cost and its chance.

    The chance is Laplace's rule of succession, 1 / (failures + 2): where a stage has failed k times in this run, it
    succeeds next time with that chance. Where only votes tell what is right, another sample changes the answer with
    the chance that the vote is not safe, and the more seldom, the more samples there are.
    """
    possible: list[Option] = []
    if at.checked or not at.searched:
        doubt = 1 if at.checked or not at.samples else 2 * (1 - at.certainty)
        possible.append(Option("sample", 1, doubt / (at.samples + 2)))
    if at.may_look_up:
        possible.append(Option("look_up", LOOKING_UP + CHECKING * at.checks_sources, 1 / 2))
    if not at.search_over and not at.rungs_left:
        possible.append(Option("search", at.rollout, 1 / (at.fruitless + 2)))
    if at.promise:
        possible.append(Option("conclude", 1, at.promise))
    if at.may_try:
        possible.append(Option("trial", 2, 1 / (at.trials + 2)))
    return possible


def choose(at: Progress, context: AutoContext) -> Choice:
    """Choose the next stage: the cheapest that has not had its turn, if its calls are worth their price.

    Args:
        at: What the run has found and may still spend.
        context: The settings: how many samples come first, and what a call costs.
    """
    if at.calls < 1:
        return Choice(None, "no call is left")
    if at.samples and at.votes_decide and at.certainty >= context.confidence:
        return Choice(None, f"the vote is safe: {at.certainty:.2f} after {at.samples} samples")
    affordable: list[Option] = []
    for option in options(at):
        calls = at.search_calls if option.stage == "search" else at.calls
        if option.calls <= calls:
            affordable.append(option)
    worth: dict[Stage, Option] = {option.stage: option for option in affordable if option.gain >= context.call_cost}
    may_climb = at.rungs_left > 0 and (at.checked or at.certainty < context.confidence)
    if may_climb and at.samples >= context.samples and "look_up" not in worth:
        doubt = "nothing accepts a sample" if at.checked else f"the vote is not safe: {at.certainty:.2f}"
        return Choice("climb", f"{doubt} after {at.samples} samples, and there is a stronger model")
    if may_climb and not worth:
        return Choice("climb", "another call of this model is not worth it, and there is a stronger one")
    if not worth:
        most = max((option.gain for option in affordable), default=0.0)
        return Choice(None, f"another call is expected to gain {most:.3f} at most, which is less than it costs")
    return _up_the_ladder(at, worth, context.samples)


def calls_to_spare(at: Progress) -> float:
    """Return how many calls the first samples may take, so that a rollout still fits; all, where none does."""
    if at.search_over or at.rungs_left or at.rollout > at.search_calls:
        return at.calls
    return (at.search_calls - at.rollout) * at.search_cost


def _up_the_ladder(at: Progress, worth: Mapping[Stage, Option], few: int) -> Choice:
    """Choose the cheapest stage that has not had its turn; what can be looked up is, before anybody votes."""
    if "conclude" in worth:
        return Choice("conclude", f"the search is over, and its best trajectory has a score of {at.promise:.2f}")
    if "look_up" in worth:
        return Choice("look_up", "there is something to look things up with")
    if "sample" in worth and at.samples < few and calls_to_spare(at) >= 1:
        return Choice("sample", f"sample {at.samples + 1} of the first {few}, which are cheap")
    if "search" in worth:
        left = f"a rollout takes {at.rollout} of {at.search_calls} calls"
        return Choice("search", f"{left}; rollouts without a better answer: {at.fruitless}")
    if "trial" in worth:
        return Choice("trial", f"nothing else is left but to reflect on what has failed; reflections: {at.trials}")
    return Choice("sample", f"sample {at.samples + 1}: its chance is {worth['sample'].chance:.3f}")
