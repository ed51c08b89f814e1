"""The task of an environment as a world that is only thought of: its states are texts that the model predicts. Where a
path ends, its actions are carried out in the environment, which has the last word (RAP, section 4.1)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from environments.base import Environment
from nodes.candidates import Candidate
from nodes.memo import memo_of
from nodes.step import Step
from nodes.transcript import quoted
from nodes.world_model import Foreseen, WorldModel, digest, kept
from nodes.worlds import TaskWorld
from prompts import rap as prompts
from prompts.react import EXAMPLES
from state.searching import RapContext
from state.tree import TreeNode

_DONE = re.compile(r"^\W*done\W*:\W*(yes|no)\b.*$", re.IGNORECASE | re.MULTILINE)
_IMPOSSIBLE = re.compile(r"\W*impossible\b", re.IGNORECASE)
_CLAUSES = re.compile(r"[\n,;]|\.(?:\s|$)|\band\b")


class PlannedTask(WorldModel):
    """A task that is solved in the head first.

    Args:
        step: The node that asks.
        state: The state of the run.
        environment: Where the task comes from.
    """

    def __init__(self, step: Step[RapContext], state: Mapping[str, Any], environment: Environment) -> None:
        super().__init__(step, state)
        self.environment, self.start = environment, state["world"]
        self.task = TaskWorld(step, environment, self.start, self.run_id)
        self.memo = memo_of(self.run_id)
        self.whole = environment.name == "programming"

    def propose(self, path: Sequence[TreeNode], width: int) -> list[BaseMessage]:
        """The state, and then the request for the next action; what led to the state does not matter."""
        one = prompts.ACT_WHOLE if self.whole else prompts.ACT
        return self._prompt(path, one if width == 1 else prompts.ACT_SEVERAL.format(width=width))

    async def foresee(self, path: Sequence[TreeNode], action: str) -> list[BaseMessage]:
        """The state, and then the action."""
        return self._prompt(path, prompts.PREDICT.format(action=quoted("action", action)))

    def conclude(self, path: Sequence[TreeNode]) -> list[BaseMessage]:
        """The task as it stands before anything is done, and then the request for the answer."""
        return self._prompt(path[:1], prompts.SOLVE)

    def situation(self, path: Sequence[TreeNode]) -> str:
        """The state."""
        return quoted("state", self._shown(path[-1]))

    def _prompt(self, path: Sequence[TreeNode], todo: str) -> list[BaseMessage]:
        name = self.environment.name
        return prompts.ACTIONS.format_messages(
            actions=self.environment.actions,
            rules=prompts.RULES.get(name, ""),
            examples=EXAMPLES.get(name, "") if self.step.context.examples else "",
            advice=self.advice,
            state=self.situation(path),
            todo=todo,
        )

    def _shown(self, node: TreeNode) -> str:
        return self.environment.public(self.start) if node["kind"] == "root" else node.get("observation", "")

    def read(self, text: str, action: str) -> Foreseen:
        """The state without the line that says whether the task has ended."""
        if _IMPOSSIBLE.match(text):
            return Foreseen(text.strip(), "", ended=True, possible=False)
        said = [found[1].casefold() == "yes" for found in _DONE.finditer(text)]
        state = _DONE.sub("", text).strip() or text.strip()
        ended = bool(said and said[-1])
        return Foreseen(state, f"{_facts(state)} {ended}", ended)

    def same(self, candidate: Candidate) -> str:
        """As the environment says."""
        return self.environment.same(candidate.action)

    def form(self, answer: str) -> str:
        """The answer but for blanks and case."""
        return " ".join(answer.casefold().split())

    def place(self, path: Sequence[TreeNode]) -> str:
        """The facts of the state, in whatever order."""
        return digest(_facts(self._shown(path[-1])))

    def turns_back(self, path: Sequence[TreeNode]) -> bool:
        """Whether it has come to a state that it was in before."""
        *earlier, now = (_facts(self._shown(node)) for node in path)
        return now in earlier

    async def close(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Carry the actions of the path out, up to one that is refused or ends the task: a path that does not end it is
        worth 0."""
        actions = [*(node["action"] for node in path if node.get("action")), candidate.action]
        state, done = self.start, None
        for taken in range(1, len(actions) + 1):
            done = await self._step(state, actions[:taken])
            state = done.state
            if done.done or not done.valid:
                break
        assert done is not None
        candidate.observation, candidate.state = done.observation, kept(state)
        candidate.answers = bool(self.environment.answer(state))
        candidate.reward = done.reward if done.done and done.valid else 0.0
        return None

    async def _step(self, state: dict[str, Any], actions: Sequence[str]) -> Any:
        async def make() -> Any:
            done = await self.environment.step(state, actions[-1])
            self.step.meter.count(tool_calls=1, tool_errors=int(not done.valid))
            return done

        done, _ = await self.memo.once(("carried out", *actions), make)
        return done

    def answer(self, node: TreeNode) -> str:
        """The answer that the environment's state holds."""
        return self.task.answer(node)

    async def reward(self, node: TreeNode | None, text: str) -> Candidate | None:
        """The answer in a text, given to the environment at the beginning of the task."""
        return await self.task.reward(None, text)


def _facts(state: str) -> str:
    """What a state says, in whatever order it says it."""
    return "\n".join(sorted(filter(None, (" ".join(clause.split()) for clause in _CLAUSES.split(state.casefold())))))
