"""Auto: which stages it takes, what each begins with, and why it stops."""

from typing import Any

import pytest

from reflective_agents.graphs._auto.policy import Progress, choose, options
from reflective_agents.graphs.auto import graph
from reflective_agents.prompts.lats import CONCLUDE, REFUSED
from reflective_agents.state.settings.auto import AutoContext
from reflective_agents.testing.checker import support
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request, ToolUse

GAME: dict[str, Any] = {"messages": [("user", "4 9 10 13")]}
RIGHT = "Answer: (13 - 9) * (10 - 4) = 24"
WRONG = "Answer: 13 + 10 + 9 - 4 = 24"
PLENTY = Progress(calls=100, search_calls=100, rollout=7, checked=True)
CONTEXT = AutoContext(model="offline")
TOLD = REFUSED.partition("\n")[0]


def stages(out: Any) -> list[str]:
    """The stages of a run, each once in a row."""
    names = [turn["stage"] for turn in out["turns"]]
    return [name for number, name in enumerate(names) if not number or names[number - 1] != name]


async def play(reply: Any, **settings: Any) -> tuple[Any, FakeChatModelWithoutN]:
    model = FakeChatModelWithoutN(reply=reply)
    context = AutoContext(model=model, environment="game24", search="none", **settings)
    return await graph.ainvoke(GAME, context=context), model


def player(request: Request) -> Reply:
    """Wrong whole answers; the right steps, one at a time."""
    if "thinking step by step" in request.text:
        return WRONG
    if request.schema == "Judgements":
        score = 0.9 if "(left: 24)" in request.last else 0.5
        return {
            "judgements": [{"reasoning": "So.", "score": score, "solved": False}] * request.last.count("<candidate ")
        }
    steps = {
        "Left: 4 9 10 13": "13 - 9 = 4 (left: 4 4 10)",
        "Left: 4 4 10": "10 - 4 = 6 (left: 4 6)",
        "Left: 4 6": "4 * 6 = 24 (left: 24)",
    }
    left = request.last[request.last.rindex("Left: ") :].splitlines()[0].rstrip(".") if "Left: " in request.last else ""
    return steps.get(left, RIGHT)


async def test_the_first_right_answer_ends_it() -> None:
    out, model = await play(lambda request: RIGHT)
    assert (out["outcome"]["status"], out["outcome"]["verified_by"], len(model.calls)) == ("solved", "environment", 1)
    assert stages(out) == ["sample"]


async def test_a_budget_that_holds_no_rollout_is_sampled() -> None:
    out, model = await play(player, max_model_calls=5)
    assert stages(out) == ["sample", ""]
    assert len(model.calls) == len(out["samples"]) == 5
    assert out["outcome"]["limit"]["name"] == "max_model_calls"


async def test_samples_leave_room_for_a_rollout_and_are_its_first_nodes() -> None:
    out, _ = await play(player, max_model_calls=20)
    assert stages(out)[:2] == ["sample", "search"]
    assert out["outcome"]["status"] == "solved"
    earlier = [node for node in out["tree"].values() if node.get("action") == WRONG]
    assert [(node["parent_id"], node["reward"]) for node in earlier] == [("0", 0.0)]


async def test_the_last_call_goes_to_the_best_trajectory() -> None:
    def slow(request: Request) -> Reply:
        """The second step comes late, so that no call is left for a list of third ones."""
        first_time = "Left: 4 4 10" in request.last and TOLD not in request.text
        return "5 + 5 = 10" if first_time and not request.schema and CONCLUDE not in request.text else player(request)

    out, model = await play(lambda request: RIGHT if CONCLUDE in request.text else slow(request), max_model_calls=8)
    assert stages(out)[-2:] == ["search", "conclude"]
    assert (out["outcome"]["status"], len(model.calls)) == ("solved", 8)


async def test_few_tokens_are_spent_on_answers_with_no_more_room_than_such_answers_take() -> None:
    out, model = await play(lambda request: WRONG, max_total_tokens=1500, max_answer_tokens=1200, examples=False)
    assert stages(out) == ["sample"]
    each = out["usage"]["total_tokens"] / len(model.calls)
    assert 1500 - 3 * each < out["usage"]["total_tokens"] <= 1500
    assert model.calls[0].max_tokens == 1200
    assert {request.max_tokens for request in model.calls[-2:]} != {1200}
    assert out["outcome"]["limit"]["name"] == "max_total_tokens"


