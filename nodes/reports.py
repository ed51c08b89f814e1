"""What the members of a team have reported: which reports stand, which is the best, and how others are shown them."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from langchain_core.messages import BaseMessage

from nodes.transcript import quoted, request_text
from nodes.workers import failure
from prompts import team as prompts
from state.cooperation import Report, Role, Round
from state.decisions import Delegation

_LABEL = re.compile(r"\banswer\s*:", re.IGNORECASE)


def reports_of(rounds: Sequence[Round]) -> list[Report]:
    """All reports, in their order."""
    return [report for round in rounds for report in round["reports"]]


def answered(rounds: Sequence[Round]) -> list[int]:
    """The numbers of the reports that have an answer."""
    return [report["number"] for report in reports_of(rounds) if report["answer"] is not None]


def standing(rounds: Sequence[Round]) -> list[Report]:
    """The latest answer of each member that has given one, in the order of the members' first answers."""
    return list({report["name"]: report for report in reports_of(rounds) if report["answer"] is not None}.values())


def judged(rounds: Sequence[Round], critique: str, best: int, score: float | None) -> list[Round]:
    """The rounds with what the supervisor or the judge says after the last one."""
    *earlier, last = rounds
    return [*earlier, {**last, "critique": critique, "best": best, "score": score}]


def best_report(rounds: Sequence[Round]) -> Report | None:
    """The report that was scored best, of equals the latest; if none was, the last that has an answer."""
    named = [round for round in rounds if round["best"]]
    if named:
        best = max(named, key=lambda round: (round["score"] or 0.0, round["round"]))["best"]
        return next(report for report in reports_of(rounds) if report["number"] == best)
    return next((report for report in reversed(reports_of(rounds)) if report["answer"] is not None), None)


def stance(report: Report) -> str:
    """What an answer comes down to: what follows its last "Answer:", else all of it, without case and blanks."""
    return " ".join(_LABEL.split(report["answer"] or "")[-1].casefold().split()).rstrip(" .")


def settled(rounds: Sequence[Round]) -> bool:
    """Whether nobody has changed their mind in the last round."""
    before, now = ({report["name"]: stance(report) for report in round["reports"]} for round in rounds[-2:])
    return before == now


def majority(answers: Sequence[Report]) -> Report:
    """The answer that most members give, of equals the first; there has to be one."""
    [(most, _)] = Counter(map(stance, answers)).most_common(1)
    return next(report for report in answers if stance(report) == most)


def flaw(made: Delegation, answers: Sequence[int], names: Collection[str], left: int) -> str | None:
    """What is wrong with a supervisor's decision, in words for the model.

    Args:
        made: The decision.
        answers: The numbers of the reports that have an answer.
        names: The members.
        left: Rounds of work that are left.
    """
    if made.best and made.best not in answers:
        return f"best has to be 0 or the number of a report that has an answer: {answers}"
    if made.done and not made.best:
        return "done needs the number of the report that is to be handed over, as best"
    if made.done or not left:
        return None
    if not made.tasks:
        return "delegate at least one task, or be done"
    given = [task.to for task in made.tasks]
    if unknown := sorted(set(given) - set(names)):
        return f"there is no member {', '.join(unknown)}; the members are {', '.join(names)}"
    return None if len(set(given)) == len(given) else "give each member one task at most"


def team_text(roles: Mapping[str, Role]) -> str:
    """The members, as material for the supervisor."""
    return "\n".join(quoted("member", role.instructions, name=name) for name, role in roles.items())


def work_text(rounds: Sequence[Round]) -> str:
    """The latest report of each member and the best one so far, as material for the supervisor."""
    reports = reports_of(rounds)
    best = best_report(rounds)
    latest = {report["name"]: report for report in reports}.values()
    shown = [report for report in reports if report in latest or report is best]
    parts = [_candidate(report) for report in shown] or [prompts.NOTHING_YET]
    critiques = [round["critique"] for round in rounds if round["critique"]]
    return "\n".join([*parts, *([quoted("remark", critiques[-1])] if critiques else [])])


def reports_text(answers: Sequence[Report], remark: str = "") -> str:
    """Answers that stand and what was last said of them, as material for the members."""
    parts = [quoted("report", report["answer"] or "", number=report["number"], by=report["name"]) for report in answers]
    return "\n".join([*parts, *([quoted("remark", remark)] if remark else [])])


def judge_messages(conversation: Sequence[BaseMessage], answers: Sequence[Report]) -> list[BaseMessage]:
    """The prompt of the judge of a debate."""
    candidates = "\n".join(map(_candidate, answers))
    return prompts.JUDGE.format_messages(request=request_text(conversation), answers=candidates)


def _candidate(report: Report) -> str:
    answer = report["answer"]
    came = quoted("failure", failure(report)) if answer is None else quoted("answer", answer)
    parts = [quoted("author", report["name"]), quoted("task", report["task"]), came]
    return quoted("candidate", "\n".join(parts), number=report["number"])
