"""The model as its own model of the world: it predicts where a step leads to, several times over, and is believed as
far as it agrees with itself (RAP, sections 3.1 and 3.2)."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from reflective_agents.nodes.asking.chat import model_of
from reflective_agents.nodes.asking.sampling import calls_for, sample_texts
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.evidence.sources import Sources
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import rap as prompts
from reflective_agents.state.settings.rap import RapContext
from reflective_agents.state.tree import SearchState, TreeNode
from reflective_agents.tree_search.candidates import Candidate

IMPOSSIBLE = "By its own prediction this step is not possible."


class Foreseen(NamedTuple):
    """One prediction: its text, what it has in common with those that say the same, whether the path ends there, and
    whether the step is possible at all."""

    text: str
    form: str
    ended: bool
    possible: bool = True


class WorldModel(ABC):
    """A world that is only predicted. Subclasses say what the model is asked, and how its replies are read.

    Attributes:
        last: The step that ends a path wherever it stands; empty if there is none.
        whole: Whether a step is a text of many lines.
        task: What all prompts say first of the task; empty for open questions.
        advice: What was learned before this run, for the prompts.
        sources: What the words of the answer rest on.
    """

    last = ""
    whole = False
    task = ""
    rewards = False

    def __init__(self, step: Step[RapContext], state: SearchState) -> None:
        self.step, self.run_id = step, state["run_id"]
        self.sources: Sources = {}
        self.model = model_of(step, step.context.model)
        lessons = "\n".join(quoted("lesson", lesson["text"]) for lesson in state["lessons"])
        self.advice = prompts.ADVICE.format(lessons=lessons) if lessons else ""

    @property
    def calls(self) -> int:
        """Return how many calls a prediction takes."""
        return calls_for(self.model, self.step.context.confidence_samples)

    @abstractmethod
    def propose(self, path: Sequence[TreeNode], width: int) -> list[BaseMessage]:
        """Return what is asked for the next step, or for a list of up to `width` next steps."""

    @abstractmethod
    async def foresee(self, path: Sequence[TreeNode], action: str) -> list[BaseMessage]:
        """Return what is asked to predict where a step leads to."""

    @abstractmethod
    def read(self, text: str, action: str) -> Foreseen:
        """Read a prediction."""

    @abstractmethod
    def conclude(self, path: Sequence[TreeNode]) -> list[BaseMessage]:
        """Return what is asked for an answer, if no path has come to one."""

    @abstractmethod
    def situation(self, path: Sequence[TreeNode]) -> str:
        """Return where a path stands, as quoted text."""

    @abstractmethod
    def state_key(self, path: Sequence[TreeNode]) -> str:
        """Return what two paths have in common that have come to the same state."""

    def turns_back(self, path: Sequence[TreeNode]) -> bool:
        """Return whether the last step of a path leads to where it has been before."""
        return False

    @abstractmethod
    async def close(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Find the reward at the end of a path, and whether it answers; or say why the path is worthless."""

    def clean(self, action: str) -> str:
        """Return a step without what does not belong to it."""
        return action

    @abstractmethod
    def canonical(self, candidate: Candidate) -> str:
        """Return the canonical form of a step: equal ones are merged before they cost anything."""

    def repeats(self, candidate: Candidate, path: Sequence[TreeNode]) -> bool:
        """Return whether a step was taken on the way, and can bring nothing new."""
        return False

    @abstractmethod
    def form(self, answer: str) -> str:
        """Return what equal answers have in common."""

    @abstractmethod
    def answer(self, node: TreeNode) -> str:
        """Return the answer that a node holds."""

    async def found(self, before: Sequence[TreeNode]) -> Sources:
        """Return what was looked up on the way to an answer."""
        return {}

    async def phrase(self, path: Sequence[TreeNode]) -> str:
        """Return the answer at the end of a path in words for the user; empty if it is to stay as it is."""
        return ""

    @abstractmethod
    async def reward(self, path: Sequence[TreeNode], text: str) -> Candidate | None:
        """Return an answer given as text, as a candidate that was acted on; None if there is none in it."""

    def key(self, candidate: Candidate) -> str:
        """Return what ends of paths with the same answer have in common; empty for other steps."""
        node = candidate.as_node("", None)
        return digest(self.form(self.answer(node))) if candidate.answers else ""

    async def act(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Predict where a step leads to: the most frequent of several samples, with its share of them as confidence r1;
        or say why it leads nowhere."""
        prompt = await self.foresee(path, candidate.action)
        replies, _ = await sample_texts(self.step, self.model, prompt, self.step.context.confidence_samples)
        foreseen = [self.read(reply.text, candidate.action) for reply in replies]
        votes = Counter(prediction.form for prediction in foreseen)
        likeliest = max(foreseen, key=lambda prediction: votes[prediction.form])
        candidate.observation = likeliest.text
        candidate.final = likeliest.ended
        candidate.terms["r1"] = votes[likeliest.form] / len(foreseen)
        return None if likeliest.possible else IMPOSSIBLE


def actions_on(path: Sequence[TreeNode]) -> list[str]:
    """Return the actions that were taken on a path."""
    actions = [node.get("action", "") for node in path]
    return list(filter(None, actions))


def digest(text: str) -> str:
    """Return a short text that stands for a long one."""
    # Models may write halves of surrogate pairs, which plain UTF-8 refuses.
    return blake2b(text.encode(errors="surrogatepass"), digest_size=12).hexdigest() if text else ""
