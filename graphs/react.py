"""ReAct (Yao et al. 2023, arXiv 2210.03629): thoughts and actions take turns until the agent answers.

    begin -> think <-> act -> finish

`think` asks for the next step, in the way that the model can act (`acting`); `act` carries it out, in an environment or
with tools. What goes wrong with an action is told to the agent and counted, and the run goes on; an action that brings
what it has brought before is told so, and `max_repeats` of them in a row end the run with an answer. With
`step_samples` each step is sampled several times at once, and the one that most samples want is taken.
"""

from collections.abc import Sequence
from functools import partial

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool
from langgraph.types import Overwrite

from reflective_agents.environments.base import Environment
from reflective_agents.graphs._react.answers import (
    answer_stream_of,
    citation_reader,
    finished,
    record,
    send_back,
    shown,
    take_answer,
    with_references,
)
from reflective_agents.graphs._react.state import ReactOutput, ReactState
from reflective_agents.models.capabilities import takes_stop, with_tools
from reflective_agents.models.structured import retry
from reflective_agents.models.toolless import guess_in
from reflective_agents.nodes.acting.actions import (
    ActionStep,
    act_in_environment,
    act_with_tools,
    beside_environment,
)
from reflective_agents.nodes.acting.agent import (
    affordable_samples,
    answer_reserve,
    appraise,
    callable_tools,
    enter,
    environment_of,
    give_answer,
    longest_answer_prompt,
    tools_of,
)
from reflective_agents.nodes.acting.agent_prompt import agent_prompt, repetitions, with_fewer_steps
from reflective_agents.nodes.acting.client_tools import clients_own
from reflective_agents.nodes.acting.react_text import held_answer, parse_answer, parse_step, parsed_call
from reflective_agents.nodes.answer_stream import AnswerStream
from reflective_agents.nodes.asking.ballot import elect
from reflective_agents.nodes.asking.chat import ATTEMPTS, call_tools, called, complete, model_of
from reflective_agents.nodes.asking.sampling import sample_some
from reflective_agents.nodes.evidence.sources import thread_sources
from reflective_agents.nodes.evidence.verifying import NO_EVIDENCE, Evidence
from reflective_agents.nodes.step import Step, Update, node, stop_at
from reflective_agents.nodes.turn import begin, end, strategy_graph, unless_ended
from reflective_agents.nodes.verifiers.verdict import is_verified
from reflective_agents.prompts import react as prompts
from reflective_agents.state.errors import InvalidOutput, LimitReached, ModelFailed
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.state.trial import ActingInput
from reflective_agents.text.actions import read_answer
from reflective_agents.text.normal import folded


@node(ReactContext)
async def think(state: ReactState, step: Step[ReactContext]) -> Update:
    """Ask for the next step; an agent that may take none any more is asked for its best answer."""
    context = step.context
    environment = await environment_of(context)
    tools = tools_of(step, state["run_id"])

    def prompt(most: int | None = None) -> list[BaseMessage]:
        return agent_prompt(state, step, environment, tools, most=most)

    if ended := why_stop(state["steps"], step, environment, prompt()):
        return ended | await conclude(state, step, environment, tools)
    count = affordable_samples(step, prompt()) if context.step_samples > 1 else 1
    must_call = context.call_client_tool
    # What verifiers may refuse is not to be heard before.
    may_stream = environment is None and count == 1 and not must_call and not is_verified(step)
    listener = answer_stream_of(state, step) if may_stream else None
    if context.acting == "paper":
        replies = await with_fewer_steps(prompt, partial(continue_text, step, count, listener))
        samples = [parse_step(reply.text, environment=environment) for reply in replies]
        guesses = [read_answer(reply.text) or "" for reply in replies]
    else:
        declared = clients_own(tools) if must_call else callable_tools(environment, tools)
        replies = await with_fewer_steps(prompt, partial(propose, step, declared, count, listener))
        samples = [parsed_call(reply, environment) for reply in replies]
        guesses = [guess_in(reply) for reply in replies]
    move = samples[0]
    if len(samples) > 1:
        move, votes = elect(samples, environment, tools, state["messages"][-1].text)
        step.emit("vote", action=move["action"], answer=move["answer"], votes=votes, samples=len(samples))
    if environment is None:
        sent_back = send_back(move, state, step, listener)
        if sent_back:
            return sent_back
    answer = with_references(move["answer"], state, step, listener)
    written = [guess for guess in guesses if guess]
    return {
        "move": {**move, "answer": answer},
        "said": await listener.end(answer) if listener else None,
        "guess": written[0] if written else state.get("guess"),
    }


