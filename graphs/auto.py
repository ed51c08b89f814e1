"""Auto: the best answer for a budget. It begins cheap, and goes up as long as it pays.

    begin -> choose -> sample | look_up | climb | search | conclude | trial -> choose -> ... -> finish

`choose` says before each turn what comes next and why, by what the run may still spend and what it has found
(`_auto/policy.py`). The stages, from cheap to dear:

    climb     the next model of a ladder (`ladder`) takes over, and these stages begin again
    look_up   evidence, for open questions: draft, search the web, revise with citations (Reflexion)
    sample    whole answers, each thought out step by step; where nothing checks them, short ones vote
    search    tree search (LATS) that begins narrow: at the evidence, with the earlier answers as its first nodes
    conclude  the answer that the best trajectory leads to, where the search has come to none
    trial     reflect on what has failed, and answer once more with the lesson

It stops when something verifies the answer, when another call is expected to gain less than it costs, or at a limit.
"""

from langchain_core.messages import AIMessage
from langgraph.types import Overwrite

from reflective_agents.environments.plain import PLAIN
from reflective_agents.graphs import reflexion
from reflective_agents.graphs._auto.answer_budget import stage_node
from reflective_agents.graphs._auto.answering import by_votes, distinct, draw, elected, reflect
from reflective_agents.graphs._auto.growing import plant_tree, widening_search
from reflective_agents.graphs._auto.ladder import (
    climbed,
    ladder_node,
    of_this_rung,
    on_rung,
    rung_of,
    rungs_left,
    with_bills,
)
from reflective_agents.graphs._auto.policy import calls_to_spare
from reflective_agents.graphs._auto.policy import choose as next_stage
from reflective_agents.graphs._auto.progress import measure_progress, rollouts, spent_limit, under_way, vote_safety
from reflective_agents.graphs._auto.state import STAGES, Attempt, AutoOutput, AutoState, LookedUp, Turn
from reflective_agents.nodes.acting.agent import appraise, environment_of
from reflective_agents.nodes.asking.chat import model_of
from reflective_agents.nodes.asking.pairs import rank_by_pairs
from reflective_agents.nodes.asking.sampling import calls_for
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.delegating.inner import inner_settings, outcome_in_run
from reflective_agents.nodes.evidence.long_questions import words_of
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.evidence.research import find
from reflective_agents.nodes.evidence.sources import observations_on, sources_of, thread_sources
from reflective_agents.nodes.evidence.verifying import Evidence, with_support
from reflective_agents.nodes.remembering.lessons import lessons_message
from reflective_agents.nodes.step import Step, Update, stop, stop_at, stop_solved
from reflective_agents.nodes.turn import ENDED, Ended, begin, end, strategy_graph, unless_ended
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.outcome import UNCHECKED, Appraisal, with_reason
from reflective_agents.state.settings.auto import AutoContext
from reflective_agents.state.settings.reflexion import ReflexionContext
from reflective_agents.state.tree import TreeNode, TreeView
from reflective_agents.state.trial import ActingInput
from reflective_agents.tree_search.graph import FRESH, answer, enter
from reflective_agents.tree_search.graph import conclude as answer_from
from reflective_agents.tree_search.loop import SearchStep
from reflective_agents.tree_search.tree_paths import path, rank, unpruned


@ladder_node
async def choose(state: AutoState, step: Step[AutoContext]) -> Update:
    """Say what comes next and why, or that the run is over."""
    if under_way(state) and not state["search_over"]:
        return {}
    progress = await measure_progress(state, step)
    stage, why = next_stage(progress, step.context)
    step.emit("stage", stage=stage or "none", why=why, calls_left=progress.calls)
    update: Update = {
        "turns": [Turn(stage=stage or "", why=why, model_calls=step.meter.usage["model_calls"])],
    }
    if stage:
        return update
    if progress.calls < 1:
        return update | stop_at(state["limit"] or spent_limit(state, step), why)
    if state["limit"]:
        return update | stop_at(state["limit"], why)
    return update | stop("answered", why)


@stage_node("sample")
async def sample(state: AutoState, step: Step[AutoContext]) -> Update:
    """Sample whole answers: one, where it can be checked, else as many as a vote begins with, and as leave enough calls
    for a rollout."""
    count = 1 if step.context.environment is not None else max(step.context.samples - len(of_this_rung(state)), 1)
    if calls_for(model_of(step, step.context.model), count) > 1:
        count = min(count, max(int(calls_to_spare(await measure_progress(state, step))), 1))
    attempts, stopped = await draw(state, step, count, state["lessons"])
    return await take_samples(state, step, attempts, stopped)


