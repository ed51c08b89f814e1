"""How runs end: each row of the table in docs/outcomes.md is a run."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tenacity import wait_none

from reflective_agents.environments.base import Environment, State, Transition, refuse
from reflective_agents.graphs import graph_of
from reflective_agents.testing.checker import support
from reflective_agents.testing.fake import FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request, Script
from tests.strategies import STRATEGIES

PAGE = Path(__file__).parents[2] / "docs" / "outcomes.md"
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in PAGE.read_text().partition("## Every strategy")[2].splitlines()
    if line.startswith("| ") and not line.startswith("| strategy")
]
SOLVING = {strategy.name: strategy for strategy in STRATEGIES}
Run = tuple[str, Script, Mapping[str, Any]]
"""A strategy, its model, and its settings; `task` among them is given beside the question."""


class Once(Environment):
    """One guess: 7 is right, every other number wrong, and a word no guess."""

    name = "once"
    actions = "a whole number"
    goal = "Guess the number."

    async def step(self, state: State, action: str) -> Transition:
        if not action.strip().isdecimal():
            return refuse(state, "That is not a whole number.")
        return Transition(
            {**state, "answer": action.strip(), "done": True}, "Over.", float(action.strip() == "7"), True
        )


class Steps(Once):
    """The same in several steps: a single answer is no guess."""

    def final_action(self, answer: str) -> str | None:
        return None


class Asked(Once):
    """The same by way of smaller questions."""

    by_subquestions = True


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries do not wait."""
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())


def saying(text: str, score: float | None = None) -> Script:
    """A model that always says the same; with a score, its judges call everything solved at that score, or nothing
    if it is negative."""

    def reply(request: Request) -> Reply:
        judged = {"reasoning": "So.", "score": abs(score or 0), "solved": score is not None and score >= 0}
        if request.schema == "Judgements":
            return {"judgements": [judged] * request.last.count("<candidate ")}
        if request.schema == "Critique":
            return {"critique": "So.", "score": judged["score"], "accept": judged["solved"]}
        return judged if request.schema else text

    return reply


def acting(action: str, at_last: str = "") -> Script:
    """An agent that always acts so, and answers so where it may act no more."""
    closing, step = ("No further action", "The run ends here"), f"Thought: So.\nAction: {action}"
    return lambda request: f"Final Answer: {at_last}" if any(phrase in request.text for phrase in closing) else step


def voting(request: Request) -> Reply:
    """Different thoughts, of which the second has all votes."""
    number = request.index + request.attempt
    return "The best choice is 2" if "<candidate" in request.last else f"Thought {len(request.messages)} {number}."


def responding(*, complete: bool, cites: bool, level: str = "full", answered: str = "yes") -> Script:
    """A responder that is content or not, and cites what it has found or nothing; and a checker of that."""

    def reply(request: Request) -> Reply:
        if request.schema == "SupportCheck":
            return support(request, level, answered)
        if request.schema == "Revision":
            return {"sentences": []}
        found = re.findall(r'"url": "([^"]+)"', request.text)[:1] if cites else []
        critique = {"missing": "" if complete else "Proof.", "superfluous": "", "complete": complete}
        common = {"answer": f"It helps{' [1]' if found else ''}.", "reflection": critique}
        queries = [f"reflection {len(request.messages)}"] if cites else ["reflection"]
        draft = request.schema == "AnswerQuestion"
        return {**common, "search_queries": queries, **({} if draft else {"references": found})}

    return reply


def disagreeing(forms: Script) -> Script:
    """A model whose samples all differ; its forms are those of another."""
    return lambda request: forms(request) if request.schema else f"Answer: {request.index + request.attempt}"


def doing_without(request: Request) -> Reply:
    """A planner of two sub-goals, of which the second fails and is given up."""
    if request.schema != "Plan":
        return "Answer: IMPOSSIBLE: no map" if "Second?" in request.last else "Answer: 7"
    goals = [] if "<failure" in request.text else ["First?", "Second?"]
    return {"subgoals": [{"id": goal[0], "goal": goal, "needs": []} for goal in goals]}


def debating(answers: Callable[[str], str], solved: bool, agree: bool = False) -> Script:
    """Solvers whose answers depend on their names, and a judge."""

    def reply(request: Request) -> Reply:
        if request.schema == "Verdict":
            first = int(re.findall(r'<candidate number="(\d+)"', request.last)[0])
            return {"reasoning": "So.", "agree": agree, "best": first, "score": 0.6, "solved": solved}
        return answers(re.findall(r"You are (\w+), a member of a team", request.text)[0])

    return reply


