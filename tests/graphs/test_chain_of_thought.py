"""Chain of thought: samples at once, the vote, what is missing, material and reward of environments."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tenacity import wait_none

from reflective_agents.environments.plain import PLAIN
from reflective_agents.environments.registry import get_environment
from reflective_agents.graphs.chain_of_thought import graph
from reflective_agents.models.providers import close_models
from reflective_agents.nodes.asking.sampling import majority
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.testing.awkward import AwkwardServer
from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request, Script, ToolUse, likely

ASK = {"messages": [("user", "What do tides do?")]}
both_models = pytest.mark.parametrize("model_type", [FakeChatModel, FakeChatModelWithoutN])
GOLD = "gold7f3a91c2e45d"


async def run(
    script: Script,
    given: dict[str, Any] = ASK,
    model_type: type[FakeChatModelWithoutN] = FakeChatModel,
    **settings: Any,
) -> tuple[Any, FakeChatModelWithoutN]:
    model = model_type(reply=script)
    context = ChainOfThoughtContext.model_validate({"model": model, "search": "none", **settings})
    return await graph.ainvoke(given, context=context), model


def saying(*answers: str) -> Script:
    """Samples with these answers: candidates of one request, or requests one after another."""
    return lambda request: f"Let me think.\nAnswer: {answers[(request.index + request.attempt) % len(answers)]}"


def at(question: str, **task: Any) -> dict[str, Any]:
    return {"messages": [("user", question)], "task": {"id": "1", "question": question, **task}}


# Samples and votes


async def test_no_more_are_sampled_than_the_vote_needs() -> None:
    out, model = await run(saying("4"), samples=100, confidence=0.9, batch=3)
    assert [request.n for request in model.calls] == [3]  # 15/16 that 4 is the more frequent one
    assert len(out["samples"]) == 3
    out, model = await run(saying("4", "4", "5"), samples=100, confidence=0.9, batch=3)
    assert sum(request.n for request in model.calls) == 18  # 12 to 6; 10 to 5 has a chance of 0.895
    assert out["answer"] == "4"


async def test_a_vote_that_is_never_safe_takes_all_samples() -> None:
    out, model = await run(saying("4", "5"), samples=12, confidence=0.9)
    assert [request.n for request in model.calls] == [5, 5, 2]
    assert len(out["samples"]) == 12


async def test_samples_that_cannot_be_read_do_not_make_a_vote_safe() -> None:
    out, _ = await run(lambda request: "I wonder.\nAnswer:", samples=7, confidence=0.9)
    assert len(out["samples"]) == 7


def test_pending_samples_are_cancelled_as_soon_as_the_vote_is_safe() -> None:
    model = FakeChatModelWithoutN(reply=saying("4"), latency=lambda request: 1.0 + request.attempt)
    context = ChainOfThoughtContext(model=model, search="none", samples=10, confidence=0.9, batch=10)
    out, seconds = virtually(graph.ainvoke(ASK, context=context))
    assert len(out["samples"]) == 3
    assert seconds == pytest.approx(3.0)
    assert out["usage"]["model_calls"] == len(model.calls) == 10  # those in flight are paid for


@pytest.mark.parametrize(("most", "second", "chance"), [(0, 0, 1 / 2), (1, 0, 3 / 4), (4, 0, 31 / 32), (2, 1, 11 / 16)])
def test_the_chance_that_the_leader_stays_ahead(most: int, second: int, chance: float) -> None:
    assert majority(most, second) == pytest.approx(chance)


async def test_k_samples_are_one_request_where_the_provider_has_n() -> None:
    out, model = await run(saying("4", "5"), samples=10)
    assert ([request.n for request in model.calls], len(out["samples"])) == ([10], 10)
    assert out["usage"]["model_calls"] == 1


def test_k_samples_are_k_requests_at_once_where_it_has_not() -> None:
    model = FakeChatModelWithoutN(reply=saying("4", "5"), latency=1.0)
    context = ChainOfThoughtContext(model=model, search="none", samples=10)
    out, _ = virtually(graph.ainvoke(ASK, context=context))
    assert (len(model.calls), model.max_in_flight, len(out["samples"])) == (10, 10, 10)


@both_models
async def test_the_most_frequent_answer_wins_whatever_its_form(model_type: type[FakeChatModelWithoutN]) -> None:
    out, _ = await run(saying("Lyon", "The Paris.", "paris", "Lyon", "PARIS"), model_type=model_type, samples=5)
    assert out["answer"] == out["messages"][-1].text
    assert out["answer"].strip("The .").casefold() == "paris"
    assert out["outcome"]["status"] == "answered"
    assert sorted(sample["normal"] for sample in out["samples"]) == ["lyon"] * 2 + ["paris"] * 3


async def test_answers_are_equal_in_whatever_words_they_say_what_was_asked() -> None:
    given = {"messages": [("user", "Tom has 3 boxes with 12 pencils each. How many pencils has he now?")]}
    model = saying("36", "36 pencils", "He has 36 pencils now.", "48", "48")
    out, _ = await run(model, given, samples=5)
    assert (out["answer"], [sample["normal"] for sample in out["samples"]].count("36")) == ("36", 3)


async def test_of_equally_frequent_answers_the_first_sample_wins() -> None:
    out, _ = await run(saying("b", "c", "c", "b"), samples=4)
    assert out["answer"] == "b"


NOTICE = "Dear customers,\n\nour shop is closed\non 24 December."


@pytest.mark.parametrize("ends", ["stop", "length"])
async def test_a_text_without_a_label_is_the_answer_whole_unless_it_was_cut_off(ends: str) -> None:
    written = AIMessage(NOTICE, response_metadata={"finish_reason": ends})
    out, _ = await run(lambda _: written, {"messages": [("user", "Write a notice for our door.")]})
    assert out["answer"] == NOTICE
    refused = ends == "length"
    assert (out["refused"], out["outcome"]["status"]) == (refused, "exhausted" if refused else "answered")


async def test_the_form_of_short_answers_is_asked_for_where_an_environment_wants_it() -> None:
    _, model = await run(saying("4"))
    assert PLAIN.answer_form not in model.calls[0].text
    out, model = await run(saying("4"), at("2 + 2?"), environment="arithmetic")
    assert get_environment("arithmetic").answer_form in model.calls[0].text
    assert not out["refused"]


# Votes by likelihood


def sure(*samples: tuple[str, float]) -> Callable[[Request], AIMessage]:
    """Samples with these answers, each of whose tokens have this probability."""
    return lambda request: likely(f"Answer: {samples[request.index][0]}", samples[request.index][1])


async def heard(script: Script) -> list[Any]:
    """The events of a run with five samples."""
    context = ChainOfThoughtContext(model=FakeChatModel(reply=script), search="none", samples=5, votes="likelihood")
    return [part async for part in graph.astream(ASK, context=context, stream_mode="custom")]


async def test_few_likely_samples_outweigh_many_unlikely_ones() -> None:
    script = sure(("5", 0.25), ("5", 0.25), ("4", 0.5), ("5", 0.25), ("4", 0.5))
    assert (await run(script, samples=5))[0]["answer"] == "5"
    out, _ = await run(script, samples=5, votes="likelihood")
    assert out["answer"] == "4"
    assert [drawn["likelihood"] for drawn in out["samples"]] == pytest.approx([0.25, 0.25, 0.5, 0.25, 0.5])
    [vote] = [event for event in await heard(script) if event["event"] == "vote"]
    assert (vote["votes"], vote["weight"]) == (2, 0.571)


@pytest.mark.parametrize("silent", [(), (2,), (0, 1, 2, 3, 4)])
async def test_votes_are_equal_where_the_likelihood_of_one_is_not_told(silent: tuple[int, ...]) -> None:
    def script(request: Request) -> Reply:
        reply = sure(*[("5", 0.25)] * 3, *[("4", 0.5)] * 2)(request)
        return reply.text if request.index in silent else reply

    events = await heard(script)
    reasons = [event["why"] for event in events if event["event"] == "equal_votes"]
    wanted = [f"the provider tells no log-probabilities of {len(silent)} of 5 samples"] if silent else []
    answers = [event["answer"] for event in events if event["event"] == "vote"]
    assert (answers, reasons) == (["5" if silent else "4"], wanted)


async def test_a_model_that_has_no_log_probabilities_is_not_asked_for_them() -> None:
    out, _ = await run(saying("5", "5", "4"), model_type=FakeChatModelWithoutN, samples=3, votes="likelihood")
    assert (out["answer"], [*out["samples"][0]]) == ("5", ["text", "answer", "normal"])


async def over_the_wire(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    context = ChainOfThoughtContext(model="openai:gpt-4.1", search="none", samples=3, votes="likelihood")
    out = await graph.ainvoke(ASK, context=context)
    await close_models()
    return out


@pytest.mark.wire
async def test_a_provider_is_asked_for_log_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    async with OpenAIServer(sure(("5", 0.25), ("5", 0.25), ("4", 0.9))) as server:
        assert (await over_the_wire(server, monkeypatch))["answer"] == "4"
        assert [exchange.body["logprobs"] for exchange in server.requests] == [True]


@pytest.mark.wire
async def test_votes_are_equal_where_a_server_refuses_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AwkwardServer(lambda request: "Answer: 5", "refuses_everything") as server:
        out = await over_the_wire(server, monkeypatch)
    assert (out["answer"], len(out["samples"])) == ("5", 3)


def test_a_vote_stops_early_by_equal_votes_only() -> None:
    with pytest.raises(ValueError, match="confidence is the chance of a leader by equal votes"):
        ChainOfThoughtContext(model="offline", confidence=0.9, votes="likelihood")


async def test_one_sample_is_the_default() -> None:
    out, model = await run(saying("4"))
    assert (len(model.calls), out["answer"], len(out["samples"])) == (1, "4", 1)


async def test_samples_that_end_without_an_answer_do_not_vote() -> None:
    out, _ = await run(lambda request: ["Finish[]", "Answer: 4", "Finish[]"][request.index], samples=3)
    assert (out["answer"], [sample["answer"] for sample in out["samples"]]) == ("4", ["", "4", ""])


async def test_without_a_single_answer_the_run_fails() -> None:
    out, _ = await run(lambda _: "Finish[]", samples=3)
    assert (out["answer"], out["outcome"]["status"]) == (None, "failed")
    assert out["outcome"]["reason"] == "no sample ends with an answer"


async def test_samples_that_are_no_text_are_drawn_again() -> None:
    def calls_tools(request: Request) -> Reply:
        return ToolUse("search", {}) if request.index and request.n > 1 else "Answer: 4"

    out, model = await run(calls_tools, samples=3)
    assert [request.n for request in model.calls] == [3, 1, 1]
    assert (len(out["samples"]), out["usage"]["parse_failures"]) == (3, 2)


@both_models
async def test_a_model_that_only_calls_tools_fails_the_run(model_type: type[FakeChatModelWithoutN]) -> None:
    out, model = await run(lambda _: ToolUse("search", {}), model_type=model_type, samples=2)
    assert out["outcome"]["status"] == "failed"
    assert out["usage"]["parse_failures"] == 6
    assert len(model.calls) <= 6


async def test_samples_that_fail_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())

    def fails(request: Request) -> Reply:
        return ValueError("out of order") if request.attempt < 8 else "Answer: 4"

    out, model = await run(fails, model_type=FakeChatModelWithoutN, samples=3)
    assert (out["answer"], len(out["samples"])) == ("4", 1)
    assert (out["usage"]["failed_calls"], len(model.calls)) == (8, 9)


@pytest.mark.parametrize("calls", [1, 2])
async def test_a_limit_that_leaves_samples_out_is_named(calls: int) -> None:
    out, model = await run(saying("4"), model_type=FakeChatModelWithoutN, samples=3, max_model_calls=calls)
    assert (len(model.calls), len(out["samples"]), out["answer"]) == (calls, calls, "4")
    assert out["outcome"]["status"] == "limit_reached"
    assert out["outcome"]["limit"] == {"name": "max_model_calls", "most": calls, "spent": calls}


async def test_seeds_follow_each_other() -> None:
    class Seeded(FakeChatModelWithoutN):
        seed: int | None = None

    _, model = await run(saying("4"), model_type=Seeded, samples=3, seed=7)
    assert sorted(request.seed or 0 for request in model.calls) == [7, 8, 9]
    _, model = await run(saying("4"), samples=3, seed=7)
    assert [request.seed for request in model.calls] == [7]


async def test_a_sample_without_text_is_drawn_anew_with_another_seed() -> None:
    out, model = await run(lambda request: ToolUse("look", {}) if request.seed == 7 else "4", samples=1, seed=7)
    assert (out["answer"], len({request.seed for request in model.calls})) == ("4", 2)


# Prompts


@pytest.mark.parametrize("name", ["", "questions", "fever", "game24"])
async def test_examples_are_shown_or_not(name: str) -> None:
    given = at("1 2 3 4")
    settings: dict[str, Any] = {"environment": name} if name else {}
    _, few_shot = await run(saying("4"), given, **settings)
    _, zero_shot = await run(saying("4"), given, examples=False, **settings)
    world = get_environment(name) if name else PLAIN
    assert f"Example:\n{world.examples[0].task}\n" in few_shot.calls[0].text
    assert "Example" not in zero_shot.calls[0].text
    assert "step by step" in zero_shot.calls[0].text


async def test_the_material_of_a_task_is_in_the_prompt() -> None:
    data = {"supporting": [["Moon", ["The Moon pulls the sea.", " It shines."]]]}
    _, model = await run(saying("moon"), at("What pulls the sea?", gold="Moon", data=data), environment="questions")
    assert "Moon: The Moon pulls the sea. It shines.\n\nQuestion: What pulls the sea?" in model.calls[0].last


# Environments


PROGRAM = "```python\ndef double(x):\n    return 2 * x\n```"
PROGRAMMING = {"entry_point": "double", "tests": ["assert double(2) == 4", "assert double(0) == 0"]}
REWARDS = [
    ("questions", at("Who?", gold=GOLD), f"Answer: {GOLD}", 1.0, "solved"),
    ("questions", at("Who?", gold=GOLD), f"So Finish[{GOLD}]", 1.0, "solved"),
    ("questions", at("Who?", gold=GOLD), "Answer: nobody", 0.0, "exhausted"),
    ("questions", at("Who?"), "Answer: nobody", None, "answered"),
    ("fever", at("It rains.", gold="NOT ENOUGH INFO"), "Answer: NOT ENOUGH INFO", 1.0, "solved"),
    ("fever", at("It rains."), "Answer: NOT ENOUGH INFO", None, "answered"),
    ("fever", at("It rains.", gold="REFUTES"), "Answer: SUPPORTS", 0.0, "exhausted"),
    ("game24", at("2 3 4 12"), "Answer: (4 - 3) * 2 * 12 = 24", 1.0, "solved"),
    ("game24", at("2 3 4 12"), "Answer: 2 * 12 = 24", 0.0, "exhausted"),
    pytest.param(
        *("programming", at("double", data={**PROGRAMMING, "hidden": f"assert '{GOLD}'"}), PROGRAM, 1.0, "solved"),
        marks=pytest.mark.sandbox,
    ),
    pytest.param(
        "programming",
        at("double", data={**PROGRAMMING, "hidden": "pass"}),
        PROGRAM.replace("2 * x", "x"),
        *(0.5, "exhausted"),
        marks=pytest.mark.sandbox,
    ),
]


@pytest.mark.parametrize(("name", "given", "reply", "reward", "status"), REWARDS)
async def test_environments_reward(name: str, given: Any, reply: str, reward: float | None, status: str) -> None:
    out, model = await run(lambda _: reply, given, environment=name)
    assert (out["reward"], out["outcome"]["status"]) == (reward, status)
    assert [request for request in model.calls if GOLD in request.text] == []


async def test_a_board_of_letters_is_an_answer_without_a_reward() -> None:
    board = "Output:\nA G E N D\nM O T O R\nA R T S Y\nS A L L E\nS L E E R"
    clues = [f"clue {number}" for number in range(10)]
    given = at("\n".join(clues), gold="AGENDMOTORARTSYSALLESLEER", data={"clues": clues})
    out, model = await run(lambda _: board, given, environment="crosswords")
    assert (out["reward"], out["answer"]) == (None, board)
    assert "AGEND" not in model.calls[0].text


@pytest.mark.parametrize(
    ("environment", "question", "reply"), [("game24", "4 5 6 10", "None"), ("fever", "It is.", "maybe")]
)
async def test_an_answer_that_the_environment_refuses_is_not_solved(
    environment: str, question: str, reply: str
) -> None:
    model = FakeChatModel(reply=saying(f"Answer: {reply}"))
    context = ChainOfThoughtContext.model_validate({"model": model, "environment": environment})
    out = await graph.ainvoke({"messages": [("user", question)]}, context=context)
    assert out["outcome"]["status"] == "exhausted"
    assert out["observation"]
