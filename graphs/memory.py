"""A conversational agent that remembers (Generative Agents, Park et al. 2023, arXiv 2304.03442).

    begin -> perceive -> retrieve -> respond -> remember -> reflect -> finish

`perceive` makes observations of what the user says; `retrieve` finds the memories of this user that fit, by recency,
importance and relevance; `respond` answers from them and cites them; `remember` checks the answer against them,
and keeps what both have said, and the facts that the user's words hold; `reflect` draws insights from the memories as
soon as enough has happened.

The memory lies in the graph's store, apart for each user, and outlasts threads and restarts. Whatever is killed and
goes on remembers each thing once.
"""

import time
from functools import partial
from uuid import uuid4

from langchain_core.messages import AIMessage

from reflective_agents.graphs._memory import choosing, citing, keeping, recall
from reflective_agents.graphs._memory.days import day_of, with_days
from reflective_agents.graphs._memory.state import MemoryOutput, MemoryState
from reflective_agents.nodes.answer_stream import AnswerStream
from reflective_agents.nodes.asking.chat import write
from reflective_agents.nodes.evidence.long_questions import words_of
from reflective_agents.nodes.evidence.research import today
from reflective_agents.nodes.evidence.verifying import (
    NO_EVIDENCE,
    Evidence,
    is_open,
    verify,
    with_support,
    without_unsupported,
)
from reflective_agents.nodes.remembering.experience import kept_in
from reflective_agents.nodes.remembering.remember import reflect as reflect_on_memories
from reflective_agents.nodes.step import Step, Update, node, stop, stop_because
from reflective_agents.nodes.turn import begin, end, strategy_graph, unless_ended
from reflective_agents.prompts import recall as prompts
from reflective_agents.prompts.search import TODAY
from reflective_agents.state.errors import InvalidOutput, LimitReached, ModelFailed, WrongThread
from reflective_agents.state.outcome import Appraisal, Outcome
from reflective_agents.state.run import Input
from reflective_agents.state.settings.memory import MemoryContext

REPLY = Appraisal(accepted=True)
"""What is known of an answer in a conversation, which may be anything."""


async def prepare(state: MemoryState, step: Step[MemoryContext]) -> Update:
    """Refuse a memory that cannot be opened and a thread of another user, and say where the memory lies."""
    user = recall.user_of(step.context)
    owner = state.get("user") or user
    if owner != user:
        raise WrongThread(f"this thread belongs to user {owner!r}, not to {user!r}: choose another thread, or set user")
    stream = await recall.open_memory_of_user(step)
    step.emit("memory", user=user, memories=await stream.count(), kept_in=kept_in())
    message_id = state["messages"][-1].id
    days = {message_id: day_of(time.time())} if message_id else {}
    return {"user": user, "conversation": state.get("conversation") or uuid4().hex, "days": days}


@node(MemoryContext)
async def perceive(state: MemoryState, step: Step[MemoryContext]) -> Update:
    """Make observations of what the user says."""
    return {"perceived": keeping.parts(words_of(state["messages"][-1]))}


@node(MemoryContext)
async def retrieve(state: MemoryState, step: Step[MemoryContext]) -> Update:
    """Find the memories that fit, before what is said now is one of them."""
    memories = await recall.retrieve(step, state.get("conversation", ""), state["messages"])
    for memory in memories:
        shown = ("number", "kind", "text", "score", "recency", "importance", "relevance")
        step.emit("retrieved", **{name: memory[name] for name in shown})  # type: ignore[literal-required]
    return {"memories": memories}


@node(MemoryContext)
async def respond(state: MemoryState, step: Step[MemoryContext]) -> Update:
    """Answer from what is remembered, and note which memories the answer cites; others it cannot cite."""
    *conversation, question = state["messages"]
    prompt = prompts.RESPOND.format_messages(
        today=TODAY.format(today=today()),
        conversation=with_days(citing.without_memory_marks(conversation), state.get("days") or {}, day_of(time.time())),
        memories=await recall.memories_message(state["memories"], question.text),
        question=[question],
    )
    listener = AnswerStream(step, partial(citing.Citing, len(state["memories"])))
    reply = await write(step, step.context.model, prompt, listener)
    answer = citing.only_cited(reply.text, len(state["memories"]))
    numbers = citing.cited(answer) if state["memories"] else set[int]()
    if state["memories"] and numbers != citing.cited(reply.text):
        step.meter.count(parse_failures=1)
        step.emit("refused_citation", problem="it names none of the memories that were shown")
    for number in sorted(numbers):
        step.emit("cited", number=number, cited=True)
    memories = [{**memory, "cited": memory["number"] in numbers} for memory in state["memories"]]
    answer = answer.strip() or reply.text
    return {"reply": answer, "said": await listener.end(citing.shown(answer, len(memories))), "memories": memories}


