"""What the members of a team have reported: the latest answers, the best report, and how others are shown them."""

from collections import Counter
from collections.abc import Mapping, Sequence

from langchain_core.messages import BaseMessage

from reflective_agents.environments.actions import find_answer, has_answer
from reflective_agents.environments.plain import PLAIN
from reflective_agents.nodes.asking.transcript import around, quoted, request_text
from reflective_agents.nodes.delegating.forms import Delegation
from reflective_agents.nodes.delegating.state import Report, Round
from reflective_agents.nodes.delegating.workers import failure
from reflective_agents.nodes.evidence.reference_list import length_text, split_references, titles_in
from reflective_agents.nodes.evidence.references import MARK, number_together
from reflective_agents.nodes.evidence.research import today
from reflective_agents.nodes.evidence.sources import Source
from reflective_agents.prompts import search as search_prompts
from reflective_agents.prompts import team as prompts
from reflective_agents.state.settings.team import Role
from reflective_agents.text.excerpt import excerpt
from reflective_agents.text.joined import joined
from reflective_agents.text.words import count_words

LONGEST_PASSAGE = 2_000
"""Characters of what is shown of a source beside the reports that cite it."""
FEW_WORDS = 10
"""Words of an answer that can be compared with others by its text."""


def reports_of(rounds: Sequence[Round]) -> list[Report]:
    """Return all reports, in order."""
    reports: list[Report] = []
    for round in rounds:
        reports += round["reports"]
    return reports


def answered(reports: Sequence[Report]) -> list[Report]:
    """Return the reports that have an answer."""
    return [report for report in reports if report["answer"] is not None]


def latest_answers(rounds: Sequence[Round]) -> list[Report]:
    """Return the latest answer of each member to each of its tasks that it has answered, in the order of the first
    answers to these."""
    return _latest(answered(reports_of(rounds)))


def _latest(reports: Sequence[Report]) -> list[Report]:
    """Return the latest report of each member on each of its tasks, in the order of the first ones."""
    by_task = {(report["name"], report["task"]): report for report in reports}
    return list(by_task.values())


def judged(rounds: Sequence[Round], critique: str, best: int, score: float | None) -> list[Round]:
    """Add to the last round what the supervisor or the judge says about it."""
    *earlier, last = rounds
    return [*earlier, {**last, "critique": critique, "best": best, "score": score}]


def best_report(rounds: Sequence[Round], reports: Sequence[Report]) -> Report | None:
    """Return the report with the best score (the latest of equals), or else the last that has an answer.

    Args:
        rounds: The rounds whose verdicts count.
        reports: The reports of all rounds.
    """
    named = [round for round in rounds if round["best"]]
    if named:
        best = max(named, key=lambda round: (round["score"] or 0.0, round["round"]))
        by_number = {report["number"]: report for report in reports}
        return by_number[best["best"]]
    with_answer = answered(reports)
    return with_answer[-1] if with_answer else None


def is_scored(rounds: Sequence[Round]) -> bool:
    """Tell whether a supervisor or a judge, who saw the sources, has scored a report."""
    return any(round["score"] is not None for round in rounds)


def sources_of(report: Report, reports: Sequence[Report]) -> dict[int, Source]:
    """Return the sources that a report lists, with what they say; any of all reports may have found them."""
    answer = report["answer"] or ""
    passages = passages_of(reports)
    titles = titles_in(answer)
    _, references = split_references(answer)
    sources: dict[int, Source] = {}
    for number, url in references.items():
        if url in passages:
            sources[number] = Source(number, url, titles.get(url, ""), (passages[url],))
    return sources


def passages_of(reports: Sequence[Report]) -> dict[str, str]:
    """Return what the sources say that reports cite, by address."""
    passages: dict[str, str] = {}
    for report in reports:
        passages.update(report.get("passages", {}))
    return passages


def score_text(best: Report | None, rounds: Sequence[Round]) -> str:
    """Say with which score the best report is left; empty if nobody has scored it."""
    if best is None:
        return ""
    scores: list[float] = []
    for round in rounds:
        if round["best"] == best["number"] and round["score"] is not None:
            scores.append(round["score"])
    return f"the best report, {best['number']}, has a score of {max(scores):.2f}" if scores else ""


def stance(report: Report, question: str) -> str:
    """Reduce an answer to what equal ones have in common: what follows its last "Answer:", or else all of it."""
    answer = report["answer"] or ""
    return PLAIN.vote(find_answer(answer) if has_answer(answer) else answer, question)


def is_short(report: Report) -> bool:
    """Tell whether an answer is short enough for its text to say whether it is the same as another: one that is
    labelled, or of few words."""
    text, _ = split_references(report["answer"] or "")
    return has_answer(text) or count_words(text) <= FEW_WORDS


def is_unchanged(rounds: Sequence[Round], question: str) -> bool:
    """Tell whether nobody has changed their mind in the last round; in the first nobody could."""
    if len(rounds) < 2:
        return False
    before, now = rounds[-2:]
    return _stances(before, question) == _stances(now, question)


def _stances(round: Round, question: str) -> dict[str, str]:
    return {report["name"]: stance(report, question) for report in round["reports"]}