async def test_an_answer_longer_than_all_before_is_cut_where_no_more_is_left() -> None:
    def reply(request: Request) -> Reply:
        return WRONG if request.attempt < 5 else WRONG * 100

    out, model = await play(reply, max_total_tokens=1500, max_answer_tokens=1200, examples=False)
    assert len(model.calls) == 6
    assert out["usage"]["total_tokens"] <= 1500
    assert out["samples"][-1]["normal"] == ""


@pytest.mark.parametrize("refusal", ["I'm not sure.", "Je ne sais pas.", "I don't have that information."])
async def test_samples_that_all_decline_are_no_safe_vote(refusal: str) -> None:
    context = AutoContext(model=FakeChatModel(reply=lambda _: f"Answer: {refusal}"), search="none", max_model_calls=6)
    out = await graph.ainvoke({"messages": [("user", "How tall is the lighthouse?")]}, context=context)
    assert stages(out) == ["sample", "search"]
    assert (out["outcome"]["status"], out["outcome"]["answered"]) == ("exhausted", False)


async def test_evidence_lies_at_the_root_of_the_tree() -> None:
    def reply(request: Request) -> Reply:
        missing = {"missing": "Proof.", "superfluous": "", "complete": False}
        if request.schema == "AnswerQuestion":
            return {"answer": "A draft.", "reflection": missing, "search_queries": ["reflection"]}
        if request.schema == "ReviseAnswer":
            return {"answer": "It helps [1].", "reflection": missing, "search_queries": ["mistakes"]}
        if request.schema == "Judgements":
            many = request.last.count("<candidate ")
            return {"judgements": [{"reasoning": "So.", "score": 0.9, "solved": True}] * many}
        return f"Answer: {request.index}"

    context = AutoContext(model=FakeChatModel(reply=reply), search="local", n=2)
    out = await graph.ainvoke({"messages": [("user", "Why does reflection help?")]}, context=context)
    assert stages(out) == ["look_up", "sample", "search"]
    assert out["evidence"]["sources"]
    assert out["evidence"]["sources"][0]["url"] in out["tree"]["0"]["messages"][1].text
    answers = [node["messages"][0].text for node in out["tree"].values() if node["kind"] == "answer"]
    assert any(text.startswith("It helps [1].") for text in answers)


# Open questions: what is looked up, what a vote may end, and which answer it is


async def ask(reply: Any, question: str = "What did lithium cost?", **settings: Any) -> tuple[Any, Any]:
    model = settings.pop("kind", FakeChatModel)(reply=reply)
    context = AutoContext(model=model, **{"search": "none", **settings})
    return await graph.ainvoke({"messages": [("user", question)]}, context=context), model


def shelf(query: str) -> list[dict[str, str]]:
    """Find the price."""
    return [{"title": "Prices", "url": "https://pages.example/p", "content": "Lithium cost 11.20 dollars a kilo."}]


def reflexive(answer: str, complete: bool = False) -> Reply:
    lacking = {"missing": "" if complete else "More.", "superfluous": "", "complete": complete}
    return {"answer": answer, "reflection": lacking, "search_queries": ["lithium"]}


def judging(request: Request, **scores: float) -> Reply:
    """Judge each candidate by the word that it holds; one of 0.9 or more is solved."""
    parts = request.last.split("<candidate ")[1:]
    graded = [max((score for word, score in scores.items() if word in part), default=0.1) for part in parts]
    return {"judgements": [{"reasoning": "So.", "score": score, "solved": score >= 0.9} for score in graded]}


@pytest.mark.parametrize("settings", [{"search": shelf}, {"tools": [shelf]}])
async def test_a_safe_vote_ends_nothing_before_it_was_looked_up(settings: dict[str, Any]) -> None:
    def reply(request: Request) -> Reply:
        if request.schema == "SupportCheck":
            return support(request)
        if request.schema:
            return reflexive("It cost 11.20 dollars [1].", complete=True)
        return ToolUse("shelf", {"query": "lithium"}) if request.tools else "Answer: 42 dollars"

    out, model = await ask(reply, **settings)
    assert (stages(out), out["outcome"]["status"]) == (["look_up"], "solved")
    assert out["answer"].startswith("It cost 11.20 dollars [1].")
    assert not [request for request in model.calls if "thinking step by step" in request.text]


async def test_what_a_model_without_forms_is_asked_is_looked_up_as_it_stands() -> None:
    queries: list[str] = []

    def noted(query: str) -> list[dict[str, str]]:
        queries.append(query)
        return shelf(query)

    out, _ = await ask(lambda request: "Answer: 42 dollars", search=noted)
    assert queries[0] == "What did lithium cost?"
    assert out["evidence"]["sources"][0]["url"] == "https://pages.example/p"
    assert "search" in stages(out)