def failing_later(request: Request) -> Reply:
    return ValueError("out of order") if request.schema else "A draft."


def ending_at_once(request: Request) -> Reply:
    """A supervisor that hands the first report over with a score of 0."""
    first = "<candidate" not in request.last
    given = {"tasks": [{"to": "solver", "task": "Answer."}]} if first else {"best": 1, "done": True}
    return (
        {"critique": "", "best": 0, "score": 0, "done": False, "tasks": [], **given} if request.schema else "Answer: 7"
    )


ONCE = {"environment": Once(), "acting": "paper"}
IN_STEPS = {"environment": Once(), "proposals": "samples", "grades": "judge", "n": 1, "max_expansions": 3}
OPEN = {"search": "none"}
DEBATE = {
    **OPEN,
    "shape": "debate",
    "max_rounds": 3,
    "roles": [{"name": name, "instructions": "Solve.", "strategy": "chain_of_thought"} for name in ("ada", "bob")],
}
DOUBLE = {"entry_point": "double", "tests": ["assert double(2) == 4"], "hidden": "pass"}
PROGRAM = "```python\ndef double(x):\n    return 2 * x\n```"
CUT = AIMessage("So it", response_metadata={"finish_reason": "length"})


def solving(name: str, **settings: Any) -> Run:
    """The model that the shared tests run a strategy with."""
    return name, SOLVING[name].solving, {**SOLVING[name].settings, **settings}


def fruitless(request: Request) -> Reply | Sequence[Reply]:
    """A planner of whose two workers one finds nothing."""
    reply = SOLVING["plan"].endless(request)
    return (
        reply.replace("IMPOSSIBLE: nothing was found", "I found nothing on this.") if isinstance(reply, str) else reply
    )