@node(ReactContext)
async def act(state: ReactState, step: Step[ReactContext]) -> Update:
    """Carry the step out, and tell the agent what came of it."""
    move = state["move"]
    if move is None:  # the answer was sent back
        return {}
    environment = await environment_of(step.context)
    tools = tools_of(step, state["run_id"])
    if not move["action"] and move["answer"] is None:
        was_unreadable = bool(state["steps"]) and not state["steps"][-1]["action"]
        if environment is None and was_unreadable and says_something(move["thought"], state["request"]):
            return {"answer": move["thought"], **finished(len(state["steps"]), move["thought"])}
        step.meter.count(parse_failures=1)
        refused = ActionStep(
            thought=move["thought"], action="", observation=prompts.UNREADABLE, valid=False, messages=[]
        )
        return record(state, step, refused)
    if environment is None and move["answer"] is not None:
        return await take_answer(state, step, move)
    if environment is None:
        done = await act_with_tools(step, move, tools, state["steps"], thread_sources(state["messages"]))
        return record(state, step, done)
    beside = beside_environment(step, tools)
    effect = await act_in_environment(environment, move, state["world"], state["reward"], beside)
    if effect.acted:
        step.meter.count(tool_calls=1, tool_errors=0 if effect.step["valid"] else 1)
    update = record(state, step, effect.step) | {"world": effect.world, "reward": effect.reward}
    ended = finished(len(state["steps"]) + 1, effect.answer) if effect.done else {}
    return update | {"answer": effect.answer} | ended


@node(ReactContext)
async def finish(state: ReactState, step: Step[ReactContext]) -> Update:
    """Return the agent's answer."""
    environment = await environment_of(step.context)
    answer = AIMessage(state["answer"], id=state.get("said")) if state["answer"] else None
    evidence = NO_EVIDENCE if environment else Evidence(shown(state))
    appraisal = appraise(environment, state["answer"] or "", state["reward"])
    return await end(state, step, answer, appraisal=appraisal, evidence=evidence)


async def continue_text(
    step: Step[ReactContext], count: int, listener: AnswerStream | None, prompt: Sequence[BaseMessage]
) -> list[AIMessage]:
    """Have the papers' one long text continued by a step, so many times at once."""
    model = model_of(step, step.context.model)
    ends: JsonObject = {"stop": ["\nObservation"]} if takes_stop(model) else {}
    return await sample_some(step, model, prompt, count=count, listener=listener, **ends)


async def propose(
    step: Step[ReactContext],
    tools: Sequence[BaseTool],
    count: int,
    listener: AnswerStream | None,
    prompt: Sequence[BaseMessage],
) -> list[AIMessage]:
    """Ask for the next step as calls of tools, so many times at once."""
    context = step.context
    if context.call_client_tool:
        replies = [await demand_call(step, tools, prompt)]
    elif count == 1:
        replies = [await call_tools(step, context.model, prompt, tools, listener=listener)]
    else:
        model = with_tools(model_of(step, context.model), tools)
        replies = [called(reply, prompt) for reply in await sample_some(step, model, prompt, count)]
    if context.parallel_calls:
        return replies
    return [reply.model_copy(update={"tool_calls": reply.tool_calls[:1]}) for reply in replies]


