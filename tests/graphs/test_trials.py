"""Trials: when they stop, what the next one is told, who judges, what is kept for later runs, limits and resumption."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt
from tenacity import wait_none

from reflective_agents.graphs._trials.attempts import contradicts_itself
from reflective_agents.graphs.trials import builder, graph
from reflective_agents.prompts import trials as prompts
from reflective_agents.state.errors import Misuse
from reflective_agents.state.schemas import Judgement
from reflective_agents.state.settings.trials import TrialsContext
from reflective_agents.testing.clock import virtually
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, Script, ToolUse
from tests.nodes.remembering.learners import all_items, drawn, learning

GOLD = "gold7f3a91c2e45d"
CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
QUESTION = "What pulls the sea?"
ASK: dict[str, Any] = {"messages": [("user", QUESTION)]}
TASK: dict[str, Any] = {**ASK, "task": {"id": "1", "question": QUESTION, "gold": GOLD}}
QUESTIONS: dict[str, Any] = {"environment": "questions", "acting": "paper", "search": "none"}


def kind(request: Request) -> str:
    """What a call is for."""
    if request.schema:
        return "judge"
    if "unit tests" in request.text:
        return "tests"
    return "reflect" if request.last.endswith("Reflection:") else "act"


def playing(answers: Sequence[str], accepted: str = "", lesson: str = "Lesson {}.") -> tuple[Script, list[str]]:
    """An agent whose trials answer so, one after another, a judge that accepts one of them, and lessons that are
    numbered; the calls it made are in the list."""
    calls: list[str] = []

    def reply(request: Request) -> Reply:
        calls.append(kind(request))
        if calls[-1] == "judge":
            good = bool(accepted) and f"<answer>\n{accepted}\n</answer>" in request.last
            return {"reasoning": "So.", "score": 0.9 if good else 0.2, "solved": good}
        if calls[-1] == "reflect":
            return lesson.format(calls.count("reflect"))
        return f"Finish[{answers[min(calls.count('act'), len(answers)) - 1]}]".join(["Action: ", ""])

    return reply, calls


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries do not wait, and experience needs no weights."""
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")


async def run(script: Script, given: dict[str, Any] = TASK, **settings: Any) -> tuple[Any, FakeChatModel]:
    model = FakeChatModel(reply=script)
    context = TrialsContext.model_validate({**QUESTIONS, "model": model, **settings})
    return await graph.ainvoke(given, context=context), model


async def run_with(compiled: Any, model: FakeChatModel, **settings: Any) -> Any:
    context = TrialsContext.model_validate({**QUESTIONS, "model": model, **settings})
    return await compiled.ainvoke(TASK, context=context)


def acts(model: FakeChatModel) -> list[str]:
    """What the actor was told in each trial, before the task."""
    return [request.messages[0].text for request in model.calls if kind(request) == "act"]


# When trials end


async def test_trials_end_when_the_task_is_solved() -> None:
    script, calls = playing(["sun", GOLD, "moon"])
    out, _ = await run(script, max_trials=5)
    assert (out["answer"], out["outcome"]["status"], out["outcome"]["verified_by"]) == (GOLD, "solved", "environment")
    assert calls == ["act", "reflect", "act"]
    assert [(trial["reward"], trial["solved"]) for trial in out["trials"]] == [(0.0, False), (1.0, True)]


async def test_the_first_trial_may_solve_the_task() -> None:
    script, calls = playing([GOLD])
    out, _ = await run(script)
    assert (calls, out["outcome"]["status"], out["trials"][0]["reflection"]) == (["act"], "solved", "")


async def test_unsolved_trials_end_at_their_number_and_the_last_one_is_not_reflected_on() -> None:
    script, calls = playing(["sun", "moon"])
    out, _ = await run(script, max_trials=3)
    assert out["outcome"]["status"] == "limit_reached"
    assert out["outcome"]["limit"] == {"name": "max_trials", "most": 3, "spent": 3}
    assert calls == ["act", "reflect", "act", "reflect", "act"]
    assert out["answer"] == "sun", "of equals the first"
    assert [trial["reflection"] for trial in out["trials"]] == ["Lesson 1.", "Lesson 2.", ""]


