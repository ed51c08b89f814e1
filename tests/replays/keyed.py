"""Recorded answers by what they answer: the fake model of a replay, and the world that serves what was seen."""

import re
from collections import defaultdict, deque
from collections.abc import Hashable
from typing import Any, Generic, NamedTuple, TypeVar

from environments.actions import parse_action
from environments.base import Environment, State, Task, Transition
from prompts import react as prompts
from testing.script import Reply, Request

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_LESSONS = prompts.LESSONS.format(lessons="")
_FIRST_STEP = "\nThought 1:"
_ACTS = re.compile(r"^Action (\d+): (.*?)\nObservation \1: ", re.MULTILINE | re.DOTALL)
_TAG = r"<{tag}>\n(.*?)\n</{tag}>"


class Key(NamedTuple):
    """What a model is asked: in which role, for which task, told what, after which actions.

    `request` is the task as the prompt shows it; `lessons` are the reflections as the prompt lists them.
    """

    role: str
    request: str
    lessons: str = ""
    acts: tuple[str, ...] = ()


class Recorded(Generic[K, V]):
    """Recorded answers. Those of one key are served in order; what is not there is an error that is remembered."""

    def __init__(self) -> None:
        self._answers: defaultdict[K, deque[V]] = defaultdict(deque)
        self.misses: list[K] = []

    def add(self, key: K, answer: V) -> None:
        """Record an answer."""
        self._answers[key].append(answer)

    def take(self, key: K) -> V:
        """Serve the next answer.

        Raises:
            LookupError: if there is none. A graph turns it into an outcome, so whoever replays looks at `misses`.
        """
        if not self._answers[key]:
            self.misses.append(key)
            raise LookupError(f"nothing is recorded for {key}")
        return self._answers[key].popleft()

    @property
    def unserved(self) -> list[K]:
        """Keys whose answers were not all asked for."""
        return [key for key, answers in self._answers.items() if answers]


class Model(Recorded[Key, Reply]):
    """A script for the fake chat models that answers what the log answers."""

    def __call__(self, request: Request) -> Reply:
        return self.take(asked(request))


def asked(request: Request) -> Key:
    """Return what a request of the strategies asks for."""
    system, human = str(request.messages[0].text), request.last
    if "<trajectory>" in human:
        done = _tagged("action", human) or _tagged("thought", human)
        return Key("reflect", _tagged("request", human)[0].strip(), acts=tuple(done))
    lessons = system.partition(_LESSONS)[2]
    task, begun, scratchpad = human.partition(_FIRST_STEP)
    acts = tuple(act for _, act in _ACTS.findall(begun + scratchpad))
    return Key("act", task.strip(), lessons, acts)


def listed(lessons: list[str]) -> str:
    """Return reflections as a prompt lists them."""
    return "\n".join(f"- {lesson}" for lesson in lessons)


def _tagged(tag: str, text: str) -> list[str]:
    return re.findall(_TAG.format(tag=tag), text, re.DOTALL)


class Seen(NamedTuple):
    """After which actions something was seen, the last of them included."""

    question: str
    acts: tuple[str, ...]


class RecordedWorld:
    """An environment whose articles are gone: what Search and Lookup brought is recorded; all else is the real one."""

    def __init__(self, real: Environment, observations: Recorded[Seen, str]) -> None:
        """Choose the real environment, and what was seen."""
        self._real, self._observations = real, observations
        self.name, self.actions = real.name, real.actions

    def start(self, task: Task) -> State:
        """Begin a task, without any action."""
        return {**self._real.start(task), "acts": []}

    def public(self, state: State) -> str:
        """Return what the real environment shows."""
        return self._real.public(state)

    def answer(self, state: State) -> str:
        """Return the answer that the real environment holds."""
        return self._real.answer(state)

    def key(self, state: State) -> str:
        """Return nothing: what was seen is not in the state."""
        return ""

    async def step(self, state: State, action: str) -> Transition:
        """Serve what a Search or a Lookup brought; leave everything else, the reward included, to the real one."""
        acts = [*state["acts"], action]
        parsed = parse_action(action)
        if parsed is None or parsed.name not in ("search", "lookup"):
            told = await self._real.step(state, action)
            return told._replace(state={**told.state, "acts": acts})
        observation = self._observations.take(Seen(state["task"]["question"], tuple(acts)))
        return Transition({**state, "acts": acts}, observation)

    def same(self, action: str) -> str:
        """Return the real environment's canonical form."""
        return self._real.same(action)

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Measure as the real environment does."""
        return self._real.score(task, answer)


def replaced(world: Any) -> Any:
    """Return a stand-in for `get_environment` that gives this world."""

    def get_environment(name: str, docstore: str | None = None, *, unsafe_code: bool = False) -> Environment:
        kept: Environment = world
        return kept

    return get_environment
