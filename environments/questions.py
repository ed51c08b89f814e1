"""Questions answered with articles: Search, Lookup, Finish (ReAct, section 3.1; the questions are HotpotQA's)."""

import json
from functools import lru_cache

from environments.actions import Action, parse_action
from environments.base import State, Task, Transition, over, refuse
from environments.docstore import Docstore, hotpot_docstore
from environments.metrics import exact_match, f1, normalise_answer
from state.errors import SearchFailed

MAX_OBSERVATION = 2_000
"""Characters of an article that one observation shows."""


class Questions:
    """Questions whose answer is a short text.

    A task's `question` is the question, `gold` the answer. A task may bring its own articles, as HotpotQA's distractor
    files do: `data["context"]` = [[title, [sentence, ...]], ...].

    The state keeps which page is open, which keyword was looked up last, and how many of its sentences were shown; the
    text itself stays in the docstore.
    """

    name = "questions"
    actions = "Search[entity], Lookup[keyword], Finish[answer]"

    def __init__(self, docstore: Docstore | None = None) -> None:
        """Choose where articles come from; None for those that each task brings."""
        self._docstore = docstore

    def start(self, task: Task) -> State:
        """Return the state before the first action: no page is open."""
        return {"task": task, "page": None, "keyword": "", "position": 0, "answer": "", "done": False}

    def public(self, state: State) -> str:
        """Return the question, and which page is open."""
        page = f"\nOpen page: {state['page']}" if state["page"] else ""
        return f"Question: {state['task']['question']}{page}"

    def answer(self, state: State) -> str:
        """Return what Finish was given."""
        return str(state["answer"])

    def key(self, state: State) -> str:
        """Return nothing: what was read on the way is not in the state, but counts."""
        return ""

    async def step(self, state: State, action: str) -> Transition:
        """Apply Search, Lookup or Finish. Finish is rewarded with 1 for an exact match, else 0."""
        if state["done"]:
            return over(state)
        parsed = parse_action(action)
        if parsed is None or parsed.name not in ("search", "lookup", "finish"):
            return refuse(state, "Invalid action.", self.actions)
        if not parsed.argument:
            return refuse(state, f"{parsed.name.capitalize()} needs something between the brackets.", self.actions)
        if parsed.name == "finish":
            return self._finish(state, parsed.argument)
        try:
            return await (self._search if parsed.name == "search" else self._lookup)(state, parsed.argument)
        except SearchFailed as error:
            return Transition(state, f"{error} Try again, or try something else.")

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
            return refuse(state, "No page is open to look anything up in: Search for one first.", self.actions)
        article = await self._articles(state["task"]).article(state["page"])
        found = article.sentences_with(keyword) if article else []
        shown = state["position"] if keyword.casefold() == state["keyword"] else 0
        if shown >= len(found):
            return Transition(state, "No more results." if found else "No results.")
        new = {**state, "keyword": keyword.casefold(), "position": shown + 1}
        return Transition(new, f"(Result {shown + 1} / {len(found)}) {_cut(found[shown])}")

    def _finish(self, state: State, answer: str) -> Transition:
        gold = state["task"].get("gold")
        reward = None if gold is None else exact_match(answer, gold)
        return Transition({**state, "answer": answer, "done": True}, "Finished.", reward, True)

    def _articles(self, task: Task) -> Docstore:
        return self._docstore or _brought(json.dumps(task.get("data", {}).get("context", [])))

    def same(self, action: str) -> str:
        """Return name and argument in lower case; answers are normalised as for the exact match."""
        match parse_action(action):
            case None:
                return " ".join(action.casefold().split())
            case Action("finish", argument):
                return f"finish[{normalise_answer(argument)}]"
            case Action(name, argument):
                return f"{name}[{argument.casefold()}]"

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Return exact match ("em") and "f1"."""
        gold = task.get("gold")
        return {} if gold is None else {"em": exact_match(answer, gold), "f1": f1(answer, gold)}


@lru_cache(maxsize=16)
def _brought(articles: str) -> Docstore:
    """The articles that a task brings, as JSON: to index them takes longer than any step."""
    return hotpot_docstore(json.loads(articles))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_OBSERVATION else f"{text[:MAX_OBSERVATION].rstrip()} ..."
