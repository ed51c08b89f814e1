"""A team: agents with roles under a supervisor that delegates, criticises and ends; or solvers that debate.

    begin -> supervise => member => listen -> supervise -> ... -> finish
    begin -> debate => member => listen -> debate -> ... -> judge -> finish

`supervise` hands tasks over to members, each of them a whole strategy with instructions, model and tools of its own;
`listen` takes in what they report; the report that the supervisor scores best is the answer. In a debate (Du et al.
2023, arXiv 2305.14325) all members answer the same question, read each other's answers and revise their own, until they
agree; where they do not, or nobody changes their mind any more, a judge decides.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph

from graphs import plan
from models.calls import estimate_tokens
from nodes.chat import ask
from nodes.reports import (
    answered,
    best_report,
    flaw,
    judge_messages,
    judged,
    majority,
    reports_of,
    reports_text,
    settled,
    stance,
    standing,
    team_text,
    work_text,
)
from nodes.step import Step, Update, node, stop
from nodes.transcript import quoted, request_text
from nodes.turn import begin, end
from nodes.workers import Task, branch, brief, charge, check_worker, employ, failure, hand_over, hands_over
from prompts import team as prompts
from state.cooperation import Assignment, Report, Role, Round, TeamContext, TeamOutput, TeamState
from state.decisions import Delegation, Verdict
from state.errors import LimitReached, ModelFailed
from state.run import Input

GRAPHS = {**plan.GRAPHS, "plan": plan.graph}
"""The strategies that a member may work by."""


async def prepare(_: Mapping[str, Any], step: Step[TeamContext]) -> Update:
    """Refuse settings that no member could work with."""
    for role in members(step.context).values():
        await check_worker(step, role.strategy, own(role))
    return {"shape": "supervise" if step.context.shape == "supervisor" else "debate"}


@hands_over(TeamContext)
async def supervise(state: TeamState, step: Step[TeamContext]) -> Update:
    """Judge what was reported, and end the work or hand over the next tasks."""
    context, rounds, team = step.context, state["rounds"], members(step.context)
    left, answers = context.max_rounds - len(rounds), answered(rounds)
    prompt = prompts.SUPERVISE.format_messages(
        conversation=state["messages"], team=team_text(team), work=work_text(rounds), left=left
    )
    decided = await ask(
        step, context.judge_model or context.model, prompt, Delegation, lambda made: flaw(made, answers, team, left)
    )
    if rounds:
        rounds = judged(rounds, decided.critique, decided.best, decided.score)
        told = {"critique": decided.critique, "best": decided.best, "score": decided.score, "done": decided.done}
        step.emit("critique", round=len(rounds), **told)
    update: Update = {"rounds": rounds}
    if decided.done:
        accepted = f"the supervisor accepts report {decided.best} with a score of {decided.score:.2f}"
        return update | stop("solved", accepted)
    if not left:
        return update | stop("limit_reached", f"max_rounds={context.max_rounds} reached (rounds={len(rounds)})")
    given = {one.to: one.task for one in decided.tasks}
    step.emit("delegate", round=len(rounds) + 1, members=[*given], tasks=[brief(task) for task in given.values()])
    first, said = 1 + len(reports_of(rounds)), state["messages"]
    tasks = [delegated(n, team[name], task, rounds, said) for n, (name, task) in enumerate(given.items(), first)]
    keep = estimate_tokens(prompt, {}) + context.max_answer_tokens
    return update | hand_over(state, step, "member", tasks, keep=keep, answered=bool(answers))


@hands_over(TeamContext)
async def debate(state: TeamState, step: Step[TeamContext]) -> Update:
    """Let all members answer, from the second round on with all answers before them, until they agree."""
    context, rounds, answers = step.context, state["rounds"], standing(state["rounds"])
    if len(answers) > 1 and len(set(map(stance, answers))) == 1:
        agreed = f"{len(answers)} solvers agree after round {len(rounds)}"
        return {"rounds": judged(rounds, agreed, answers[0]["number"], None)} | stop("solved", agreed)
    if len(rounds) >= context.max_rounds or (len(rounds) > 1 and settled(rounds)):
        return {"goto": "judge"}
    first, roles = 1 + len(reports_of(rounds)), members(context).values()
    tasks = [argued(number, role, rounds, state["messages"]) for number, role in enumerate(roles, first)]
    keep = estimate_tokens(judge_messages(state["messages"], answers), {}) + context.max_answer_tokens
    return {"goto": "judge"} | hand_over(state, step, "member", tasks, keep=keep, answered=bool(answers))


@branch(TeamContext)
async def member(sent: Assignment, context: TeamContext) -> Report:
    """Let one member work on its task."""
    role = members(context)[sent["name"]]
    return await employ(GRAPHS[role.strategy], role.strategy, sent, context, own(role))


@node(TeamContext)
async def listen(state: TeamState, step: Step[TeamContext]) -> Update:
    """Take in what the members report."""
    reports, number = state["reports"], len(state["rounds"]) + 1
    charge(step, reports)
    said = [brief(failure(report) if report["answer"] is None else report["answer"]) for report in reports]
    step.emit("reports", round=number, members=[report["name"] for report in reports], reports=said)
    return {"rounds": [*state["rounds"], Round(round=number, reports=[*reports], critique="", best=0, score=None)]}


@node(TeamContext)
async def judge(state: TeamState, step: Step[TeamContext]) -> Update:
    """Decide between the answers of a debate; where no judge can be asked, the most frequent one wins."""
    context, rounds, answers, ended = step.context, state["rounds"], standing(state["rounds"]), state["outcome"]
    if not answers:
        return {} if ended else stop("failed", failure(reports_of(rounds)[-1]))
    numbers, prompt = [report["number"] for report in answers], judge_messages(state["messages"], answers)
    try:
        verdict = await ask(
            step,
            context.judge_model or context.model,
            prompt,
            Verdict,
            lambda made: None if made.best in numbers else f"best has to be one of {numbers}",
        )
    except (LimitReached, ModelFailed) as reason:
        update: Update = {"rounds": judged(rounds, "", majority(answers)["number"], None)}
        return (
            update
            if ended
            else update | stop("limit_reached" if isinstance(reason, LimitReached) else "failed", reason)
        )
    step.emit("verdict", round=len(rounds), critique=verdict.reasoning, best=verdict.best, score=verdict.score)
    update = {"rounds": judged(rounds, verdict.reasoning, verdict.best, verdict.score)}
    preferred = f"the judge prefers report {verdict.best} with a score of {verdict.score:.2f}"
    if verdict.solved:
        return update | stop("solved", preferred)
    if len(rounds) < context.max_rounds:
        return update if ended else update | stop("exhausted", f"nobody changes their mind any more; {preferred}")
    return update | stop("limit_reached", f"max_rounds={context.max_rounds} reached; {preferred}")


@node(TeamContext)
async def finish(state: TeamState, step: Step[TeamContext]) -> Update:
    """Answer with the best report: the one that was scored best, else the latest."""
    best = best_report(state["rounds"])
    return await end(state, step, AIMessage(best["answer"] or "", id=best["said"]) if best else None)


def members(context: TeamContext) -> dict[str, Role]:
    """The members of the team by name; those of the shape's default team, if the settings name none."""
    return {role.name: role for role in context.roles or [Role(**role) for role in TEAMS[context.shape]]}


