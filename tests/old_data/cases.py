"""The threads that are kept: how each is made, and where it stops."""

from dataclasses import dataclass
from typing import Literal

from tests.old_data.processes import Death

State = Literal["finished", "waiting", "mid-run"]
KNOWN = "Why is reflection useful in AI?"
UNKNOWN = "Who won the chess championship of 1972?"
NEWS = "Anna gives a garden party at the Café today at 17:00."
HUMAN_WORKER = (
    '[{"name": "writer", "instructions": "Write it.", "strategy": "reflection", "settings": {"critic": "human"}}]'
)

SETTINGS: dict[str, list[str]] = {
    "reflection": ["--max-rounds", "2"],
    "reflexion": ["--max-rounds", "2"],
    "lats": ["--n", "2", "--max-expansions", "4"],
    "tree_of_thoughts": ["--n", "2", "--beam", "2", "--max-depth", "3"],
    "rap": ["--n", "2", "--confidence-samples", "2", "--max-depth", "3", "--max-rollouts", "2"],
    "ab_mcts": ["--max-expansions", "5"],
    "best_of_n": ["--n", "2", "--max-depth", "3"],
    "chain_of_thought": ["--samples", "3"],
    "react": ["--max-actions", "3"],
    "trials": ["--max-trials", "2", "--max-actions", "2"],
    "plan": ["--worker-settings", '{"max_actions": 1}'],
    "team": ["--max-rounds", "2"],
    "town": ["--minutes", "60"],
    "memory": ["--user", "ada"],
}


@dataclass(frozen=True)
class Case:
    """A thread: what is asked on it in turn, with which settings, and where the last run stops."""

    thread: str
    strategy: str
    state: State
    questions: tuple[str, ...] = (KNOWN,)
    settings: tuple[str, ...] = ()
    death: Death | None = None
    critique: str | None = None
    """What a person has said of the first draft, before the run waits for the next critique."""
    code: int = 0

    @property
    def commands(self) -> list[list[str]]:
        """The arguments of `reflect`, one list for each command."""
        run = ["run", self.strategy]
        way = ["--thread", self.thread]
        asked = [[*run, question, *way, *self.settings] for question in self.questions]
        told = [[*run, *way, "--resume", "--critique", self.critique]] if self.critique else []
        return asked + told


def finished(strategy: str, thread: str = "", **changes: object) -> Case:
    """A thread whose run has ended."""
    question = NEWS if strategy == "town" else KNOWN
    given = {"questions": (question,), "settings": tuple(SETTINGS[strategy]), **changes}
    return Case(thread or f"finished-{strategy}", strategy, "finished", **given)  # type: ignore[arg-type]


def killed(strategy: str, number: int, of: str = "checkpoint", *more: str, thread: str = "") -> Case:
    """A thread whose run was killed."""
    death, settings = Death(number, of), (*SETTINGS[strategy], *more)  # type: ignore[arg-type]
    question = {"town": NEWS, "plan": KNOWN}.get(strategy, UNKNOWN)
    return Case(thread or f"killed-{strategy}", strategy, "mid-run", (question,), settings, death)


def waiting(strategy: str, thread: str, *settings: str, critique: str | None = None, asked: str = KNOWN) -> Case:
    """A thread whose run waits for a person's critique."""
    return Case(thread, strategy, "waiting", (asked,), settings, critique=critique, code=3)


HUMAN = ("--critic", "human", "--max-rounds", "3")
SQLITE = [
    *(finished(strategy) for strategy in SETTINGS),
    finished("lats", "limit-lats", questions=(UNKNOWN,)),
    finished("lats", "failed-lats", settings=("--max-total-tokens", "1"), code=1),
    finished("reflexion", "two-turns", questions=(KNOWN, "And what does it cost?")),
    waiting("reflection", "waiting-first-draft", *HUMAN),
    waiting("reflection", "waiting-second-draft", *HUMAN, critique="too short"),
    waiting("team", "waiting-member", "--roles", HUMAN_WORKER, "--max-rounds", "1"),
    killed("reflection", 4),
    killed("reflexion", 4),
    killed("lats", 5),
    killed("lats", 5, "checkpoint", "--parallel", "3", "--max-expansions", "20", thread="killed-lats-parallel"),
    killed("tree_of_thoughts", 4),
    killed("rap", 5),
    killed("ab_mcts", 5),
    killed("best_of_n", 4),
    killed("chain_of_thought", 4),
    killed("react", 4),
    killed("trials", 4),
    killed("trials", 3, "inner checkpoint", thread="killed-trials-inside"),
    killed("plan", 4),
    killed("plan", 1, "report", thread="killed-plan-at-work"),
    killed("team", 5, "inner checkpoint"),
    killed("town", 6),
    killed("memory", 5),
]
POSTGRES = [
    finished("lats"),
    finished("memory"),
    waiting("reflection", "waiting-first-draft", *HUMAN),
    killed("reflexion", 4),
    killed("trials", 3, "inner checkpoint"),
]
