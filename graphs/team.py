"""A team: agents with roles under a supervisor that delegates, criticises and ends; or solvers that debate.

    begin -> supervise => member => listen -> supervise -> ... -> finish
    begin -> debate => member => listen -> debate -> judge -> debate -> ... -> finish

`supervise` hands tasks over to members, each of them a whole strategy with instructions, model and tools of its own;
`listen` takes in what they report; the report that the supervisor scores best is the answer. In a debate (Du et al.
2023, arXiv 2305.14325) all members answer the same question, read each other's answers and revise their own, until they
agree: short answers by their texts, others as a judge sees it. Where the rounds are used up, or nobody changes their
mind any more, the judge decides.
"""

from collections.abc import Hashable, Sequence

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.types import Overwrite

from reflective_agents.graphs import graph_of
from reflective_agents.graphs._team.reports import (
    answered,
    best_report,
    flaw,
    is_scored,
    is_short,
    is_unchanged,
    judge_messages,
    judged,
    latest_answers,
    majority,
    reports_of,
    reports_text,
    score_text,
    sources_of,
    stance,
    team_text,
    unfounded_in,
    work_text,
)
from reflective_agents.models.costs import estimate_tokens
from reflective_agents.nodes.asking.chat import ask
from reflective_agents.nodes.asking.transcript import around, instructions, material
from reflective_agents.nodes.delegating.forms import Delegation, delegation_of, verdict_of
from reflective_agents.nodes.delegating.state import Assignment, Report, Round, TeamOutput, TeamState
from reflective_agents.nodes.delegating.workers import (
    Task,
    aim_text,
    branch,
    brief,
    charge,
    check_worker,
    failure,
    hand_over,
    hands_over,
    run_strategy,
)
from reflective_agents.nodes.evidence.research import today
from reflective_agents.nodes.evidence.verifying import Evidence
from reflective_agents.nodes.step import Step, Update, node, stop, stop_at, stop_because, stop_solved
from reflective_agents.nodes.strategy import Employed
from reflective_agents.nodes.turn import ENDED, begin, end, strategy_graph, unless_ended
from reflective_agents.prompts import search as search_prompts
from reflective_agents.prompts import team as prompts
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.outcome import Appraisal, accepts
from reflective_agents.state.run import Input
from reflective_agents.state.settings import employable
from reflective_agents.state.settings.team import LEVEL, Role, TeamContext

GRAPHS = {name: graph_of(name) for name in employable(LEVEL)}
"""The strategies that a member may work by."""
SUPERVISED, DEBATED = "a supervisor leads", "it is a debate"


async def prepare(_: TeamState, step: Step[TeamContext]) -> Update:
    """Refuse settings that no member could work with."""
    for role in members(step.context).values():
        await check_worker(step, role.strategy, role_settings(role))
    return {"shape": "supervise" if step.context.shape == "supervisor" else "debate"}


@hands_over(TeamContext)
async def supervise(state: TeamState, step: Step[TeamContext]) -> Update:
    """Judge what was reported, and end the work or hand over the next tasks."""
    context = step.context
    rounds = state["rounds"]
    team = members(context)
    left = context.max_rounds - len(rounds)
    answers = [report["number"] for report in answered(reports_of(rounds))]
    prompt = prompts.SUPERVISE.format_messages(
        today=search_prompts.TODAY.format(today=today()),
        conversation=state["messages"],
        team=team_text(team),
        work=work_text(rounds),
        left=prompts.LEFT.format(left=left) if left else prompts.NONE_LEFT,
    )
    decided = await ask(
        step,
        context.judge_model or context.model,
        prompt,
        delegation_of(tuple(team), tuple(answers)),
        lambda made: flaw(made, left),
        judging=True,
    )
    if rounds:
        rounds = judged(rounds, decided.critique, decided.best, decided.score)
        scored = {"best": decided.best, "score": decided.score, "done": decided.done}
        step.emit("critique", round=len(rounds), critique=decided.critique, **scored)
    update: Update = {"rounds": rounds[-1:]}
    if decided.done:
        return update | end_of_work(decided, rounds)
    if not left:
        return update | stop_at(context.limit("max_rounds", spent=len(rounds)))
    names: list[str] = []
    texts: list[str] = []
    tasks: list[Task] = []
    for number, task in enumerate(decided.tasks, 1 + len(reports_of(rounds))):
        names.append(task.to)
        texts.append(brief(task.task))
        tasks.append(delegated(number, team[task.to], task.task, rounds, state["messages"]))
    step.emit("delegate", round=len(rounds) + 1, members=names, tasks=texts)
    keep = estimate_tokens(prompt, {}) + context.max_answer_tokens
    return update | hand_over(state, step, "member", tasks, keep=keep, answered=bool(answers))


