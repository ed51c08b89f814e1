"""What has to hold of every result, whatever the strategy."""

import json
import re

from reflective_agents.environments.registry import ENVIRONMENTS
from reflective_agents.nodes.evidence.support import is_verified
from tests.contract.artefacts import ARTEFACTS
from tests.contract.random_settings import SHELF, Run


async def contradictions(run: Run) -> list[str]:
    """Return what does not fit together in what came of a run; empty if all does."""
    checks = [*_outcome(run), *_support(run), *_limits(run), *_references(run), *await _environment(run), *_judge(run)]
    return [*checks, *ARTEFACTS.get(run.strategy, lambda _: [])(run)]


def _outcome(run: Run) -> list[str]:
    outcome, answer = run.out["outcome"], run.out["answer"]
    if not outcome:
        return ["no outcome"]
    problems = []
    if (outcome["status"] == "failed") != (answer is None):
        problems.append(f"{outcome['status']} with the answer {answer!r}")
    if (outcome["status"] == "solved") != ("verified_by" in outcome):
        problems.append(f"{outcome['status']}, verified by {outcome.get('verified_by')}")
    if outcome["status"] == "limit_reached" and "limit" not in outcome:
        problems.append("limit_reached without a limit")
    if answer is not None and (not answer.strip() or run.out["messages"][-1].text != answer):
        problems.append("the last message is not the answer")
    if run.events[-1]["event"] != "end" or run.events[-1]["status"] != outcome["status"]:
        problems.append(f"the last event is {run.events[-1]}")
    return problems


def _support(run: Run) -> list[str]:
    """What is verified by its sources has a support that says so, of sentences that stand in the answer."""
    by, support = run.out["outcome"].get("verified_by"), run.out.get("support")
    if by == "sources" and not (support and is_verified(support)):
        return [f"verified by its sources, whose support is {support}"]
    if support and is_verified(support) and not by and "answer_schema" not in run.settings:
        return [f"not verified, and its support is {support}"]
    words = re.sub(r"\W+", "", re.sub(r"\[[^\]]*\]", "", run.out["answer"] or ""))
    sentences = support["sentences"] if support else []
    bare = [re.sub(r"\W+", "", re.sub(r"\[[^\]]*\]", "", sentence["text"])) for sentence in sentences]
    return [f"{text} was checked, and does not stand in the answer" for text in bare if text not in words]


def _limits(run: Run) -> list[str]:
    usage, context = run.out["usage"], run.context
    problems = [
        f"{usage[name]} {name} of {most}"
        for name, most in (("model_calls", context.max_model_calls), ("total_tokens", context.max_total_tokens))
        if usage[name] > most
    ]
    cancelled = run.settings.get("parallel", 1) > 1  # a call that is cancelled before it is sent keeps its reservation
    if usage["model_calls"] < run.calls or (usage["model_calls"] > run.calls and not cancelled):
        problems.append(f"{usage['model_calls']} calls counted, {run.calls} sent")
    return problems


_LIST = re.compile(r"\n\nReferences:\n((?:\[\d+\] .*\n?)+)\Z")


def _references(run: Run) -> list[str]:
    answer = run.out["answer"] or ""
    if not (listed := _LIST.search(answer)) or "answer_schema" in run.settings:
        return []
    body, shown = answer[: listed.start()], "\n".join(request.text for request in run.chat.calls)
    problems = []
    for line in listed[1].splitlines():
        number, url = line[1 : line.index("]")], line.split()[-1]
        if not re.search(rf"\[[^\]]*\b{number}\b[^\]]*\]", body):
            problems.append(f"[{number}] is listed and not cited")
        if url not in shown and url not in json.dumps(SHELF):
            problems.append(f"{url} was never shown")
    return [*problems, *(["[9] is cited, which nobody has found"] if " [9]." in body else [])]


async def _environment(run: Run) -> list[str]:
    """An answer is verified by the environment if and only if this gives it the reward 1."""
    outcome, answer = run.out["outcome"], run.out["answer"]
    by = outcome.get("verified_by")
    if not run.task or answer is None or "answer_schema" in run.settings:
        return [] if by != "environment" or "answer_schema" in run.settings else ["verified by no environment"]
    environment = ENVIRONMENTS[run.settings["environment"]]()
    state = environment.start(run.task)
    action = environment.final_action(answer)
    if action is None or by != "environment":
        return []
    reward = (await environment.step(state, action)).reward
    return [] if reward == 1 else [f"verified by the environment, which gives {answer!r} the reward {reward}"]


def _judge(run: Run) -> list[str]:
    by = run.out["outcome"].get("verified_by")
    if by == "judge" and not any(filled["score"] > 0 for _, filled in run.model.accepted):
        return ["verified by a judge who accepted nothing"]
    return []