async def test_the_best_trial_is_the_answer() -> None:
    scores = {"sun": 0.3, "moon": 0.6, "wind": 0.4}
    script, _ = playing(list(scores))

    def graded(request: Request) -> Any:
        if kind(request) != "judge":
            return script(request)
        answer = re.findall(r"<answer>\n(\w+)", request.last)[-1]
        return {"reasoning": "So.", "score": scores[answer], "solved": False}

    out, _ = await run(graded, evaluator="judge")
    assert (out["answer"], out["outcome"]["status"]) == ("moon", "limit_reached")
    assert [trial["score"] for trial in out["trials"]] == [0.3, 0.6, 0.4]


@pytest.mark.parametrize("actor", ["react", "chain_of_thought"])
async def test_a_judge_never_meets_a_reward(actor: str) -> None:
    """The first trial gives the right answer, which the judge likes less than the second."""
    script, _ = playing([GOLD, "moon"])

    def reply(request: Request) -> Any:
        if kind(request) == "judge":
            return {"reasoning": "So.", "score": 0.2 if GOLD in request.last else 0.6, "solved": False}
        reply = script(request)
        return reply if actor == "react" or kind(request) != "act" else f"Answer: {str(reply)[15:-1]}"

    mode: dict[str, Any] = {} if actor == "react" else {"acting": "auto"}
    out, model = await run(reply, evaluator="judge", actor=actor, max_trials=2, **mode)
    assert [(trial["reward"], trial["score"]) for trial in out["trials"]] == [(None, 0.2), (None, 0.6)]
    assert (out["answer"], out["outcome"]["status"]) == ("moon", "limit_reached")
    assert "score of 0.60" in out["outcome"]["reason"]
    assert not [request for request in model.calls if "reward" in request.text]


async def test_exact_match_evaluates_where_there_is_no_environment() -> None:
    script, _ = playing(["wrong", "The Moon."])

    def reply(request: Request) -> Any:
        reply = script(request)
        return reply.replace("Action: Finish[", "Final Answer: ").rstrip("]") if isinstance(reply, str) else reply

    model = FakeChatModel(reply=reply)
    context = TrialsContext(model=model, acting="paper", search="none", evaluator="exact_match")
    out = await graph.ainvoke({**ASK, "task": {"id": "1", "question": QUESTION, "gold": "moon"}}, context=context)
    assert [(trial["reward"], trial["solved"]) for trial in out["trials"]] == [(0, False), (1, True)]
    assert out["answer"] == "The Moon."


async def test_exact_match_needs_the_right_answer() -> None:
    context = TrialsContext(model=FakeChatModel(reply=lambda request: ""), evaluator="exact_match")
    with pytest.raises(Misuse, match="gold"):
        await graph.ainvoke(ASK, context=context)


async def test_a_judges_word_needs_the_minimum_score() -> None:
    def unsure(request: Request) -> Reply:
        if kind(request) == "judge":
            return {"reasoning": "Perhaps.", "score": 0.5, "solved": True}
        return "a lesson" if kind(request) == "reflect" else "Action: Finish[sun]"

    out, _ = await run(unsure, evaluator="judge", max_trials=1)
    assert (out["outcome"]["status"], out["trials"][0]["solved"]) == ("limit_reached", False)
    out, _ = await run(unsure, evaluator="judge", max_trials=1, min_score=0.5)
    assert out["outcome"]["status"] == "solved"


# Verdicts that cannot be relied on, and answers that are refused


NUMBER: dict[str, Any] = {"messages": [("user", "How many marbles has Ali?")]}
COUNTING: dict[str, Any] = {"actor": "chain_of_thought", "acting": "auto", "evaluator": "judge", "max_trials": 2}


def counting(*answers: Reply, **verdict: Any) -> Script:
    """An actor that answers so in turn, and a judge that always says the same."""
    tries: list[Reply] = []

    def reply(request: Request) -> Reply:
        if kind(request) == "judge":
            return {"reasoning": "So.", "score": 0.5, "solved": False, **verdict}
        if kind(request) == "reflect":
            return "a lesson"
        tries.append(answers[len(tries)])
        return tries[-1]

    return reply


