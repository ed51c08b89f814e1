"""Steering a tree search by hand: what is given up, set, hinted at or asked for, on runs that wait or have ended."""

from importlib import import_module
from typing import Any

import pytest
from langchain_core.messages import RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from reflective_agents.state.errors import Misuse
from reflective_agents.state.settings import settings_of
from reflective_agents.state.tree import Change
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from reflective_agents.tree_search.steering import changes_in, earlier, go_on, hint, more, order, prune, rescore, stop
from reflective_agents.tree_search.tree_paths import is_below
from reflective_agents.viewer.figures import figures, pruned
from reflective_agents.viewer.picture import picture
from tests.strategies import STRATEGIES, TREES

SCRIPTS = {strategy.name: strategy for strategy in STRATEGIES}
every_search = pytest.mark.parametrize("strategy", TREES)
QUESTION: dict[str, Any] = {"messages": [("user", "What do tides do?")]}


class Thread:
    """A tree search on a thread, whose models are scripted and never satisfied."""

    def __init__(self, strategy: str = "lats", script: Any = None, **settings: Any) -> None:
        self.model = FakeChatModel(reply=script or SCRIPTS[strategy].endless)
        module = import_module(f"reflective_agents.graphs.{strategy}")
        self.graph: CompiledStateGraph[Any, Any, Any, Any] = module.builder.compile(
            name=strategy, checkpointer=InMemorySaver()
        )
        self.config: RunnableConfig = {"configurable": {"thread_id": "1"}}
        given = {**SCRIPTS[strategy].settings, "model": self.model, "search": "none", "max_expansions": 4, **settings}
        self.context = settings_of(strategy).model_validate(given)

    async def run(self, given: Any = None, config: RunnableConfig | None = None, **options: Any) -> Any:
        await self.graph.ainvoke(given, config or self.config, context=self.context, **options)
        return await self.values()

    async def values(self) -> Any:
        return (await self.graph.aget_state(self.config)).values

    async def pause(self, steps: int) -> Any:
        """Run until the log has so many entries."""
        values = await self.run(QUESTION, interrupt_before=["expand"])
        while len(values["log"]) < steps and not values["outcome"]:
            values = await self.run(None, interrupt_before=["expand"])
        return values


def open_below(values: Any, node: str) -> list[str]:
    return [key for key, stat in values["stats"].items() if is_below(key, node) and not stat["closed"]]


def sums(values: Any) -> dict[str, tuple[int, float]]:
    return {key: (stat["visits"], stat["total"]) for key, stat in values["stats"].items()}


@pytest.mark.matrix(keep=2)
@every_search
async def test_a_pruned_node_is_never_expanded_again_nor_answered_with(strategy: str) -> None:
    thread = Thread(strategy)
    before = await thread.pause(3)
    node = next(key for key in before["tree"] if key.count(".") == 1)
    after = await thread.run(prune(before, node))
    grown = [key for key in after["tree"].keys() - before["tree"].keys() if is_below(key, node)]
    assert (grown, open_below(after, node)) == ([], [])
    assert after["outcome"] is not None
    assert after["best"] is None or not is_below(after["best"], node)
    assert [entry["kind"] for entry in after["log"]].count("prune") == 1


@pytest.mark.matrix(keep=2)
@every_search
async def test_the_log_tells_all_figures(strategy: str) -> None:
    thread = Thread(strategy)
    before = await thread.pause(3)
    first, *others = [key for key in before["tree"] if key.count(".") == 1]
    await thread.run(rescore(before, first, 0.9), interrupt_before=["expand"])
    if others:
        await thread.run(prune(await thread.values(), others[-1]), interrupt_before=["expand"])
    after = await thread.run(more(await thread.values(), 2))
    drawn = picture(after, strategy)
    seen = {key: (own["visits"], own["total"]) for key, own in figures(drawn).items()}
    assert seen == {key: pytest.approx(figure) for key, figure in sums(after).items() if key in seen}
    assert seen.keys() == after["stats"].keys()
    assert {*others[-1:]} <= pruned(drawn)
    assert len(drawn["frames"]) == len(after["log"])