async def demand_call(step: Step[ReactContext], tools: Sequence[BaseTool], prompt: Sequence[BaseMessage]) -> AIMessage:
    """Ask for a call of one of these tools.

    Raises:
        InvalidOutput: if the model calls none, in each of three attempts.
    """
    names = [tool.name for tool in tools]
    problem = f"one of these tools has to be called: {', '.join(names)}"
    for _ in range(ATTEMPTS):
        reply = await call_tools(step, step.context.model, prompt, tools, choice="any")
        if reply.tool_calls:
            return reply
        step.meter.count(parse_failures=1)
        step.emit("invalid_output", problem=problem)
        # With a seed the same prompt would have the same reply.
        prompt = [*prompt, *retry(reply, problem, prompt)]
    raise InvalidOutput(f"no call of a tool in {ATTEMPTS} attempts: the model wrote text instead")


def says_something(text: str, request: str) -> bool:
    """Tell whether a text without an action may be an answer, and does not only repeat the prompt."""
    shown_before = folded(f"{request} {prompts.UNREADABLE} {prompts.BEST_ANSWER}")
    return any(folded(line) not in shown_before for line in text.splitlines())


def stuck(steps: list[ActionStep], repeats: int, environment: Environment | None) -> bool:
    """Return whether the last `repeats` steps have all brought only what was there before."""
    return len(steps) > repeats and all(repetitions(steps, environment)[-repeats:])


def why_stop(
    steps: list[ActionStep], step: Step[ReactContext], environment: Environment | None, prompt: list[BaseMessage]
) -> Update:
    """Return the update that ends the run if the agent may take no further step, else an empty one.

    Reasons: the actions are used up, the agent goes round in circles, or the budget is just enough for an answer.
    """
    context = step.context
    if len(steps) >= context.max_actions:
        return stop_at(context.limit("max_actions", len(steps)))
    if stuck(steps, context.max_repeats, environment):
        repeated = " ".join(steps[-1]["action"].split()) or "nothing that could be read"
        return stop_at(context.limit("max_repeats", context.max_repeats), f"{repeated:.100}, again")
    limit = answer_reserve(step, prompt) if context.answer_at_limit else None
    return stop_at(limit) if limit else {}


async def conclude(
    state: ReactState, step: Step[ReactContext], environment: Environment | None, tools: list[BaseTool]
) -> Update:
    """Ask for the best answer, unless there is one or the settings forbid it, and let the environment reward it. If
    there is none to be had, an answer is taken that a thought has held on the way, or that followed an action."""
    if state["answer"] or not step.context.answer_at_limit:
        return {}
    declared = [] if step.context.acting == "paper" else callable_tools(environment, tools)
    budget = longest_answer_prompt(step, declared)

    def prompt(most: int | None = None) -> list[BaseMessage]:
        most = budget if most is None else min(budget, most)
        return agent_prompt(state, step, environment, tools, closing=prompts.BEST_ANSWER, most=most)

    listener = None if environment else AnswerStream(step, partial(citation_reader, state))
    send = partial(complete, step, step.context.model, tools=declared, listener=listener)
    try:
        last = parse_answer(await with_fewer_steps(prompt, send), environment)
    except (LimitReached, ModelFailed):
        last = None
    on_the_way = held_answer([taken["thought"] for taken in state["steps"]]) or state.get("guess")
    answer = with_references(last or on_the_way, state, step, listener)
    effect = await give_answer(environment, state["world"], answer) if answer else None
    message_id = await listener.end(answer) if listener else None
    return {"answer": answer, "said": message_id, "reward": effect.reward if effect else None}


builder = strategy_graph(ReactState, context_schema=ReactContext, input_schema=ActingInput, output_schema=ReactOutput)
builder.add_node(
    "begin",
    begin("react", ReactContext, enter, steps=Overwrite([]), move=None, reward=None, guess=None, sent_back=False),
)
builder.add_node("think", think)
builder.add_node("act", act)
builder.add_node("finish", finish)
builder.add_edge("begin", "think")
builder.add_conditional_edges("think", *unless_ended("act"))
builder.add_conditional_edges("act", *unless_ended("think"))

graph = builder.compile(name="react")
