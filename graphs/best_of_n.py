"""Best of N: the baseline that every search has to beat at the same number of calls.

    begin -> start -> expand -> expand -> ... -> finish

N trajectories are sampled from the same beginning, each to its end, and the best answer wins: by the environment's
reward, else by a judge that reads each whole trajectory once (compare Cobbe et al. 2021, arXiv 2110.14168).
"""

from nodes.agent import environment_of
from nodes.growth import Search
from nodes.policies import ActSampling, ChatSampling
from nodes.research import search_tools
from nodes.searches import answer, rooted, search_graph
from nodes.searching import Round
from nodes.step import Step, Update, node
from nodes.values import Judging, JudgingTogether, OfAnswers
from nodes.worlds import OpenWorld, TaskWorld
from search.best_of_n import BestOfN
from state.searching import BestOfNContext
from state.tree import SearchState


@node(BestOfNContext)
async def start(state: SearchState, step: Step[BestOfNContext]) -> Update:
    """Make the root, from which all trajectories begin."""
    return rooted(state, step, BestOfN(step.context.n))


@node(BestOfNContext)
async def expand(state: SearchState, step: Step[BestOfNContext]) -> Update:
    """Take each trajectory on by a step, `parallel` of them at once."""
    return await Round(state, step, BestOfN(step.context.n), await parts(state, step)).run()


@node(BestOfNContext)
async def finish(state: SearchState, step: Step[BestOfNContext]) -> Update:
    """Answer with the best answer."""
    return await answer(state, step, await parts(state, step))


async def parts(state: SearchState, step: Step[BestOfNContext]) -> Search:
    """A world, a policy, and a value that grades answers only."""
    environment, run_id = await environment_of(step.context), state["run_id"]
    grades = OfAnswers(JudgingTogether(step) if step.context.grading == "together" else Judging(step))
    if environment is None:
        tools = search_tools(step, run_id)
        return Search(step, OpenWorld(step, tools), ChatSampling(step, tools), grades, run_id)
    world = TaskWorld(step, environment, state["world"], run_id)
    return Search(step, world, ActSampling(step, environment), grades, run_id)


builder = search_graph("best_of_n", BestOfNContext, start, expand, finish)
graph = builder.compile(name="best_of_n")
