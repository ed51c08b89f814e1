"""Recorded answers by what they answer: the fake model of a replay, and the world that serves what was seen."""

import re
from collections import defaultdict, deque
from collections.abc import Hashable
from typing import Any, Generic, NamedTuple, TypeVar

from reflective_agents.environments.actions import parse_action
from reflective_agents.environments.base import Environment, State, Task, Transition
from reflective_agents.prompts import react as prompts
from reflective_agents.testing.script import Reply, Request

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_LESSONS = prompts.LESSONS.format(lessons="")
_FIRST_STEP = "\nThought 1:"
_STEPS = re.compile(
    r"^Thought (\d+): (.*?)\nAction \1: (.*?)\nObservation \1: (.*?)(?=\nThought \d+:)", re.MULTILINE | re.DOTALL
)
_PARTS = re.compile(r"<(thought|action|observation)>\n(.*?)\n</\1>", re.DOTALL)
_SEEN = ("Search", "Lookup")
"""Actions whose observations are in the log; those of others are our environment's own."""
_TAG = r"<{tag}>\n(.*?)\n</{tag}>"


class Key(NamedTuple):
    """What a model is asked: in which role, for which task, told what, after which steps.

    `request` is the task as the prompt shows it; `lessons` are the reflections as the prompt lists them; `steps` are
    what was thought, done and seen so far, as `step` gives them; `verdict`: whether a reflection is told one.
    """

    role: str
    request: str
    lessons: str = ""
    steps: tuple[str, ...] = ()
    verdict: bool = False


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
        """Answer a request with what the log answers."""
        return self.take(key_of(request))


def key_of(request: Request) -> Key:
    """Return what a request of the strategies asks for."""
    system, human = (
        str(request.messages[0].text),
        request.last.replace("<\\", "<"),
    )  # as before quoting
    if "<trajectory>" in human:
        (attempt,), verdict = _tagged("trajectory", human), "".join(_tagged("verdict", human)).strip()
        return Key("reflect", _tagged("request", human)[0].strip(), steps=_attempted(attempt), verdict=bool(verdict))
    lessons = system.partition(_LESSONS)[2]
    task, begun, scratchpad = human.partition(_FIRST_STEP)
    steps = [step(*parts) for _, *parts in _STEPS.findall(begun + scratchpad)]
    return Key("act", task.strip(), lessons, tuple(part for taken in steps for part in taken))


def step(thought: str, act: str, observation: str) -> tuple[str, ...]:
    """Return a step as keys hold it: what there is of it, an observation only if the log's is that of the replay."""
    return tuple(part for part in (thought, act, observation if act.startswith(_SEEN) else "") if part)


def _attempted(text: str) -> tuple[str, ...]:
    """Return the steps of an attempt that is quoted part by part."""
    parts: list[str] = []
    act = ""
    for tag, body in _PARTS.findall(text):
        act = body if tag == "action" else act
        parts += [body] if tag != "observation" or act.startswith(_SEEN) else []
    return tuple(parts)


def listed(lessons: list[str]) -> str:
    """Return reflections as a prompt lists them, each on a line."""
    return "\n".join(f"- {' '.join(lesson.split())}" for lesson in lessons)


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

    def start(self, task: Task) -> State:
        """Begin a task, without any action."""
        return {**self._real.start(task), "acts": []}

    def key(self, state: State) -> str:
        """Return nothing: what was seen is not in the state."""
        return ""

    async def step(self, state: State, action: str) -> Transition:
        """Serve what a Search or a Lookup brought; leave everything else, the reward included, to the real one."""
        acts = [*state["acts"], action]
        parsed = parse_action(action)
        if parsed is None or parsed.name not in ("search", "lookup"):
            transition = await self._real.step(state, action)
            return transition._replace(state={**transition.state, "acts": acts})
        observation = self._observations.take(Seen(state["task"]["question"], tuple(acts)))
        return Transition({**state, "acts": acts}, observation)

    def __getattr__(self, name: str) -> Any:
        """Leave everything else to the real one."""
        return getattr(self._real, name)


def replaced(world: Any) -> Any:
    """Return a stand-in for `get_environment` that gives this world."""

    def get_environment(name: str, docstore: str | None = None, *, unsafe_code: bool = False) -> Environment:
        kept: Environment = world
        return kept

    return get_environment
