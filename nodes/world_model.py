"""The model as its own model of the world: it predicts where a step leads to, several times over, and is believed as
far as it agrees with itself (RAP, sections 3.1 and 3.2)."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from nodes.candidates import Candidate
from nodes.chat import model_of
from nodes.drawing import calls_of, draw
from nodes.step import Step
from nodes.transcript import quoted
from prompts import rap as prompts
from state.searching import RapContext
from state.tree import TreeNode

IMPOSSIBLE = "By its own prediction this step is not possible."


class Foreseen(NamedTuple):
    """One prediction: its text, what it has in common with those that say the same, whether the path ends there, and
    whether the step is possible at all."""

    text: str
    form: str
    ended: bool
    possible: bool = True


class WorldModel(ABC):
    """A world that is only thought of. Subclasses say what the model is asked, and how its replies are read.

    Attributes:
        last: The step that ends a path wherever it stands; empty if there is none.
        whole: Whether a step is a text of many lines.
        advice: What was learned before this run, for the prompts.
    """

    last = ""
    whole = False

    def __init__(self, step: Step[RapContext], state: Mapping[str, Any]) -> None:
        self.step, self.run_id = step, str(state["run_id"])
        self.model = model_of(step, step.context.model)
        lessons = "\n".join(quoted("lesson", lesson["text"]) for lesson in state["lessons"])
        self.advice = prompts.ADVICE.format(lessons=lessons) if lessons else ""

    @property
    def calls(self) -> int:
        """How many calls a prediction takes."""
        return calls_of(self.model, self.step.context.confidence_samples)

    @abstractmethod
    def propose(self, path: Sequence[TreeNode], width: int) -> list[BaseMessage]:
        """What is asked for the next step, or for a list of up to `width` next steps."""

    @abstractmethod
    async def foresee(self, path: Sequence[TreeNode], action: str) -> list[BaseMessage]:
        """What is asked to predict where a step leads to."""

    @abstractmethod
    def read(self, text: str, action: str) -> Foreseen:
        """A prediction."""

    @abstractmethod
    def conclude(self, path: Sequence[TreeNode]) -> list[BaseMessage]:
        """What is asked for an answer, if no path has come to one."""

    @abstractmethod
    def situation(self, path: Sequence[TreeNode]) -> str:
        """Where a path stands, as quoted text."""

    @abstractmethod
    def place(self, path: Sequence[TreeNode]) -> str:
        """What two paths have in common that have come to the same state."""

    def turns_back(self, path: Sequence[TreeNode]) -> bool:
        """Whether the last step of a path leads to where it has been before."""
        return False

    @abstractmethod
    async def close(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """See what the end of a path is worth, and whether it answers; or say why it is worth nothing."""

    def clean(self, action: str) -> str:
        """A step without what does not belong to it."""
        return action

    @abstractmethod
    def same(self, candidate: Candidate) -> str:
        """The canonical form of a step: equal ones are merged before they cost anything."""

    def repeats(self, candidate: Candidate, path: Sequence[TreeNode]) -> bool:
        """Whether a step was taken on the way, and can bring nothing new."""
        return False

    @abstractmethod
    def form(self, answer: str) -> str:
        """What equal answers have in common."""

    @abstractmethod
    def answer(self, node: TreeNode) -> str:
        """The answer that a node holds."""

    @abstractmethod
    async def reward(self, node: TreeNode | None, text: str) -> Candidate | None:
        """An answer given as text, as a candidate that was acted on; None if there is none in it."""

    def key(self, candidate: Candidate) -> str:
        """Ends of paths are worth the same if their answers are; of other steps this says nothing."""
        node = candidate.as_node("", None)
        return digest(self.form(self.answer(node))) if candidate.answers else ""

    async def act(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Predict where a step leads to: the most frequent of several samples, with its share of them as confidence r1;
        or say why it leads nowhere."""
        prompt = await self.foresee(path, candidate.action)
        replies = await draw(self.step, self.model, prompt, self.step.context.confidence_samples)
        foreseen = [self.read(reply.text, candidate.action) for reply in replies]
        form, count = Counter(one.form for one in foreseen).most_common(1)[0]
        likeliest = next(one for one in foreseen if one.form == form)
        candidate.observation, candidate.final = likeliest.text, likeliest.ended
        candidate.terms["r1"] = count / len(foreseen)
        return None if likeliest.possible else IMPOSSIBLE


def digest(text: str) -> str:
    """A short text that stands for a long one."""
    return blake2b(text.encode(errors="surrogatepass"), digest_size=12).hexdigest() if text else ""


def kept(state: dict[str, Any]) -> dict[str, Any]:
    """A state of an environment as nodes hold it: without its task, which is the same in all of them."""
    return {key: value for key, value in state.items() if key != "task"}
