"""Chain of thought (Wei et al. 2022, arXiv 2201.11903) with self-consistency (Wang et al. 2023, arXiv 2203.11171).

    begin -> sample -> vote -> finish

`sample` draws k answers at once, each thought out step by step; `vote` takes the answer that most of them give.
"""

from collections import Counter
from typing import Any, Literal

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from environments.base import Environment
from environments.registry import final_action
from nodes.agent import enter, environment_of
from nodes.answers import find_answer, material, normal_form
from nodes.chat import sample_texts
from nodes.step import Step, Update, node, stop
from nodes.turn import begin, end
from prompts import chain_of_thought as prompts
from state.context import ChainOfThoughtContext
from state.run import Output, RunState
from state.trial import ActingInput


class Sample(TypedDict):
    """One sampled chain of thought, the answer it ends with, and the normal form of that, which is counted."""

    text: str
    answer: str
    normal: str


class ChainOfThoughtState(RunState, ActingInput):
    """State of a run; the samples are its artefact. `reward` (0..1) is the environment's, None where there is none."""

    world: dict[str, Any]
    request: str
    hints: str
    samples: list[Sample]
    reward: float | None


class ChainOfThoughtOutput(Output):
    """What a run returns."""

    samples: list[Sample]
    reward: float | None


@node(ChainOfThoughtContext)
async def sample(state: ChainOfThoughtState, step: Step[ChainOfThoughtContext]) -> Update:
    """Draw all samples at once; those that fail are missing, and only a run without any fails."""
    context, name = step.context, step.context.environment or ""
    prompt = prompts.SOLVE.format_messages(
        form=prompts.FORMS.get(name, prompts.FORM),
        examples=prompts.EXAMPLES.get(name, "") if context.examples else "",
        lessons=state["hints"],
        conversation=state["messages"][:-1],
        material=material(state["world"]),
        request=state["request"],
    )
    texts = await sample_texts(step, context.model, prompt, context.samples, context.seed)
    answers = [(text, find_answer(text, name)) for text in texts]
    samples = [Sample(text=text, answer=answer, normal=normal_form(answer, name)) for text, answer in answers]
    for drawn in samples:
        step.emit("sample", answer=drawn["answer"])
    return {"samples": samples}


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
    reward = await rewarded(environment, step.context.environment, state["world"], answer)
    return {"answer": answer, "reward": reward, **finished(count, len(state["samples"]), reward)}


@node(ChainOfThoughtContext)
async def finish(state: ChainOfThoughtState, step: Step[ChainOfThoughtContext]) -> Update:
    """Return the answer that won."""
    return end(state, step, AIMessage(state["answer"]) if state["answer"] else None)


async def rewarded(
    environment: Environment | None, name: str | None, world: dict[str, Any], answer: str
) -> float | None:
    """The environment's reward of an answer; None where there is no environment, or no single action gives the
    answer."""
    action = final_action(name, answer) if name else None
    if environment is None or action is None:
        return None
    return (await environment.step(world, action)).reward


def finished(count: int, samples: int, reward: float | None) -> Update:
    """The outcome of a vote; whether it solves the task, only a reward can say."""
    said = f"{count} of {samples} samples agree"
    if reward is None:
        return stop("solved", said)
    return stop("solved" if reward >= 1 else "exhausted", f"{said}, with a reward of {reward:g}")


def after_sample(state: ChainOfThoughtState) -> Literal["vote", "finish"]:
    """Vote, unless something has ended the run."""
    return "finish" if state["outcome"] else "vote"


builder: StateGraph[Any, ChainOfThoughtContext, Any, Any] = StateGraph(
    ChainOfThoughtState,
    context_schema=ChainOfThoughtContext,
    input_schema=ActingInput,
    output_schema=ChainOfThoughtOutput,
)
builder.add_node("begin", begin("chain_of_thought", ChainOfThoughtContext, enter, samples=[], reward=None))
builder.add_node("sample", sample)
builder.add_node("vote", vote)
builder.add_node("finish", finish)
builder.add_edge(START, "begin")
builder.add_edge("begin", "sample")
builder.add_conditional_edges("sample", after_sample)
builder.add_edge("vote", "finish")
builder.add_edge("finish", END)

graph = builder.compile(name="chain_of_thought")
