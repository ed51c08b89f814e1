"""Best of N: the baseline that every tree search has to beat at the same number of calls.

    begin -> start -> expand -> expand -> ... -> finish

N trajectories are sampled from the same beginning, each to its end, and the best answer wins: by the environment's
reward, else by a judge that reads each whole trajectory once (compare Cobbe et al. 2021, arXiv 2110.14168). With
`choose="pairs"` the judge compares them two at a time instead, once all have ended (V1, arXiv 2603.04304); with
`choose="agreement"` programs are chosen by how they agree on tests that the model writes (CodeT, arXiv 2207.10397).
"""

from reflective_agents.nodes.step import Step
from reflective_agents.state.settings.best_of_n import BestOfNContext
from reflective_agents.state.tree import SearchState
from reflective_agents.tree_search.algorithms.best_of_n import BestOfN
from reflective_agents.tree_search.choosing import Unjudged, finishing
from reflective_agents.tree_search.graph import search_graph
from reflective_agents.tree_search.job import TreeSearch
from reflective_agents.tree_search.own_agent import OwnAgent
from reflective_agents.tree_search.policies import sampling_for
from reflective_agents.tree_search.values import Judge, Value
from reflective_agents.tree_search.worlds import world_of


async def best_of_n(state: SearchState, step: Step[BestOfNContext]) -> TreeSearch:
    """Sample the steps of each trajectory, and judge its answer only."""
    world = await world_of(state, step)
    agent = step.context.agent
    policy = sampling_for(step, world) if agent is None else OwnAgent(step, world, agent)
    judge: Value = Judge(step, world.task, together=step.context.grading == "together", answers_only=True)
    value = judge if step.context.way_to_choose == "score" else Unjudged()
    return TreeSearch(step, state["run_id"], BestOfN(step.context.n), world, policy, value)


builder = search_graph("best_of_n", BestOfNContext, best_of_n, finish=finishing(BestOfNContext, best_of_n))
graph = builder.compile(name="best_of_n")