CUT_OFF = AIMessage("2B + 5 = 37\n\\[ B = \\", response_metadata={"finish_reason": "length"})


@pytest.mark.parametrize(
    "refused", [CUT_OFF, AIMessage("Ali has some.\nAnswer: some")], ids=["cut off", "refused by the environment"]
)
@pytest.mark.parametrize("first", [True, False])
async def test_a_refused_answer_is_neither_judged_nor_returned(refused: AIMessage, first: bool) -> None:
    """The readable answer has the lowest score there is, and is returned all the same."""
    answers: tuple[Reply, ...] = ("Answer: 21", refused) if first else (refused, "Answer: 21")
    out, _ = await run(counting(*answers, score=0.0), NUMBER, **COUNTING, environment="arithmetic")
    assert out["answer"] == "21"
    scores = [(trial["score"], trial.get("refused", False)) for trial in out["trials"]]
    assert scores == ([(0.0, False), (None, True)] if first else [(None, True), (0.0, False)])


async def test_of_equal_trials_the_first_is_the_answer() -> None:
    out, _ = await run(counting("Answer: 21", "Answer: 22"), NUMBER, **COUNTING, environment=None)
    assert (out["answer"], [trial["score"] for trial in out["trials"]]) == ("21", [0.5, 0.5])


@pytest.mark.matrix(keep=4)
@pytest.mark.parametrize(
    ("verdict", "unsure"),
    [
        ({"score": 0.5, "solved": True}, True),
        ({"score": 1.0, "solved": False}, True),
        ({"score": 1.0, "solved": True, "reasoning": "37 - 5 = 32, so he has 60."}, True),
        ({"score": 0.2, "solved": False, "reasoning": "He has 60."}, False),
        ({"score": 0.8, "solved": False}, False),
        ({"score": 1.0, "solved": True, "reasoning": "16 + 5 = 21."}, False),
        ({"score": 1.0, "solved": True, "reasoning": "It is right."}, False),
    ],
)
async def test_a_verdict_that_contradicts_itself_is_unsure_and_its_lesson_neutral(
    verdict: dict[str, Any], unsure: bool
) -> None:
    settings = COUNTING | {"environment": None, "reflection": "last_attempt_and_reflexion"}
    out, model = await run(counting("Answer: 21", "Answer: 21", **verdict), NUMBER, **settings)
    assert out["trials"][0].get("unsure", False) == unsure
    assert out["trials"][0]["solved"] == (verdict["solved"] and not unsure)
    for request in [request for request in model.calls if kind(request) == "reflect"]:
        assert (prompts.NEUTRAL_LESSON in request.text, prompts.LESSON in request.text) == (unsure, not unsure)
        assert (prompts.UNSURE in request.last) == unsure
    for prompt in acts(model)[1:]:
        assert ("which failed" in prompt or "attempts at this task failed" in prompt) == (not unsure)


async def test_a_text_is_shown_to_the_judge_once() -> None:
    _, model = await run(counting("A notice.\nClosed.", score=1, solved=True), NUMBER, **COUNTING, environment=None)
    [judging] = [request for request in model.calls if kind(request) == "judge"]
    assert judging.last.count("Closed.") == 1


async def test_what_a_critique_states_is_told_as_the_judges_own() -> None:
    critique = "The final price is 60."
    _, model = await run(
        counting("Answer: 21", "Answer: 21", score=0.2, reasoning=critique), NUMBER, **COUNTING, environment=None
    )
    [reflecting] = [request for request in model.calls if kind(request) == "reflect"]
    assert prompts.OPINION.format(critique=critique) in reflecting.last


@pytest.mark.parametrize("reflection", ["reflexion", "last_attempt_and_reflexion"])
async def test_who_reflects_is_told_what_the_next_attempt_will_see(reflection: str) -> None:
    _, model = await run(playing(["sun"])[0], reflection=reflection, max_trials=2)
    [reflecting] = [request for request in model.calls if kind(request) == "reflect"]
    assert (prompts.ONLY_THIS in reflecting.text) == (reflection == "reflexion")


# What the next trial is told