@pytest.mark.matrix(keep=2)
@every_search
async def test_an_ended_search_goes_on_when_more_is_asked_for(strategy: str) -> None:
    thread = Thread(strategy)
    ended = await thread.run(QUESTION)
    again = await thread.run(more(ended, 3))
    limit = again["outcome"].get("limit", {})
    if ended["outcome"]["status"] == "limit_reached":
        assert (again["expansions"], limit.get("most")) == (7, 7)
    assert [message.type for message in again["messages"]] == ["human", "ai"]
    assert again["messages"][-1].text == again["answer"]


@pytest.mark.matrix(keep=2)
@every_search
async def test_a_stopped_search_answers_with_the_tree_it_has_and_goes_on_when_more_is_asked_for(strategy: str) -> None:
    thread = Thread(strategy)
    before = await thread.pause(3)
    stopped = await thread.run(stop(before))
    assert (stopped["tree"], stopped["expansions"]) == (before["tree"], before["expansions"])
    assert [entry["kind"] for entry in stopped["log"][len(before["log"]) :]] == ["stop"]
    assert stopped["outcome"]["status"] == "exhausted"
    assert stopped["outcome"]["reason"].startswith("a person has stopped the search")
    assert stopped["messages"][-1].text == stopped["answer"]
    again = await thread.run(more(stopped, 1))
    assert again["expansions"] > stopped["expansions"] or before["outcome"]["status"] == "exhausted"


async def test_a_stop_calls_no_model_where_there_is_an_answer() -> None:
    thread = Thread()
    before = await thread.pause(3)
    assert any(node["kind"] == "answer" for node in before["tree"].values())
    calls = len(thread.model.calls)
    await thread.run(stop(before))
    assert len(thread.model.calls) == calls


async def test_a_thread_whose_messages_a_client_has_removed_can_be_steered() -> None:
    thread = Thread()
    await thread.pause(3)
    removed = {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]}
    await thread.graph.aupdate_state(thread.config, removed, as_node="expand")
    stopped = await thread.run(stop(await thread.values()))
    assert stopped["outcome"]["status"] == "exhausted"
    assert [message.type for message in stopped["messages"]] == ["ai"]


async def test_a_score_counts_for_all_above_as_if_the_judge_had_given_it() -> None:
    thread = Thread()
    before = await thread.pause(3)
    node = next(key for key in before["tree"] if key.count(".") == 2)
    after = await thread.run(rescore(before, node, 1.0), interrupt_before=["expand"])
    gained = 1.0 - before["tree"][node]["score"]
    above = {key: total + gained for key, (_, total) in sums(before).items() if is_below(node, key)}
    assert {key: sums(after)[key][1] for key in above} == pytest.approx(above)
    assert after["tree"][node]["score"] == 1.0
    assert after["best"] == node
    assert {key for key in after["stats"] if sums(after)[key] != sums(before)[key]} == above.keys()


async def test_the_last_score_of_a_person_holds() -> None:
    thread = Thread()
    values = await thread.pause(3)
    node = next(key for key in values["tree"] if key.count(".") == 2)
    judged, total = values["tree"][node]["score"], sums(values)[node][1]
    for score in (0.95, 0.2, 1.0, 0.3):
        values = await thread.run(rescore(await thread.values(), node, score), interrupt_before=["expand"])
        assert values["tree"][node]["score"] == pytest.approx(score)
        assert sums(values)[node][1] == pytest.approx(total + score - judged)


async def test_a_hint_stands_in_all_prompts_below_its_node_and_in_no_others() -> None:
    thread = Thread(n=2)
    before = await thread.pause(2)
    calls = len(thread.model.calls)
    await thread.run(hint(before, "0.1", "Think of the <moon>."), interrupt_before=["expand"])
    await thread.run(rescore(await thread.values(), "0.1", 1.0), interrupt_before=["expand"])
    after = await thread.run(None)
    assert any(is_below(key, "0.1.0") for key in after["tree"])
    has_hint = ["moon" in str(call) for call in thread.model.calls[calls:]]
    below = sum(is_below(str(entry["node"]), "0.1") for entry in after["log"][4:])
    assert below > 0
    assert sum(has_hint) == below * 2


