"""What has to hold of the artefact of each strategy."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from reflective_agents.environments.actions import has_answer
from reflective_agents.environments.plain import PLAIN
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.tree_search.tree_paths import unpruned
from tests.contract.random_settings import Run, shelf


def _score_in(reason: str) -> float | None:
    scores = re.findall(r"score of (\d\.\d\d)", reason)
    return float(scores[-1]) if scores else None


def _same(score: float | None, reason: str) -> bool:
    quoted = _score_in(reason)
    return quoted is None or (score is not None and abs(quoted - score) < 0.006)


def _tree(run: Run) -> list[str]:
    """The answer is that of the best node: a solved one if there is any, and its score is the one in the outcome."""
    out, tree = run.out, run.out["tree"]
    best, outcome, problems = tree.get(out["best"] or ""), out["outcome"], []
    answers = [node for node in unpruned(tree) if node["kind"] == "answer"]
    solved = [node["id"] for node in answers if node["solved"]]
    has_form = "answer_schema" not in run.settings or out["structured_response"] is not None
    if solved and has_form and outcome["status"] != "solved":
        problems.append(f"nodes {solved} are solved, the run is {outcome}")
    if bool(best) != bool(answers):
        problems.append(f"best is {out['best']} among {len(answers)} answers")
    if not best:
        return problems
    if solved and best["id"] not in solved:
        problems.append(f"the best node {best['id']} is not solved, {solved} are")
    if outcome["status"] == "solved" and not solved:
        problems.append(f"the run is {outcome}, and no node is solved")
    named = re.findall(r"node ([\d.]*\d)", outcome["reason"])
    if any(name != best["id"] for name in named):
        problems.append(f"the best node is {best['id']}, the reason names {named}")
    if named and not _same(best["score"], outcome["reason"]):
        problems.append(f"the best node has {best['score']}, the reason says {outcome['reason']}")
    is_text = best["messages"] and "answer_schema" not in run.settings
    if is_text and best["messages"][0].text != out["answer"]:
        problems.append(f"the answer is not that of node {best['id']}")
    return problems


def _reflection(run: Run) -> list[str]:
    drafts, outcome = run.out["drafts"], run.out["outcome"]
    accepted = [draft for draft in drafts if draft["accepted"]]
    mine = [draft for draft in drafts if draft["text"] == run.out["answer"]]
    problems = []
    if outcome["status"] == "solved" and not accepted:
        problems.append("solved without an accepted draft")
    if "answer_schema" in run.settings or not drafts:
        return problems
    if not mine or (accepted and not any(draft["accepted"] for draft in mine)):
        problems.append(f"the answer is not the accepted draft {accepted}")
    return [*problems, *_scores("draft", drafts, mine, outcome["reason"], is_accepted=bool(accepted))]


def _scores(
    noun: str, attempts: Sequence[Any], mine: Sequence[Any], reason: str, *, is_accepted: bool
) -> Iterator[str]:
    """Yield what is wrong with the scores of all attempts, and of those that gave the answer."""
    best = max((attempt["score"] for attempt in attempts if attempt["score"] is not None), default=None)
    if not is_accepted and best is not None and all((attempt["score"] or 0) < best for attempt in mine):
        yield f"another {noun} has a better score"
    if not any(_same(attempt["score"], reason) for attempt in mine):
        yield f"the answer's {noun} is {mine}, the reason says {reason}"


def _trials(run: Run) -> list[str]:
    out, outcome = run.out, run.out["outcome"]
    solved = [trial for trial in out["trials"] if trial["solved"]]
    problems = []
    if outcome["status"] == "solved" and not solved:
        problems.append("solved without a solved trial")
    mine = [trial for trial in out["trials"] if trial["answer"] == out["answer"]]
    if "answer_schema" in run.settings or out["answer"] is None:
        return problems
    if solved and not any(trial["solved"] for trial in mine):
        problems.append(f"the answer is {out['answer']!r}, solved is {solved}")
    judged = run.settings.get("evaluator") == "judge" or not (run.task or run.settings.get("evaluator"))
    if judged and any(trial["reward"] is not None for trial in out["trials"]):
        problems.append("a judge's trial has a reward")
    if judged and mine:
        problems += _scores("trial", out["trials"], mine, outcome["reason"], is_accepted=bool(solved))
    return problems


def _team(run: Run) -> list[str]:
    out, outcome = run.out, run.out["outcome"]
    reports = {report["number"]: report for entry in out["rounds"] for report in entry["reports"]}
    if out["answer"] is None or "answer_schema" in run.settings:
        return []
    mine = {number for number, report in reports.items() if report["answer"] == out["answer"]}
    problems = [] if mine else ["the answer is no report"]
    scores = [entry["score"] for entry in out["rounds"] if entry["best"] in mine and entry["score"] is not None]
    if outcome.get("verified_by") == "judge" and out["rounds"][-1]["best"] not in mine:
        problems.append(f"report {out['rounds'][-1]['best']} is accepted, the answer is {mine}")
    if not any(_same(score, outcome["reason"]) for score in scores or [None]):
        problems.append(f"the answer's scores are {scores}, the reason says {outcome['reason']}")
    return problems


def _reflexion(run: Run) -> list[str]:
    out, problems = run.out, []
    last = out["answers"][-1] if out["answers"] else None
    if out["outcome"]["status"] == "solved" and not (last and last["complete"] and last["references"]):
        problems.append(f"solved by {last}")
    is_revised = any(request.schema == "Revision" for request in run.chat.calls)  # by the check of its sources
    is_text = not is_revised and "answer_schema" not in run.settings
    if last and is_text and not out["answer"].startswith(last["answer"][:20]):
        problems.append(f"the answer is not the last revision {last}")
    return problems


def _chain_of_thought(run: Run) -> list[str]:
    """The answer is one that has the most votes."""
    out, problems = run.out, _rewarded(run)
    by_normal = Counter(sample["normal"] for sample in out["samples"] if sample["normal"])
    is_plain = "environment" not in run.settings and "answer_schema" not in run.settings
    if out["answer"] is None or not by_normal or not is_plain or run.settings.get("votes") == "likelihood":
        return problems
    labelled = Counter(s["normal"] for s in out["samples"] if s["normal"] and has_answer(s["text"])) or by_normal
    mine = [sample["normal"] for sample in out["samples"] if sample["answer"] == out["answer"]]
    if not any(labelled[normal] == max(labelled.values()) for normal in mine):
        problems.append(f"the votes are {labelled}, the answer is {out['answer']!r}")
    return problems


def _aggregation(run: Run) -> list[str]:
    """The answer is one of the candidates, the best that anybody has scored."""
    out, problems = run.out, _rewarded(run)
    if out["answer"] is None or "answer_schema" in run.settings:
        return problems
    last = out["candidates"][-1]["round"]
    if last > run.settings.get("rounds", 3):
        problems.append(f"there are {last} rounds")
    answer = split_references(out["answer"])[0]
    mine = [candidate for candidate in out["candidates"] if candidate["answer"].strip() == answer.strip()]
    is_revised = any(request.schema == "Revision" for request in run.chat.calls)  # by the check of its sources
    if not mine and not is_revised:
        return [*problems, "the answer is no candidate"]
    best = max((candidate["score"] or 0.0) for candidate in out["candidates"])
    if mine and max((candidate["score"] or 0.0) for candidate in mine) < best:
        problems.append(f"a candidate has a score of {best}")
    return problems


def _plan(run: Run) -> list[str]:
    done = [goal for goal in run.out["subgoals"] if goal["status"] == "done"]
    return ["answered, and no sub-goal is done"] if run.out["outcome"]["status"] == "answered" and not done else []


def _memory(run: Run) -> list[str]:
    marks = re.findall(r"\[m(\d+)\]", run.out["answer"] or "")
    wrong = [mark for mark in marks if not 1 <= int(mark) <= len(run.out["memories"])]
    return [f"memories {wrong} of {len(run.out['memories'])} are cited"] if wrong else []


def _rap(run: Run) -> list[str]:
    out, problems = run.out, _rewarded(run)
    if out["weights"] and out["answer"] is not None and not run.task and "answer_schema" not in run.settings:
        heaviest = max(weighed["weight"] for weighed in out["weights"])
        same = PLAIN.normal(out["answer"])
        mine = [weighed["weight"] for weighed in out["weights"] if PLAIN.normal(weighed["answer"]) == same]
        if mine and max(mine) < heaviest:
            problems.append(f"the weights are {out['weights']}, the answer is {out['answer']!r}")
    return problems


def _auto(run: Run) -> list[str]:
    out, outcome = run.out, run.out["outcome"]
    right = [sample["answer"] for sample in out["samples"] if (sample["reward"] or 0) >= 1]
    problems = []
    if right and outcome.get("verified_by") not in ("environment", "tests"):
        problems.append(f"a sample has a reward of 1, and the run is {outcome}")
    solved = [node for node in out["tree"].values() if node["solved"] and node["kind"] == "answer"]
    has_form = "answer_schema" not in run.settings or out["structured_response"] is not None
    if solved and has_form and outcome["status"] != "solved" and not right:
        problems.append(f"nodes {[node['id'] for node in solved]} are solved, the run is {outcome}")
    if "answer_schema" in run.settings or out["answer"] is None:
        return problems
    if right and out["answer"] not in right:
        problems.append(f"{right[0]!r} is right, the answer is {out['answer']!r}")
    texts = [node["messages"][0].text for node in solved if node["messages"]]
    if outcome.get("verified_by") == "judge" and not run.task and out["answer"] not in texts:
        problems.append("the answer is not that of a solved node")
    by_vote = outcome["status"] == "answered" and out["turns"][-1]["why"].startswith("the vote is safe")
    if by_vote and out["answer"] not in [sample["answer"] for sample in out["samples"]]:
        problems.append(f"the vote ended the run, and the answer is {out['answer']!r}")
    looked = any(turn["stage"] == "look_up" for turn in out["turns"])
    if by_vote and run.settings["search"] is shelf and not run.task and not looked:
        problems.append("the vote ended the run before a look-up")
    return problems


def _rewarded(run: Run) -> list[str]:
    reward, by = run.out.get("reward"), run.out["outcome"].get("verified_by")
    overruled = any(node.get("rescored") for node in run.out.get("tree", {}).values())
    if overruled or "answer_schema" in run.settings:
        return []
    if (reward is not None and reward >= 1) != (by in ("environment", "tests")):
        return [f"a reward of {reward}, verified by {by}"]
    return []


def _tree_search(run: Run) -> list[str]:
    return [*_tree(run), *_rewarded(run)]


ARTEFACTS = {
    "lats": _tree_search,
    "tree_of_thoughts": _tree_search,
    "ab_mcts": _tree_search,
    "best_of_n": _tree_search,
    "rap": _rap,
    "react": _rewarded,
    "chain_of_thought": _chain_of_thought,
    "aggregation": _aggregation,
    "plan": _plan,
    "memory": _memory,
    "reflection": _reflection,
    "reflexion": _reflexion,
    "trials": _trials,
    "team": _team,
    "auto": _auto,
}
"""What else has to hold, by the strategy whose artefact it is about."""
