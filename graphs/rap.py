"""Reasoning via planning (Hao et al. 2023, arXiv 2305.14992).

    begin -> start -> expand -> expand -> ... -> finish

The model is both the agent and its own model of the world. A rollout goes down the tree by UCT; at a step never yet
visited, the model predicts, several times, the state that it leads to, and proposes the steps that may follow: see
`tree_search/algorithms/rap.py`. A step is rewarded by r0 ** alpha * r1 ** (1 - alpha), its likelihood and the
confidence in the predicted state (section 3.2). The answer is the one whose paths weigh most (RAP-Aggregation, section
4.2).

Questions are answered by sub-questions. The paths of an open one give short answers, which can be counted; the one that
wins is phrased for the user at the end. In an environment the actions of a path are carried out at its end, and the
environment's reward counts.
"""

from collections import defaultdict
from functools import partial
from typing import Annotated, NamedTuple

from langgraph.channels import DeltaChannel
from typing_extensions import TypedDict

from reflective_agents.graphs._rap.likelihood import Proposals, UsefulnessJudge
from reflective_agents.graphs._rap.planned import PlannedTask
from reflective_agents.graphs._rap.planning_job import PlanningJob
from reflective_agents.graphs._rap.subquestions import SubQuestions
from reflective_agents.graphs._rap.world_model import WorldModel
from reflective_agents.nodes.acting.agent import environment_of
from reflective_agents.nodes.evidence.verifying import Evidence
from reflective_agents.nodes.step import Step, Update, node
from reflective_agents.nodes.verifiers.verdict import is_verified
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.run import latest
from reflective_agents.state.settings.rap import RapContext
from reflective_agents.state.tree import SearchOutput, SearchState, Tree, TreeNode
from reflective_agents.tree_search.algorithms.rap import Rap
from reflective_agents.tree_search.choosing import is_scored
from reflective_agents.tree_search.graph import answer, search_graph
from reflective_agents.tree_search.job import TreeSearch
from reflective_agents.tree_search.tree_paths import path, rank, unpruned


class Weighed(TypedDict):
    """An answer that paths of a search have come to: the node where the best of them ends, how many there are, and the
    sum of their rewards, also as a share of that of all answers."""

    answer: str
    node: str
    paths: int
    weight: float
    share: float


class WeighedPath(NamedTuple):
    """The node at the end of a path to an answer, and what the path weighs."""

    weight: float
    end: TreeNode


class RapOutput(SearchOutput):
    """What `graphs.rap` returns: beside the tree the answers, the heaviest first."""

    weights: Annotated[list[Weighed], DeltaChannel(latest, snapshot_frequency=1000)]


class RapState(SearchState, RapOutput):
    """State of `graphs.rap`."""


async def rap(state: SearchState, step: Step[RapContext]) -> TreeSearch:
    """Plan in a world that the model predicts, with the steps that it proposes, and what they promise."""
    world = await predicted_world(state, step)
    return TreeSearch(
        step,
        state["run_id"],
        algorithm(step.context),
        world,
        Proposals(step, world),
        UsefulnessJudge(step, world),
        job=partial(PlanningJob, world),
        further_calls=world.calls,
    )


def algorithm(context: RapContext) -> Rap:
    """Choose what is visited next."""
    return Rap(
        width=context.n,
        exploration_weight=context.exploration_weight,
        max_rollouts=context.max_rollouts,
        aggregate=context.aggregate,
        min_paths=context.min_paths,
        min_share=context.min_score,
    )


async def predicted_world(state: SearchState, step: Step[RapContext]) -> WorldModel:
    """Return the world that the model predicts: sub-questions with their answers, or the states of a task."""
    environment = await environment_of(step.context)
    if environment is None or environment.by_subquestions:
        return SubQuestions(step, state, environment)
    return PlannedTask(step, state, environment)


@node(RapContext)
async def finish(state: SearchState, step: Step[RapContext]) -> Update:
    """Answer with the answer that the environment rewards most, or the verifiers; else with the one whose paths weigh
    most."""
    world = await predicted_world(state, step)
    weights = weigh(state["tree"], world)
    # A person may have given up the best node since it was found.
    left = unpruned(state["tree"])
    rewarded = [node for node in left if node["kind"] == "answer" and is_scored(node)]
    best = state["best"]
    if rewarded:
        best = min(rewarded, key=rank)["id"]
    elif weights:
        best = weights[0]["node"]
    if best not in [node["id"] for node in left]:
        best = None
    chosen: SearchState = {**state, "best": best}
    if is_verified(step):  # what was verified stays as it is
        found = await world.found(path(state["tree"], best)[:-1]) if best else {}
        text, evidence = "", Evidence(found, held=False)
    else:
        text = await phrased(chosen, world)
        evidence = Evidence(world.sources)
    update = await answer(chosen, step, await rap(state, step), text, evidence)
    return {"weights": weights, "best": best} | update


async def phrased(state: SearchState, world: WorldModel) -> str:
    """Return the best answer in words for the user; empty if it is to stay as it is, or no call is left for that."""
    best = state["tree"].get(state["best"] or "")
    if best is None or best["kind"] != "answer":
        return ""
    try:
        return await world.phrase(path(state["tree"], best["id"]))
    except (LimitReached, ModelFailed):
        return ""


def weigh(tree: Tree, world: WorldModel) -> list[Weighed]:
    """Return the answers that paths have come to, the heaviest first. A path weighs the environment's reward, or else
    the mean of the rewards of its steps."""
    ends_by_answer: defaultdict[str, list[WeighedPath]] = defaultdict(list)
    for end in unpruned(tree):
        if end["kind"] == "answer":
            _, *steps = path(tree, end["id"])
            scores = [step["score"] or 0.0 for step in steps]
            weight = end.get("reward", sum(scores) / len(scores))
            ends_by_answer[world.form(world.answer(end))].append(WeighedPath(weight, end))
    weights: list[Weighed] = []
    for paths in ends_by_answer.values():
        weight = sum(weighed.weight for weighed in paths)
        best = max(paths, key=lambda weighed: weighed.weight).end
        weights.append(Weighed(answer=world.answer(best), node=best["id"], paths=len(paths), weight=weight, share=0.0))
    total = sum(weighed["weight"] for weighed in weights)
    for weighed in weights:
        weighed["share"] = weighed["weight"] / total if total else 0.0
    return sorted(weights, key=lambda weighed: -weighed["weight"])


builder = search_graph("rap", RapContext, rap, finish=finish, state=RapState, output=RapOutput, weights=[])
graph = builder.compile(name="rap")