@node(MemoryContext)
async def remember(state: MemoryState, step: Step[MemoryContext]) -> Update:
    """Remember what both have said, and the facts in what the user said. What the memories cited do not support of the
    answer is not remembered; a check that would leave no call for the facts comes at the end."""
    answer = AIMessage(state["reply"], id=state["said"])
    evidence = await evidence_of(state)
    update: Update = {}
    if step.meter.calls_left > 1 and is_open(step, answer, state["outcome"], REPLY, evidence):
        _, support = await verify(state, step, answer, evidence)
        update["support"] = support
        kept: MemoryState = {**state, "reply": without_unsupported(state["reply"], support, evidence)}
        state = kept
    try:
        failed = await keeping.remember(step, state)
    except ModelFailed as reason:
        failed = reason
    if failed is None:
        return update
    if isinstance(failed, LimitReached):
        return update | stop_because(failed)
    return update | _answered_but("remembered", failed)


@node(MemoryContext)
async def reflect(_: MemoryState, step: Step[MemoryContext]) -> Update:
    """Draw insights from the memories, if that is due; a model that cannot do that is asked again later."""
    stream = await recall.open_memory_of_user(step)
    pending = await stream.pending()
    try:
        await reflect_on_memories(
            step,
            step.context.model,
            stream,
            now=time.time(),
            identity=prompts.WHO,
            threshold=step.context.reflect_at,
            ranking=recall.ranking_of(step.context),
            clock=recall.clock,
            counts=choosing.is_evidence,
        )
    except ModelFailed as problem:
        step.emit("not_reflected", reason=str(problem))
        if not isinstance(problem, InvalidOutput):
            return _answered_but("reflected on", problem)
        # Moves the mark on; else each turn would ask in vain about the same memories.
        await stream.add([], reflected=pending.latest)
    return {}


def _answered_but(missing: str, problem: ModelFailed) -> Update:
    """End a run whose answer stands, and say what could not be done with it: that concerns later runs."""
    return stop("answered", f"answered, but not all of it was {missing}: {problem}")


@node(MemoryContext)
async def finish(state: MemoryState, step: Step[MemoryContext]) -> Update:
    """Return the answer as it is read, held against its memories if that was not done yet: these are in the result, and
    so is what each sentence cites, and its marks would mean nothing to a reader."""
    if not state["reply"]:
        return await end(state, step, None)
    cited = sum(memory["cited"] for memory in state["memories"])
    reason = f"answered from {len(state['memories'])} memories, {cited} of them cited"
    ended = state["outcome"] or Outcome(status="answered", reason=reason)
    marked = AIMessage(state["reply"])
    evidence = await evidence_of(state)
    support = state.get("support")
    if support is None and is_open(step, marked, ended, REPLY, evidence):
        _, support = await verify(state, step, marked, evidence)
    reached, appraisal = with_support(ended, REPLY, support) if support else (ended, REPLY)
    reply = AIMessage(citing.shown(state["reply"], len(state["memories"])), id=state["said"])
    checked: MemoryState = {**state, "outcome": reached}
    update = await end(checked, step, reply, appraisal=appraisal, evidence=evidence._replace(held=support is None))
    return {**update, "support": support} if support else update


async def evidence_of(state: MemoryState) -> Evidence:
    """Return the memories that an answer rests on; none if it cites none."""
    if not any(memory["cited"] for memory in state["memories"]):
        return NO_EVIDENCE
    sources = await recall.sources_of(state["memories"], state["messages"][-1].text)
    return Evidence(sources, letter="m", revisable=False, without_passage="own")


builder = strategy_graph(MemoryState, context_schema=MemoryContext, input_schema=Input, output_schema=MemoryOutput)
builder.add_node("begin", begin("memory", MemoryContext, prepare, perceived=[], memories=[], reply="", said=None))
builder.add_node("perceive", perceive)
builder.add_node("retrieve", retrieve)
builder.add_node("respond", respond)
builder.add_node("remember", remember)
builder.add_node("reflect", reflect)
builder.add_node("finish", finish)
builder.add_edge("begin", "perceive")
builder.add_edge("perceive", "retrieve")
builder.add_conditional_edges("retrieve", *unless_ended("respond"))
builder.add_conditional_edges("respond", *unless_ended("remember"))
builder.add_conditional_edges("remember", *unless_ended("reflect"))
builder.add_edge("reflect", "finish")

graph = builder.compile(name="memory")
"""Without a store its memory lasts as long as the process; `builder.compile(store=...)` gives it one."""