LESSONS = "The lessons drawn from them are plans to follow now:\n"
LAST = "The last attempt at this task, which failed:\n"
TOLD: dict[str, list[tuple[str, ...]]] = {
    "none": [(), (), ()],
    "last_attempt": [(), ("sun",), ("moon",)],
    "reflexion": [(), ("Lesson 1.",), ("Lesson 1.", "Lesson 2.")],
    "last_attempt_and_reflexion": [(), ("sun", "Lesson 1."), ("moon", "Lesson 1.", "Lesson 2.")],
}


@pytest.mark.matrix(keep=4)
@pytest.mark.parametrize("reflection", TOLD)
async def test_each_mode_shows_what_it_should_and_nothing_else(reflection: str) -> None:
    script, calls = playing(["sun", "moon", "wind"])
    _, model = await run(script, reflection=reflection)
    shown = acts(model)
    for text, expected in zip(shown, TOLD[reflection], strict=True):
        words = {"sun", "moon", "wind", "Lesson 1.", "Lesson 2."}
        assert {word for word in words if word in text.split("Legal actions")[-1]} == set(expected)
        assert (LAST in text) == bool({"sun", "moon"} & set(expected))
        assert (LESSONS in text) == ("Lesson 1." in expected)
    assert calls.count("reflect") == (2 if "reflexion" in reflection else 0)


async def test_memory_is_bounded_to_the_latest_lessons() -> None:
    script, _ = playing(["sun"])
    _, model = await run(script, max_trials=5, memory_size=2)
    assert [re.findall(r"- (Lesson \d)", text) for text in acts(model)] == [
        *([], ["Lesson 1"], ["Lesson 1", "Lesson 2"]),
        *(["Lesson 2", "Lesson 3"], ["Lesson 3", "Lesson 4"]),
    ]


async def test_an_empty_reflection_is_never_kept() -> None:
    store = InMemoryStore()
    script, _ = playing(["sun"], lesson=" \n ")
    context = TrialsContext.model_validate({**QUESTIONS, "model": FakeChatModel(reply=script), "experience": "seas"})
    out = await builder.compile(store=store).ainvoke(TASK, context=context)
    assert (out["answer"], out["outcome"]["status"]) == ("sun", "exhausted")
    assert out["trials"][0]["reflection"] == ""
    assert store.search(("memory",)) == []


async def test_a_reflection_sees_the_task_the_attempt_and_why_it_failed() -> None:
    script, _ = playing(["sun"])
    _, model = await run(script, max_trials=2)
    [reflecting] = [request for request in model.calls if kind(request) == "reflect"]
    for part in (
        f"<request>\nQuestion: {QUESTION}",
        "<action>\nFinish[sun]",
        "<answer>\nsun",
        "Its reward is 0, where 1 is the best.",
    ):
        assert part in reflecting.last


async def test_judge_and_reflection_see_the_task_where_the_message_is_another() -> None:
    script, _ = playing(["sun"])
    given = {"messages": [("user", "Do it.")], "task": TASK["task"]}
    _, model = await run(script, given, evaluator="judge", max_trials=2)
    assert len([request for request in model.calls if QUESTION in request.last]) == len(model.calls) == 5


# Who evaluates


@pytest.mark.parametrize("actor", ["react", "chain_of_thought"])
@pytest.mark.parametrize("evaluator", ["judge", "environment"])
async def test_nobody_is_shown_the_right_answer(evaluator: str, actor: str) -> None:
    script, calls = playing(["sun"])
    acting = "paper" if actor == "react" else "auto"
    _, model = await run(script, evaluator=evaluator, actor=actor, acting=acting)
    assert calls.count("judge") == (3 if evaluator == "judge" else 0)
    assert [request for request in model.calls if GOLD in request.text] == []


