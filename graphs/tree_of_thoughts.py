"""Tree of Thoughts (Yao et al. 2023, arXiv 2305.10601).

    begin -> start -> expand -> expand -> ... -> finish

Breadth first, the best `beam` thoughts of each level are expanded together, and their children valued: called sure,
likely or impossible, voted on, or judged; the best go on, the others are pruned (algorithm 1). Depth first, the most
promising child is valued and followed at once, and what is valued too low is pruned; then the search goes back
(algorithm 2).

Open questions are planned and then answered: plans, the best of them, answers, the best of those (section 4.2). In the
game of 24 and in crosswords the paper's settings hold (sections 4.1 and 4.3).
"""

from typing import Any

from nodes.agent import environment_of
from nodes.growth import Search
from nodes.policies import ActSampling, ListProposals, Policy
from nodes.ranked import RankedProposals
from nodes.research import search_tools
from nodes.searches import answer, rooted, search_graph
from nodes.searching import Round
from nodes.step import Step, Update, node
from nodes.thoughts import Thinking, Thoughts
from nodes.values import Judging, JudgingTogether, Labelling, Value
from nodes.voting import Voting
from nodes.worlds import OpenWorld, TaskWorld
from search.beam import Beam, by_beam
from search.depth_first import DepthFirst, deepest
from state.searching import TreeOfThoughtsContext
from state.tree import SearchState


@node(TreeOfThoughtsContext)
async def start(state: SearchState, step: Step[TreeOfThoughtsContext]) -> Update:
    """Make the root, where nothing has been thought yet."""
    return rooted(state, step, algorithm(step.context))


@node(TreeOfThoughtsContext)
async def expand(state: SearchState, step: Step[TreeOfThoughtsContext]) -> Update:
    """Expand the beam and value its children, or visit the next state in depth-first order."""
    order = by_beam if step.context.method == "breadth_first" else deepest
    return await Round(state, step, algorithm(step.context), await parts(state, step), order).run()


@node(TreeOfThoughtsContext)
async def finish(state: SearchState, step: Step[TreeOfThoughtsContext]) -> Update:
    """Answer with the best answer found."""
    return await answer(state, step, await parts(state, step))


def algorithm(context: TreeOfThoughtsContext) -> Beam | DepthFirst:
    """What is expanded next."""
    if context.method == "depth_first":
        return DepthFirst(context.n, context.prune_below, context.max_states)
    return Beam(context.n, context.beam, context.compares)


async def parts(state: SearchState, step: Step[TreeOfThoughtsContext]) -> Search:
    """What it is expanded with: a world, a policy and a value."""
    context, run_id, environment = step.context, state["run_id"], await environment_of(step.context)
    world: OpenWorld | TaskWorld
    policy: Policy
    if environment is None:
        tools = search_tools(step, run_id)
        world, policy = Thoughts(step, tools), Thinking(step, tools)
    else:
        world = TaskWorld(step, environment, state["world"], run_id)
        policy = proposing(step, world)
    first = context.method == "depth_first"
    return Search(step, world, policy, value(step, world), run_id, True, later=first or context.compares, once=first)


def proposing(step: Step[TreeOfThoughtsContext], world: TaskWorld) -> Policy:
    """How the next steps of a task are thought of."""
    if step.context.proposals == "samples":
        return ActSampling(step, world.environment)
    return RankedProposals(step, world) if step.context.method == "depth_first" else ListProposals(step, world)


def value(step: Step[TreeOfThoughtsContext], world: OpenWorld | TaskWorld) -> Value:
    """How thoughts are valued."""
    if step.context.grades == "vote":
        return Voting(step)
    if step.context.grades == "labels":
        return Labelling(step, world.show)
    return JudgingTogether(step) if step.context.compares else Judging(step)


builder: Any = search_graph("tree_of_thoughts", TreeOfThoughtsContext, start, expand, finish)
graph = builder.compile(name="tree_of_thoughts")
