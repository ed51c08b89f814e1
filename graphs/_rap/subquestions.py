"""A question as a world: its states are the sub-questions that were asked and answered, its actions ask one more
(RAP, section 4.2)."""

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from langchain_core.messages import BaseMessage

from reflective_agents.environments.base import Environment
from reflective_agents.environments.plain import PLAIN
from reflective_agents.graphs._rap.world_model import Foreseen, WorldModel, actions_on, digest
from reflective_agents.models.calls import request
from reflective_agents.models.joining import was_cut_off
from reflective_agents.nodes.acting.actions import take
from reflective_agents.nodes.asking.task_prompt import examples_text, short_task_prompt
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.evidence.citations import resolve_citations
from reflective_agents.nodes.evidence.long_questions import words_of
from reflective_agents.nodes.evidence.research import find, today
from reflective_agents.nodes.evidence.sources import Sources, numbered, sources_of, thread_sources
from reflective_agents.nodes.memo import memo_of
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import rap as prompts
from reflective_agents.prompts.search import TODAY
from reflective_agents.state.errors import LimitReached
from reflective_agents.state.settings.rap import RapContext
from reflective_agents.state.tree import SearchState, TreeNode
from reflective_agents.text.labels import answer_in, bare, sections, without_label
from reflective_agents.text.normal import numbers, read_number
from reflective_agents.text.stems import stem
from reflective_agents.text.words import content_words, words
from reflective_agents.tree_search.candidates import Candidate
from reflective_agents.tree_search.lessons import hints_text
from reflective_agents.tree_search.worlds import without_task
from reflective_agents.web_search.results import SearchResult