async def test_a_trial_that_ends_without_an_answer_is_told_in_words_that_fit_together() -> None:
    game: dict[str, Any] = {"messages": [("user", "1 2 3 4")]}
    steps = ("1 + 2 = 3 (left: 3 3 4)", "3 - 3 = 0 (left: 0 4)", "0 + 4 = 4 (left: 4)")

    def subtracting(request: Request) -> Reply:
        if kind(request) == "reflect":
            return "Multiply."
        return ToolUse("act", {"action": steps[sum(message.type == "tool" for message in request.messages)]})

    _, model = await run(subtracting, game, environment="game24", acting="tools", max_trials=2)
    [reflecting] = [request.last for request in model.calls if kind(request) == "reflect"]
    assert "It gave no answer: the task was over after 3 actions. Its reward is 0, where 1 is the best." in reflecting
    assert "<action>\n1 + 2 = 3 (left: 3 3 4)\n</action>" in reflecting


async def test_open_questions_are_judged_and_the_judge_may_be_another_model() -> None:
    script, calls = playing(["sun", "moon"], accepted="moon")
    judge = FakeChatModel(reply=playing([], accepted="moon")[0])

    def answers(request: Request) -> Any:
        reply = script(request)
        return reply.removeprefix("Action: Finish[").removesuffix("]") if isinstance(reply, str) else reply

    settings = {"environment": None, "acting": "tools", "judge_model": judge}
    out, _ = await run(answers, ASK, **settings)
    assert (out["answer"], out["outcome"]["verified_by"]) == ("moon", "judge")
    assert [trial["score"] for trial in out["trials"]] == [0.2, 0.9]
    assert ("judge" not in calls, len(judge.calls)) == (True, 2)


async def test_a_trial_without_an_answer_is_not_judged() -> None:
    def wanders(request: Request) -> Reply:
        assert kind(request) != "judge"
        return "a lesson" if kind(request) == "reflect" else "Action: Search[sea]"

    out, _ = await run(wanders, evaluator="judge", max_trials=2, max_actions=1)
    assert (out["answer"], out["outcome"]["status"]) == (None, "failed")
    assert [(trial["answer"], trial["score"]) for trial in out["trials"]] == [(None, None)] * 2
    assert out["outcome"]["limit"] == {"name": "max_trials", "most": 2, "spent": 2}


async def test_a_judge_that_fails_leaves_the_answer() -> None:
    script, _ = playing(["sun"])
    out, _ = await run(lambda r: "I like it." if kind(r) == "judge" else script(r), evaluator="judge")
    assert (out["answer"], out["outcome"]["status"]) == ("sun", "exhausted")
    assert out["usage"]["parse_failures"] == 3


# Programs


PROGRAM = "```python\ndef double(x):\n    return {}\n```"
PROGRAMMING: dict[str, Any] = {
    "messages": [("user", "Write double(x).")],
    "task": {"id": "1", "question": "Write double(x).", "data": {"entry_point": "double", "hidden": f"'{GOLD}'"}},
}
WRITTEN = """```python
assert double(2) == 4
assert double(
print(double(1))
assert 1 == 1
  assert double(0) == 0
double(3) == 6
```"""


def programming(tests: Reply) -> Script:
    def reply(request: Request) -> Reply:
        if kind(request) == "tests":
            return tests
        if kind(request) == "reflect":
            return "Multiply."
        program = PROGRAM.format("2 * x" if "Multiply." in request.text else "x")
        return f"Action: {program}" if "Legal actions" in request.text else program

    return reply


async def test_the_judge_has_criteria_and_is_told_the_length() -> None:
    def reply(request: Request) -> Reply:
        return (
            {"reasoning": "So.", "score": 0.9, "solved": True} if request.schema else "Thought: so\nFinal Answer: a b c"
        )

    model = FakeChatModel(reply=reply)
    context = TrialsContext.model_validate({"model": model, "search": "none", "acting": "paper"})
    await graph.ainvoke({"messages": [("user", "Say three letters.")]}, context=context)
    [judged] = [request for request in model.calls if request.schema]
    assert "what it states was found on the way" in judged.messages[0].text
    assert judged.last.startswith("<request>")
    assert "<checked>\nLength in words: 3; in characters: 5.\n</checked>" in judged.last


