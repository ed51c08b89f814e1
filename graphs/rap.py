"""Reasoning via planning (Hao et al. 2023, arXiv 2305.14992).

    begin -> start -> expand -> expand -> ... -> finish

The model is both the agent and its own model of the world. A rollout goes down the tree by UCT; at a step never yet
visited, the model predicts, several times, the state that it leads to, and proposes the steps that may follow: see
`search/rap.py`. A step is rewarded by r0 ** alpha * r1 ** (1 - alpha), its likelihood and the confidence in the
predicted state (section 3.2). The answer is the one whose paths weigh most (RAP-Aggregation, section 4.2).

Questions are answered by sub-questions. In an environment the actions of a path are carried out at its end, and the
environment's reward counts.
"""

from collections.abc import Mapping
from typing import Any

from nodes.agent import environment_of
from nodes.likelihood import Promise, Proposals
from nodes.planned import PlannedTask
from nodes.searches import answer, rooted, search_graph
from nodes.searching import Round
from nodes.step import Step, Update, node
from nodes.subquestions import SubQuestions
from nodes.visits import Planning
from nodes.world_model import WorldModel
from search.base import path, rank
from search.rap import Rap
from state.searching import RapContext
from state.tree import Tree, TreeNode
from state.weighed import RapOutput, RapState, Weighed


@node(RapContext)
async def start(state: RapState, step: Step[RapContext]) -> Update:
    """Make the root: the question or the task as it stands."""
    return {"weights": []} | rooted(state, step, algorithm(step.context))


@node(RapContext)
async def expand(state: RapState, step: Step[RapContext]) -> Update:
    """Visit steps: the one a rollout is at, or the one that UCT selects."""
    return await Round(state, step, algorithm(step.context), await parts(state, step)).run()


@node(RapContext)
async def finish(state: RapState, step: Step[RapContext]) -> Update:
    """Answer with the answer that the environment rewards most; else with the one whose paths weigh most."""
    search = await parts(state, step)
    weights = weigh(state["tree"], search.world)
    ends = [end for end in state["tree"].values() if end["kind"] == "answer"]
    rewarded = min((end for end in ends if "reward" in end), key=rank, default=None)
    best = rewarded["id"] if rewarded else weights[0]["node"] if weights else state["best"]
    return {"weights": weights, "best": best} | await answer({**state, "best": best}, step, search)


def weigh(tree: Tree, world: WorldModel) -> list[Weighed]:
    """The answers that paths have come to, the heaviest first. A path weighs the environment's reward, or else the mean
    of the rewards of its steps."""
    found: dict[str, list[tuple[float, TreeNode]]] = {}
    for end in tree.values():
        if end["kind"] == "answer":
            steps = [step["score"] or 0.0 for step in path(tree, end["id"])[1:]]
            weight = end.get("reward", sum(steps) / len(steps))
            found.setdefault(world.form(world.answer(end)), []).append((weight, end))
    total = sum(weight for paths in found.values() for weight, _ in paths)
    weights = [_weighed(paths, world, total) for paths in found.values()]
    return sorted(weights, key=lambda one: -one["weight"])


def _weighed(paths: list[tuple[float, TreeNode]], world: WorldModel, total: float) -> Weighed:
    weight = sum(weight for weight, _ in paths)
    _, best = max(paths, key=lambda one: one[0])
    share = weight / total if total else 0.0
    return Weighed(answer=world.answer(best), node=best["id"], paths=len(paths), weight=weight, share=share)


def algorithm(context: RapContext) -> Rap:
    """What is visited next."""
    return Rap(
        width=context.n,
        exploration_weight=context.exploration_weight,
        max_rollouts=context.max_rollouts,
        aggregate=context.aggregate,
        min_paths=context.min_paths,
        min_share=context.min_score,
    )


async def parts(state: Mapping[str, Any], step: Step[RapContext]) -> Planning:
    """What it is visited with: a world that is thought of, the steps that are proposed, and what they promise."""
    environment = await environment_of(step.context)
    world: WorldModel
    if environment is None or environment.name == "arithmetic":
        world = SubQuestions(step, state, environment)
    else:
        world = PlannedTask(step, state, environment)
    return Planning(step, world, Proposals(step, world), Promise(step, world), state["run_id"])


builder = search_graph("rap", RapContext, start, expand, finish, RapState, RapOutput)
graph = builder.compile(name="rap")
