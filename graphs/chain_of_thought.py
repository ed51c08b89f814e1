"""Chain of thought (Wei et al. 2022, arXiv 2201.11903) with self-consistency (Wang et al. 2023, arXiv 2203.11171).

    begin -> sample -> vote -> finish

`sample` draws k answers at once, each thought out step by step; `vote` takes the answer that most of them give.
"""

import asyncio
from collections import Counter
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from models.calls import request, takes_n, takes_seed
from nodes.agent import answered, enter, environment_of
from nodes.answers import find_answer, material, normal_form
from nodes.chat import ATTEMPTS, model_of
from nodes.step import Step, Update, node, stop
from nodes.turn import begin, end, unless_ended
from prompts import chain_of_thought as prompts
from state.context import ChainOfThoughtContext
from state.errors import InvalidOutput, LimitReached, ModelFailed
from state.run import Output, RunState
from state.trial import ActingInput


class Sample(TypedDict):
    """One sampled chain of thought, the answer it ends with, and the normal form of that, which is counted."""

    text: str
    answer: str
    normal: str


class ChainOfThoughtState(RunState, ActingInput):
    """State of a run; the samples are its artefact. `missing` is the limit that left some of them out, if one did.

    `reward` (0..1) and `observation` are what the environment says to the answer; None and empty where there is none.
    """

    world: dict[str, Any]
    request: str
    hints: str
    samples: list[Sample]
    missing: str
    reward: float | None
    observation: str


class ChainOfThoughtOutput(Output):
    """What a run returns."""

    samples: list[Sample]
    reward: float | None
    observation: str


@node(ChainOfThoughtContext)
async def sample(state: ChainOfThoughtState, step: Step[ChainOfThoughtContext]) -> Update:
    """Draw all samples at once; those that fail are missing, and only a run without any fails."""
    context, name = step.context, step.context.environment_name
    prompt = prompts.SOLVE.format_messages(
        form=prompts.FORMS.get(name, prompts.FORM),
        examples=prompts.EXAMPLES.get(name, "") if context.examples else "",
        lessons=state["hints"],
        conversation=state["messages"][:-1],
        material=material(state["world"]),
        request=state["request"],
    )
    texts, stops = await draw(step, prompt)
    if not texts:
        raise stops[0] if stops else InvalidOutput(f"no text in {ATTEMPTS} attempts: the model called a tool instead")
    answers = [(text, find_answer(text, name)) for text in texts]
    samples = [Sample(text=text, answer=answer, normal=normal_form(answer, name)) for text, answer in answers]
    for drawn in samples:
        step.emit("sample", answer=drawn["answer"])
    limits = [str(reason) for reason in stops if isinstance(reason, LimitReached)]
    return {"samples": samples, "missing": limits[0] if limits else ""}


@node(ChainOfThoughtContext)
async def vote(state: ChainOfThoughtState, step: Step[ChainOfThoughtContext]) -> Update:
    """Take the most frequent answer, the first of equals, and let the environment reward it."""
    votes = Counter(drawn["normal"] for drawn in state["samples"] if drawn["normal"])
    if not votes:
        return stop("failed", "no sample ends with an answer")
    winner, count = votes.most_common(1)[0]
    answer = next(drawn["answer"] for drawn in state["samples"] if drawn["normal"] == winner)
    step.emit("vote", answer=answer, votes=count, samples=len(state["samples"]))
    environment = await environment_of(step.context)
    told = await answered(environment, step.context.environment_name, state["world"], answer)
    agreed = f"{count} of {len(state['samples'])} samples agree"
    reward, observation = (told.reward, told.observation) if told else (None, "")
    update: Update = {"answer": answer, "reward": reward, "observation": observation}
    if told and not told.valid:
        return update | stop("exhausted", f"{agreed}, but the environment refuses the answer")
    return update | finished(agreed, reward, state["missing"])


@node(ChainOfThoughtContext)
async def finish(state: ChainOfThoughtState, step: Step[ChainOfThoughtContext]) -> Update:
    """Return the answer that won."""
    return await end(state, step, AIMessage(state["answer"]) if state["answer"] else None)


async def draw(
    step: Step[ChainOfThoughtContext], prompt: list[BaseMessage]
) -> tuple[list[str], list[LimitReached | ModelFailed]]:
    """Draw all samples at once: in one request where the provider has `n`, else in one each.

    What the provider leaves out, or is no text, is drawn again in requests of its own.

    Returns:
        The texts in the order of their samples, and why some are missing, if some are.
    """
    context, chat = step.context, model_of(step, step.context.model)
    texts: dict[int, str] = {}
    stops: list[LimitReached | ModelFailed] = []

    async def ask(places: list[int]) -> None:
        seeded = context.seed is not None and takes_seed(chat)
        options: dict[str, Any] = {"seed": (context.seed or 0) + places[0]} if seeded else {}
        try:
            replies = await request(chat, prompt, step.meter, n=len(places), **options)
        except (LimitReached, ModelFailed) as reason:
            stops.append(reason)
            return
        texts.update({place: reply.text for place, reply in zip(places, replies, strict=False) if reply.text.strip()})
        step.meter.count(parse_failures=sum(not reply.text.strip() for reply in replies))

    for attempt in range(ATTEMPTS):
        missing = [place for place in range(context.samples) if place not in texts]
        if stops or not missing:
            break
        together = takes_n(chat) and attempt == 0
        async with asyncio.TaskGroup() as group:
            for places in [missing] if together else [[place] for place in missing]:
                group.create_task(ask(places))
    return [texts[place] for place in sorted(texts)], stops


def finished(said: str, reward: float | None, missing: str) -> Update:
    """The outcome of a vote; whether it solves the task, only a reward can say."""
    told = said if reward is None else f"{said}, with a reward of {reward:g}"
    if missing and reward != 1:
        return stop("limit_reached", f"{missing}; {told}")
    return stop("solved" if reward is None or reward >= 1 else "exhausted", told)


builder: StateGraph[Any, ChainOfThoughtContext, Any, Any] = StateGraph(
    ChainOfThoughtState,
    context_schema=ChainOfThoughtContext,
    input_schema=ActingInput,
    output_schema=ChainOfThoughtOutput,
)
builder.add_node(
    "begin",
    begin("chain_of_thought", ChainOfThoughtContext, enter, samples=[], missing="", reward=None, observation=""),
)
builder.add_node("sample", sample)
builder.add_node("vote", vote)
builder.add_node("finish", finish)
builder.add_edge(START, "begin")
builder.add_edge("begin", "sample")
builder.add_conditional_edges("sample", unless_ended("vote"), ["vote", "finish"])
builder.add_edge("vote", "finish")
builder.add_edge("finish", END)

graph = builder.compile(name="chain_of_thought")