async def test_the_vote_that_ends_a_run_elects_its_answer() -> None:
    def reply(request: Request) -> Reply:
        return reflexive("It is the wind.") if request.schema else "Rivers bring it.\nAnswer: rivers"

    out, _ = await ask(reply, search=shelf, samples=5)
    assert stages(out) == ["look_up", "sample", ""]
    assert (out["answer"], out["outcome"]["status"]) == ("rivers", "answered")
    assert out["outcome"]["reason"] == out["turns"][-1]["why"]


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("verify_sources", [True, False])
@pytest.mark.parametrize("budget", [8, 30])
async def test_no_vote_outweighs_sources_that_hold_no_answer(verify_sources: bool, budget: int) -> None:
    """The samples agree on an invented figure; the judge likes it, and accepts nothing."""
    refusal = "I could not find it on the pages." if not verify_sources else "The prices [1] name a kilo, no more."

    def reply(request: Request) -> Reply:
        if request.schema == "SupportCheck":
            return support(request, answered="no")
        if request.schema == "Judgements":
            return judging(request, **{"4,000": 0.8})
        return reflexive(refusal) if request.schema else "Answer: 4,000"

    context = {"search": shelf, "verify_sources": verify_sources, "max_model_calls": budget}
    out, _ = await ask(reply, "How many people mine it?", **context)
    assert out["samples"]
    assert out["answer"].startswith(refusal)
    assert out["outcome"]["status"] in ("exhausted", "limit_reached")
    assert out["outcome"]["answered"] is False
    assert bool(out.get("support")) == verify_sources
    assert not [turn for turn in out["turns"] if "safe" in turn["why"]]


async def test_what_a_judge_accepts_outweighs_a_look_up_without_an_answer() -> None:
    def reply(request: Request) -> Reply:
        if request.schema == "SupportCheck":
            return support(request, answered="no")
        if request.schema == "Judgements":
            return judging(request, **{"4,000": 0.95})
        return reflexive("The prices [1] name a kilo, no more.") if request.schema else "Answer: 4,000"

    out, _ = await ask(reply, "How many people mine it?", search=shelf)
    assert ("4,000" in out["answer"], out["outcome"]["verified_by"]) == (True, "judge")


@pytest.mark.matrix
@pytest.mark.parametrize(("answered", "status"), [("yes", "solved"), ("partly", "limit_reached")])
async def test_what_the_tree_finds_outweighs_a_look_up_without_an_answer(answered: str, status: str) -> None:
    """The judge likes what the tree finds best, and does not accept it; it is held against its sources."""

    def crews(query: str) -> list[dict[str, str]]:
        crew = {"title": "Crews", "url": "https://pages.example/c", "content": "40 people mine lithium here."}
        return [crew] if query == "crews" else shelf(query)

    def reply(request: Request) -> Reply:
        if request.schema == "SupportCheck":
            return support(request, answered=answered if "40 people" in request.last else "no")
        if request.schema == "Judgements":
            return judging(request, **{"40 people mine it": 0.8, "4,000": 0.85})
        if request.schema:
            return reflexive("The prices [1] name a kilo, no more.", complete=True)
        if not request.tools:
            return "Answer: 4,000"
        return "40 people mine it [2]." if "here." in request.text else ToolUse("search", {"query": "crews"})

    out, _ = await ask(reply, "How many people mine it?", search=crews, max_model_calls=30, n=2)
    assert out["answer"].startswith("40 people mine it [2].\n\nReferences:")
    assert out["outcome"]["status"] == status
    assert out["outcome"].get("verified_by") == ("sources" if status == "solved" else None)
    assert out["answer"] in [node["messages"][0].text for node in out["tree"].values() if node["kind"] == "answer"]


async def test_a_vote_against_what_sources_say_is_not_safe() -> None:
    def reply(request: Request) -> Reply:
        if request.schema == "Judgements":
            return judging(request, **{"11.20": 0.95})
        return reflexive("It cost 11.20 dollars [1].") if request.schema else "Answer: 42 dollars"

    out, _ = await ask(reply, search=shelf)
    assert (stages(out), out["outcome"]["verified_by"]) == (["look_up", "sample", "search"], "judge")
    assert out["answer"].startswith("It cost 11.20 dollars [1].")


