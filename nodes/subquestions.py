"""A question as a world: its states are the sub-questions that were asked and answered, its actions ask one more
(RAP, section 4.2)."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from langchain_core.messages import BaseMessage

from environments.base import Environment
from environments.registry import final_action
from nodes.answers import normal_form
from nodes.candidates import Candidate
from nodes.research import find
from nodes.step import Step
from nodes.transcript import quoted
from nodes.world_model import Foreseen, WorldModel, digest, kept
from prompts import rap as prompts
from state.searching import RapContext
from state.tree import TreeNode

_ANSWER = re.compile(r"\b(?:final\s+)?answer[*_\s]*:[*_]*[^\S\n]*", re.IGNORECASE)
_ON_ITS_LINE = re.compile(rf"^\W*{_ANSWER.pattern}", re.IGNORECASE | re.MULTILINE)
_ASKED = re.compile(r"^(?:sub-?)?question\s*[\d.]*\s*:\s*", re.IGNORECASE)
_LAST = re.compile(r"\W*now we can answer\b", re.IGNORECASE)
_ARTICLES = frozenset({"a", "an", "the"})
_EDGES = ".,;:!?\"'()[]*_`"
LONGEST = 400
"""Characters up to which the question is repeated in the last sub-question, and searched for."""


class SubQuestions(WorldModel):
    """An open question, answered with what is found for each of its sub-questions; or one of an environment, which is
    given the answer at the end of a path.

    Args:
        step: The node that asks.
        state: The state of the run.
        environment: Where the question comes from; None for an open one.
    """

    def __init__(self, step: Step[RapContext], state: Mapping[str, Any], environment: Environment | None) -> None:
        super().__init__(step, state)
        self.environment, self.world = environment, state["world"]
        self.request, self.messages = str(state["request"]), list(state["messages"])
        question = self.world["task"]["question"] if environment else state["messages"][-1].text
        self.question = " ".join(question.split())
        self.last = prompts.LAST.format(question=self.question if len(self.question) <= LONGEST else "as it was put")

    def propose(self, path: Sequence[TreeNode], width: int) -> list[BaseMessage]:
        """The question, what is known, and then the request for the next sub-question."""
        words = prompts.ASK if width == 1 else prompts.ASK_SEVERAL
        return self._prompt(path, words.format(number=len(path), width=width))

    async def foresee(self, path: Sequence[TreeNode], action: str) -> list[BaseMessage]:
        """The question, what is known, what the search finds, and then the sub-question."""
        if not self._ends(action):
            asked = quoted("subquestion", action)
            return self._prompt(path, prompts.ANSWER.format(found=await self._found(action), question=asked))
        found = await self._found(self.question)
        asked = quoted("subquestion", self.question)
        return self._prompt(path, prompts.ANSWER_ALL.format(found=found, question=asked, form=self._answer_form(found)))

    async def _found(self, query: str) -> str:
        if self.environment is not None:
            return ""
        results, problems = await find(self.step, self.run_id, [query[:LONGEST]])
        told = [json.dumps(results, ensure_ascii=False)] if results else []
        return "".join(f"{quoted('observation', text)}\n" for text in [*told, *problems])

    def _answer_form(self, found: str) -> str:
        if self.environment is not None:
            return prompts.NUMBER_FORM
        return prompts.CITED_FORM if found else prompts.WHOLE_FORM

    def conclude(self, path: Sequence[TreeNode]) -> list[BaseMessage]:
        """The question, what is known, and then the request for the answer."""
        asked = quoted("subquestion", self.question)
        return self._prompt(path, prompts.CONCLUDE.format(found="", question=asked, form=self._answer_form("")))

    def situation(self, path: Sequence[TreeNode]) -> str:
        """The question and what is known."""
        return f"{self.request}\n{_steps(path)}"

    def _prompt(self, path: Sequence[TreeNode], todo: str) -> list[BaseMessage]:
        examples = prompts.QUESTIONS_EXAMPLE if self.step.context.examples else ""
        return prompts.QUESTIONS.format_messages(
            examples=examples,
            conversation=self.messages[:-1] if self.environment else self.messages,
            request=f"{self.request}\n" if self.environment else "",
            advice=self.advice,
            steps=_steps(path),
            todo=todo,
        )

    def read(self, text: str, action: str) -> Foreseen:
        """The answer: of a sub-question what follows the last label, of the whole question what follows the first.
        Labels at the beginning of a line come before others."""
        labels = list(_ON_ITS_LINE.finditer(text)) or list(_ANSWER.finditer(text))
        ended = self._ends(action)
        label = labels[0 if ended else -1].end() if labels else 0
        answer = text[label:].strip() or text.strip()
        return Foreseen(answer, self.form(answer), ended)

    def _ends(self, action: str) -> bool:
        return bool(_LAST.match(action))

    def clean(self, action: str) -> str:
        """A sub-question without its label; the last one always in the same words."""
        asked = _ASKED.sub("", action.strip())
        return self.last if self._ends(asked) else asked

    def same(self, candidate: Candidate) -> str:
        """Its words."""
        return _words(candidate.action)

    def repeats(self, candidate: Candidate, path: Sequence[TreeNode]) -> bool:
        """Whether it was asked before."""
        return self.same(candidate) in {_words(node.get("action", "")) for node in path}

    def form(self, answer: str) -> str:
        """Its number, or its words."""
        name = self.step.context.environment_name
        return normal_form(answer, name) if name else _words(answer)

    def place(self, path: Sequence[TreeNode]) -> str:
        """What was asked and answered, in whatever order."""
        known = (f"{_words(node.get('action', ''))} = {self.form(node.get('observation', ''))}" for node in path[1:])
        return digest("\n".join(sorted(known)))

    async def close(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Take the answer to the whole question; in an environment by its rules."""
        if not self._ends(candidate.action):
            return "The path has ended without an answer."
        candidate.answers = True
        action = final_action(self.step.context.environment_name, candidate.observation) if self.environment else None
        if self.environment is None or action is None:
            return None
        done = await self.environment.step(self.world, action)
        self.step.meter.count(tool_calls=1, tool_errors=int(not done.valid))
        candidate.answers = bool(self.environment.answer(done.state))
        candidate.reward, candidate.state = done.reward, kept(done.state)
        return None if done.valid else done.observation

    def answer(self, node: TreeNode) -> str:
        """What the path ends with."""
        if self.environment is not None and "state" in node:
            return self.environment.answer({**node["state"], "task": self.world["task"]})
        return node.get("observation", "")

    async def reward(self, node: TreeNode | None, text: str) -> Candidate | None:
        """The answer in a text."""
        candidate = Candidate(0, action=self.last, observation=self.read(text, self.last).text)
        return candidate if await self.close(candidate, ()) is None and candidate.answers else None


def _steps(path: Sequence[TreeNode]) -> str:
    known = [(node["action"], node.get("observation", "")) for node in path if node.get("action")]
    texts = [
        f"{quoted('asked', asked, number=i)}\n{quoted('answer', said)}\n" for i, (asked, said) in enumerate(known, 1)
    ]
    return "".join(texts)


@lru_cache(maxsize=1024)
def _words(text: str) -> str:
    words = (word.strip(_EDGES) for word in text.casefold().split())
    return " ".join(word for word in words if word and word not in _ARTICLES)