def own(role: Role) -> dict[str, Any]:
    """The settings that a member has beside those of the run."""
    return role.settings | ({"model": role.model} if role.model else {}) | ({"tools": role.tools} if role.tools else {})


def delegated(number: int, role: Role, task: str, rounds: Sequence[Round], conversation: Sequence[AnyMessage]) -> Task:
    """A task as its member is told it: the task last, and before it what it is for and what was reported."""
    answers, remark = standing(rounds), rounds[-1]["critique"] if rounds else ""
    material = prompts.MATERIAL.format(
        aim=quoted("aim", request_text(conversation)),
        reports=prompts.REPORTED.format(reports=reports_text(answers, remark)) if answers else "",
    )
    messages: list[AnyMessage] = [instructed(role), HumanMessage(material), HumanMessage(task)]
    return Task(number=number, name=role.name, task=task, messages=messages)


def argued(number: int, role: Role, rounds: Sequence[Round], conversation: Sequence[AnyMessage]) -> Task:
    """The question as a solver is told it: itself last, and before it all answers that stand."""
    *earlier, asked = conversation
    answers = standing(rounds)
    others = [HumanMessage(prompts.REVISE.format(reports=reports_text(answers)))] if answers else []
    messages: list[AnyMessage] = [instructed(role), *earlier, *others, asked]
    return Task(number=number, name=role.name, task=asked.text, messages=messages)


def instructed(role: Role) -> SystemMessage:
    """What a member is told of itself."""
    return SystemMessage(prompts.MEMBER.format(name=role.name, instructions=role.instructions))


TEAMS: dict[str, list[dict[str, Any]]] = {
    "supervisor": [
        {"name": "researcher", "instructions": prompts.RESEARCHER, "strategy": "reflexion"},
        {
            "name": "writer",
            "instructions": prompts.WRITER,
            "strategy": "reflection",
            "settings": {"max_rounds": 2, "generate_prompt": prompts.WRITE},
        },
        {
            "name": "critic",
            "instructions": prompts.CRITIC,
            "strategy": "react",
            "settings": {"search": "none", "max_actions": 2},
        },
    ],
    "debate": [
        {"name": "searcher", "instructions": prompts.SOLVER, "strategy": "react"},
        {"name": "reviser", "instructions": prompts.SOLVER, "strategy": "reflexion"},
        {
            "name": "thinker",
            "instructions": prompts.SOLVER,
            "strategy": "reflection",
            "settings": {"generate_prompt": prompts.THINK},
        },
    ],
}
"""The team of each shape, if the settings name none. All of them work without a key and without a network."""


def by_shape(state: TeamState) -> str:
    """The node that leads the work."""
    return state["shape"]


builder: StateGraph[Any, TeamContext, Any, Any] = StateGraph(
    TeamState, context_schema=TeamContext, input_schema=Input, output_schema=TeamOutput
)
builder.add_node("begin", begin("team", TeamContext, prepare, rounds=[]))
builder.add_node("supervise", supervise, destinations=("member", "finish"))
builder.add_node("debate", debate, destinations=("member", "judge", "finish"))
builder.add_node("member", member)
builder.add_node("listen", listen)
builder.add_node("judge", judge)
builder.add_node("finish", finish)
builder.add_edge(START, "begin")
builder.add_conditional_edges("begin", by_shape, ["supervise", "debate"])
builder.add_edge("member", "listen")
builder.add_conditional_edges("listen", by_shape, ["supervise", "debate"])
builder.add_edge("judge", "finish")
builder.add_edge("finish", END)

graph = builder.compile(name="team")