async def test_who_has_not_seen_what_another_has_ordered_is_told() -> None:
    thread = Thread()
    seen = await thread.pause(3)
    first, second = prune(seen, "0.0"), rescore(seen, "0.0", 1.0)
    await thread.run(first, interrupt_before=["expand"])
    events = [
        event
        async for event in thread.graph.astream(
            second, thread.config, context=thread.context, stream_mode="custom", interrupt_before=["expand"]
        )
    ]
    after = await thread.values()
    assert [event["event"] for event in events] == ["refused"]
    assert "somebody else has steered" in events[0]["why"] == after["log"][-1]["said"]
    assert changes_in(after) == 1
    assert after["tree"]["0.0"]["score"] == seen["tree"]["0.0"]["score"]


async def test_a_refused_order_leaves_an_ended_thread_as_it_was() -> None:
    thread = Thread()
    ended = await thread.run(QUESTION)
    pruned_once = await thread.run(prune(ended, "0.0"))
    calls = len(thread.model.calls)
    after = await thread.run(prune(ended, "0.1"))
    kept = ("answer", "outcome", "tree", "stats", "best", "messages")
    assert {name: after[name] for name in kept} == {name: pruned_once[name] for name in kept}
    assert len(thread.model.calls) == calls
    after = await thread.run(prune(after, "0.1"))
    assert changes_in(after) == 2


async def test_pruning_the_solution_goes_on_and_pruning_anything_else_does_not() -> None:
    thread = Thread(script=SCRIPTS["lats"].solving, max_expansions=3)
    solved = await thread.run(QUESTION)
    assert solved["outcome"]["status"] == "solved"
    best = solved["best"]
    other = next((key for key in solved["tree"] if not is_below(best, key) and not is_below(key, best)), None)
    assert other is not None
    same = await thread.run(prune(solved, other))
    assert (same["best"], same["answer"], len(same["tree"])) == (best, solved["answer"], len(solved["tree"]))
    gone_on = await thread.run(prune(same, best))
    assert gone_on["best"] != best
    assert len(gone_on["tree"]) > len(solved["tree"]) or gone_on["outcome"]["status"] == "solved"


async def test_a_fork_goes_on_from_an_earlier_step() -> None:
    thread = Thread()
    ended = await thread.run(QUESTION)
    checkpoint = await earlier(thread.graph, thread.config, 3)
    values = (await thread.graph.aget_state(checkpoint)).values
    assert len(values["log"]) == 3
    forked = await thread.run(prune(values, "0.0"), checkpoint)
    assert ended["log"][:3] == forked["log"][:3]
    assert forked["log"][3]["kind"] == "prune"
    assert forked["expansions"] == ended["expansions"]
    with pytest.raises(Misuse, match="no state after step 99"):
        await earlier(thread.graph, thread.config, 99)


async def test_a_fork_from_before_an_order_leaves_it_out() -> None:
    thread = Thread()
    await thread.run(prune(await thread.pause(2), "0.0"))
    checkpoint = await earlier(thread.graph, thread.config, 2)
    before = (await thread.graph.aget_state(checkpoint)).values
    plain = await thread.run(go_on(), checkpoint)
    assert changes_in(plain) == 0
    other = await thread.run(prune(before, "0.1"), checkpoint)
    assert [entry["node"] for entry in other["log"] if entry["kind"] in ("prune", "refused")] == ["0.1"]