def majority(answers: Sequence[Report], question: str) -> Report:
    """Return the answer that most members give (the first of equals); there has to be at least one answer."""
    stances = [stance(report, question) for report in answers]
    [(most, _)] = Counter(stances).most_common(1)
    return answers[stances.index(most)]


def flaw(made: Delegation, left: int) -> str | None:
    """Say what is wrong with a supervisor's decision, in words for the model, if `left` rounds of work are left."""
    if made.done and not made.best:
        return "done needs the number of the report that is to be handed over, as best"
    if made.done or not left:
        return None
    if not made.tasks:
        return "delegate at least one task, or be done"
    members = [task.to for task in made.tasks]
    return None if len(set(members)) == len(members) else "give each member one task at most"


def numbered(rounds: Sequence[Round]) -> tuple[list[Round], list[str]]:
    """Return the rounds with all sources marked under one numbering, which later rounds only add to, and the addresses
    in its order."""
    answers = [report["answer"] or "" for report in reports_of(rounds)]
    marked, sources = number_together(answers, MARK)
    texts = iter(marked)
    shown: list[Round] = []
    for round in rounds:
        reports: list[Report] = []
        for report in round["reports"]:
            text = next(texts)
            reports.append(report if report["answer"] is None else {**report, "answer": text})
        shown.append({**round, "reports": reports})
    return shown, [source.url for source in sources.values()]


def unfounded_in(rounds: Sequence[Round], number: int) -> str:
    """Name what a report has referred to and nobody has found; empty if there is nothing."""
    by_number = {report["number"]: report for report in reports_of(rounds)}
    return ", ".join(by_number[number].get("unfounded", ()))


def team_text(roles: Mapping[str, Role]) -> str:
    """Show the members as material for the supervisor."""
    return "\n".join(quoted("member", role.instructions, name=name) for name, role in roles.items())


def work_text(rounds: Sequence[Round]) -> str:
    """Show the latest report of each member and the best one so far, with what their sources say, as material for the
    supervisor."""
    rounds, urls = numbered(rounds)
    reports = reports_of(rounds)
    best = best_report(rounds, reports)
    latest = _latest(reports)
    shown = [report for report in reports if report in latest or report is best]
    parts = [_candidate(report, len(urls)) for report in shown] or [prompts.NOTHING_YET]
    parts += passages_text(shown, reports, urls)
    critiques = [round["critique"] for round in rounds if round["critique"]]
    if critiques:
        parts.append(quoted("remark", critiques[-1], made="before the latest report"))
    return "\n".join(parts)


def reports_text(rounds: Sequence[Round], remark: str = "") -> tuple[str, list[str]]:
    """Show the current answers, what their sources say and the last remark, as material for the members.

    Returns:
        The text, and the addresses of all sources in the order of their marks.
    """
    rounds, urls = numbered(rounds)
    answers = latest_answers(rounds)
    parts: list[str] = []
    for report in answers:
        parts.append(quoted("report", report["answer"] or "", number=report["number"], by=report["name"]))
    parts += passages_text(answers, reports_of(rounds), urls)
    if remark:
        parts.append(quoted("remark", remark))
    return "\n".join(parts), urls


def passages_text(shown: Sequence[Report], reports: Sequence[Report], urls: Sequence[str]) -> list[str]:
    """Show what the sources say that the shown ones of all reports cite, each source once, as a part of a prompt."""
    marks = {url: f"{MARK}{number}" for number, url in enumerate(urls, 1)}
    answers = "\n".join(report["answer"] or "" for report in shown)
    cited: list[str] = []
    for url, text in passages_of(reports).items():
        if f"[{marks[url]}]" in answers:
            cited.append(quoted("said", excerpt(text, LONGEST_PASSAGE, answers), source=marks[url]))
    return [prompts.SAID.format(passages="\n".join(cited))] if cited else []


def judge_messages(conversation: Sequence[BaseMessage], rounds: Sequence[Round]) -> list[BaseMessage]:
    """Build the prompt for the judge of a debate."""
    rounds, urls = numbered(rounds)
    answers = latest_answers(rounds)
    parts = [_candidate(report, len(urls), conversation[-1].text) for report in answers]
    parts += passages_text(answers, reports_of(rounds), urls)
    date = search_prompts.TODAY.format(today=today())
    return prompts.JUDGE.format_messages(today=date, request=request_text(conversation), answers="\n".join(parts))


def _candidate(report: Report, sources: int, requested: str = "") -> str:
    """Show a report, with its task unless that is what is `requested`, which stands before all reports."""
    parts = [quoted("author", report["name"])]
    if report["task"] != requested:
        parts.append(quoted("task", report["task"]))
    answer = report["answer"]
    if answer is None:
        parts.append(quoted("failure", failure(report)))
    else:
        checked = joined([length_text(answer), _citations(report, sources)], " ")
        parts += [quoted("answer", answer), quoted("checked", checked)]
    return around("candidate", "\n".join(parts), number=report["number"])


def _citations(report: Report, sources: int) -> str:
    """Return what code knows of a report's citations, if all reports together cite so many sources."""
    if unfounded := report.get("unfounded"):
        return search_prompts.NOT_FOUND.format(names=", ".join(unfounded))
    if f"\n[{MARK}" in (report["answer"] or ""):
        return search_prompts.ALL_FOUND
    return search_prompts.NONE_CITED.format(count=sources) if sources else ""
