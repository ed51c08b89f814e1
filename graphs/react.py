"""ReAct (Yao et al. 2023, arXiv 2210.03629): thoughts and actions take turns until the agent answers.

    begin -> think <-> act -> finish

`think` asks for the next step, as text or as native tool calls; `act` carries it out, in an environment or with tools.
What goes wrong with an action is told to the agent and counted, and the run goes on.
"""

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph

from environments.base import Environment
from models.calls import request, takes_stop
from nodes.acting import ActionStep, Move, in_environment, read_move, with_tools
from nodes.agent import (
    actions_of,
    agent_prompt,
    answered,
    callable_tools,
    enter,
    environment_of,
    kept_for_answer,
    room_for_answer,
    tools_of,
)
from nodes.answers import read_answer
from nodes.chat import call_tools, complete, model_of
from nodes.step import Step, Update, node, stop
from nodes.turn import begin, end, unless_ended
from prompts import react as prompts
from state.context import ReactContext
from state.errors import LimitReached, ModelFailed
from state.run import Output, RunState
from state.trial import ActingInput


class ReactState(RunState, ActingInput):
    """State of a run: the world as the last action left it, and the steps taken, which are the artefact."""

    world: dict[str, Any]
    request: str
    hints: str
    steps: list[ActionStep]
    move: Move | None
    reward: float | None


class ReactOutput(Output):
    """What a run returns. `reward` (0..1) is the environment's; None where there is none."""

    steps: list[ActionStep]
    reward: float | None


@node(ReactContext)
async def think(state: ReactState, step: Step[ReactContext]) -> Update:
    """Ask for the next step; an agent that may take none any more is asked for its best answer."""
    context, environment, tools = step.context, await environment_of(step.context), tools_of(step, state["run_id"])
    prompt = agent_prompt(state, step, environment, tools)
    if reason := why_stop(state["steps"], step, prompt):
        return stop("limit_reached", reason) | await conclude(state, step, environment, tools)
    if context.mode == "text":
        model = model_of(step, context.model)
        ends: dict[str, Any] = {"stop": ["\nObservation"]} if takes_stop(model) else {}
        reply = (await request(model, prompt, step.meter, **ends))[0]
        return {"move": read_move(reply.text)}
    reply = await call_tools(step, context.model, prompt, callable_tools(environment, tools))
    calls = [*reply.tool_calls, *reply.invalid_tool_calls]
    named = ", ".join(f"{call['name']}({call['args']})" for call in calls)
    return {"move": Move(thought=reply.text, action=named, answer=None if calls else reply.text, messages=[reply])}


@node(ReactContext)
async def act(state: ReactState, step: Step[ReactContext]) -> Update:
    """Carry the step out, and tell the agent what came of it."""
    move, environment, tools = state["move"], await environment_of(step.context), tools_of(step, state["run_id"])
    assert move is not None
    if not move["action"] and move["answer"] is None:
        step.meter.count(parse_failures=1)
        told = prompts.UNREADABLE.format(actions=actions_of(environment, tools))
        return taken(
            state, step, ActionStep(thought=move["thought"], action="", observation=told, valid=False, messages=[])
        )
    if environment is None and move["answer"] is not None:
        return {"answer": move["answer"], **finished(len(state["steps"]), None)}
    if environment is None:
        return taken(state, step, await with_tools(step, move, tools))
    effect = await in_environment(environment, step.context.environment_name, move, state["world"], state["reward"])
    step.meter.count(tool_calls=1, tool_errors=0 if effect.step["valid"] else 1)
    update = taken(state, step, effect.step) | {"world": effect.world, "reward": effect.reward, "answer": effect.answer}
    return update | (finished(len(update["steps"]), effect.reward) if effect.done else {})


@node(ReactContext)
async def finish(state: ReactState, step: Step[ReactContext]) -> Update:
    """Return the agent's answer."""
    return await end(state, step, AIMessage(state["answer"]) if state["answer"] else None)


def taken(state: ReactState, step: Step[ReactContext], done: ActionStep) -> Update:
    """The update that records a step."""
    number = len(state["steps"]) + 1
    step.emit("action", number=number, action=done["action"], observation=done["observation"], valid=done["valid"])
    return {"steps": [*state["steps"], done], "move": None}


def finished(actions: int, reward: float | None) -> Update:
    """The outcome of an agent that has answered; whether that solves the task, only a reward can say."""
    if reward is None:
        return stop("solved", f"the agent answered after {actions} actions")
    return stop(
        "solved" if reward >= 1 else "exhausted", f"finished after {actions} actions with a reward of {reward:g}"
    )


def stuck(steps: list[ActionStep], repeats: int) -> bool:
    """Whether the last actions and their observations have been the same more than `repeats` times in a row."""
    last = [(taken["action"], taken["observation"]) for taken in steps[-repeats - 1 :]]
    return len(last) > repeats and len(set(last)) == 1


def why_stop(steps: list[ActionStep], step: Step[ReactContext], prompt: list[BaseMessage]) -> str | None:
    """Why the agent may take no further step: the actions are used up, it goes round in circles, or what the run may
    still spend is just enough for an answer. None if it may."""
    context = step.context
    if len(steps) >= context.max_actions:
        return f"max_actions={context.max_actions} reached (actions={len(steps)})"
    if stuck(steps, context.max_repeats):
        repeated = " ".join(steps[-1]["action"].split()) or "nothing that could be read"
        return f"max_repeats={context.max_repeats} reached: {repeated:.100}, again"
    return kept_for_answer(step, prompt) if context.answer_at_limit else None


async def conclude(
    state: ReactState, step: Step[ReactContext], environment: Environment | None, tools: list[BaseTool]
) -> Update:
    """Ask for the best answer, unless there is one or the settings forbid it, and let the environment reward it."""
    if state["answer"] or not step.context.answer_at_limit:
        return {}
    declared = callable_tools(environment, tools) if step.context.mode == "tools" else []
    room = room_for_answer(step, declared)
    prompt = agent_prompt(state, step, environment, tools, closing=prompts.BEST_ANSWER, most=room)
    try:
        text = await complete(step, step.context.model, prompt, tools=declared)
    except (LimitReached, ModelFailed):
        return {}
    name = step.context.environment_name
    answer = read_answer(text, name)
    said = await answered(environment, name, state["world"], answer) if answer else None
    return {"answer": answer, "reward": said.reward if said else None}


builder: StateGraph[Any, ReactContext, Any, Any] = StateGraph(
    ReactState, context_schema=ReactContext, input_schema=ActingInput, output_schema=ReactOutput
)
builder.add_node("begin", begin("react", ReactContext, enter, steps=[], move=None, reward=None))
builder.add_node("think", think)
builder.add_node("act", act)
builder.add_node("finish", finish)
builder.add_edge(START, "begin")
builder.add_edge("begin", "think")
builder.add_conditional_edges("think", unless_ended("act"), ["act", "finish"])
builder.add_conditional_edges("act", unless_ended("think"), ["think", "finish"])
builder.add_edge("finish", END)

graph = builder.compile(name="react")