def end_of_work(decided: Delegation, rounds: Sequence[Round]) -> Update:
    """Return the update that ends the work, as the supervisor has decided: with a report that is accepted, or not."""
    if unfounded := unfounded_in(rounds, decided.best):
        return stop("exhausted", f"report {decided.best} refers to what nobody has found: {unfounded}")
    if not accepts(decided.done, decided.score):
        return stop("exhausted", "the supervisor ends the work")
    accepted = f"the supervisor accepts report {decided.best} with a score of {decided.score:.2f}"
    return stop_solved("judge", accepted)


@hands_over(TeamContext)
async def debate(state: TeamState, step: Step[TeamContext]) -> Update:
    """Let all members answer, from the second round on with all answers before them, until they agree."""
    context = step.context
    rounds = state["rounds"]
    answers = latest_answers(rounds)
    question = state["messages"][-1].text
    stances = {stance(answer, question) for answer in answers}
    if len(answers) > 1 and len(stances) == 1:
        agreed = f"{len(answers)} solvers agree after round {len(rounds)}"
        return {"rounds": judged(rounds, agreed, answers[0]["number"], None)[-1:]} | stop("answered", agreed)
    is_over = len(rounds) >= context.max_rounds or is_unchanged(rounds, question)
    # Code cannot tell whether long answers say the same; a judge does, before another round is paid for.
    is_open = len(answers) > 1 and not all(map(is_short, answers))
    if is_over or (is_open and not is_scored(rounds[-1:])):
        return {"goto": "judge"}
    first = 1 + len(reports_of(rounds))
    tasks: list[Task] = []
    for number, role in enumerate(members(context).values(), first):
        tasks.append(argued(number, role, rounds, state["messages"]))
    keep = estimate_tokens(judge_messages(state["messages"], rounds), {}) + context.max_answer_tokens
    # A limit of the run replaces the members, not the judge.
    return {"goto": "judge"} | hand_over(state, step, "member", tasks, keep=keep, answered=bool(answers))


@branch(TeamContext)
async def member(sent: Assignment, context: TeamContext) -> Report:
    """Let one member work on its task."""
    role = members(context)[sent["name"]]
    return await run_strategy(GRAPHS[role.strategy], role.strategy, sent, context, role_settings(role))


@node(TeamContext)
async def listen(state: TeamState, step: Step[TeamContext]) -> Update:
    """Take in what the members report."""
    reports = state["reports"]
    number = len(state["rounds"]) + 1
    charge(step, reports)
    names, texts = [], []
    for report in reports:
        names.append(report["name"])
        texts.append(brief(failure(report) if report["answer"] is None else report["answer"]))
    step.emit("reports", round=number, members=names, reports=texts)
    return {"rounds": [Round(round=number, reports=[*reports], critique="", best=0, score=None)]}


@node(TeamContext)
async def judge(state: TeamState, step: Step[TeamContext]) -> Update:
    """Say whether the solvers agree, and decide between their answers if they do, or the debate is over; where no judge
    can be asked, the most frequent answer wins."""
    context = step.context
    rounds = state["rounds"]
    ended = state["outcome"]
    # These answers were judged before a limit forbade another round.
    if ended and is_scored(rounds[-1:]):
        return {}
    answers = latest_answers(rounds)
    if not answers:
        return {} if ended else stop("failed", failure(reports_of(rounds)[-1]))
    form = verdict_of(tuple(report["number"] for report in answers))
    prompt = judge_messages(state["messages"], rounds)
    question = state["messages"][-1].text
    try:
        verdict = await ask(step, context.judge_model or context.model, prompt, form, judging=True)
    except (LimitReached, ModelFailed) as error:
        best = majority(answers, question)["number"]
        update: Update = {"rounds": judged(rounds, "", best, None)}
        return update if ended else update | stop_because(error)
    step.emit("verdict", round=len(rounds), critique=verdict.reasoning, best=verdict.best, score=verdict.score)
    update = {"rounds": judged(rounds, verdict.reasoning, verdict.best, verdict.score)}
    may_go_on = len(rounds) < context.max_rounds and not is_unchanged(rounds, question)
    if may_go_on and not verdict.agree and not ended:
        return update
    if accepts(verdict.solved, verdict.score) and not unfounded_in(rounds, verdict.best):
        accepted = f"the judge accepts report {verdict.best} with a score of {verdict.score:.2f}"
        return update | stop_solved("judge", accepted)
    if verdict.agree:
        return update if ended else update | stop("exhausted", "the solvers agree, and the judge does not accept it")
    if len(rounds) < context.max_rounds:
        return update if ended else update | stop("exhausted", "nobody changes their mind any more")
    return update | stop_at(context.limit("max_rounds", spent=len(rounds)))


