"""A small town of agents (Generative Agents, Park et al. 2023, arXiv 2304.03442, sections 3 to 5).

    begin -> wake -> tick -> tick -> ... -> finish

Everyone has a memory of its own. In `wake` they remember who they are and plan the day in broad strokes; the first of
them hears the question of the run as its inner voice. Each `tick` is a step of the clock, for all agents at once: they
reflect if that is due, go on with their plans, decomposed just as far as is needed, perceive who is where they are,
react, talk, and remember. `finish` tells what came of it, and looks into their memories for who knows of the news.
"""

import asyncio
from collections.abc import Sequence

from langchain_core.messages import AIMessage
from langgraph.runtime import get_runtime
from langgraph.types import Overwrite

from reflective_agents.nodes.memo import at_once
from reflective_agents.nodes.step import Step, Update, node, stop, stop_at
from reflective_agents.nodes.turn import begin, end, strategy_graph, unless_ended
from reflective_agents.state.errors import InvalidOutput, LimitReached, ModelFailed
from reflective_agents.state.extras import need_for_memory
from reflective_agents.state.run import Input
from reflective_agents.state.settings.town import Town, TownContext
from reflective_agents.town.agent import Agent, is_about, open_agents
from reflective_agents.town.files import load_town
from reflective_agents.town.meeting import company, converse, pairs, react
from reflective_agents.town.planning import act
from reflective_agents.town.planning import wake as wake_up
from reflective_agents.town.report import is_over, moments, portrait, portraits_of, spread, summary
from reflective_agents.town.state import TownOutput, TownState


async def prepare(state: TownState, step: Step[TownContext]) -> Update:
    """Read the town, and refuse embeddings that cannot be had."""
    need_for_memory()
    from reflective_agents.models.embeddings import get_embeddings

    get_embeddings(step.context.embeddings)
    town = await asyncio.to_thread(load_town, step.context.town)
    if step.context.fact:
        town = town.model_copy(update={"fact": step.context.fact})
    return {"town": town.model_dump(), "told": state["messages"][-1].text}


@node(TownContext)
async def wake(state: TownState, step: Step[TownContext]) -> Update:
    """Let everyone remember who they are, and plan the day in broad strokes."""
    agents = await open_agents(state, step)
    planned = await at_once([wake_up(agent, state["messages"]) for agent in agents])
    if not any(planned):
        # If a limit is why nobody has one, the run ends with that.
        step.meter.check()
        raise InvalidOutput(f"nobody has a plan for the day: {agents[0].failure}")
    for agent in agents:
        plan = [stroke["what"] for stroke in agent.mind["strokes"]]
        step.emit("plan", agent=agent.name, plan=plan)
    update = agents_update(agents)
    first = agents[0]
    if not await first.has_own_news():
        return update
    # The model has chosen the words that stand for the news; each of them has to be the voice's own.
    is_news = await asyncio.to_thread(is_about, first.news, first.inner_voice)
    news = first.news if is_news else ""
    return update | {"town": {**state["town"], "fact": news}}


@node(TownContext)
async def tick(state: TownState, step: Step[TownContext]) -> Update:
    """Advance the clock by one step, for all agents at once."""
    step.meter.check()
    agents = await open_agents(state, step)
    await at_once([agent.reflect() for agent in agents])
    await at_once([act(agent) for agent in agents])
    wishes = await at_once([react(agent, company(agent, agents)) for agent in agents])
    first = len(state["conversations"]) + 1
    conversations = [converse(wish, number) for number, wish in enumerate(pairs(wishes), first)]
    talks = await at_once(conversations)
    day = moments(agents, talks)
    for moment, before in zip(day, state["minds"], strict=True):
        has_changed = moment["place"] != before["place"] or moment["doing"] != before["doing"]
        if has_changed or not state["ticks"]:
            step.emit("act", time=moment["time"], agent=moment["agent"], place=moment["place"], doing=moment["doing"])
    for talk in talks:
        for line in talk["lines"]:
            step.emit("say", time=talk["time"], talk=talk["talk"], agent=line["agent"], text=line["text"])
    update = {**agents_update(agents), "ticks": agents[0].number, "day": day, "conversations": talks}
    return update | verdict(agents[0].town, agents[0].minute, agents[0].number, step)


@node(TownContext)
async def finish(state: TownState, step: Step[TownContext]) -> Update:
    """Tell the day, and look into the memories for who knows of the news."""
    if not state["day"]:
        return await end(state, step, None)
    try:
        agents = await open_agents(state, step)
        portraits = await at_once([portrait(agent) for agent in agents])
        if not step.context.keep_memories or get_runtime().store is None:  # without a store nobody could ask for them
            await at_once([agent.stream.forget_all() for agent in agents])
    except (LimitReached, ModelFailed):
        portraits = portraits_of(Town.model_validate(state["town"]), state["minds"], state["remembered"])
    fact = state["town"]["fact"]
    knows = await asyncio.to_thread(spread, portraits, fact)
    for entry in knows:
        step.emit("knows", agent=entry["agent"], knows=entry["knows"], way=entry["way"], time=entry["time"])
    ended = await end(state, step, AIMessage(summary(state, knows, fact)))
    return {"agents": portraits, "spread": knows, **ended}


def agents_update(agents: Sequence[Agent]) -> Update:
    """Return the update with what the agents leave in the state after a step."""
    minds, memories, retrievals = [], [], []
    for agent in agents:
        minds.append(agent.mind)
        memories += agent.memories
        retrievals += agent.retrievals
    return {"minds": minds, "remembered": memories, "retrievals": retrievals}


def verdict(town: Town, minute: int, number: int, step: Step[TownContext]) -> Update:
    """Return the outcome if the day or the run is over; an empty update otherwise."""
    if is_over(town, minute + step.context.minutes):
        return stop("answered", f"the day is over (steps={number})")
    if number >= step.context.max_steps:
        return stop_at(step.context.limit("max_steps", number))
    return {}


# What is written to the channels with `Overwrite` is appended: an empty list would leave the entries of an
# earlier day.
FRESH: Update = {
    "ticks": 0,
    "minds": [],
    "agents": [],
    "spread": [],
    "day": Overwrite([]),
    "conversations": Overwrite([]),
    "retrievals": Overwrite([]),
    "remembered": Overwrite([]),
}
builder = strategy_graph(TownState, context_schema=TownContext, input_schema=Input, output_schema=TownOutput)
builder.add_node("begin", begin("town", TownContext, prepare, **FRESH))
builder.add_node("wake", wake)
builder.add_node("tick", tick)
builder.add_node("finish", finish)
builder.add_edge("begin", "wake")
builder.add_conditional_edges("wake", *unless_ended("tick"))
builder.add_conditional_edges("tick", *unless_ended("tick"))

graph = builder.compile(name="town")
