"""Tree of Thoughts (Yao et al. 2023, arXiv 2305.10601).

    begin -> start -> expand -> expand -> ... -> finish

Breadth first, the best `beam` thoughts of each level are expanded together, and their children valued: called sure,
likely or impossible, voted on, or judged; the best go on, the others are pruned (algorithm 1). Depth first, the most
promising child is valued and followed at once, and what is valued too low is pruned; then the search goes back
(algorithm 2).

Open questions are planned and then answered: plans, the best of them, answers, the best of those (section 4.2). In the
game of 24 and in crosswords the paper's settings hold (sections 4.1 and 4.3).
"""

from reflective_agents.graphs._tree_of_thoughts.ranked import RankedProposals
from reflective_agents.graphs._tree_of_thoughts.thoughts import Thinking, Thoughts
from reflective_agents.graphs._tree_of_thoughts.voting import VoteJudge
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import tree_of_thoughts as prompts
from reflective_agents.state.settings.tree_of_thoughts import TreeOfThoughtsContext
from reflective_agents.state.tree import SearchState
from reflective_agents.tree_search.algorithms.beam import Beam
from reflective_agents.tree_search.algorithms.depth_first import DepthFirst
from reflective_agents.tree_search.graph import search_graph
from reflective_agents.tree_search.job import TreeSearch
from reflective_agents.tree_search.label_values import LabelJudge
from reflective_agents.tree_search.policies import sampling_for
from reflective_agents.tree_search.policy import Policy
from reflective_agents.tree_search.task_policies import ListProposals
from reflective_agents.tree_search.values import Judge, Value
from reflective_agents.tree_search.worlds import OpenWorld, TaskWorld, world_of


async def tree_of_thoughts(state: SearchState, step: Step[TreeOfThoughtsContext]) -> TreeSearch:
    """Set the tree search up as the settings say."""
    world = await world_of(state, step)
    if isinstance(world, OpenWorld):
        world = Thoughts(step, world.tools, state["messages"])
    depth_first = step.context.method == "depth_first"
    return TreeSearch(
        step,
        state["run_id"],
        algorithm(step.context),
        world,
        policy(step, world),
        value(step, world),
        revise_answers=True,
        equal_answers_once=False,
        grade_in_own_job=depth_first or step.context.compares,
        skip_known_states=depth_first,
    )


def algorithm(context: TreeOfThoughtsContext) -> Beam | DepthFirst:
    """Choose the order in which thoughts are expanded."""
    if context.method == "depth_first":
        return DepthFirst(context.n, context.prune_below, context.max_states)
    return Beam(context.n, context.beam, context.compares)


def policy(step: Step[TreeOfThoughtsContext], world: OpenWorld | TaskWorld) -> Policy:
    """Choose how thoughts are proposed."""
    if isinstance(world, OpenWorld):
        return Thinking(step, world.tools)
    if step.context.proposals == "samples":
        return sampling_for(step, world)
    proposals = RankedProposals if step.context.method == "depth_first" else ListProposals
    return proposals(step, world, step.context.lists)


def value(step: Step[TreeOfThoughtsContext], world: OpenWorld | TaskWorld) -> Value:
    """Choose how thoughts are valued."""
    if step.context.grades == "vote":
        return VoteJudge(step, world.task, step.context.grade_samples)
    if step.context.grades == "labels":
        return LabelJudge(step, world, step.context.grade_samples)
    rubric = prompts.RUBRIC_OF_PLANS if isinstance(world, OpenWorld) else None
    return Judge(step, world.task, together=step.context.compares, rubric=rubric)


builder = search_graph("tree_of_thoughts", TreeOfThoughtsContext, tree_of_thoughts)
graph = builder.compile(name="tree_of_thoughts")
