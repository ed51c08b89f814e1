"""What a user asks of `reflect run`, and what is known of the run that comes of it."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field

from langgraph.types import Command

from reflective_agents.cli.checks import Choice
from reflective_agents.cli.output import program
from reflective_agents.cli.progress import Progress
from reflective_agents.state.errors import EmptyQuestion, Misuse
from reflective_agents.state.json_types import JsonObject
from reflective_agents.tree_search.steering import Values

Order = Callable[[Values], Command[str]]


@dataclass(frozen=True)
class Request:
    """What the user asks for; `settings` holds only those that the user set."""

    strategy: str
    question: str | None = None
    settings: JsonObject = field(default_factory=dict)
    thread: str | None = None
    resume: bool = False
    critique: str | None = None
    as_json: bool = False
    order: Order | None = None
    """What is changed in a tree search before it is resumed, given the values of the thread."""
    step: int | None = None
    """After how many steps of the log it is changed; None for the last."""

    def check(self) -> None:
        """Refuse what contradicts itself.

        Raises:
            Misuse: with what to do instead.
        """
        if self.thread is not None and not self.thread.strip():
            raise Misuse("--thread: the name is empty")
        if self.resume and self.question is not None:
            raise Misuse("--resume goes on with the question of the thread: leave out the question, or --resume")
        if self.critique is not None and not self.resume:
            raise Misuse("--critique answers a run that waits for one: add --resume")
        if not self.resume and not (self.question or "").strip():
            command = "ask" if self.strategy == "auto" else f"run {self.strategy}"
            raise EmptyQuestion(f'the question is empty: reflect {command} "your question"')

    def command(self, thread: str, *options: str) -> str:
        """Return the command that continues a thread of this strategy."""
        output = ["--json"] if self.as_json else []
        user = ["--user", shlex.quote(str(self.settings["user"]))] if "user" in self.settings else []
        return " ".join([program(), "run", self.strategy, "--thread", shlex.quote(thread), *user, *options, *output])


@dataclass
class Run:
    """A run as far as it is known, also when it breaks off.

    Attributes:
        thread: Its thread, once that is chosen.
        resumable: Whether `--resume` would go on with it if it broke off now.
        choice: Its model and search.
        progress: Its progress events so far.
        result: Answer, outcome, usage and artefact, as plain data.
        asks: What a person is asked while the run waits for them.
    """

    thread: str = ""
    resumable: bool = False
    choice: Choice | None = None
    progress: Progress | None = None
    result: JsonObject = field(default_factory=dict)
    asks: JsonObject | None = None