@ladder_node
async def look_up(state: AutoState, step: Step[AutoContext]) -> Update:
    """Let Reflexion look for evidence, and end the run if that supports its answer. Where the model fails at that, what
    was asked is looked up as it stands."""
    settings, lessons = inner_settings(ReflexionContext, step), [lesson["text"] for lesson in state["lessons"]]
    shown = [lessons_message(lessons), *state["messages"]] if lessons else state["messages"]
    result = await reflexion.graph.ainvoke({"messages": step.whole(shown)}, context=settings)
    step.meter.add(result["usage"])
    outcome = outcome_in_run(result["outcome"], step)
    sources = result["sources"]
    if result["answer"] is None:
        if not result["usage"]["parse_failures"]:
            may_climb = outcome["status"] == "failed" and rungs_left(state, step)
            return climbed(state, step) if may_climb else {"outcome": outcome}
        sources, _ = await find(step, state["run_id"], [words_of(state["messages"][-1])])
    evidence = LookedUp(answer=result["answer"] or "", sources=sources, said=result["messages"][-1].id)
    if rung := rung_of(state):
        evidence["rung"] = rung
    evidence["declined"] = outcome.get("answered") is False
    if support := result.get("support"):
        evidence["support"] = support
    step.emit("evidence", answer=evidence["answer"], sources=len(evidence["sources"]), reason=outcome["reason"])
    limit = outcome.get("limit")
    if limit and limit["name"] == "max_rounds":
        limit = None
    update: Update = {"evidence": evidence, "limit": limit}
    return {**update, "outcome": outcome} if outcome["status"] == "solved" else update


@stage_node("search")
async def search(state: AutoState, step: Step[AutoContext]) -> Update:
    """Grow the tree by one job; the first makes its root."""
    evidence = state["evidence"] or LookedUp(answer="", sources=[], said=None)
    answers = [text for text in [*distinct(state["samples"]), evidence["answer"]] if text]
    tree = await widening_search(state, step, answers)
    if not state["tree"]:
        return plant_tree(state, step, tree, evidence["sources"])
    update = await SearchStep(state, step, tree).run()
    if update.get("best", state["best"]) != state["best"]:
        update["better"] = rollouts(state)
    ended = update.pop("outcome", None)
    if ended is None:
        return update
    if ended["status"] in ("solved", "failed"):
        return update | {"outcome": ended}
    step.emit("search_over", why=ended["reason"])
    return update | {"search_over": ended["reason"], "limit": ended.get("limit")}


@stage_node("conclude")
async def conclude(state: AutoState, step: Step[AutoContext]) -> Update:
    """Ask for the answer that the best trajectory leads to, where the tree has come to none."""
    text, reward = await answer_from(state, step, await widening_search(state, step), None)
    world = await environment_of(step.context) or PLAIN
    attempt = Attempt(text=text, answer=text, normal=world.normal(text), reward=reward, observation="")
    step.emit("sample", answer=text, reward=reward)
    taken = await take_samples(state, step, [attempt] if text else [], None)
    return {"concluded": True} | taken


@stage_node("trial")
async def trial(state: AutoState, step: Step[AutoContext]) -> Update:
    """Reflect on what has failed, and answer once more with the lesson."""
    lesson = await reflect(state, step)
    attempts, stopped = await draw(state, step, 1, [*state["lessons"], lesson])
    return {"lessons": [lesson], "trials": state["trials"] + 1} | await take_samples(state, step, attempts, stopped)


@ladder_node
async def climb(state: AutoState, step: Step[AutoContext]) -> Update:
    """Let the next model of the ladder take over."""
    return climbed(state, step)


@ladder_node
async def finish(state: AutoState, step: Step[AutoContext]) -> Update:
    """Answer with the best that was found; with a ladder the outcome says which model has answered."""
    return with_bills(state, step, await answer_with_best(state, step))


