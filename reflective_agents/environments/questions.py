"""Questions answered with articles: Search, Lookup, Finish (ReAct, section 3.1; the questions are HotpotQA's)."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Self

from reflective_agents.environments.actions import Action, parse_action
from reflective_agents.environments.base import (
    BRIEF,
    Act,
    Environment,
    Example,
    State,
    Task,
    Transition,
    check_task,
    refuse,
)
from reflective_agents.environments.docstore import Docstore, folder_docstore, hotpot_docstore, jsonl_docstore
from reflective_agents.environments.metrics import exact_match, f1, normalise_answer
from reflective_agents.environments.wikipedia import Wikipedia
from reflective_agents.state.errors import SearchFailed

NAMES = ("search", "lookup", "finish")
"""The names of the actions."""
MAX_OBSERVATION = 2_000
"""Characters of an article that one observation shows."""


class Questions(Environment):
    """Questions whose answer is a short text.

    A task's `question` is the question, `gold` the answer. A task may bring its own articles, as HotpotQA's distractor
    files do: `data["context"]` = [[title, [sentence, ...]], ...].

    The state holds the title of the open page, the last keyword, and how many of its sentences were shown; the text
    itself stays in the docstore.
    """

    name = "questions"
    actions = "Search[entity], Lookup[keyword], Finish[answer]"
    goal = "Answer the question with a few words, from articles."
    rules = "The answer is a name, a date, a number, yes or no: as short as possible, and not a sentence."
    effects = (
        "Search opens the article of an entity and shows its first paragraph, or lists similar titles. Lookup shows "
        "the next sentence of the open article that holds a keyword. Finish gives the answer, once."
    )
    figure = "em"
    correct_if = "it equals the right one; case, punctuation, articles and blanks do not count (HotpotQA's exact match)"
    short_answers = True
    examples = (
        Example(
            "Question: In which country was the founder of the company that built the first lifts of the Eiffel Tower "
            "born?",
            (
                Act(
                    "I need the company that built the lifts of the Eiffel Tower.",
                    "Search[Eiffel Tower]",
                    "The Eiffel Tower is a wrought-iron lattice tower in Paris. Its first lifts came from Otis.",
                ),
                Act(
                    "Otis was founded by Elisha Otis. I look for his birthplace.",
                    "Search[Elisha Otis]",
                    "Elisha Graves Otis was an American industrialist, born in Halifax, Vermont.",
                ),
                Act("Vermont is in the United States.", "Finish[United States]"),
            ),
            "The first lifts came from Otis, founded by Elisha Otis. He was born in Halifax, Vermont, in the United "
            "States.\nAnswer: United States",
        ),
        Example(
            "Question: Were the authors of Dracula and of Ulysses born in the same city?",
            (
                Act("I need the author of Dracula.", "Search[Dracula]", "Dracula is an 1897 novel by Bram Stoker."),
                Act(
                    "Bram Stoker was born in Dublin.",
                    "Search[Ulysses]",
                    "Ulysses may refer to: Similar: ['Ulysses (novel)']",
                ),
                Act("The novel is meant.", "Search[Ulysses (novel)]", "Ulysses is a novel by James Joyce, of Dublin."),
                Act("Both are from Dublin.", "Finish[yes]"),
            ),
            "Dracula is by Bram Stoker, born in Dublin. Ulysses is by James Joyce, born in Dublin.\nAnswer: yes",
        ),
        Example(
            "Question: Which river flows through the capital of Austria?",
            (
                Act(
                    "I look for the river.",
                    "Search[Austria]",
                    "Austria is a country in Central Europe. Its capital is Vienna.",
                ),
                Act("Vienna is the capital.", "Finish[Vienna is the capital of Austria]"),
            ),
            "The capital of Austria is Vienna.\nAnswer: Vienna is the capital of Austria",
            solved=False,
            why="A river was asked for, not the capital: the article on Vienna should have been opened next.",
        ),
    )

    def __init__(self, docstore: Docstore | None = None) -> None:
        """Choose the articles; None for those of each task."""
        self._docstore = docstore

    @classmethod
    def from_settings(cls, docstore: str | None, unsafe_code: bool) -> Self:
        """Make it with the articles of Wikipedia, of a folder or of a JSONL file, which is read at once.

        Raises:
            BadCorpus: if they cannot be read.
        """
        return cls(_docstore(docstore))

    def start(self, task: Task) -> State:
        """Return the state before the first action: no page is open.

        Raises:
            Misuse: if the task has no question.
        """
        check_task(task)
        return {"task": task, "page": None, "keyword": "", "position": 0, "answer": "", "done": False}

    def public(self, state: State) -> str:
        """Return the question, and which page is open."""
        page = f"\nOpen page: {state['page']}" if state["page"] else ""
        return f"Question: {state['task']['question']}{page}"

    def key(self, state: State) -> str:
        """Return an empty key: the articles read so far are not in the state, but count."""
        return ""

    async def step(self, state: State, action: str) -> Transition:
        """Apply Search, Lookup or Finish. Finish is rewarded with 1 for an exact match, else 0."""
        parsed = parse_action(action)
        if parsed is None or parsed.name not in NAMES:
            return refuse(state, "None of the actions can be read in this.")
        if not parsed.argument:
            return refuse(state, f"{parsed.name.capitalize()} needs something between the brackets.")
        if parsed.name == "finish":
            return self._finish(state, parsed.argument)
        try:
            if parsed.name == "search":
                return await self._search(state, parsed.argument)
            return await self._lookup(state, parsed.argument)
        except SearchFailed as error:
            # Valid: nothing is wrong with the action, and a retry may succeed.
            return Transition(state, f"{error} Try again, or try something else.")

    def is_action(self, line: str) -> bool:
        """Return whether a line begins with one of the actions."""
        parsed = parse_action(line)
        return parsed is not None and parsed.name in NAMES

    async def _search(self, state: State, entity: str) -> Transition:
        docstore = self._articles(state["task"])
        article = await docstore.article(entity)
        if article and (paragraph := article.first_paragraph()):
            title, observation = article.title, _cut(paragraph)
        else:
            title, observation = None, f"Could not find [{entity}]. Similar: {await docstore.similar(entity)}"
        return Transition({**state, "page": title, "keyword": "", "position": 0}, observation)

    async def _lookup(self, state: State, keyword: str) -> Transition:
        if state["page"] is None:
            return refuse(state, "No page is open to look anything up in: Search for one first.")
        article = await self._articles(state["task"]).article(state["page"])
        sentences = article.sentences_with(keyword) if article else []
        shown = state["position"] if keyword.casefold() == state["keyword"] else 0
        if shown >= len(sentences):
            return Transition(state, "No more results." if sentences else "No results.")
        new = {**state, "keyword": keyword.casefold(), "position": shown + 1}
        return Transition(new, f"(Result {shown + 1} / {len(sentences)}) {_cut(sentences[shown])}")

    def _finish(self, state: State, answer: str) -> Transition:
        gold = state["task"].get("gold")
        reward = None if gold is None else exact_match(answer, gold)
        return Transition({**state, "answer": answer, "done": True}, "Finished.", reward, True)

    def _articles(self, task: Task) -> Docstore:
        # As text, by which the cache can find it: lists have no hash.
        return self._docstore or _task_docstore(json.dumps(task.get("data", {}).get("context", [])))

    def canonical(self, action: str) -> str:
        """Return name and argument in lower case; answers are normalised as for the exact match."""
        match parse_action(action):
            case None:
                return super().canonical(action)
            case Action("finish", argument):
                return f"finish[{normalise_answer(argument)}]"
            case Action(name, argument):
                return f"{name}[{argument.casefold()}]"

    def final_action(self, answer: str) -> str:
        """Return the Finish of an answer."""
        return f"Finish[{answer}]"

    def normal(self, answer: str) -> str:
        """Return what HotpotQA's exact match compares."""
        return normalise_answer(answer)

    def advise(self, tasks: Sequence[Task]) -> str:
        """Return a note if there are no articles to search."""
        if self._docstore or any(task.get("data", {}).get("context") for task in tasks):
            return ""
        return "the tasks bring no articles, so no search finds any: --docstore wikipedia, a folder or a JSONL file"

    def request(self, task: Task) -> str:
        """Return the question, to be answered in a few words."""
        return f"{task['question']}\n\n{BRIEF}"

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Return exact match ("em") and "f1"."""
        gold = task.get("gold")
        return {} if gold is None else {"em": exact_match(answer, gold), "f1": f1(answer, gold)}


@lru_cache(maxsize=8)
def _docstore(source: str | None) -> Docstore | None:
    if source is None:
        return None
    if source == "wikipedia":
        return Wikipedia()
    return jsonl_docstore(source) if source.endswith(".jsonl") else folder_docstore(source)


@lru_cache(maxsize=16)
def _task_docstore(articles: str) -> Docstore:
    """Index the articles of a task, given as JSON; cached, since indexing takes longer than any step."""
    return hotpot_docstore(json.loads(articles))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_OBSERVATION else f"{text[:MAX_OBSERVATION].rstrip()} ..."