@pytest.mark.parametrize("weak", [0.75, 0.95])
async def test_an_earlier_answer_that_the_judge_accepts_is_the_answer(weak: float) -> None:
    """The evidence is better than all that the tree proposes, whether the judge accepts that too or not."""

    def reply(request: Request) -> Reply:
        if request.schema == "Judgements":
            return judging(request, GOOD=1.0, WEAK=weak)
        if request.schema:
            return reflexive("GOOD: it cost 11.20 dollars [1].")
        sampled = "thinking step by step" in request.text
        return f"Answer: {request.index}" if sampled else f"WEAK: 11.20, it seems {request.index} [1]."

    out, _ = await ask(reply, search=shelf)
    best = next(node for node in out["tree"].values() if node["messages"][0].text.startswith("GOOD"))
    assert (best["score"], best["solved"], out["answer"]) == (1.0, True, best["messages"][0].text)
    assert out["outcome"]["reason"].endswith(f"with a score of 1.00 (node {best['id']})")


async def test_a_text_is_not_reduced_to_its_last_line_nor_voted_on() -> None:
    poem = "The sea is wide,\nthe sea is deep,\nand rocks the little boats to sleep."

    def reply(request: Request) -> Reply:
        return judging(request, rocks=0.95) if request.schema else poem

    out, model = await ask(reply, "Write a poem on the sea.")
    assert [(sample["answer"], sample["normal"]) for sample in out["samples"]] == [(poem, "")] * 3
    assert (out["answer"], out["outcome"]["verified_by"]) == (poem, "judge")
    assert "reply with that text alone" in model.calls[0].messages[0].text


@pytest.mark.parametrize("budget", [9, 12, 20])
async def test_the_first_samples_leave_a_rollout_its_calls_where_each_takes_one(budget: int) -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return judging(request)
        return f"Answer: {request.key[:8]} {request.attempt}"

    settings: dict[str, Any] = {"n": 3, "samples": 10, "grading": "together", "simulate": False}
    settings["max_model_calls"] = budget
    out, _ = await ask(reply, kind=FakeChatModelWithoutN, **settings)
    before = next(turn["model_calls"] for turn in out["turns"] if turn["stage"] == "search")
    assert before == min(10, budget - 5)


async def test_each_turn_is_an_event() -> None:
    model = FakeChatModel(reply=lambda request: "Answer: 7")
    context = AutoContext(model=model, search="none")
    parts = graph.astream({"messages": [("user", "How many?")]}, context=context, stream_mode="custom")
    stages = [part for part in [part async for part in parts] if part["event"] == "stage"]
    assert [stage["stage"] for stage in stages] == ["sample", "none"]
    assert "0.94" in stages[1]["why"]


@pytest.mark.parametrize(
    ("at", "stage"),
    [
        (PLENTY, "sample"),
        (PLENTY._replace(samples=3), "search"),
        (PLENTY._replace(calls=7, search_calls=7), "search"),
        (PLENTY._replace(calls=6, search_calls=6, samples=3), "sample"),
        (PLENTY._replace(samples=1, search_calls=8, search_cost=3), "sample"),
        (PLENTY._replace(samples=1, search_calls=7, search_cost=3), "search"),
        (PLENTY._replace(samples=3, may_look_up=True, checked=False, certainty=0.5), "look_up"),
        (PLENTY._replace(may_look_up=True, checked=False), "look_up"),
        (PLENTY._replace(calls=3, may_look_up=True, checked=False), "look_up"),
        (PLENTY._replace(calls=4, may_look_up=True, checks_sources=True, checked=False), "look_up"),
        (PLENTY._replace(calls=3, may_look_up=True, checks_sources=True, checked=False), "sample"),
        (PLENTY._replace(samples=3, may_look_up=True, checked=False, certainty=0.95), "look_up"),
        (PLENTY._replace(samples=3, searched=True, checked=False, certainty=0.95), "search"),
        (Progress(calls=1, search_calls=1, rollout=7, samples=3, may_look_up=True, certainty=0.95), "sample"),
        (PLENTY._replace(samples=3, searched=True, search_over=True, may_try=True), "trial"),
        (PLENTY._replace(samples=3, searched=True, search_over=True), "sample"),
        (PLENTY._replace(samples=3, searched=True, search_over=True, promise=0.6), "conclude"),
        (PLENTY._replace(calls=0), None),
        (PLENTY._replace(samples=3, checked=False, certainty=0.95), None),
        (PLENTY._replace(samples=200, fruitless=20), None),
    ],
)
def test_the_cheapest_stage_that_may_still_pay_comes_next(at: Progress, stage: str | None) -> None:
    assert choose(at, CONTEXT).stage == stage


def test_a_call_that_costs_nothing_is_always_worth_it() -> None:
    at = PLENTY._replace(samples=200, fruitless=20)
    assert choose(at, AutoContext(model="offline", call_cost=0)).stage == "search"


def test_chances_fall_with_each_failure() -> None:
    gains = [max(option.gain for option in options(PLENTY._replace(samples=many))) for many in (0, 5, 50)]
    assert gains == sorted(gains, reverse=True)