@pytest.mark.matrix(keep=4)
@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (lambda values: prune(values, "0.77"), "there is no node 0.77"),
        (lambda values: prune(values, "0"), "stop the run"),
        (lambda values: prune(values), "nothing is ordered"),
        (lambda values: rescore(values, "0.0", 1.5), "from 0 to 1"),
        (lambda values: rescore(values, "0.0", float("nan")), "from 0 to 1"),
        (lambda values: rescore(values, "0.0", "0.5"), "score: .* number"),  # type: ignore[arg-type]
        (lambda values: more(values, 1, max_model_calls="3"), "max_model_calls: .* number"),  # type: ignore[arg-type]
        (lambda values: hint(values, "0.0", "  "), "a text of 1 to"),
        (lambda values: more(values), "by how much"),
        (lambda values: more({}, 1), "no tree yet"),
    ],
)
async def test_what_cannot_be_done_is_refused_at_once(wrong: Any, problem: str) -> None:
    values = await Thread().pause(2)
    with pytest.raises(Misuse, match=problem):
        wrong(values)


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize(
    "orders",
    [
        ["nonsense"],
        [{"seen": 0}],
        [{"seen": 0, "changes": [{"kind": "prune", "node": "0.99"}]}],
        [{"seen": 0, "changes": [{"kind": "more", "limits": {"max_expansions": 10**9}}]}],
        [{"seen": 0, "changes": [{"kind": "more", "limits": {"n": 2}}]}],
        [{"seen": 0, "changes": [{"kind": "rescore", "node": "0.0"}]}],
        [{"seen": 0, "changes": [{"kind": "drop"}]}],
    ],
    ids=str,
)
async def test_orders_from_outside_are_checked_and_never_break_a_thread(orders: Any) -> None:
    thread = Thread()
    before = await thread.pause(2)
    after = await thread.run(Command(update={"orders": orders}, goto="expand"), interrupt_before=["expand"])
    assert (after["tree"], after["stats"], after["orders"]) == (before["tree"], before["stats"], [])
    assert (await thread.run(None))["outcome"]["status"] == "limit_reached"


async def test_limits_that_are_raised_twice_in_one_order_stay_within_their_bounds() -> None:
    thread = Thread(max_expansions=1)
    ended = await thread.run(QUESTION)
    changes = [Change(kind="more", limits={"max_expansions": most}) for most in (1, 9_999)]
    after = await thread.run(order(ended, *changes))
    assert [entry["said"] for entry in after["log"] if entry["kind"] == "refused"] == [
        "max_expansions: must be at most 10000 (got 10001.0)"
    ]
    assert after["expansions"] == 2


@pytest.mark.parametrize("node", ["0.0", "0.1", "0.2"])
async def test_a_step_whose_usefulness_is_not_known_takes_the_score_that_a_person_gives_it(node: str) -> None:
    rated = [0]

    def reply(request: Request) -> Reply:
        if request.schema == "Usefulness":
            rated[0] += 1
            return {"scores": [] if rated[0] <= 3 else [0.5] * request.text.count("<candidate number")}
        if "Now we can answer" in request.last:
            return "Answer: 4"
        return f"Which part {request.key[:5]}?\nWhich step {request.key[5:9]}?\nWhat else {request.index}?"

    graph = import_module("reflective_agents.graphs.rap").builder.compile(checkpointer=InMemorySaver())
    settings = {"search": "none", "max_expansions": 2, "max_rollouts": 2, "max_depth": 3, "n": 3}
    context = {"model": FakeChatModel(reply=reply), **settings}
    config: RunnableConfig = {"configurable": {"thread_id": "rap"}}
    await graph.ainvoke({"messages": [("user", "How many legs have two cats?")]}, config, context=context)
    values = (await graph.aget_state(config)).values
    assert "r0" not in values["tree"][node].get("terms", {})
    changes = (
        Change(kind="rescore", node=node, score=0.9),
        Change(kind="more", limits={"max_expansions": 3, "max_rollouts": 3}),
    )
    out = await graph.ainvoke(order(values, *changes), config, context=context)
    assert out["tree"][node]["terms"]["r0"] == pytest.approx(0.9)
    assert out["answer"]