async def answer_with_best(state: AutoState, step: Step[AutoContext]) -> Update:
    """Answer with an answer that is verified, else with what was looked up, if that says that there is no answer and
    the tree has found none with sources, else with that of the tree, of a safe vote, of the evidence, of any vote."""
    best, evidence, ended = elected(state["samples"]), state["evidence"], state["outcome"]
    if best and is_right(best):
        return await answer_with(state, step, best)
    cited = AIMessage(evidence["answer"], id=evidence["said"]) if evidence and evidence["answer"] else None
    is_solved = ended is not None and ended["status"] == "solved"
    is_verified = is_solved and state["turns"][-1]["stage"] == "look_up"
    if cited and evidence and evidence.get("declined") and not is_solved:
        found = best_cited(state["tree"])
        if found is None or found["messages"][0].text == cited.text:
            return await answer_from_sources(state, step, cited)
        return await answer_from_tree(state, step, found)
    is_safe = vote_safety(state, await environment_of(step.context)) >= step.context.confidence
    is_open = not is_solved and (bool(state["best"]) or not is_safe)
    if step.context.choose == "pairs" and is_open and (chosen := await by_pairs(state, step, cited)):
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
    search, best = await widening_search(state, step), state["tree"].get(state["best"] or "")
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
    search, best = await widening_search(state, step), state["tree"].get(state["best"] or "")
    texts = [search.world.answer(best)] if best else []
    if cited:
        texts.append(cited.text)
    samples = by_votes(state["samples"])
    first = {sample["answer"]: sample for sample in reversed(samples)}
    rivals = [*dict.fromkeys([*texts, *distinct(samples)])]
    shown, most = [quoted("answer", text) for text in rivals], step.context.comparisons
    judge = step.context.judge_model or step.context.model
    ranking = await rank_by_pairs(
        step, judge, shown[: most + 1], most, request=state["request"], task=search.world.task
    )
    if not ranking.results:
        return None
    winner, reached = rivals[ranking.best], state["outcome"]
    outcome = with_reason(reached, f"of {len(rivals)} answers, {ranking.reason}")
    chosen: AutoState = {**state, "outcome": outcome}
    if winner in first:
        return await answer_with(chosen, step, first[winner])
    if cited and winner == cited.text:
        return await answer_from_sources(chosen, step, cited)
    return await answer(chosen, step, search)


async def answer_from_sources(state: AutoState, step: Step[AutoContext], cited: AIMessage) -> Update:
    """Answer with what was looked up, and what came of the check of its sources."""
    evidence = state["evidence"]
    on_rung(step, evidence.get("rung", 0) if evidence else 0)
    support = evidence.get("support") if evidence else None
    declined = bool(evidence and evidence.get("declined"))
    if support is None:
        return await end(state, step, cited, appraisal=Appraisal(answered=False) if declined else UNCHECKED)
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
    update = await end(state, step, AIMessage(best["answer"]), appraisal=appraise(environment, best["answer"], reward))
    return {"reward": reward} | update


def is_right(attempt: Attempt) -> bool:
    """Tell whether the environment or the verifiers accept a sample, both where there are both."""
    return attempt.get("accepted", attempt["reward"] is not None and attempt["reward"] >= 1)


async def take_samples(
    state: AutoState, step: Step[AutoContext], attempts: list[Attempt], stopped: LimitReached | ModelFailed | None
) -> Update:
    """Take samples in, and end the run if one of them is right."""
    update: Update = {"samples": attempts}
    number = len(state["samples"]) + len(attempts)
    environment = await environment_of(step.context)
    if right := next(filter(is_right, attempts), None):
        if environment and right.get("rewarded", True):
            return update | stop_solved(environment.verifier, f"sample {number} has a reward of 1")
        return update | stop_solved("verifiers", f"the verifiers accept sample {number}")
    return {**update, "limit": stopped.limit} if isinstance(stopped, LimitReached) else update


class Chosen(Ended):
    """What the router after `choose` has to know."""

    turns: list[Turn]


def to_stage(state: Chosen) -> str:
    """Go where the last turn says, or to the end."""
    return ENDED if state["outcome"] else f"{state['turns'][-1]['stage']} pays most"


builder = strategy_graph(
    AutoState,
    context_schema=AutoContext,
    input_schema=ActingInput,
    output_schema=AutoOutput,
    employs=lambda _: {"look_up": {"reflexion": reflexion.graph}},
)
builder.add_node(
    "begin",
    begin(
        "auto",
        AutoContext,
        enter,
        **FRESH,
        samples=Overwrite([]),
        evidence=None,
        turns=Overwrite([]),
        search_over="",
        limit=None,
        concluded=False,
        trials=0,
        better=0,
        longest={},
        rungs=[],
        reward=None,
    ),
)
builder.add_node("choose", choose)
builder.add_node("sample", sample)
builder.add_node("look_up", look_up)
builder.add_node("climb", climb)
builder.add_node("search", search)
builder.add_node("conclude", conclude)
builder.add_node("trial", trial)
builder.add_node("finish", finish)
builder.add_edge("begin", "choose")
builder.add_conditional_edges(
    "choose", to_stage, {ENDED: "finish", **{f"{stage} pays most": stage for stage in STAGES}}
)
for stage in STAGES:
    builder.add_conditional_edges(stage, *unless_ended("choose"))

graph = builder.compile(name="auto")