RUNS: Mapping[tuple[str, str], Run] = {
    ("chain_of_thought", "samples agree"): ("chain_of_thought", saying("Answer: 7"), {"samples": 3}),
    ("chain_of_thought", "one sample is all there is"): ("chain_of_thought", saying("Answer: 7"), {"samples": 1}),
    ("chain_of_thought", "three samples give three answers"): (
        "chain_of_thought",
        lambda request: f"Answer: {request.index + request.attempt}",
        {"samples": 3},
    ),
    ("chain_of_thought", "the environment does not reward a single answer"): (
        "chain_of_thought",
        saying("Answer: 7"),
        {"environment": Steps()},
    ),
    ("chain_of_thought", "the environment refuses the answer"): (
        "chain_of_thought",
        saying("Answer: seven"),
        {"environment": Once()},
    ),
    ("chain_of_thought", "no sample can be read"): ("chain_of_thought", lambda _: CUT, {"samples": 1}),
    ("chain_of_thought", "the answer has a reward of 0"): (
        "chain_of_thought",
        saying("Answer: 5"),
        {"environment": Once()},
    ),
    ("chain_of_thought", "the answer has a reward of 1"): (
        "chain_of_thought",
        saying("Answer: 7"),
        {"environment": Once()},
    ),
    ("chain_of_thought", "the program passes the visible tests"): (
        "chain_of_thought",
        saying(PROGRAM),
        {"environment": "programming", "task": {"id": "1", "question": "double", "data": DOUBLE}},
    ),
    ("chain_of_thought", "a limit left samples out"): (
        "chain_of_thought",
        saying("Answer: 7"),
        {"samples": 2, "max_model_calls": 1},
    ),
    ("react", "it answers"): ("react", saying("It helps."), OPEN),
    ("react", "it writes prose without an action, twice"): (
        "react",
        saying("I will search for more."),
        {**OPEN, "acting": "paper"},
    ),
    ("react", "it declares that it found nothing"): ("react", saying("I found nothing on this."), OPEN),
    ("react", "the answer has a reward of 0"): ("react", acting("5"), ONCE),
    ("react", "the answer has a reward of 1"): ("react", acting("7"), ONCE),
    ("react", "at a limit, its best answer has a reward of 1"): ("react", acting("x", "7"), {**ONCE, "max_actions": 1}),
    ("react", "at a limit, its best answer has a reward of 0"): ("react", acting("x", "5"), {**ONCE, "max_actions": 1}),
    ("reflection", "the critic accepts"): ("reflection", saying("A draft.", 0.9), {}),
    ("reflection", "all verifiers accept"): ("reflection", saying("A draft."), {"critic": "checks", "max_words": 5}),
    ("reflection", "the critic accepts with a score of 0, to the end"): (
        "reflection",
        saying("A draft.", 0),
        {},
    ),
    ("reflexion", "the answer is complete, and its sources support it"): (
        "reflexion",
        responding(complete=True, cites=True),
        {"search": "local"},
    ),
    ("reflexion", "the answer is complete, and its sources do not support it"): (
        "reflexion",
        responding(complete=True, cites=True, level="none"),
        {"search": "local"},
    ),
    ("reflexion", "the answer is complete, and its sources are not checked"): (
        "reflexion",
        responding(complete=True, cites=True),
        {"search": "local", "verify_sources": False},
    ),
    ("reflexion", "the check of its sources finds that it does not answer"): (
        "reflexion",
        responding(complete=True, cites=True, answered="no"),
        {"search": "local"},
    ),
    ("reflexion", "the answer is complete, and cites nothing"): (
        "reflexion",
        responding(complete=True, cites=False),
        {"search": "local"},
    ),
    ("reflexion", "the draft is complete, and nothing is to be searched"): (
        "reflexion",
        responding(complete=True, cites=False),
        {"search": "none"},
    ),
    ("reflexion", "the answer is not complete, and nothing new can be searched"): (
        "reflexion",
        responding(complete=False, cites=False),
        {"search": "local"},
    ),
    ("reflexion", "the answer is not complete after the last round"): (
        "reflexion",
        responding(complete=False, cites=True, level="part"),
        {"search": "local"},
    ),
    ("auto", "the samples agree"): ("auto", saying("Answer: 7"), OPEN),
    ("auto", "a sample has a reward of 1"): ("auto", saying("Answer: 7"), {"environment": Once()}),
    ("auto", "the sources support a complete answer"): (
        "auto",
        disagreeing(responding(complete=True, cites=True)),
        {"search": "local"},
    ),
    ("auto", "the judge accepts a node"): (
        "auto",
        disagreeing(saying("", 0.9)),
        OPEN,
    ),
    ("auto", "another call is expected to gain less than it costs"): (
        "auto",
        disagreeing(saying("")),
        {**OPEN, "call_cost": 0.3},
    ),
    ("auto", "no sample has a reward of 1, and no call is left"): (
        "auto",
        saying("Answer: 5"),
        {"environment": Once(), "max_model_calls": 2},
    ),
    ("lats", "the judge accepts a node"): ("lats", saying("It helps.", 0.9), OPEN),
    ("lats", "the judge accepts with a score of 0, to the end"): (
        "lats",
        saying("It helps.", 0),
        {**OPEN, "min_score": 0},
    ),
    ("lats", "a node has a reward of 1"): ("lats", acting("7"), IN_STEPS),
    ("lats", "at a limit, its last answer has a reward of 1"): (
        "lats",
        acting("x", "7"),
        {**IN_STEPS, "max_model_calls": 1},
    ),
    ("lats", "no open leaf promises more (`min_gain`)"): (
        "lats",
        saying("It helps.", -0.5),
        {**OPEN, "min_gain": 0.9, "revise_answers": True},
    ),
    ("tree_of_thoughts", "the judge accepts a node"): ("tree_of_thoughts", saying("It helps.", 0.9), OPEN),
    ("tree_of_thoughts", "an answer has enough votes"): ("tree_of_thoughts", voting, {**OPEN, "grades": "vote"}),
    ("tree_of_thoughts", "no answer is accepted, and no leaf is left"): (
        "tree_of_thoughts",
        saying("It helps.", -0.5),
        OPEN,
    ),
    ("ab_mcts", "the judge accepts a node"): ("ab_mcts", saying("It helps.", 0.9), OPEN),
    ("ab_mcts", "no answer is accepted up to the last expansion"): (
        "ab_mcts",
        saying("It helps.", -0.5),
        {**OPEN, "max_expansions": 3},
    ),
    ("best_of_n", "the judge accepts a trajectory"): ("best_of_n", saying("It helps.", 0.9), OPEN),
    ("best_of_n", "no trajectory is accepted"): ("best_of_n", saying("It helps.", -0.5), OPEN),
    ("aggregation", "answers of the last round agree"): ("aggregation", saying("Answer: 7"), OPEN),
    ("aggregation", "verifiers accept an answer of the first round"): (
        "aggregation",
        saying("Answer: 7"),
        {**OPEN, "verifiers": [{"pattern": "7"}]},
    ),
    ("aggregation", "no answer has a reward of 1"): ("aggregation", saying("Answer: 5"), {"environment": Once()}),
    ("aggregation", "a limit ends it before the last round"): (
        "aggregation",
        saying("Answer: 7"),
        {**OPEN, "max_model_calls": 5},
    ),
    ("rap", "the paths agree"): solving("rap"),
    ("rap", "the paths do not agree, and no leaf is left"): (
        "rap",
        SOLVING["rap"].endless,
        {**SOLVING["rap"].settings, "n": 1, "max_depth": 2},
    ),
    ("rap", "the end of a path has a reward of 1"): (
        "rap",
        lambda request: {"scores": [0.5]} if request.schema else "Now we can answer the question. Answer: 7",
        {"environment": Asked(), "n": 1},
    ),
    ("plan", "all that was planned is done"): solving("plan"),
    ("plan", "a new plan does without what has failed"): ("plan", doing_without, SOLVING["plan"].settings),
    ("plan", "for one sub-goal nothing was found, and no other plan may be made"): (
        "plan",
        fruitless,
        SOLVING["plan"].settings,
    ),
    ("plan", "a sub-goal has failed, and no other plan may be made"): solving("plan", max_replans=0),
    ("team", "the supervisor accepts a report"): solving("team"),
    ("team", "the supervisor ends the work with a score of 0"): ("team", ending_at_once, SOLVING["team"].settings),
    ("team", "the solvers of a debate agree"): ("team", debating(lambda _: "Answer: 7", solved=False), DEBATE),
    ("team", "the judge of a debate accepts an answer"): (
        "team",
        debating(lambda name: f"Answer: {name}", solved=True),
        DEBATE,
    ),
    ("team", "the solvers agree, as the judge of a debate sees it, and it accepts nothing"): (
        "team",
        debating(lambda name: f"{name} thinks {'so ' * 20}", solved=False, agree=True),
        DEBATE,
    ),
    ("team", "nobody changes their mind, and the judge accepts nothing"): (
        "team",
        debating(lambda name: f"Answer: {name}", solved=False),
        DEBATE,
    ),
    ("trials", "a trial has a reward of 1"): ("trials", acting("7"), ONCE),
    ("trials", "a trial gives the task's right answer (`exact_match`)"): (
        "trials",
        saying("Seven."),
        {**OPEN, "evaluator": "exact_match", "task": {"id": "1", "question": "How many?", "gold": "seven"}},
    ),
    ("trials", "the judge accepts a trial"): ("trials", saying("It helps.", 0.9), OPEN),
    ("trials", "the last trial fails"): ("trials", saying("It helps.", 0), OPEN),
    ("trials", "the judge contradicts itself, to the end"): ("trials", saying("It helps.", 0.5), OPEN),
    ("memory", "it replies"): solving("memory"),
    ("town", "the day is over"): solving("town"),
    ("any", "verifiers of yours accept the answer"): (
        "react",
        saying("Yes."),
        OPEN | {"verifiers": [{"max_words": 1}]},
    ),
    ("any", "tests of yours pass with the program in the answer"): (
        "react",
        saying("def f(): return 1"),
        OPEN | {"verifiers": [{"tests": ["assert f() == 1"], "entry_point": "f"}]},
    ),
    ("any", "verifiers of yours only rank"): (
        "react",
        saying("Yes."),
        OPEN | {"verifiers": [{"function": lambda request, answer: 0.9, "must": False}]},
    ),
    ("any", "verifiers of yours refuse the answer"): (
        "memory",
        saying("Yes."),
        {"user": "refused", "embeddings": "lexical", "verifiers": [lambda request, answer: "too cold"]},
    ),
    ("any", "a verifier of yours raises, or takes too long"): (
        "react",
        saying("Yes."),
        OPEN | {"verifiers": [lambda request, answer: 1 / 0]},
    ),
    ("any", "the model fails before there is an answer"): ("react", lambda _: ValueError("out of order"), OPEN),
    ("any", "the model fails after there is an answer"): ("reflection", failing_later, {}),
}

