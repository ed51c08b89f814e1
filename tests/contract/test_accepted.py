"""Which of several answers comes back: the one that was accepted by what ends the run, though another is liked more."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from reflective_agents.environments.base import Environment, State, Task, Transition
from reflective_agents.graphs import graph_of
from reflective_agents.state.settings import settings_of, strategy_names
from reflective_agents.testing.checker import checked
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, Script

GOOD, LIKED = "GOOD answer", "LIKED answer"
SCORES = {GOOD: 0.8, LIKED: 0.95}
"""Every judge gives the answer that it accepts a lower score than those that it does not."""
Result = Mapping[str, Any]
Found = tuple[str, float | None]
"""What the artefact says was accepted: an answer, and its score."""


class Guess(Environment):
    """Every guess ends the task, and one is right."""

    name = "guess"
    actions = "the guess"
    goal = "Guess."

    async def step(self, state: State, action: str) -> Transition:
        guess = action.removeprefix("Answer:").strip()
        return Transition({**state, "answer": guess, "done": True}, "Over.", float(self.is_right(guess)), True)

    def is_right(self, guess: str) -> bool:
        return guess == GOOD


class Steps(Guess):
    """Guesses until one is right."""

    async def step(self, state: State, action: str) -> Transition:
        done = await super().step(state, action)
        return done if done.reward else done._replace(state={**done.state, "done": False}, reward=None, done=False)


def judged(text: str) -> dict[str, Any]:
    """Judge the last answer in a text."""
    last = max((GOOD, LIKED), key=text.rfind)
    return {"reasoning": "So.", "score": SCORES[last], "solved": last == GOOD}


def judging(request: Request) -> Reply:
    """Judge one candidate, or several by themselves."""
    if request.schema == "Judgements":
        return {"judgements": [judged(part) for part in request.last.split("<candidate ")[1:]]}
    return judged(request.last)


def turns(right: int) -> Callable[[], str]:
    """Name answers one after another, of which one is right."""
    given: list[str] = []

    def answer() -> str:
        given.append(GOOD if len(given) + 1 == right else LIKED)
        return given[-1] if given[-1] == GOOD else f"{LIKED} {len(given)}"

    return answer


def searching() -> Script:
    """The second of all answers is right; a plan is named for what comes of it."""
    answer = turns(2)
    return lambda request: judging(request) if request.schema else answer()


def writing() -> Script:
    answer = turns(2)

    def reply(request: Request) -> Reply:
        if request.schema:
            found = judged(request.last)
            return {"critique": "So.", "score": found["score"], "accept": found["solved"]}
        return answer()

    return reply


def guessing() -> Script:
    """Guess wrong once, then right; where lists are asked for, both at once."""
    answer = turns(2)

    def reply(request: Request) -> Reply:
        if request.schema == "Usefulness":
            return {"scores": [0.9 if LIKED in part else 0.5 for part in request.last.split("<candidate ")[1:]]}
        if request.schema:
            return judging(request)
        if "Predict the state" in request.last:
            return "Something.\nDone: yes"
        if "different" in request.last or "Possible next" in request.last or "List up to" in request.last:
            return f"{LIKED}\n{GOOD}"
        if request.last.endswith("Reflection:"):
            return "A lesson."
        return f"{'Answer' if 'thinking step by step' in request.text else 'Action'}: {answer()}"

    return reply


def voting(request: Request) -> Reply:
    """Two of three agree, and on what is right."""
    return f"Answer: {LIKED if request.index == 0 else GOOD}"


def delegating() -> Script:
    answer = turns(2)

    def reply(request: Request) -> Reply:
        if request.schema != "Delegation":
            return answer()
        best = max((int(number) for number in re.findall(r'<candidate number="(\d+)"', request.last)), default=0)
        done, score = best == 2, SCORES[GOOD if best == 2 else LIKED] if best else 0
        tasks = [] if done else [{"to": "anna", "task": f"Try {best + 1}."}]
        return {"critique": "So.", "best": best, "score": score, "done": done, "tasks": tasks}

    return reply


def debating(request: Request) -> Reply:
    if request.schema == "Verdict":
        number = int(re.findall(rf'<candidate number="(\d+)">(?:(?!<candidate).)*{GOOD}', request.last, re.DOTALL)[-1])
        return {"reasoning": "So.", "agree": False, "best": number, "score": SCORES[GOOD], "solved": True}
    return GOOD if "You are bert" in request.text else LIKED


def answering(request: Request) -> Reply:
    """Each revision calls itself complete or not: the second is."""
    rounds = sum(message.type == "tool" for message in request.messages)
    done = request.schema == "ReviseAnswer" and rounds == 2
    lacking = {"missing": "" if done else "More.", "superfluous": "", "complete": done}
    answer = f"{GOOD if done else LIKED} [1]."
    return {"answer": answer, "reflection": lacking, "search_queries": [f"query {rounds}"]}


def sampling_wrong(request: Request) -> Reply:
    """Whole answers that agree and are not liked; evidence that is; and a tree with the right one."""
    if request.schema in ("AnswerQuestion", "ReviseAnswer"):
        lacking = {"missing": "More.", "superfluous": "", "complete": False}
        return {"answer": f"{LIKED} [1].", "reflection": lacking, "search_queries": ["query"]}
    if request.schema:
        return judging(request)
    return f"Answer: {LIKED} 1" if "thinking step by step" in request.text else (GOOD if request.index else LIKED)


def planning(request: Request) -> Reply:
    """The first plan fails, the second works; the last word is the answer."""
    if request.schema == "Plan":
        number = request.text.count("<subgoal")
        return {"subgoals": [{"id": f"g{number}", "goal": f"Goal {number}.", "needs": []}]}
    if "The results:" in request.last:
        return GOOD
    return "IMPOSSIBLE: no way." if "Goal 0" in request.last else f"Answer: {LIKED}"


def remembering(request: Request) -> Reply:
    return {"facts": []} if request.schema else GOOD


def shelf(query: str) -> list[dict[str, str]]:
    """Find one page."""
    return [{"title": "Page", "url": "https://pages.example/1", "content": f"{GOOD}, {LIKED}."}]


# What the artefacts say was accepted


def solved_nodes(out: Result) -> Sequence[Found]:
    nodes = [node for node in out["tree"].values() if node["solved"]]
    return [((node.get("state") or {}).get("answer") or node["messages"][0].text, node["score"]) for node in nodes]


def accepted_drafts(out: Result) -> Sequence[Found]:
    return [(draft["text"], draft["score"]) for draft in out["drafts"] if draft["accepted"]]


def solved_trials(out: Result) -> Sequence[Found]:
    return [(trial["answer"], trial["score"]) for trial in out["trials"] if trial["solved"]]


def named_reports(out: Result) -> Sequence[Found]:
    last = out["rounds"][-1]
    reports = [report for entry in out["rounds"] for report in entry["reports"]]
    return [(report["answer"], last["score"]) for report in reports if report["number"] == last["best"]]


def complete_answers(out: Result) -> Sequence[Found]:
    complete = [answer["answer"] for answer in out["answers"] if answer["complete"]]
    return [(out["answer"], None) for answer in complete if out["answer"].startswith(answer)]


def right_samples(out: Result) -> Sequence[Found]:
    return [(sample["answer"], None) for sample in out["samples"] if sample["answer"] == GOOD][:1]


def accepted_candidates(out: Result) -> Sequence[Found]:
    return [(each["answer"], each["score"]) for each in out["candidates"] if each["accepted"]]


def right_steps(out: Result) -> Sequence[Found]:
    return [(GOOD, None) for step in out["steps"] if GOOD in step["action"]]


def evidence(out: Result) -> Sequence[Found]:
    return [(out["evidence"]["answer"], None)]


def heaviest(out: Result) -> Sequence[Found]:
    return [(out["weights"][0]["answer"], None)] if out["reward"] == 1 else []


def answer_alone(out: Result) -> Sequence[Found]:
    return [(out["answer"], None)]


@dataclass(frozen=True)
class Case:
    """A run with several answers.

    Attributes:
        strategy: Its name.
        reply: Makes the model's script.
        accepted: Reads from the artefact what was accepted.
        by: Who accepts it; None where nobody verifies answers.
        settings: Settings of the strategy.
    """

    strategy: str
    reply: Callable[[], Script]
    accepted: Callable[[Result], Sequence[Found]]
    by: str | None = "judge"
    settings: Mapping[str, Any] = field(default_factory=dict)


def always(script: Script) -> Callable[[], Script]:
    """Make a script that needs no state."""
    return lambda: script


PAIR = [{"name": name, "instructions": "So.", "strategy": "chain_of_thought"} for name in ("anna", "bert")]
CASES = [
    Case("chain_of_thought", always(voting), right_samples, "environment", {"environment": Guess(), "samples": 3}),
    Case("react", guessing, right_steps, "environment", {"environment": Steps(), "acting": "paper"}),
    Case("reflection", writing, accepted_drafts),
    Case("reflexion", always(checked(answering)), complete_answers, "sources", {"search": shelf}),
    Case("trials", searching, solved_trials, settings={"actor": "chain_of_thought", "reflection": "none"}),
    Case("trials", guessing, solved_trials, "environment", {"environment": Guess(), "acting": "paper"}),
    Case("team", delegating, named_reports, settings={"roles": PAIR[:1]}),
    Case("team", always(debating), named_reports, settings={"roles": PAIR, "shape": "debate", "max_rounds": 1}),
    Case("plan", always(planning), answer_alone, None, {"worker": "chain_of_thought"}),
    Case("memory", always(remembering), answer_alone, None, {"embeddings": "lexical"}),
    Case("aggregation", guessing, accepted_candidates, "environment", {"environment": Guess(), "population": 2}),
    Case("best_of_n", searching, solved_nodes, settings={"n": 3}),
    Case("lats", searching, solved_nodes, settings={"n": 3}),
    Case("lats", searching, solved_nodes, settings={"n": 3, "simulate": True, "grading": "together"}),
    Case("lats", guessing, solved_nodes, "environment", {"environment": Steps(), "n": 2}),
    Case("ab_mcts", searching, solved_nodes),
    Case("tree_of_thoughts", searching, solved_nodes, settings={"n": 3, "max_depth": 1}),
    Case("rap", guessing, heaviest, "environment", {"environment": Guess(), "n": 2, "confidence_samples": 1}),
    Case("auto", guessing, right_samples, "environment", {"environment": Guess()}),
    Case("auto", always(sampling_wrong), solved_nodes, settings={"search": shelf}),
    Case("auto", always(checked(answering)), evidence, "sources", {"search": shelf, "max_rounds": 3}),
]


def test_every_strategy_that_answers_is_tried() -> None:
    assert {case.strategy for case in CASES} == {*strategy_names()} - {"town"}


@pytest.mark.matrix(keep=8)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.strategy}-{case.by}")
async def test_the_accepted_answer_comes_back_with_its_own_score_and_node(case: Case) -> None:
    searches = {"search": "none"} if "search" in settings_of(case.strategy).model_fields else {}
    context = settings_of(case.strategy)(model=FakeChatModel(reply=case.reply()), **{**searches, **case.settings})
    task = {"task": Task(id="1", question="What is it?")} if "environment" in case.settings else {}
    out = await graph_of(case.strategy).ainvoke({"messages": [("user", "What is it?")], **task}, context=context)
    outcome, [(answer, score)] = out["outcome"], case.accepted(out)
    assert (outcome["status"], outcome.get("verified_by")) == ("solved" if case.by else "answered", case.by), outcome
    assert out["answer"].startswith(GOOD)
    assert (out["answer"], out["messages"][-1].text) == (answer, answer)
    if score is not None and case.by == "judge":
        assert f"a score of {score:.2f}" in outcome["reason"]
    for named in re.findall(r"node ([\d.]*\d)", outcome["reason"]):
        assert out["tree"][named]["solved"]
