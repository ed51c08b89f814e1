"""The tree search of `graphs.auto`: LATS that begins narrow, at what the earlier stages have found."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from reflective_agents.graphs import lats
from reflective_agents.nodes.evidence.sources import thread_sources, with_numbers
from reflective_agents.nodes.step import Step, Update
from reflective_agents.state.settings.auto import AutoContext
from reflective_agents.state.tree import SearchState
from reflective_agents.tree_search.algorithms.widening import Widening
from reflective_agents.tree_search.base import Job
from reflective_agents.tree_search.candidates import Branch, Candidate
from reflective_agents.tree_search.graph import bare_root
from reflective_agents.tree_search.job import NodeByState, TreeSearch
from reflective_agents.tree_search.tree_paths import ROOT
from reflective_agents.web_search.results import SearchResult


class Rollout(lats.Rollout):
    """What happens at a leaf. The first children are joined by the answers that were there before the tree was: they
    are graded with them."""

    def __init__(
        self,
        search: TreeSearch,
        branch: Branch,
        node_by_state: NodeByState,
        *,
        answers: Sequence[str],
        failed: set[str],
        max_lessons: int,
    ) -> None:
        super().__init__(search, branch, node_by_state, failed=failed, max_lessons=max_lessons)
        self.answers = answers

    async def expand(self) -> list[Candidate]:
        """Expand the leaf, and add the earlier answers where it is the root."""
        candidates = await super().expand()
        if self._solved or len(self.branch.tree) > 1:
            return candidates
        for text in self.answers:
            earlier = await self.world.reward(self.branch.path, text)
            if earlier and not self.merge_twin(self.world.canonical(earlier), earlier):
                earlier.index = len(candidates)
                candidates.append(earlier)
                await self.grade_now(earlier)
        return candidates


async def widening_search(state: SearchState, step: Step[AutoContext], answers: Sequence[str] = ()) -> TreeSearch:
    """Set the tree search up: that of LATS, which widens, begins at the task itself, and knows earlier answers.

    Args:
        state: The state of the run.
        step: The node that searches.
        answers: The answers of earlier stages, each once.
    """
    context = step.context
    search = await lats.lats(state, step)
    return replace(
        search,
        algorithm=Widening(context.n, context.exploration_weight, context.simulate, context.max_rollouts),
        skip_known_states=search.world.rewards,
        sample_root=False,
        job=partial(Rollout, failed=lats.failed_answers(state), max_lessons=context.max_lessons, answers=answers),
    )


def plant_tree(
    state: SearchState, step: Step[AutoContext], search: TreeSearch, results: Sequence[SearchResult]
) -> Update:
    """Make the root. What was looked up lies in it, so that each step knows it and may cite it."""
    update = bare_root(state, step, search)
    if results:
        update["tree"][ROOT]["messages"] = as_search_result(results, state["messages"])
    return update


def as_search_result(results: Sequence[SearchResult], conversation: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return what was found as the result of a call of the search tool."""
    call = {"name": "search", "args": {"query": "what was looked up"}, "id": "looked_up"}
    reply = ToolMessage(json.dumps(results, ensure_ascii=False), tool_call_id="looked_up", name="search")
    return [AIMessage("", tool_calls=[call]), *with_numbers([reply], [], thread_sources(conversation))]


def calls_of_rollout(search: TreeSearch, context: AutoContext) -> int:
    """Count the calls from the root to the end of a task: an expansion each, and one for the answer."""
    job = Job(node=ROOT, kind="expand", first=0, width=context.n)
    steps = max(context.max_depth - 1, 1) if context.simulate else 1
    return steps * search.calls(job, context.n) + 1