REASONS: Mapping[tuple[str, str], str] = {
    ("chain_of_thought", "samples agree"): "3 of 3 samples agree",
    ("chain_of_thought", "the environment refuses the answer"): ", but the environment refuses the answer",
    ("chain_of_thought", "no sample can be read"): "no sample ends with an answer that can be read, or all were cut",
    ("react", "the answer has a reward of 0"): "; the answer has a reward of 0",
    ("react", "it answers"): "done after 0 actions",
    ("reflection", "the critic accepts"): "accepted in round 1 with a score of 0.90",
    (
        "reflection",
        "the critic accepts with a score of 0, to the end",
    ): "; the best draft, of round 3, has",
    ("reflexion", "the answer is complete, and its sources support it"): "; its sources support what it states: 1 fact",
    (
        "reflexion",
        "the answer is complete, and its sources do not support it",
    ): "do not fully support 1 of 1 fact: ",
    ("reflexion", "the answer is complete, and cites nothing"): "the answer is complete after round 1",
    ("reflexion", "the answer is not complete, and nothing new can be searched"): "no new query is left after round 1;",
    ("reflexion", "the answer is not complete after the last round"): "; still missing: Proof.",
    ("auto", "the samples agree"): "the vote is safe: 0.94 after 3 samples",
    ("auto", "a sample has a reward of 1"): "sample 1 has a reward of 1",
    ("auto", "another call is expected to gain less than it costs"): "another call is expected to gain 0.200 at most",
    ("auto", "no sample has a reward of 1, and no call is left"): "; no call is left",
    ("lats", "the judge accepts a node"): "the judge accepts the answer with a score of 0.90 (node 0)",
    ("lats", "the judge accepts with a score of 0, to the end"): "; the best answer has a score of 0.00 (node 0)",
    ("lats", "a node has a reward of 1"): "the answer has a reward of 1 (node 0.0)",
    ("lats", "at a limit, its last answer has a reward of 1"): "; no room for another expansion",
    ("lats", "no open leaf promises more (`min_gain`)"): "is better than the best answer by more than min_gain=0.9;",
    ("tree_of_thoughts", "no answer is accepted, and no leaf is left"): "no leaf is left that could be expanded;",
    ("plan", "all that was planned is done"): "all that was planned is done: 2 sub-goals, 2 plans",
    ("plan", "for one sub-goal nothing was found, and no other plan may be made"): ": I found nothing on this.",
    (
        "plan",
        "a sub-goal has failed, and no other plan may be made",
    ): "; sub-goal 2 has failed: IMPOSSIBLE:",
    ("team", "the supervisor accepts a report"): "the supervisor accepts report 2 with a score of 0.90",
    ("team", "the supervisor ends the work with a score of 0"): "the supervisor ends the work;",
    ("team", "the solvers of a debate agree"): "2 solvers agree after round 1",
    ("team", "the judge of a debate accepts an answer"): "the judge accepts report 3 with a score of 0.60",
    (
        "team",
        "nobody changes their mind, and the judge accepts nothing",
    ): "nobody changes their mind any more;",
    ("trials", "a trial has a reward of 1"): "trial 1 has a reward of 1",
    ("trials", "a trial gives the task's right answer (`exact_match`)"): "trial 1 gives the right answer",
    ("trials", "the judge accepts a trial"): "the judge accepts trial 1 with a score of 0.90",
    ("trials", "the last trial fails"): "; the best trial, 1, has a score of 0.00",
    ("memory", "it replies"): "answered from 0 memories, 0 of them cited",
    ("town", "the day is over"): "the day is over (steps=2)",
    (
        "any",
        "verifiers of yours refuse the answer",
    ): "the verifiers do not accept the answer with a score of 0.00: too",
    (
        "any",
        "a verifier of yours raises, or takes too long",
    ): "; a verifier gives no verdict: it raises ZeroDiv",
    ("any", "the model fails before there is an answer"): "out of order",
}
"""What a reason says of the end of a run, each sentence once. Tests elsewhere assert data."""


