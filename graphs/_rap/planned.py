"""The task of an environment as a world that is only thought of: its states are texts that the model predicts. Where a
path ends, its actions are carried out in the environment, which has the last word (RAP, section 4.1)."""

import re
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from reflective_agents.environments.base import Environment, State, Transition
from reflective_agents.graphs._rap.world_model import Foreseen, WorldModel, actions_on, digest
from reflective_agents.nodes.acting.actions import take
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.memo import memo_of
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import rap as prompts
from reflective_agents.state.settings.rap import RapContext
from reflective_agents.state.tree import SearchState, TreeNode
from reflective_agents.text.labels import bare, label_of
from reflective_agents.text.normal import folded
from reflective_agents.tree_search.candidates import Candidate
from reflective_agents.tree_search.lessons import hints_text
from reflective_agents.tree_search.worlds import TaskWorld, without_task

# Models answer in the language of the task.
_YES = ("yes", "是", "ja", "ใช่", "oui", "sí", "sì", "да")
_IMPOSSIBLE = re.compile(r"\W*impossible\b", re.IGNORECASE)
_CLAUSES = re.compile(r"[\n,;]|\.(?:\s|$)|\band\b")


class PlannedTask(WorldModel):
    """A task that is solved in the head first.

    Args:
        step: The node that asks.
        state: The state of the run.
        environment: Where the task comes from.
    """

    def __init__(self, step: Step[RapContext], state: SearchState, environment: Environment) -> None:
        super().__init__(step, state)
        self.environment, self.start = environment, state["world"]
        self.real = TaskWorld(step, environment, self.start, self.run_id)
        self.task = self.real.task
        self.memo = memo_of(self.run_id)
        self.whole = environment.multiline

    def propose(self, path: Sequence[TreeNode], width: int) -> list[BaseMessage]:
        """Show the state, then ask for the next action; how the state was reached does not matter."""
        single = prompts.ACT_WHOLE if self.whole else prompts.ACT
        return self._prompt(path, single if width == 1 else prompts.ACT_SEVERAL.format(width=width))

    async def foresee(self, path: Sequence[TreeNode], action: str) -> list[BaseMessage]:
        """Show the state, then the action."""
        return self._prompt(path, prompts.PREDICT.format(action=quoted("action", action)))

    def conclude(self, path: Sequence[TreeNode]) -> list[BaseMessage]:
        """Show the task as it stands before any action, then ask for the answer."""
        return self._prompt(path[:1], prompts.SOLVE)

    def situation(self, path: Sequence[TreeNode]) -> str:
        """Return the state as quoted text."""
        return quoted("state", self._shown(path[-1]))

    def _prompt(self, path: Sequence[TreeNode], todo: str) -> list[BaseMessage]:
        return prompts.ACTIONS.format_messages(
            task=self.task,
            advice=self.advice + hints_text(path),
            state=self.situation(path),
            todo=todo,
        )

    def _shown(self, node: TreeNode) -> str:
        return self.environment.public(self.start) if node["kind"] == "root" else node.get("observation", "")

    def read(self, text: str, action: str) -> Foreseen:
        """Read the state, without the line that says whether the task has ended."""
        if _IMPOSSIBLE.match(text):
            return Foreseen(text.strip(), "", ended=True, possible=False)
        state, verdict = list[str](), ""
        for line in text.strip().splitlines():
            if label := label_of(line, ("done",)):
                verdict = line[label[1] :]
            else:
                state.append(line)
        ended = bare(verdict).casefold().startswith(_YES)
        shown = "\n".join(state).strip() or text.strip()
        return Foreseen(shown, f"{_facts(shown)} {ended}", ended)

    def canonical(self, candidate: Candidate) -> str:
        """Return the normal form of an action, as the environment defines it."""
        return self.environment.canonical(candidate.action)

    def form(self, answer: str) -> str:
        """Normalize an answer: blanks and case do not matter."""
        return folded(answer)

    def state_key(self, path: Sequence[TreeNode]) -> str:
        """Identify the state by its facts, in any order."""
        return digest(_facts(self._shown(path[-1])))

    def turns_back(self, path: Sequence[TreeNode]) -> bool:
        """Tell whether the path has returned to an earlier state."""
        *earlier, now = (_facts(self._shown(node)) for node in path)
        return now in earlier

    async def close(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Carry the actions of the path out, up to one that is refused or ends the task: a path that does not end it is
        rewarded with 0."""
        actions = [*actions_on(path), candidate.action]
        done = await self._step(self.start, actions[:1])
        for taken in range(2, len(actions) + 1):
            if done.done or not done.valid:
                break
            done = await self._step(done.state, actions[:taken])
        candidate.observation = done.observation
        candidate.state = without_task(done.state)
        candidate.answers = bool(self.environment.answer(done.state))
        candidate.reward = done.reward if done.done and done.valid else 0.0
        return None

    async def _step(self, state: State, actions: Sequence[str]) -> Transition:
        async def make() -> Transition:
            done = await take(self.environment, state, actions[-1])
            self.step.meter.count(tool_calls=1, tool_errors=int(not done.valid))
            return done

        # Paths share their beginnings, which are carried out once.
        done, _ = await self.memo.once(("carried out", *actions), make)
        return done

    def answer(self, node: TreeNode) -> str:
        """Return the answer that the environment's state holds."""
        return self.real.answer(node)

    async def reward(self, path: Sequence[TreeNode], text: str) -> Candidate | None:
        """Reward the answer in a text, as if it were given to the environment at the beginning of the task."""
        return await self.real.reward((), text)


def _facts(state: str) -> str:
    """Return the facts that a state lists, in sorted order."""
    clauses = [" ".join(clause.split()) for clause in _CLAUSES.split(state.casefold())]
    return "\n".join(sorted(filter(None, clauses)))
