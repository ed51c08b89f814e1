"""What nodes do with an agent's long-term memory: open it, show what is in it, and reflect on it."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from langchain_core.embeddings import Embeddings
from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from reflective_agents.memory import rankings
from reflective_agents.memory.reflection import (
    RECENT,
    SHOWN,
    THRESHOLD,
    CheckedInsights,
    check_insights,
    is_due,
    merged,
)
from reflective_agents.nodes.asking.chat import ask
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.memo import at_once
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import memory as prompts
from reflective_agents.state.context import Context, Model
from reflective_agents.state.extras import need_for_memory
from reflective_agents.state.memories import Insights, Kind, Memory, Questions

if TYPE_CHECKING:
    from reflective_agents.memory.rankings.base import Ranking
    from reflective_agents.memory.stream import MemoryStream

Clock = Callable[[float], str]
"""A time of the agent's clock in words."""
_INSIGHTS: tuple[Kind, ...] = ("reflection",)


async def open_memory(
    step: Step[Context], owner: str, embeddings: str | Embeddings | None = None, *, max_memories: int = 100_000
) -> "MemoryStream":
    """Open an agent's memory in the store of the graph, within the limits of the run.

    A graph without a store has the one of the process.

    Raises:
        Misuse, UnknownModel, MissingKey: as `MemoryStream.open`.
    """
    need_for_memory()
    from reflective_agents.memory.stream import MemoryStream  # loads numpy, and few runs remember

    store = get_runtime().store or store_of_process()
    return await MemoryStream.open(store, owner, embeddings, meter=step.meter, max_memories=max_memories)


@cache
def store_of_process() -> BaseStore:
    """Return the store of all graphs that have none of their own. It lasts as long as the process."""
    return InMemoryStore()


def memories_text(memories: Sequence[Memory], clock: Clock | None = None) -> str:
    """Quote memories for a prompt, numbered from 1; a clock adds when each was made, and when it was superseded."""
    texts = [memory_text(memory, number, clock) for number, memory in enumerate(memories, 1)]
    return "\n".join(texts)


def memory_text(memory: Memory, number: int | str, clock: Clock | None = None) -> str:
    """Quote a memory for a prompt, under a number."""
    attributes = {"number": number, "kind": memory["kind"]}
    if speaker := memory.get("speaker"):
        attributes["by"] = speaker
    if clock is not None:
        attributes["of"] = clock(memory["created"])
        if "until" in memory:
            attributes["superseded"] = clock(memory["until"])
    return quoted("memory", memory["text"], **attributes)


class _Question(NamedTuple):
    """A question about what has happened lately, and the memories that answer it."""

    text: str
    memories: list[Memory]


async def reflect(
    step: Step[Context],
    model: Model,
    stream: "MemoryStream",
    *,
    now: float,
    identity: str = "",
    threshold: float = THRESHOLD,
    ranking: "Ranking | None" = None,
    clock: Clock | None = None,
    counts: Callable[[Memory], bool] = lambda _: True,
) -> list[Memory]:
    """Reflect if that is due (Generative Agents, section 4.2): three questions about the last 100 memories, and for
    each of them up to five insights from what is retrieved for it, in 1 + 3 calls that wait for each other once. Where
    each question would be shown all there is, none is asked, and one call draws insights from the whole; not so under
    the paper's ranking.

    The insights are added at once, with the place up to where they go: a kill leaves all of them or none, and done
    again it changes nothing. An insight that names no memory it was shown is refused, and counted as a parse failure.
    Equal insights become one, and one that is known already is not drawn again, but not under the paper's ranking.

    Args:
        step: The node that reflects.
        model: Which model to ask.
        stream: The agent's memory.
        now: Seconds of the agent's clock.
        identity: Who the agent is, in a few words.
        threshold: Importance of new observations beyond which a reflection is due.
        ranking: How memories are retrieved for the questions. Default: the paper's.
        clock: How a time is told to the model; None tells none.
        counts: Whether an insight may rest on a memory; others are not shown.

    Returns:
        The insights, already in the memory; none if no reflection was due.

    Raises:
        InvalidOutput, LimitReached, ModelFailed: as `nodes.asking.chat.ask`; then nothing was added.
    """
    ranking = ranking or rankings.named("paper", recency=1, importance=1, relevance=1)
    pending = await stream.pending()
    if not is_due(pending, threshold):
        return []
    latest = await stream.latest(2 * RECENT)
    counting = [memory for memory in latest if counts(memory)]
    recent = counting[-RECENT:]
    questions = [_Question(prompts.OVERALL, recent)]
    if len(recent) > SHOWN or ranking.as_published:
        form = await ask(step, model, _prompt(prompts.ASK, identity, recent, clock), Questions)
        questions = await _retrieve(form, stream, now, ranking, counts)

    async def conclude(number: int, question: _Question) -> CheckedInsights:
        shown = sorted(question.memories, key=lambda memory: memory["created"])
        prompt = _prompt(prompts.CONCLUDE, identity, shown, clock, question=quoted("question", question.text))
        reply = await ask(step, model, prompt, Insights)
        return check_insights(reply, shown, key=f"reflection {stream.owner} {pending.latest.id} {number}", now=now)

    batches = await at_once([conclude(number, question) for number, question in enumerate(questions)])
    insights: list[Memory] = []
    refused: list[str] = []
    for batch in batches:
        insights += batch.insights
        refused += batch.refused
    if not ranking.as_published:
        insights = merged(insights, await stream.latest(RECENT, _INSIGHTS))
    await stream.add(insights, reflected=pending.latest)
    _report_refused(step, refused)
    step.emit(
        "reflected",
        importance=pending.importance,
        questions=[question.text for question in questions],
        insights=len(insights),
        refused=len(refused),
    )
    return await stream.get(insight["id"] for insight in insights)


async def _retrieve(
    form: Questions, stream: "MemoryStream", now: float, ranking: "Ranking", counts: Callable[[Memory], bool]
) -> list[_Question]:
    """Retrieve for each question the memories that an insight may rest on."""
    questions: list[_Question] = []
    # One after the other, since what one question finds counts as accessed for the next.
    for question in form.questions:
        best = await stream.retrieve(question, k=SHOWN, now=now, ranking=ranking)
        found = [scored.memory for scored in best if counts(scored.memory)]
        questions.append(_Question(question, found))
    return questions


def _report_refused(step: Step[Context], insights: Sequence[str]) -> None:
    for text in insights:
        step.meter.count(parse_failures=1)
        step.emit("refused_insight", insight=text, problem="it names none of the memories that were shown")


def _prompt(
    template: ChatPromptTemplate, identity: str, memories: Sequence[Memory], clock: Clock | None, **texts: str
) -> list[BaseMessage]:
    agent = quoted("agent", identity) + "\n\n" if identity else ""
    return template.format_messages(who=agent, memories=memories_text(memories, clock), **texts)


def owner_of(user: str) -> str:
    """Return the owner of a user's memory."""
    return f"user/{user}"
