"""Tree search with a judge: control flow, cost, and what published versions get wrong."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from reflective_agents.graphs.lats import builder, graph
from reflective_agents.prompts import lats as prompts
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request, ToolUse

QUESTION = {"messages": [("user", "What do tides do?")]}


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    for name in ("moon", "tides", "sand"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\nThe {name} moves the water of the ocean every single day.\n")
    return str(tmp_path)


def depth(request: Request) -> int:
    return sum(message.type == "ai" for message in request.messages)


def judged(score: float, solved: bool = False) -> dict[str, Any]:
    return {"reasoning": f"worth {score}", "score": score, "solved": solved}


def unsolvable(request: Request) -> Reply:
    """Distinct answers, none of which is ever good enough."""
    if request.schema == "Judgements":
        return {"judgements": [judged(0.5)] * request.text.count("<candidate ")}
    return judged(0.5) if request.schema else f"answer {request.index} at {depth(request)} after {request.key[:6]}"


def numbered(scores: dict[str, float], solved: float = 2.0) -> Any:
    """Answers named by depth and index; the judge scores the last one by its name."""

    def reply(request: Request) -> Reply:
        if request.schema is None:
            return f"answer {depth(request)}.{request.index}"
        name = request.text.split("answer ")[-1].split("\n")[0]
        return judged(scores.get(name, 0.1), scores.get(name, 0.1) >= solved)

    return reply


async def run(script: Any, **context: Any) -> Any:
    settings = {"model": FakeChatModel(reply=script), "search": "none", "grading": "each", **context}
    return await graph.ainvoke(QUESTION, context=LatsContext.model_validate(settings))


async def test_an_unsolvable_question_stops_at_its_limits() -> None:
    model = FakeChatModel(reply=unsolvable)
    out = await graph.ainvoke(QUESTION, context=LatsContext(model=model, search="none", grading="each"))
    assert out["outcome"]["status"] == "limit_reached"
    assert out["outcome"]["limit"] == {"name": "max_expansions", "most": 10, "spent": 10}
    assert len(model.calls) == out["usage"]["model_calls"] == 62
    assert len(out["tree"]) == 51


async def test_siblings_may_be_judged_in_one_call() -> None:
    model = FakeChatModel(reply=unsolvable)
    out = await graph.ainvoke(QUESTION, context=LatsContext(model=model, search="none", grading="together"))
    assert (len(model.calls), len(out["tree"])) == (22, 51)


async def test_a_candidate_without_siblings_is_not_compared() -> None:
    model = FakeChatModel(reply=lambda r: unsolvable(r) if r.schema else "the same answer")
    await graph.ainvoke(QUESTION, context=LatsContext(model=model, search="none", max_expansions=1))
    [judged] = [request for request in model.calls if request.schema]
    assert judged.schema == "Judgements"
    assert "Judge the candidate that continues" in judged.text
    assert "compare them" not in judged.text


async def test_without_n_the_samples_are_requests_of_their_own() -> None:
    number = itertools.count()
    model = FakeChatModelWithoutN(reply=lambda r: unsolvable(r) if r.schema else f"answer {next(number)}")
    out = await graph.ainvoke(QUESTION, context=LatsContext(model=model, search="none", grading="each"))
    assert (len(model.calls), len(out["tree"])) == (102, 51)


async def test_usage_of_n_candidates_is_counted_once() -> None:
    model = FakeChatModel(reply=unsolvable)
    context = LatsContext(model=model, search="none", max_expansions=2, grading="together")
    out = await graph.ainvoke(QUESTION, context=context)
    prompts = sum(len(request.text) // 4 + 1 for request in model.calls)
    assert len(model.calls) == 6
    assert out["usage"]["input_tokens"] == prompts


async def test_a_solved_start_ends_the_search() -> None:
    out = await run(numbered({"0.0": 0.9}, solved=0.8))
    assert (out["answer"], out["outcome"]["status"], out["expansions"]) == ("answer 0.0", "solved", 0)


async def test_an_unsolved_search_returns_its_best_answer_not_the_root() -> None:
    out = await run(numbered({"0.0": 0.2, "1.3": 0.6}), max_expansions=2)
    assert out["answer"] == "answer 1.3"
    assert out["outcome"]["status"] == "limit_reached"


async def test_a_solution_needs_the_minimum_score_beside_the_judges_word() -> None:
    def reply(request: Request) -> Reply:
        return judged(0.1, solved=True) if request.schema else f"answer {depth(request)}.{request.index}"

    out = await run(reply, max_expansions=2)
    assert out["outcome"]["status"] == "limit_reached"
    assert not any(node["solved"] for node in out["tree"].values())


async def test_a_judge_that_calls_a_search_solved_is_not_believed(corpus: str) -> None:
    def reply(request: Request) -> Reply:
        return judged(1.0, solved=True) if request.schema else ToolUse("search", {"query": f"moon {request.key}"})

    out = await run(reply, search="local", corpus=corpus, max_expansions=1, max_model_calls=9)
    assert not any(node["solved"] for node in out["tree"].values())
    assert out["answer"] is None
    assert out["outcome"]["status"] == "failed"


async def test_identical_candidates_are_dropped_before_they_cost_a_judgement() -> None:
    model = FakeChatModel(reply=lambda r: judged(0.5) if r.schema else f"same  text{' ' * r.index} {depth(r)}")
    out = await graph.ainvoke(
        QUESTION, context=LatsContext(model=model, search="none", grading="each", max_expansions=3)
    )
    assert len(out["tree"]) == 4
    assert len(model.calls) == 2 + 3 * 2


async def test_a_step_that_repeats_its_ancestors_is_dropped_and_the_search_is_exhausted() -> None:
    model = FakeChatModel(reply=lambda request: judged(0.5) if request.schema else "always the same")
    out = await graph.ainvoke(QUESTION, context=LatsContext(model=model, search="none", grading="each"))
    assert out["outcome"]["status"] == "exhausted"
    assert out["answer"] == "always the same"
    assert len(model.calls) == 3


async def test_leaves_at_the_greatest_depth_are_not_expanded() -> None:
    out = await run(unsolvable, max_depth=1, max_expansions=50)
    assert out["outcome"]["status"] == "exhausted"
    assert len(out["tree"]) == 6
    assert max(node["depth"] for node in out["tree"].values()) == 1


async def test_answers_may_be_terminal_as_in_the_paper() -> None:
    out = await run(unsolvable, revise_answers=False)
    assert (out["outcome"]["status"], len(out["tree"])) == ("exhausted", 1)


async def test_the_judge_sees_the_whole_trajectory_with_its_evidence(corpus: str) -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return judged(0.3)
        return f"answer {request.index}" if depth(request) else ToolUse("search", {"query": "moon"})

    model = FakeChatModel(reply=reply)
    context = LatsContext(model=model, search="local", corpus=corpus, grading="each", max_expansions=1, n=2)
    out = await graph.ainvoke(QUESTION, context=context)
    last = [request for request in model.calls if request.schema][-1]
    for part in ("<request>\nWhat do tides do?", 'search({"query": "moon"})', "corpus:moon.md", "<answer>\nanswer"):
        assert part in last.text
    assert out["tree"]["0"]["kind"] == "action"
    assert [message.type for message in out["tree"]["0"]["messages"]] == ["ai", "tool"]
    assert out["answer"].startswith("answer")


async def test_the_judge_of_the_first_steps_is_told_that_nothing_was_done_before() -> None:
    model = FakeChatModel(reply=lambda request: judged(0.9, solved=True) if request.schema else "The moon.")
    await graph.ainvoke(QUESTION, context=LatsContext(model=model, search="none"))
    [first, *_] = [request for request in model.calls if request.schema]
    assert "<trajectory>\nNothing was done before.\n</trajectory>" in first.last
    assert prompts.RUBRIC in first.text


@pytest.fixture
def seas(corpus: str) -> str:
    """Documents of which each is found by its own word only."""
    for number in range(5):
        Path(corpus, f"sea{number}.md").write_text(f"# Another\n\nThe sea{number} is deep.\n")
    return corpus


async def test_siblings_run_their_tools_and_judges_at_once(seas: str) -> None:
    full = asyncio.Event()

    def reply(request: Request) -> Reply:
        query = f"sea{request.index}" if depth(request) else "moon"
        return judged(0.3) if request.schema else ToolUse("search", {"query": query})

    def latency(request: Request) -> float:
        if model.in_flight == 5:
            full.set()
        return 60 if "sea4" in request.text or len(model.calls) > 2 else 0

    model: FakeChatModel = FakeChatModel(reply=reply, latency=latency)
    context = LatsContext(model=model, search="local", corpus=seas, grading="each", max_expansions=1)
    task = asyncio.create_task(graph.ainvoke(QUESTION, context=context))
    async with asyncio.timeout(30):
        await full.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [request.schema for request in model.calls[2:]] == ["Judgement"] * 5


@pytest.mark.parametrize("grading", ["each", "together"])
async def test_a_first_step_is_judged_only_where_it_answers(seas: str, grading: str) -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return unsolvable(request)
        return f"answer {request.index}" if depth(request) else ToolUse("search", {"query": "sea1"})

    out = await run(reply, search="local", corpus=seas, grading=grading, max_expansions=1)
    assert out["tree"]["0"]["score"] is None
    assert [out["tree"][f"0.{i}"]["score"] for i in range(5)] == [0.5] * 5
    assert (out["stats"]["0"]["visits"], out["stats"]["0"]["total"]) == (5, 2.5)
    assert out["usage"]["model_calls"] == 2 + (5 if grading == "each" else 1)
    answered = await run(unsolvable, grading=grading, max_expansions=1)
    assert answered["tree"]["0"]["score"] == 0.5


async def test_a_judge_that_never_judges_leaves_the_answers() -> None:
    model = FakeChatModel(reply=lambda request: AIMessage("I like it.") if request.schema else "an answer")
    out = await graph.ainvoke(QUESTION, context=LatsContext(model=model, search="none", grading="each"))
    assert (out["answer"], out["outcome"]["status"]) == ("an answer", "exhausted")
    assert out["usage"]["parse_failures"] % 3 == 0


async def test_a_judge_that_fails_for_one_candidate_spares_the_others() -> None:
    def reply(request: Request) -> Reply:
        if request.schema is None:
            return f"answer {depth(request)}.{request.index}"
        return AIMessage("no") if "answer 1.2" in request.text else judged(0.4)

    out = await run(reply, max_expansions=1)
    assert [node["score"] is None for node in out["tree"].values()] == [False, False, False, True, False, False]
    assert out["stats"]["0"]["visits"] == 5
    assert out["usage"]["parse_failures"] == 3


@pytest.mark.thorough
async def test_models_that_all_fail_are_no_success() -> None:
    out = await run(lambda request: ValueError("no route"))
    assert (out["answer"], out["outcome"]["status"]) == (None, "failed")
    assert "no route" in out["outcome"]["reason"]
    assert [message.type for message in out["messages"]] == ["human"]


async def test_tool_errors_are_told_to_the_model_and_each_call_is_answered(corpus: str) -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return judged(0.3)
        if depth(request):
            return f"answer {request.index}"
        return [ToolUse("teleport", {}), ToolUse("search", {"wrong": 1}), ToolUse("search", "{broken")]

    out = await run(reply, search="local", corpus=corpus, max_expansions=1)
    calls, *answers = out["tree"]["0"]["messages"]
    ids = [call["id"] for call in (*calls.tool_calls, *calls.invalid_tool_calls)]
    assert [answer.tool_call_id for answer in answers] == ids
    assert [answer.status for answer in answers] == ["error"] * 3
    assert out["usage"]["tool_errors"] == 3


async def test_a_search_without_an_answer_asks_for_one_at_the_end(corpus: str) -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return judged(0.3)
        if request.tool_choice == "none":
            return "in the end"
        return ToolUse("search", {"query": f"moon {request.index} {depth(request)}"})

    out = await run(reply, search="local", corpus=corpus, max_expansions=1, max_model_calls=12)
    assert out["answer"] == "in the end"
    assert out["usage"]["model_calls"] <= 12


async def test_the_limit_of_calls_narrows_the_expansion_instead_of_wasting_samples() -> None:
    out = await run(unsolvable, max_model_calls=6)
    assert out["usage"]["model_calls"] == 6
    assert [node["score"] for node in out["tree"].values()] == [0.5] * 4
    assert out["outcome"]["limit"]["name"] == "max_model_calls"


@pytest.mark.thorough
async def test_the_same_seed_gives_the_same_tree() -> None:
    def reply(request: Request) -> Reply:
        return judged(len(request.text) % 7 / 10) if request.schema else f"answer {request.seed} {request.index}"

    trees = []
    for seed in (1, 1, 2):
        out = await run(reply, seed=seed, max_expansions=4)
        trees.append({key: (node["messages"][0].text, node["score"]) for key, node in out["tree"].items()})
    assert trees[0] == trees[1] != trees[2]


def test_the_order_of_arrival_does_not_matter() -> None:
    def reply(request: Request) -> Reply:
        return judged(len(request.text) % 7 / 10) if request.schema else f"answer {request.index} {depth(request)}"

    def late(request: Request) -> float:
        return 7 - len(request.text) % 7

    trees = []
    for latency in (0.0, late):
        model = FakeChatModel(reply=reply, latency=latency)
        out, _ = virtually(
            graph.ainvoke(QUESTION, context=LatsContext(model=model, search="none", grading="each", max_expansions=4))
        )
        trees.append([out["stats"], {key: node["messages"][0].text for key, node in out["tree"].items()}])
    assert trees[0] == trees[1]


async def test_a_second_question_grows_a_tree_of_its_own() -> None:
    thread = builder.compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    context = LatsContext(model=FakeChatModel(reply=unsolvable), search="none", grading="each", max_expansions=2)
    await thread.ainvoke(QUESTION, config, context=context)
    context.max_expansions = 1
    out = await thread.ainvoke({"messages": [("user", "And why?")]}, config, context=context)
    assert len(out["tree"]) == 6
    assert out["expansions"] == 1


async def test_cancellation_leaves_no_call_running() -> None:
    judging = asyncio.Event()

    def latency(request: Request) -> float:
        if request.schema:
            judging.set()
        return 30 if request.schema else 0

    model = FakeChatModel(reply=unsolvable, latency=latency)
    task = asyncio.create_task(graph.ainvoke(QUESTION, context=LatsContext(model=model, search="none", grading="each")))
    await judging.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.in_flight == 0


@pytest.mark.usefixtures("virtual_seconds")
def test_the_time_limit_keeps_what_was_found() -> None:
    model = FakeChatModel(reply=unsolvable, latency=lambda request: 30 if depth(request) > 1 else 0)
    out, seconds = virtually(
        graph.ainvoke(QUESTION, context=LatsContext(model=model, search="none", grading="each", max_seconds=20))
    )
    assert seconds == pytest.approx(20)
    assert out["outcome"]["status"] == "limit_reached"
    assert out["outcome"]["limit"]["name"] == "max_seconds"
    assert out["answer"].startswith("answer")


@pytest.mark.parametrize("calls", [1, 2, 3, 4, 5])
async def test_few_calls_still_give_an_answer(calls: int, corpus: str) -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return judged(0.3)
        return "so" if request.tool_choice == "none" else ToolUse("search", {"query": f"moon {request.key}"})

    out = await run(reply, search="local", corpus=corpus, max_model_calls=calls)
    assert out["answer"] == "so"
    assert out["outcome"]["status"] == "limit_reached"
    assert out["outcome"]["limit"]["name"] == "max_model_calls"
    assert out["usage"]["model_calls"] <= calls


async def test_what_is_judged_worthless_need_not_be_expanded() -> None:
    """By default every node is, as in the paper; with a threshold only those that reach it, and the first step."""

    def reply(request: Request) -> Reply:
        if request.schema:
            parts = request.last.split("<candidate ")[1:]
            return {"judgements": [judged(0.0 if "answer 0" in part else 0.5) for part in parts]}
        return f"answer {request.index} after {request.key[:6]}"

    def expanded(out: Any) -> list[str]:
        tree = out["tree"]
        return [key for key in tree if f"{key}.0" in tree and key != "0" and tree[key]["score"] == 0]

    given = {"search": "none", "n": 2, "max_expansions": 8, "exploration_weight": 100.0, "max_depth": 9}
    every, few = [
        await graph.ainvoke(QUESTION, context={"model": FakeChatModel(reply=reply), "expand_from": least, **given})
        for least in (0.0, 0.1)
    ]
    assert expanded(every)
    assert not expanded(few)
    assert f"{few['tree']['0']['score']:.1f}" == "0.0", "the first step is expanded in any case"
    assert len(few["tree"]) > 3


async def test_an_answer_is_judged_and_expanded_once_wherever_it_is_given() -> None:
    judged_answers: list[str] = []

    def reply(request: Request) -> Reply:
        if request.schema:
            parts = request.last.split("<candidate ")[1:]
            judged_answers.extend(part for part in parts if "the same" in part)
            return {"judgements": [judged(0.5)] * len(parts)}
        depth = sum(isinstance(message, AIMessage) for message in request.messages)
        return ["a start", f"way {request.index}", "the same", f"more {request.index}"][min(depth, 3)]

    model = FakeChatModel(reply=reply)
    given = {"search": "none", "n": 2, "max_expansions": 9, "max_depth": 4}
    tree = (await graph.ainvoke(QUESTION, context={"model": model, **given}))["tree"]
    same = [key for key, node in tree.items() if node["messages"][0].text == "the same"]
    assert same == ["0.0.0", "0.1.0"], "one in each branch"
    assert [tree[key]["score"] for key in same] == [0.5, 0.5]
    assert len(judged_answers) == 1
    assert sum(f"{key}.0" in tree for key in same) == 1