@pytest.mark.thorough
@pytest.mark.sandbox
async def test_programs_are_tried_on_tests_that_the_model_wrote() -> None:
    settings = {"environment": "programming", "actor": "chain_of_thought", "acting": "auto"}
    out, model = await run(programming(WRITTEN), PROGRAMMING, **settings)
    assert [kind(request) for request in model.calls] == ["tests", "act", "reflect", "act"]
    assert "Tests:\nassert double(2) == 4\nassert double(0) == 0" in model.calls[1].last
    assert [trial["reward"] for trial in out["trials"]] == [0.5, 1.0]
    assert out["outcome"]["status"] == "solved"
    assert [request for request in model.calls if GOLD in request.text] == []


@pytest.mark.sandbox
async def test_tests_that_a_task_brings_are_used_instead() -> None:
    task = PROGRAMMING["task"]
    given = {**PROGRAMMING, "task": {**task, "data": {**task["data"], "tests": ["assert double(3) == 6"]}}}
    out, model = await run(programming(WRITTEN), given, environment="programming", max_trials=2, max_actions=1)
    assert "tests" not in [kind(request) for request in model.calls]
    assert out["outcome"]["status"] == "solved"
    assert "assert double(3) == 6 # output: 3" in out["trials"][0]["attempt"]


@pytest.mark.sandbox
@pytest.mark.parametrize("limits", [{"max_model_calls": 1}, {"max_total_tokens": 10}, {}])
async def test_tests_that_cannot_be_had_leave_a_run_that_ends_well(limits: dict[str, Any]) -> None:
    out, _ = await run(lambda _: ValueError("no route"), PROGRAMMING, environment="programming", **limits)
    assert (out["answer"], out["outcome"]["status"], out["trials"]) == (None, "failed", [])
    assert "limit" in out["outcome"] or "no route" in out["outcome"]["reason"]


# Experience


async def test_a_second_run_starts_with_what_the_first_has_taught() -> None:
    store, prompts = InMemoryStore(), []
    for answer in ("sun", "moon"):
        script, _ = playing([answer, GOLD], lesson="Lesson {} on " + answer + ".")
        model = learning(script, draws=[drawn("Ask the sea.")])
        context = TrialsContext.model_validate({**QUESTIONS, "model": model, "experience": "seas"})
        await builder.compile(store=store).ainvoke(TASK, context=context)
        prompts.append(
            [request.text for request in model.calls if request.schema is None and kind(request) != "reflect"]
        )
    assert ["Ask the sea." in text for text in prompts[0]] == [False, False]
    assert ["Ask the sea." in text for text in prompts[1]] == [True, True]
    assert ["- Lesson 1 on moon." in text for text in prompts[1]] == [False, True]


async def test_who_draws_never_sees_the_right_answer_and_nothing_drawn_tells_it() -> None:
    store = InMemoryStore()
    task = {**TASK, "task": {**TASK["task"], "gold": "the old lighthouse"}}
    draws = [drawn("Think of the old lighthouse."), drawn("Think of light.")]
    model = learning(playing(["sun"])[0], draws=draws)
    context = TrialsContext.model_validate({**QUESTIONS, "model": model, "experience": "seas", "max_trials": 1})
    await builder.compile(store=store).ainvoke(task, context=context)
    [drawing] = [request for request in model.calls if request.schema == "Drawn"]
    assert "old lighthouse" not in drawing.text
    assert [(known["advice"], known["kind"]) for known in await all_items(store, "seas")] == [
        ("Think of light.", "failure")
    ]


async def test_the_judges_reasons_reach_the_reflection_and_no_jargon() -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return {"reasoning": "It names the sun, which is too far away.", "score": 0.2, "solved": False}
        return "Think of the moon." if kind(request) == "reflect" else "Final Answer: the sun"

    out, model = await run(reply, ASK, environment=None, evaluator="judge", max_trials=2)
    [reflecting] = [request for request in model.calls if kind(request) == "reflect"]
    assert (
        "<verdict>\nThis did not solve the task. A judge gave it a score of 0.20, where 1 is the best.\n"
        f"{prompts.OPINION.format(critique='It names the sun, which is too far away.')}\n</verdict>" in reflecting.last
    )
    assert "actions" not in reflecting.last
    assert out["trials"][0]["critique"] == "It names the sun, which is too far away."


