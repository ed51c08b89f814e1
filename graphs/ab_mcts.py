"""Adaptive branching MCTS, variant A (Inoue et al. 2025, arXiv 2503.04412).

    begin -> start -> expand -> expand -> ... -> finish

Every node is an answer with a judge's critique of it (or a step towards one, with tools or in an environment). At every
node Thompson sampling decides between wider (one more new answer) and deeper (an answer that follows the critique of
this one), and among several models: see `search/ab_mcts.py`. Where first answers vary much it widens, where critiques
help it deepens. An answer that comes up once more at the same place is merged with the first.
"""

from nodes.agent import environment_of
from nodes.growth import Search
from nodes.policies import ActSampling, Arms, ChatSampling
from nodes.research import search_tools
from nodes.searches import answer, rooted, search_graph
from nodes.searching import Round
from nodes.step import Step, Update, node
from nodes.values import Judging
from nodes.worlds import OpenWorld, TaskWorld
from search.ab_mcts import AbMcts
from state.context import Model
from state.searching import AbMctsContext
from state.tree import SearchState


@node(AbMctsContext)
async def start(state: SearchState, step: Step[AbMctsContext]) -> Update:
    """Make the root, at which all is still open."""
    return rooted(state, step, algorithm(state, step.context))


@node(AbMctsContext)
async def expand(state: SearchState, step: Step[AbMctsContext]) -> Update:
    """Draw where to go wider, and with which model; `parallel` answers at once."""
    return await Round(state, step, algorithm(state, step.context), await parts(state, step)).run()


@node(AbMctsContext)
async def finish(state: SearchState, step: Step[AbMctsContext]) -> Update:
    """Answer with the best answer found."""
    return await answer(state, step, await parts(state, step))


def algorithm(state: SearchState, context: AbMctsContext) -> AbMcts:
    """What is tried next. The draws depend on the question too, so that the searches of a data set are independent."""
    return AbMcts(tuple(arms(context)), context.prior, f"{context.seed} {state['request']}")


def arms(context: AbMctsContext) -> dict[str, Model]:
    """The models by name: that of a string, else the place in the list. The setting `model` alone has none."""
    given = context.arms or []
    names = [model if isinstance(model, str) and given.count(model) == 1 else str(i) for i, model in enumerate(given)]
    return dict(zip(names, given, strict=True)) or {"": context.model}


async def parts(state: SearchState, step: Step[AbMctsContext]) -> Search:
    """A world, a policy for each model, and the judge whose critique is the way down."""
    environment, run_id = await environment_of(step.context), state["run_id"]
    if environment is None:
        tools = search_tools(step, run_id)
        each = {name: ChatSampling(step, tools, model) for name, model in arms(step.context).items()}
        return Search(step, OpenWorld(step, tools), Arms(each), Judging(step), run_id, revise=True)
    world = TaskWorld(step, environment, state["world"], run_id)
    acting = {name: ActSampling(step, environment, model) for name, model in arms(step.context).items()}
    return Search(step, world, Arms(acting), Judging(step), run_id, revise=True)


builder = search_graph("ab_mcts", AbMctsContext, start, expand, finish)
graph = builder.compile(name="ab_mcts")
