"""Chain of thought (Wei et al. 2022, arXiv 2201.11903) with self-consistency (Wang et al. 2023, arXiv 2203.11171).

    begin -> sample -> vote -> finish

`sample` samples k answers at once, each thought out step by step; `vote` takes the answer that most of them give. With
`confidence` it stops as soon as the vote is safe (Adaptive-Consistency, Aggarwal et al. 2023, arXiv 2305.11860). With
`votes="likelihood"` a sample's vote weighs as much as its tokens are likely on average (the normalized weighted sum of
self-consistency, table 1).
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, NotRequired, TypeVar

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.channels import DeltaChannel
from typing_extensions import TypedDict

from reflective_agents.environments.actions import has_answer
from reflective_agents.environments.base import Environment, State
from reflective_agents.environments.plain import PLAIN
from reflective_agents.models.capabilities import takes_logprobs
from reflective_agents.models.joining import was_cut_off
from reflective_agents.nodes.acting.agent import appraise, enter, environment_of, give_answer
from reflective_agents.nodes.answer_stream import AnswerStream, Labelled
from reflective_agents.nodes.asking import sampling
from reflective_agents.nodes.asking.chat import model_of
from reflective_agents.nodes.asking.likelihood import likelihood, tokens_of
from reflective_agents.nodes.asking.task_prompt import articles_text, short_task_prompt
from reflective_agents.nodes.evidence.research import today
from reflective_agents.nodes.memo import at_once
from reflective_agents.nodes.step import Step, Update, node, stop, stop_at
from reflective_agents.nodes.turn import begin, end, strategy_graph, unless_ended
from reflective_agents.nodes.verifiers.verdict import is_verified, verify_answer
from reflective_agents.prompts import chain_of_thought as prompts
from reflective_agents.prompts.search import TODAY
from reflective_agents.state.errors import LimitReached
from reflective_agents.state.limits import Limit
from reflective_agents.state.run import Output, latest
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.state.trial import ActingInput, ActingState

UNREADABLE = "no sample ends with an answer that can be read, or all were cut off (max_answer_tokens)"


class Sample(TypedDict):
    """One sampled chain of thought, the answer it ends with, and the normal form of that, which is counted.

    `likelihood` is the geometric mean of its tokens' probabilities, where the provider was asked for it and tells it.
    """

    text: str
    answer: str
    normal: str
    likelihood: NotRequired[float]


S = TypeVar("S", bound=Sample)


class ChainOfThoughtState(ActingState):
    """State of a run; the samples are its artefact. `limit` is the limit that left some of them out, if one did, and
    `said` the id of the message under which the answer was streamed, if it was.

    `reward` (0..1) and `observation` are what the environment says to the answer; None and empty where there is none.
    `refused` is there, and true, if the answer was cut off, cannot be read, or is refused by the environment.
    """

    world: State
    request: Annotated[str, DeltaChannel(latest, snapshot_frequency=1000)]
    hints: str
    samples: list[Sample]
    limit: Limit | None
    said: NotRequired[str | None]
    reward: float | None
    observation: str
    refused: bool


class ChainOfThoughtOutput(Output):
    """What a run returns."""

    samples: list[Sample]
    reward: float | None
    observation: str
    refused: bool


@node(ChainOfThoughtContext)
async def sample(state: ChainOfThoughtState, step: Step[ChainOfThoughtContext]) -> Update:
    """Sample all answers at once; those that fail are missing, and only a run without any fails."""
    context = step.context
    environment = await environment_of(context)
    world = environment or PLAIN
    prompt = prompt_of(state, environment, context)
    # Of several nobody knows which will win, and an environment's answer is read first.
    is_streamed = context.samples == 1 and not environment
    listener = AnswerStream(step, partial(Labelled, "final", "answer")) if is_streamed else None

    def read_all(replies: Sequence[AIMessage]) -> list[Sample]:
        reader = read if environment else read_open
        return [reader(reply, world, state["request"]) for reply in replies]

    model = model_of(step, context.model)
    options: dict[str, Any] = {}
    if context.votes == "likelihood" and context.samples > 1 and takes_logprobs(model):
        options["logprobs"] = True
    if confidence := context.confidence:
        options["batch"] = context.batch
        options["enough"] = lambda replies: certainty(read_all(replies)) >= confidence
    replies, stopped = await sampling.sample_texts(step, model, prompt, context.samples, listener=listener, **options)
    samples = read_all(replies)
    message_id = await listener.end(samples[0]["answer"]) if listener else None
    for each in samples:
        step.emit("sample", answer=each["answer"])
    limit = stopped.limit if isinstance(stopped, LimitReached) else None
    return {"samples": samples, "said": message_id, "limit": limit}


@node(ChainOfThoughtContext)
async def vote(state: ChainOfThoughtState, step: Step[ChainOfThoughtContext]) -> Update:
    """Take the answer whose votes weigh most, the first of equals, and let the environment reward it."""
    voters = await best_verified(state, step, voting(state["samples"]))
    if not voters:
        return stop("failed", "no sample ends with an answer")
    votes = weighed(voters, step)
    winner = max(votes, key=lambda normal: votes[normal])
    agreeing = [voter for voter in voters if voter["normal"] == winner]
    answer = agreeing[0]["answer"]
    count = len(agreeing)
    weight = round(votes[winner] / (sum(votes.values()) or 1), 3)
    step.emit("vote", answer=answer, votes=count if winner else 0, samples=len(state["samples"]), weight=weight)
    done = await give_answer(await environment_of(step.context), state["world"], answer)
    agreed = agreement(count, len(state["samples"])) if winner else UNREADABLE
    reward, observation = (done.reward, done.observation) if done else (None, "")
    invalid = done is not None and not done.valid
    unreadable = not winner and reward is None
    update: Update = {
        "refused": invalid or unreadable,
        "answer": answer,
        "reward": reward,
        "observation": observation,
    }
    if invalid and winner:
        return update | stop("exhausted", f"{agreed}, but the environment refuses the answer")
    if invalid or unreadable:
        return update | stop("exhausted", agreed)
    limit = state.get("limit")
    # What the environment rewards in full needed no more samples.
    if limit and reward != 1:
        return update | stop_at(limit, agreed)
    return update | stop("answered", agreed)


@node(ChainOfThoughtContext)
async def finish(state: ChainOfThoughtState, step: Step[ChainOfThoughtContext]) -> Update:
    """Return the answer that won."""
    environment = await environment_of(step.context)
    answer = AIMessage(state["answer"], id=state.get("said")) if state["answer"] else None
    return await end(state, step, answer, appraisal=appraise(environment, state["answer"] or "", state["reward"]))


def prompt_of(
    state: ChainOfThoughtState, environment: Environment | None, context: ChainOfThoughtContext
) -> list[BaseMessage]:
    """Return the prompt, which is the same for all samples."""
    task = short_task_prompt(environment or PLAIN, examples=context.few_shot, request=state["request"])
    date = "" if environment else f"{TODAY.format(today=today())} "
    return prompts.SOLVE.format_messages(
        task=f"{task}{date}",
        form=environment.answer_form if environment else prompts.OPEN_FORM,
        lessons=state["hints"],
        conversation=state["messages"][:-1],
        material=articles_text(state["world"]),
        request=state["request"],
    )


def read(reply: AIMessage, world: Environment, question: str) -> Sample:
    """Read a reply as a sample. A reply that was cut off, or whose answer cannot be read, has no normal form."""
    answer = world.find_answer(reply.text)
    normal = "" if was_cut_off(reply) else world.vote(answer, question)
    sample = Sample(text=reply.text, answer=answer, normal=normal)
    likely = likelihood(tokens_of(reply))
    return sample if likely is None else {**sample, "likelihood": likely}


def read_open(reply: AIMessage, world: Environment, question: str) -> Sample:
    """Read a reply to an open question as a sample. One of several lines that labels no answer is itself the answer, a
    text."""
    sample = read(reply, world, question)
    text = reply.text.strip()
    if "\n" not in text or has_answer(text):
        return sample
    normal = world.vote(text, question) if sample["normal"] else ""
    return {**sample, "answer": text, "normal": normal}


def agreement(votes: int, samples: int) -> str:
    """Say how many of the samples agree."""
    if samples == 1:
        return "the model has answered"
    return f"{votes} of {samples} samples agree" if votes > 1 else f"no two of {samples} samples agree"


def voting(samples: Sequence[S]) -> list[S]:
    """Select the samples that vote: those that can be read.

    Where some label their answer, only those vote. If none can be read, the answers vote as they stand.
    """
    readable = [sample for sample in samples if sample["normal"]]
    labelled = [sample for sample in readable if has_answer(sample["text"])]
    return labelled or readable or [sample for sample in samples if sample["answer"]]


async def best_verified(
    state: ChainOfThoughtState, step: Step[ChainOfThoughtContext], voters: list[Sample]
) -> list[Sample]:
    """Select the samples whose answers the verifiers accept, else those that they score best; all where there are no
    verifiers. Equal answers are verified once."""
    if not is_verified(step):
        return voters
    # Turned round, so that of equal answers the first is verified, which is the one that is returned.
    answers = {voter["normal"]: voter["answer"] for voter in reversed(voters)}
    verify = partial(verify_answer, step, state["run_id"], state["messages"])
    found = await at_once([verify(answer) for answer in answers.values()])
    verdicts = dict(zip(answers, found, strict=True))

    def rank(voter: Sample) -> tuple[bool, float]:
        verdict = verdicts[voter["normal"]]
        return (verdict.accepted is True, verdict.score or 0.0) if verdict else (False, 0.0)

    best = max(map(rank, voters), default=None)
    return [voter for voter in voters if rank(voter) == best]


def weighed(voters: Sequence[Sample], step: Step[ChainOfThoughtContext]) -> dict[str, float]:
    """Add up the votes for each answer, in the order of the samples. Where the likelihood of a sample is not known, all
    weigh the same, which an event tells."""
    by_likelihood = step.context.votes == "likelihood" and len(voters) > 1
    unknown = sum("likelihood" not in voter for voter in voters)
    if by_likelihood and unknown:
        step.emit("equal_votes", why=f"the provider tells no log-probabilities of {unknown} of {len(voters)} samples")
    votes: defaultdict[str, float] = defaultdict(float)
    for voter in voters:
        votes[voter["normal"]] += voter.get("likelihood", 1) if by_likelihood and not unknown else 1
    return votes


def certainty(samples: Sequence[Sample]) -> float:
    """Calculate the chance that the answer that leads would stay ahead; 0 before any vote can be read."""
    votes = Counter(sample["normal"] for sample in voting(samples) if sample["normal"])
    if not votes:
        return 0.0
    (_, first), *others = votes.most_common(2)
    second = others[0][1] if others else 0
    return sampling.majority(first, second)


builder = strategy_graph(
    ChainOfThoughtState,
    context_schema=ChainOfThoughtContext,
    input_schema=ActingInput,
    output_schema=ChainOfThoughtOutput,
)
builder.add_node(
    "begin",
    begin(
        "chain_of_thought",
        ChainOfThoughtContext,
        enter,
        samples=[],
        limit=None,
        reward=None,
        observation="",
        refused=False,
    ),
)
builder.add_node("sample", sample)
builder.add_node("vote", vote)
builder.add_node("finish", finish)
builder.add_edge("begin", "sample")
builder.add_conditional_edges("sample", *unless_ended("vote"))
builder.add_edge("vote", "finish")

graph = builder.compile(name="chain_of_thought")