@pytest.mark.parametrize("name", ["programming", "crosswords"])
async def test_a_task_of_another_environment_is_misuse(name: str) -> None:
    model = FakeChatModel(reply=playing(["sun"])[0])
    for given in (TASK, ASK):
        with pytest.raises(Misuse):
            await graph.ainvoke(given, context=TrialsContext.model_validate({"environment": name, "model": model}))
    assert model.calls == []


# Limits


async def test_what_the_actor_spends_is_charged() -> None:
    def busy(request: Request) -> Reply:
        if kind(request) == "act" and len(request.messages) < 5:
            return [ToolUse("calculator", {"expression": "1 + 1"}), ToolUse("fly", {})]
        return "a lesson" if kind(request) == "reflect" else "moon"

    def judged(request: Request) -> Reply:
        return {"reasoning": "No.", "score": 0, "solved": False} if kind(request) == "judge" else busy(request)

    out, model = await run(judged, ASK, environment=None, acting="tools", max_trials=2)
    usage = out["usage"]
    assert usage["model_calls"] == len(model.calls) == 2 * 2 + 2 + 1
    assert (usage["tool_calls"], usage["tool_errors"]) == (4, 2)
    assert usage["input_tokens"] == sum(len(request.text) // 4 + 1 for request in model.calls)


def wanders(request: Request) -> Reply:
    """Looks for something else in each step, answers when it must, and learns nothing."""
    if kind(request) == "reflect":
        return "a lesson"
    if "No further action is allowed" in request.text:
        return "Final Answer: sun"
    return f"Action: Search[sea {request.key}]"


@pytest.mark.parametrize("calls", [1, 2, 4, 6, 9])
async def test_the_limit_of_calls_holds_inside_the_actor_and_is_quoted_as_given(calls: int) -> None:
    out, model = await run(wanders, max_model_calls=calls, max_trials=100, max_actions=3)
    assert out["usage"]["model_calls"] == len(model.calls) == calls
    assert (out["answer"], out["outcome"]["status"]) == ("sun", "limit_reached")
    assert (out["outcome"]["limit"]["name"], out["outcome"]["limit"]["most"]) == ("max_model_calls", calls)


async def test_the_limit_of_tokens_holds_inside_the_actor_and_is_quoted_as_given() -> None:
    for most in (200, 1_000, 3_000, 6_000, 9_000):
        out, _ = await run(wanders, max_total_tokens=most, max_answer_tokens=50, max_trials=100, max_actions=4)
        assert out["usage"]["total_tokens"] <= most
        assert (out["answer"] is None) == (out["outcome"]["status"] == "failed")
        limit = out["outcome"]["limit"]
        assert (limit["name"], limit["most"]) == ("max_total_tokens", most)
        assert limit["spent"] <= out["usage"]["total_tokens"]
        assert limit["spent"] + limit["needed"] > most


@pytest.mark.usefixtures("virtual_seconds")
def test_the_limit_of_time_holds_inside_the_actor_and_is_quoted_as_given() -> None:
    script, _ = playing(["sun", "moon"])
    model: FakeChatModel = FakeChatModel(reply=script, latency=lambda _: 60 if len(model.calls) > 2 else 0)
    context = TrialsContext.model_validate({**QUESTIONS, "model": model, "max_seconds": 5})
    out, _ = virtually(graph.ainvoke(TASK, context=context))
    assert (out["answer"], out["outcome"]["status"]) == ("sun", "limit_reached")
    assert out["outcome"]["limit"] == {"name": "max_seconds", "most": 5, "spent": 5}


async def test_a_model_that_fails_fails_the_run_at_once() -> None:
    out, model = await run(lambda _: ValueError("no route"))
    assert (out["answer"], out["outcome"]["status"], out["trials"]) == (None, "failed", [])
    assert "no route" in out["outcome"]["reason"]
    assert len(model.calls) == 3


# Threads and resumption


class Crash(RuntimeError):
    """What no graph catches."""


@pytest.mark.matrix
@pytest.mark.parametrize("crashes", range(1, 10))
async def test_finished_trials_and_steps_are_not_repeated_after_a_crash(crashes: int) -> None:
    left = [True]

    def reply(request: Request) -> Reply:
        if len(model.calls) == crashes and left:
            left.clear()
            return Crash("power cut")
        if kind(request) == "reflect":
            return f"Lesson after {request.key[:6]}."
        return "Action: Search[sea]" if "Observation 1:" not in request.last else "Action: Finish[sun]"

    model = FakeChatModel(reply=reply)
    context = TrialsContext.model_validate({**QUESTIONS, "model": model})
    resumed = builder.compile(checkpointer=InMemorySaver())
    if crashes <= 8:
        with pytest.raises(Crash):
            await resumed.ainvoke(TASK, CONFIG, context=context)
    out = await resumed.ainvoke(None if crashes <= 8 else TASK, CONFIG, context=context)
    assert out["outcome"]["status"] == "limit_reached"
    assert out["outcome"]["limit"] == {"name": "max_trials", "most": 3, "spent": 3}
    assert len(model.calls) == (9 if crashes <= 8 else 8)
    assert [trial["trial"] for trial in out["trials"]] == [1, 2, 3]
    assert out["usage"]["model_calls"] == len(model.calls)


async def test_a_run_paused_before_each_node_does_not_repeat_trials() -> None:
    script, calls = playing(["sun", "moon", GOLD])
    context = TrialsContext.model_validate({**QUESTIONS, "model": FakeChatModel(reply=script)})
    paused = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["attempt", "evaluate", "reflect"])
    given: dict[str, Any] | None = TASK
    while given or (await paused.aget_state(CONFIG)).next:
        out = await paused.ainvoke(given, CONFIG, context=context)
        given = None
    assert calls == ["act", "reflect", "act", "reflect", "act"]
    assert (out["answer"], [trial["reward"] for trial in out["trials"]]) == (GOLD, [0, 0, 1])


