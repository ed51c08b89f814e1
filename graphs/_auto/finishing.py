"""Which answer `graphs.auto` returns: of its samples, of what was looked up, or of the tree."""

from langchain_core.messages import AIMessage

from reflective_agents.graphs._auto.answering import by_votes, distinct, elected, is_right
from reflective_agents.graphs._auto.growing import widening_search
from reflective_agents.graphs._auto.ladder import on_rung
from reflective_agents.graphs._auto.progress import vote_safety
from reflective_agents.graphs._auto.state import Attempt, AutoState, LookedUp
from reflective_agents.nodes.acting.agent import appraise, environment_of
from reflective_agents.nodes.asking.pairs import rank_by_pairs
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.evidence.sources import observations_on, sources_of, thread_sources
from reflective_agents.nodes.evidence.verifying import Evidence, with_support
from reflective_agents.nodes.step import Step, Update
from reflective_agents.nodes.turn import end
from reflective_agents.state.outcome import UNCHECKED, Appraisal, with_reason
from reflective_agents.state.settings.auto import AutoContext
from reflective_agents.state.tree import TreeNode, TreeView
from reflective_agents.tree_search.graph import answer
from reflective_agents.tree_search.tree_paths import path, rank, unpruned


async def answer_with_best(state: AutoState, step: Step[AutoContext]) -> Update:
    """Answer with an answer that is verified, else with what was looked up, if that says that there is no answer and
    the tree has found none with sources, else with that of the tree, of a safe vote, of the evidence, of any vote."""
    best = elected(state["samples"])
    if best and is_right(best):
        return await answer_with(state, step, best)
    ended = state["outcome"]
    is_solved = ended is not None and ended["status"] == "solved"
    is_verified = is_solved and state["turns"][-1]["stage"] == "look_up"
    evidence = state["evidence"]
    cited = AIMessage(evidence["answer"], id=evidence["said"]) if evidence and evidence["answer"] else None
    if cited and evidence and evidence.get("declined") and not is_solved:
        found = best_cited(state["tree"])
        if found is None or found["messages"][0].text == cited.text:
            return await answer_from_sources(state, step, cited)
        return await answer_from_tree(state, step, found)
    is_safe = vote_safety(state, await environment_of(step.context)) >= step.context.confidence
    is_open = not is_solved and (bool(state["best"]) or not is_safe)
    if step.context.choose == "pairs" and is_open:
        chosen = await by_pairs(state, step, cited)
        if chosen:
            return chosen
    if state["best"] and not is_verified:
        return await answer_of_tree(state, step)
    if cited and (is_verified or not best or not is_safe):
        return await answer_from_sources(state, step, cited)
    if best:
        return await answer_with(state, step, best)
    return await answer_of_tree(state, step)


async def answer_of_tree(state: AutoState, step: Step[AutoContext]) -> Update:
    """Answer with the best of the tree, which may be an earlier sample of a cheaper model."""
    search = await widening_search(state, step)
    best = state["tree"].get(state["best"] or "")
    text = search.world.answer(best) if best else ""
    samples = [sample for sample in by_votes(state["samples"]) if sample["answer"] == text]
    if samples:
        on_rung(step, samples[0].get("rung", 0))
        search = await widening_search(state, step)
    return await answer(state, step, search)


async def by_pairs(state: AutoState, step: Step[AutoContext], cited: AIMessage | None) -> Update | None:
    """Answer with what wins the comparisons of the best of the tree, of what was looked up, and of the samples, the
    strongest model's first, of those the most frequent. None if something scores answers, or none can be compared."""
    if any(sample["reward"] is not None for sample in state["samples"]):
        return None
    search = await widening_search(state, step)
    best = state["tree"].get(state["best"] or "")
    texts = [search.world.answer(best)] if best else []
    if cited:
        texts.append(cited.text)
    samples = by_votes(state["samples"])
    rivals = list(dict.fromkeys([*texts, *distinct(samples)]))
    shown = [quoted("answer", text) for text in rivals]
    most = step.context.comparisons
    judge = step.context.judge_model or step.context.model
    ranking = await rank_by_pairs(
        step, judge, shown[: most + 1], most, request=state["request"], task=search.world.task
    )
    if not ranking.results:
        return None
    winner = rivals[ranking.best]
    outcome = with_reason(state["outcome"], f"of {len(rivals)} answers, {ranking.reason}")
    chosen: AutoState = {**state, "outcome": outcome}
    for sample in samples:
        if sample["answer"] == winner:
            return await answer_with(chosen, step, sample)
    if cited and winner == cited.text:
        return await answer_from_sources(chosen, step, cited)
    return await answer(chosen, step, search)


async def answer_from_sources(state: AutoState, step: Step[AutoContext], cited: AIMessage) -> Update:
    """Answer with what was looked up, and what came of the check of its sources."""
    evidence = state["evidence"] or LookedUp(answer="", sources=[], said=None)
    on_rung(step, evidence.get("rung", 0))
    support = evidence.get("support")
    if support is None:
        appraisal = Appraisal(answered=False) if evidence.get("declined") else UNCHECKED
        return await end(state, step, cited, appraisal=appraisal)
    reached, appraisal = with_support(state["outcome"], UNCHECKED, support)
    checked: AutoState = {**state, "outcome": reached}
    return await end(checked, step, cited, appraisal=appraisal) | {"support": support}


def best_cited(tree: TreeView) -> TreeNode | None:
    """Return the best answer of a tree that cites sources; None if there is none."""
    answers = [node for node in unpruned(tree) if node["kind"] == "answer" and node["messages"]]
    cited = [node for node in answers if split_references(node["messages"][0].text)[1]]
    return min(cited, key=rank, default=None)


async def answer_from_tree(state: AutoState, step: Step[AutoContext], found: TreeNode) -> Update:
    """Answer with what the tree has found where the look-up has not, held against its sources: no judge accepts it."""
    chosen: AutoState = {**state, "best": found["id"]}
    shown = observations_on(path(state["tree"], found["id"]))
    evidence = Evidence(sources_of(shown, thread_sources(state["messages"])))
    search = await widening_search(state, step)
    return {"best": found["id"]} | await answer(chosen, step, search, evidence=evidence)


async def answer_with(state: AutoState, step: Step[AutoContext], best: Attempt) -> Update:
    """Answer with a sample."""
    on_rung(step, best.get("rung", 0))
    environment = await environment_of(step.context)
    reward = best["reward"] if environment and best.get("rewarded", True) else None
    appraisal = appraise(environment, best["answer"], reward)
    return {"reward": reward} | await end(state, step, AIMessage(best["answer"]), appraisal=appraisal)
