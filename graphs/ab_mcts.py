"""Adaptive branching MCTS, variant A (Inoue et al. 2025, arXiv 2503.04412).

    begin -> start -> expand -> expand -> ... -> finish

Every node is an answer with a judge's critique of it (or a step towards one, with tools or in an environment). At every
node Thompson sampling decides between wider (one more new answer) and deeper (an answer that follows the critique of
this one), and among several models: see `tree_search/algorithms/ab_mcts.py`. Where first answers vary much it widens,
where critiques help it deepens. An answer that comes up once more at the same place is merged with the first. With
`choose="pairs"` the best answers are compared two at a time at the end.
"""

from reflective_agents.nodes.step import Step
from reflective_agents.state.context import Model
from reflective_agents.state.settings.ab_mcts import AbMctsContext
from reflective_agents.state.tree import SearchState
from reflective_agents.tree_search.algorithms.ab_mcts import AbMcts
from reflective_agents.tree_search.choosing import finishing
from reflective_agents.tree_search.graph import search_graph
from reflective_agents.tree_search.job import TreeSearch
from reflective_agents.tree_search.policies import Arms, sampling_for
from reflective_agents.tree_search.values import Judge
from reflective_agents.tree_search.worlds import world_of


async def ab_mcts(state: SearchState, step: Step[AbMctsContext]) -> TreeSearch:
    """Choose among the models for each answer; the judge's critique is the way down.

    The draws depend on the question too, so that the runs of a data set are independent.
    """
    models, world = arms(step.context), await world_of(state, step)
    policies = {name: sampling_for(step, world, model) for name, model in models.items()}
    return TreeSearch(
        step,
        state["run_id"],
        AbMcts(tuple(models), step.context.prior, f"{step.context.seed} {state['request']}"),
        world,
        Arms(policies),
        Judge(step, world.task),
        revise_answers=True,
    )


def arms(context: AbMctsContext) -> dict[str, Model]:
    """Return the models by name: that of a string, else the place in the list. The setting `model` alone has none."""
    models, by_name = context.arms or [], dict[str, Model]()
    for index, model in enumerate(models):
        is_distinct = models.count(model) == 1
        name = model if isinstance(model, str) and is_distinct else str(index)
        by_name[name] = model
    return by_name or {"": context.model}


builder = search_graph("ab_mcts", AbMctsContext, ab_mcts, finish=finishing(AbMctsContext, ab_mcts))
graph = builder.compile(name="ab_mcts")