def test_the_table_has_a_row_for_each_run() -> None:
    assert [row[:2] for row in ROWS] == [*RUNS]
    assert {name for name, _ in RUNS} == {*SOLVING, "any"}
    assert REASONS.keys() <= RUNS.keys()


def marks_of(row: tuple[str, ...]) -> list[pytest.MarkDecorator]:
    """Return what a row's run needs: programs are run in the sandbox."""
    run = RUNS.get((row[0], row[1]))
    programs = run and (run[2].get("environment") == "programming" or "tests" in str(run[2].get("verifiers")))
    return [pytest.mark.sandbox] if programs else []


@pytest.mark.parametrize(
    ("strategy_name", "why", "status", "verified_by"),
    [pytest.param(*row, marks=marks_of(row)) for row in ROWS],
    ids=lambda cell: cell[:40],
)
async def test_a_run_ends_as_the_table_says(strategy_name: str, why: str, status: str, verified_by: str) -> None:
    name, script, settings = RUNS[strategy_name, why]
    settings = dict(settings)
    given = {"messages": [("user", "Why does reflection help? [alpha]")], "task": settings.pop("task", None)}
    given = {key: value for key, value in given.items() if value}
    out = await graph_of(name).ainvoke(given, context={**settings, "model": FakeChatModelWithoutN(reply=script)})
    assert (out["outcome"]["status"], out["outcome"].get("verified_by", "")) == (status, verified_by), out["outcome"]
    assert (out["answer"] is None) == (status == "failed")
    assert ("limit" in out["outcome"]) or status != "limit_reached"
    assert REASONS.get((strategy_name, why), "") in out["outcome"]["reason"]
