"""What one verifier finds in an answer."""

from typing import NamedTuple

from reflective_agents.state.verifier_forms import VerifiedRun
from reflective_agents.text.clean import clean

LONGEST = 4_000
"""Characters of feedback that are taken in from one verifier."""


class Case(NamedTuple):
    """What is verified: the answer, without its list of references, to a request, how the run came to it, and the id of
    the run, which is empty where nothing is shared."""

    request: str
    answer: str
    run: VerifiedRun
    run_id: str = ""


class Finding(NamedTuple):
    """A score from 0 to 1, what is wrong with the answer in words for its writer, and whether something that it must
    have is missing, whatever the score."""

    score: float
    feedback: str = ""
    refused: bool = False


class NoVerdict(Exception):
    """A verifier has raised, takes too long, or returns what is no verdict; the text says which."""


def passes(problem: str) -> Finding:
    """Return what a check finds that passes unless there is a problem."""
    return Finding(float(not problem), bounded(problem))


def bounded(feedback: str) -> str:
    """Return feedback that prompts and states can hold."""
    return clean(feedback[:LONGEST]).strip()
