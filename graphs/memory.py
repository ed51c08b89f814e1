"""A conversational agent that remembers (Generative Agents, Park et al. 2023, arXiv 2304.03442).

    begin -> perceive -> retrieve -> respond -> remember -> reflect -> finish

`perceive` makes observations of what the user says; `retrieve` finds the memories of this user that fit, by recency,
importance and relevance; `respond` answers from them and cites them as [m1]; `remember` rates what both have said and
puts it into the memory; `reflect` draws insights from the memories as soon as enough has happened.

The memory lies in the graph's store, apart for each user, and outlasts threads and restarts. Whatever is killed and
goes on remembers each thing once.
"""

import time
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph

from nodes import recall
from nodes.chat import write
from nodes.experience import kept_in
from nodes.remember import reflect as reflect_on_memories
from nodes.step import Step, Update, node, stop
from nodes.turn import begin, end, unless_ended
from prompts import recall as prompts
from state.errors import LimitReached, WrongThread
from state.remembering import MemoryContext, MemoryOutput, MemoryState
from state.run import Input, Outcome


async def prepare(state: Mapping[str, Any], step: Step[MemoryContext]) -> Update:
    """Refuse a memory that cannot be opened and a thread of another user, and say where the memory lies."""
    user = step.context.user
    if (owner := state.get("user") or user) != user:
        raise WrongThread(f"this thread belongs to user {owner!r}, not to {user!r}: choose another thread, or set user")
    stream = await recall.open_memory_of_user(step)
    step.emit("memory", user=user, memories=await stream.count(), kept_in=kept_in())
    return {"user": user}


@node(MemoryContext)
async def perceive(state: MemoryState, step: Step[MemoryContext]) -> Update:
    """Make observations of what the user says."""
    return {"perceived": recall.observations(prompts.USER_SAID, state["messages"][-1].text)}


@node(MemoryContext)
async def retrieve(state: MemoryState, step: Step[MemoryContext]) -> Update:
    """Find the memories that fit, before what is said now is one of them."""
    found = await recall.retrieve(step, state["messages"][-1].text)
    for one in found:
        told = ("number", "kind", "text", "score", "recency", "importance", "relevance")
        step.emit("retrieved", **{name: one[name] for name in told})  # type: ignore[literal-required]
    return {"memories": found}


@node(MemoryContext)
async def respond(state: MemoryState, step: Step[MemoryContext]) -> Update:
    """Answer from what is remembered, and note which memories the answer cites; others it cannot cite."""
    *conversation, question = state["messages"]
    prompt = prompts.RESPOND.format_messages(
        conversation=recall.without_citations(conversation),
        memories=recall.memories_message(state["memories"]),
        question=[question],
    )
    reply = await write(step, step.context.model, prompt)
    answer = recall.only_cited(reply.text, len(state["memories"]))
    if answer != reply.text:
        step.meter.count(parse_failures=1)
        step.emit("refused_citation", problem="it names none of the memories that were shown")
    numbers = recall.cited(answer)
    for number in sorted(numbers):
        step.emit("cited", number=number, cited=True)
    memories = [{**one, "cited": one["number"] in numbers} for one in state["memories"]]
    return {"reply": answer.strip() or reply.text, "said": reply.id, "memories": memories}


@node(MemoryContext)
async def remember(state: MemoryState, step: Step[MemoryContext]) -> Update:
    """Remember what both have said, with what it matters."""
    said = recall.observations(prompts.AGENT_SAID, recall.uncited(state["reply"]))
    unrated = await recall.remember(step, state["run_id"], [*state["perceived"], *said])
    if unrated is None:
        return {}
    return stop("limit_reached" if isinstance(unrated, LimitReached) else "failed", unrated)


@node(MemoryContext)
async def reflect(_: MemoryState, step: Step[MemoryContext]) -> Update:
    """Draw insights from the memories, if that is due."""
    stream = await recall.open_memory_of_user(step)
    await reflect_on_memories(
        step,
        step.context.model,
        stream,
        now=time.time(),
        who=prompts.WHO,
        threshold=step.context.reflect_at,
        weights=recall.weights_of(step.context),
    )
    return {}


@node(MemoryContext)
async def finish(state: MemoryState, step: Step[MemoryContext]) -> Update:
    """Return the answer."""
    if not state["reply"]:
        return await end(state, step, None)
    cited = sum(one["cited"] for one in state["memories"])
    reason = f"answered from {len(state['memories'])} memories, {cited} of them cited"
    ended = state["outcome"] or Outcome(status="solved", reason=reason)
    return await end({**state, "outcome": ended}, step, AIMessage(state["reply"], id=state["said"]))


builder: StateGraph[Any, MemoryContext, Any, Any] = StateGraph(
    MemoryState, context_schema=MemoryContext, input_schema=Input, output_schema=MemoryOutput
)
builder.add_node("begin", begin("memory", MemoryContext, prepare, perceived=[], memories=[], reply="", said=None))
builder.add_node("perceive", perceive)
builder.add_node("retrieve", retrieve)
builder.add_node("respond", respond)
builder.add_node("remember", remember)
builder.add_node("reflect", reflect)
builder.add_node("finish", finish)
builder.add_edge(START, "begin")
builder.add_edge("begin", "perceive")
builder.add_edge("perceive", "retrieve")
builder.add_conditional_edges("retrieve", unless_ended("respond"), ["respond", "finish"])
builder.add_conditional_edges("respond", unless_ended("remember"), ["remember", "finish"])
builder.add_conditional_edges("remember", unless_ended("reflect"), ["reflect", "finish"])
builder.add_edge("reflect", "finish")
builder.add_edge("finish", END)

graph = builder.compile(name="memory")
"""Without a store its memory lasts as long as the process; `builder.compile(store=...)` gives it one."""