@node(TeamContext)
async def finish(state: TeamState, step: Step[TeamContext]) -> Update:
    """Answer with the report that was accepted, else with the one that was scored best, else with the latest."""
    ended = state["outcome"]
    rounds = state["rounds"]
    decided = ended is not None and ended["status"] in ("solved", "answered")
    counting = rounds[-1:] if decided else rounds
    reports = reports_of(rounds)
    best = best_report(counting, reports)
    answer = AIMessage(best["answer"] or "", id=best["said"]) if best else None
    sources = sources_of(best, reports) if best else {}
    evidence = Evidence(sources, held=not is_scored(counting))
    return await end(state, step, answer, appraisal=Appraisal(reason=score_text(best, rounds)), evidence=evidence)


def members(context: TeamContext) -> dict[str, Role]:
    """Return the members of the team by name; if the settings name none, the shape's default team."""
    return {role.name: role for role in context.roles or default_team(context.shape)}


def role_settings(role: Role) -> JsonObject:
    """Return the settings of a member that override those of the run."""
    settings = {**role.settings}
    if role.model:
        settings["model"] = role.model
    if role.tools:
        settings["tools"] = role.tools
    return settings


def delegated(number: int, role: Role, task: str, rounds: Sequence[Round], conversation: Sequence[AnyMessage]) -> Task:
    """Build a member's task: what it is for and what was reported first, the task last."""
    reports, sources = reports_text(rounds, rounds[-1]["critique"] if rounds else "")
    text = prompts.MATERIAL.format(
        aim=around("aim", aim_text(conversation)),
        reports=prompts.REPORTED.format(reports=reports) if latest_answers(rounds) else "",
    )
    if sources:
        text += f"\n{search_prompts.CITED_REPORTS}"
    messages: list[AnyMessage] = [instructed(role), material(text), HumanMessage(task)]
    return Task(number=number, name=role.name, task=task, messages=messages, sources=sources)


def argued(number: int, role: Role, rounds: Sequence[Round], conversation: Sequence[AnyMessage]) -> Task:
    """Build a solver's task: all current answers first, the question last."""
    *earlier, question = conversation
    reports, sources = reports_text(rounds, rounds[-1]["critique"] if rounds else "")
    text = prompts.REVISE.format(reports=reports)
    if sources:
        text += f"\n{search_prompts.CITED_REPORTS}"
    shown = [material(text)] if latest_answers(rounds) else []
    messages: list[AnyMessage] = [instructed(role), *earlier, *shown, question]
    return Task(number=number, name=role.name, task=question.text, messages=messages, sources=sources)


def instructed(role: Role) -> SystemMessage:
    """Build the message that tells a member its role."""
    return instructions(prompts.MEMBER.format(name=role.name, instructions=role.instructions))


def default_team(shape: str) -> list[Role]:
    """Return the team of a shape, if the settings name none. It works without a key and without a network."""
    date = search_prompts.TODAY.format(today=today())
    if shape == "debate":
        settings = {"generate_prompt": prompts.THINK.format(today=date)}
        return [
            Role(name="searcher", instructions=prompts.SOLVER, strategy="react"),
            Role(name="reviser", instructions=prompts.SOLVER, strategy="reflexion"),
            Role(name="thinker", instructions=prompts.SOLVER, strategy="reflection", settings=settings),
        ]
    writing = {"max_rounds": 2, "generate_prompt": prompts.WRITE.format(today=date)}
    judging = {"search": "none", "max_actions": 2}
    return [
        Role(name="researcher", instructions=prompts.RESEARCHER, strategy="reflexion"),
        Role(name="writer", instructions=prompts.WRITER, strategy="reflection", settings=writing),
        Role(name="critic", instructions=prompts.CRITIC, strategy="react", settings=judging),
    ]


def employs(context: TeamContext) -> Employed:
    """Return the graphs that the members work by."""
    return {"member": {role.name: GRAPHS[role.strategy] for role in members(context).values()}}


def by_shape(state: TeamState) -> str:
    """Tell who leads the work."""
    return SUPERVISED if state["shape"] == "supervise" else DEBATED


LEADERS: dict[Hashable, str] = {SUPERVISED: "supervise", DEBATED: "debate"}
"""The node that leads the work, by what the router says of it."""
builder = strategy_graph(
    TeamState, context_schema=TeamContext, input_schema=Input, output_schema=TeamOutput, employs=employs
)
builder.add_node("begin", begin("team", TeamContext, prepare, rounds=Overwrite([])))
builder.add_node("supervise", supervise, destinations={"member": "each task", "finish": ENDED})
builder.add_node("debate", debate, destinations={"member": "each solver", "judge": "no more rounds", "finish": ENDED})
builder.add_node("member", member)
builder.add_node("listen", listen)
builder.add_node("judge", judge)
builder.add_node("finish", finish)
builder.add_conditional_edges("begin", by_shape, LEADERS)
builder.add_edge("member", "listen")
builder.add_conditional_edges("listen", by_shape, LEADERS)
builder.add_conditional_edges("judge", *unless_ended("debate"))

graph = builder.compile(name="team")