# The prompt's "Now we can answer the question", which models translate with it.
_LAST = re.compile(
    r"\W*(?:now we can answer\b|现在(?:我们)?(?:可以|能)回答|jetzt können wir\b|ตอนนี้เรา(?:สามารถ)?ตอบ)", re.IGNORECASE
)
_ARTICLES = frozenset({"a", "an", "the"})
_FILLING = _ARTICLES | frozenset(
    """
    are at be did do does exactly for had has have in is it of on there to was were
    """.split()  # noqa: SIM905 - the words are easier to read
)
_ALIKE = {"which": "what", "much": "many"}
_BEARING = 2
"""Words of a query, beside the most common ones, that a result has to hold; or all but one, if it has fewer."""
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

    def __init__(self, step: Step[RapContext], state: SearchState, environment: Environment | None) -> None:
        super().__init__(step, state)
        self.environment, self.world = environment, state["world"]
        self.task = short_task_prompt(environment, examples=False) if environment else ""
        self.request, self.messages = state["request"], list(state["messages"])
        question = self.world["task"]["question"] if environment else words_of(state["messages"][-1])
        self.question = " ".join(question.split())
        short = self.question if len(self.question) <= LONGEST else "as it was put"
        self.last = prompts.LAST.format(question=short).strip()

    def propose(self, path: Sequence[TreeNode], width: int) -> list[BaseMessage]:
        """Show the question and what is known, then ask for the next sub-question."""
        words = prompts.ASK if width == 1 else prompts.ASK_SEVERAL
        prompt = self._prompt(path, words.format(number=len(path), width=width))
        prompt[-1].additional_kwargs["subquestions"] = {"last": self.last, "most": width}  # for the offline model
        return prompt

    async def foresee(self, path: Sequence[TreeNode], action: str) -> list[BaseMessage]:
        """Show the question, what is known and what the web search finds, then the sub-question."""
        ends = self._ends(action)
        query = self.question if ends else action
        found = _shown(await self._look_up(query))
        question = quoted("subquestion", query)
        if not ends:
            return self._prompt(path, prompts.ANSWER.format(found=found, question=question))
        form = prompts.NUMBER_FORM if self.environment else prompts.SHORT_FORM
        return self._prompt(path, prompts.ANSWER_ALL.format(found=found, question=question, form=form))

    async def _look_up(self, *queries: str) -> list[str]:
        """Return what the web search finds for queries and bears on one of them, and what went wrong."""
        if self.environment is not None:
            return []
        cut = [query[:LONGEST] for query in queries]
        results, problems = await find(self.step, self.run_id, cut)
        results = _bearing(queries, results)
        return [json.dumps(results, ensure_ascii=False), *problems] if results else problems

    def conclude(self, path: Sequence[TreeNode]) -> list[BaseMessage]:
        """Show the question and what is known, then ask for the answer."""
        question = quoted("subquestion", self.question)
        form = prompts.NUMBER_FORM if self.environment else prompts.WHOLE_FORM
        return self._prompt(path, prompts.CONCLUDE.format(found="", question=question, form=form))

    async def found(self, before: Sequence[TreeNode]) -> Sources:
        """Return what the web search finds for the sub-questions and the question; nothing if a limit forbids it."""
        key = ("found", *(node.get("action", "") for node in before))
        try:
            observations, _ = await memo_of(self.run_id).once(key, lambda: self._look_up_all(before))
        except LimitReached:
            return {}
        return sources_of(observations, thread_sources(self.messages))

    async def _look_up_all(self, before: Sequence[TreeNode]) -> list[str]:
        """Return what the web search finds for all on a path, numbered; it was looked up before, and is kept."""
        found = await self._look_up(*actions_on(before), self.question)
        earlier = thread_sources(self.messages)
        return [numbered(text, (), earlier) for text in found]

    async def phrase(self, path: Sequence[TreeNode]) -> str:
        """Ask for the complete answer to an open question, whose paths give theirs in short. A text that was cut off,
        or has another number, is not taken."""
        if self.environment is not None:
            return ""
        *before, end = path
        observations = await self._look_up_all(before)
        answer = self.answer(end)
        todo = prompts.PHRASE.format(
            found=_shown(observations),
            question=quoted("subquestion", self.question),
            answer=quoted("answer", answer),
            form=prompts.CITED_FORM if observations else prompts.WHOLE_FORM,
        )
        reply, *_ = await request(self.model, self._prompt(before, todo), self.step.meter)
        text = without_label(bare(reply.text), "final", "answer")
        if observations:
            text = resolve_citations(text, observations, self.messages).text
        number = read_number(self.form(answer))
        if was_cut_off(reply) or (number is not None and number not in numbers(text)):
            return ""
        self.sources = sources_of(observations, thread_sources(self.messages))
        return text

    def situation(self, path: Sequence[TreeNode]) -> str:
        """Return the question and what is known."""
        return f"{self.request}\n{_steps(path)}{prompts.LAST_IS_LEGAL}"

    def _prompt(self, path: Sequence[TreeNode], todo: str) -> list[BaseMessage]:
        own = examples_text(self.step.context.few_shot)
        shipped = prompts.QUESTIONS_EXAMPLE if self.step.context.examples else ""
        return prompts.QUESTIONS.format_messages(
            task=self.task,
            today="" if self.environment else f"{TODAY.format(today=today())} ",
            examples=f"\n\n{own}" if own else shipped,
            conversation=self.messages[:-1] if self.environment else self.messages,
            request=f"{self.request}\n" if self.environment else "",
            advice=self.advice + hints_text(path),
            steps=_steps(path),
            todo=todo,
        )

    def read(self, text: str, action: str) -> Foreseen:
        """Read the answer: after the last label for a sub-question, after the first for the whole question."""
        ended = self._ends(action)
        labels = [part.begin for part in sections(text, ("final", "answer")) if part.name]
        named = answer_in(text) or ""
        if labels:
            first = labels[0] if ended else labels[-1]
            named = text[first:]
        answer = bare(named) or bare(text)
        return Foreseen(answer, self._form(answer, self.question if ended else action), ended)

    def _ends(self, action: str) -> bool:
        return action == self.last or bool(_LAST.match(action)) or _words(action) == _words(self.question)

    def clean(self, action: str) -> str:
        """Remove the label from a sub-question; the last sub-question always gets the same words."""
        question = without_label(action.strip(), "question")
        return self.last if self._ends(action.strip()) or self._ends(question) else question

    def canonical(self, candidate: Candidate) -> str:
        """Return the stems of the words that matter in a sub-question: "Which year was it built in?" asks for the same
        as "In what year was it built?"."""
        return _words(candidate.action) if self._ends(candidate.action) else _gist(candidate.action)

    def repeats(self, candidate: Candidate, path: Sequence[TreeNode]) -> bool:
        """Tell whether a sub-question was asked before."""
        return self.canonical(candidate) in {_gist(node.get("action", "")) for node in path}

    def form(self, answer: str) -> str:
        """Return the number of an answer, or its words; to an open question, without what the question says already."""
        return self._form(answer, self.question)

    def _form(self, answer: str, question: str) -> str:
        whole = question if self.environment or question == self.question else f"{self.question} {question}"
        return (self.environment or PLAIN).vote(answer, whole) or _words(answer)

    def state_key(self, path: Sequence[TreeNode]) -> str:
        """Identify the path by what was asked and answered, in any order."""
        facts: list[str] = []
        for node in path[1:]:
            question = _words(node.get("action", ""))
            answer = self.form(node.get("observation", ""))
            facts.append(f"{question} = {answer}")
        return digest("\n".join(sorted(facts)))

    async def close(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Take the answer to the whole question; in an environment by its rules."""
        if not self._ends(candidate.action):
            return "The path has ended without an answer."
        candidate.answers = True
        action = self.environment.final_action(candidate.observation) if self.environment else None
        if self.environment is None or action is None:
            return None
        done = await take(self.environment, self.world, action)
        self.step.meter.count(tool_calls=1, tool_errors=int(not done.valid))
        candidate.answers = bool(self.environment.answer(done.state))
        candidate.reward = done.reward
        candidate.state = without_task(done.state)
        return None if done.valid else done.observation

    def answer(self, node: TreeNode) -> str:
        """Return the answer at the end of the path."""
        if self.environment is not None and "state" in node:
            return self.environment.answer({**node["state"], "task": self.world["task"]})
        return node.get("observation", "")

    async def reward(self, path: Sequence[TreeNode], text: str) -> Candidate | None:
        """Read the answer in a text as a candidate."""
        candidate = Candidate(0, action=self.last, observation=self.read(text, self.last).text)
        return candidate if await self.close(candidate, ()) is None and candidate.answers else None


def _bearing(queries: Sequence[str], results: list[SearchResult]) -> list[SearchResult]:
    """Return the results that have more in common with a query than a word: a search of documents always finds some.
    Where none has, all are returned, for what is found may be in another language."""
    terms = [(_stems(content_words(query)), _names(query)) for query in queries]

    def bears(result: SearchResult) -> bool:
        in_result = _stems(words(f"{result['title']} {result['content']}"))
        for stems, names in terms:
            needed = min(_BEARING, len(stems) - 1 or 1)
            if in_result & names or len(in_result & stems) >= needed:
                return True
        return False

    return [result for result in results if bears(result)] or results


def _names(query: str) -> set[str]:
    """Return the stems of words that are written as names; what says a name of the query always bears on it."""
    names = " ".join(word for word in query.split()[1:] if word[:1].isupper())
    return _stems(content_words(query)) & _stems(content_words(names))


def _stems(text: Iterable[str]) -> set[str]:
    return {stem(word) for word in text} - {""}


def _shown(observations: Sequence[str]) -> str:
    shown = "".join(f"{quoted('observation', text)}\n" for text in observations)
    return shown + prompts.FOUND if observations else ""


def _steps(path: Sequence[TreeNode]) -> str:
    taken = [node for node in path if node.get("action")]
    shown = ""
    for number, node in enumerate(taken, 1):
        shown += quoted("asked", node.get("action", ""), number=number) + "\n"
        shown += quoted("answer", node.get("observation", "")) + "\n"
    return shown


@lru_cache(maxsize=1024)
def _gist(text: str) -> str:
    telling = [_ALIKE.get(word, word) for word in words(text) if word not in _FILLING]
    return " ".join(sorted(_stems(telling))) or _words(text)


@lru_cache(maxsize=1024)
def _words(text: str) -> str:
    words = (word.strip(_EDGES) for word in text.casefold().split())
    return " ".join(word for word in words if word and word not in _ARTICLES)
