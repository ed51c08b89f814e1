"""Language Agent Tree Search (Zhou et al. 2024, arXiv 2310.04406).

    begin -> start -> expand -> expand -> ... -> finish

`start` makes the root. Each `expand` selects a leaf by UCT, samples n candidates from it, lets them act and grades
them: V = lambda * judge + (1 - lambda) * self-consistency, unless the environment rewards them. With `simulate` the
best child is expanded in turn, down to the end of the task. Rewards are backpropagated, and failed trajectories
reflected on: the lessons stand in the prompts of all that follows (section 4.2). The best answer wins, wherever in the
tree it stands.

Open questions are searched with tools and without simulation; in an environment the paper's settings hold.
"""

from nodes.agent import environment_of
from nodes.growth import Search
from nodes.policies import ActSampling, ChatSampling, ListProposals
from nodes.research import search_tools
from nodes.searches import answer, first, search_graph
from nodes.searching import Round
from nodes.step import Step, Update, node
from nodes.values import Consistent, Judging, JudgingTogether, Labelling, Value
from nodes.worlds import OpenWorld, TaskWorld
from search.mcts import Mcts
from state.searching import LatsContext
from state.tree import SearchState


@node(LatsContext)
async def start(state: SearchState, step: Step[LatsContext]) -> Update:
    """Make the root: the task as it stands, or for an open question a first step."""
    return await first(state, step, algorithm(step.context), await parts(state, step))


@node(LatsContext)
async def expand(state: SearchState, step: Step[LatsContext]) -> Update:
    """Select leaves by UCT and grow them, `parallel` at once."""
    return await Round(state, step, algorithm(step.context), await parts(state, step)).run()


@node(LatsContext)
async def finish(state: SearchState, step: Step[LatsContext]) -> Update:
    """Answer with the best answer found."""
    return await answer(state, step, await parts(state, step))


def algorithm(context: LatsContext) -> Mcts:
    """What is expanded next."""
    return Mcts(context.n, context.exploration_weight, context.simulate, context.max_rollouts)


async def parts(state: SearchState, step: Step[LatsContext]) -> Search:
    """What it is expanded with: a world, a policy and a value."""
    context, run_id, environment = step.context, state["run_id"], await environment_of(step.context)
    grades: Value = JudgingTogether(step) if context.grading == "together" else Judging(step)
    if environment is None:
        tools = search_tools(step, run_id)
        world, policy, revise = OpenWorld(step, tools), ChatSampling(step, tools), context.revise_answers
        return Search(step, world, policy, mixed(grades, context), run_id, revise, context.max_lessons)
    task = TaskWorld(step, environment, state["world"], run_id)
    grades = Labelling(step, task.show) if context.grades == "labels" else grades
    acts = ListProposals(step, task) if context.proposals == "list" else ActSampling(step, environment)
    return Search(step, task, acts, mixed(grades, context), run_id, True, context.max_lessons)


def mixed(grades: Value, context: LatsContext) -> Value:
    """A value with its share of self-consistency, if it has one."""
    return Consistent(grades, context.judge_weight) if context.judge_weight < 1 else grades


builder = search_graph("lats", LatsContext, start, expand, finish)
graph = builder.compile(name="lats")