async def test_two_turns_on_one_thread_have_trials_of_their_own() -> None:
    script, _ = playing(["sun", GOLD, "moon", GOLD])
    model = FakeChatModel(reply=script)
    context = TrialsContext.model_validate({**QUESTIONS, "model": model})
    thread = builder.compile(checkpointer=InMemorySaver())
    first = await thread.ainvoke(TASK, CONFIG, context=context)
    calls = len(model.calls)
    second = await thread.ainvoke({**TASK, "messages": [("user", "And again?")]}, CONFIG, context=context)
    assert [len(out["trials"]) for out in (first, second)] == [2, 2]
    assert [message.type for message in second["messages"]] == ["human", "ai", "human", "ai"]
    assert second["usage"]["model_calls"] == len(model.calls) - calls
    assert "Lesson" not in model.calls[calls].text


async def test_a_tool_inside_a_trial_may_ask_a_person() -> None:
    @tool
    def ask_person(question: str) -> str:
        """Ask a person."""
        return f"they say {interrupt(question)}"

    def asks(request: Request) -> Reply:
        if kind(request) == "judge":
            return {"reasoning": "So.", "score": 1, "solved": "they say moon" in request.last}
        return "moon" if request.messages[-1].type == "tool" else ToolUse("ask_person", {"question": "Who?"})

    model = FakeChatModel(reply=asks)
    context = TrialsContext(model=model, search="none", tools=[ask_person])
    thread = builder.compile(checkpointer=InMemorySaver())
    paused = await thread.ainvoke(ASK, CONFIG, context=context)
    assert [question.value for question in paused["__interrupt__"]] == ["Who?"]
    out = await thread.ainvoke(Command(resume="moon"), CONFIG, context=context)
    assert (out["outcome"]["verified_by"], [trial["score"] for trial in out["trials"]]) == ("judge", [1])
    assert out["usage"]["model_calls"] == len(model.calls) == 3


@pytest.mark.parametrize(
    ("answer", "reason", "contradicts"),
    [
        ("Answer: 60 km", "It has to be 80.", True),
        ("The treaty was signed in 1648 in a town of Westphalia.", "Source [2] confirms it.", False),
    ],
)
def test_only_a_verdict_on_a_number_is_held_against_the_numbers_in_it(
    answer: str, reason: str, contradicts: bool
) -> None:
    assert contradicts_itself(Judgement(reasoning=reason, solved=True, score=0.9), answer, 0.7) == contradicts
