"""llm-reasoners: its MCTS or its beam search over a world of thoughts, 10 expansions of 5 candidates."""

import sys
from importlib import import_module
from statistics import mean
from types import ModuleType
from typing import Any

WIDTH, DEPTH, EXPANSIONS = 5, 4, 10

Thoughts = list[str]


class World:
    """A state is the thoughts so far, beginning with the question; it ends at a depth."""

    def update_example(self, example: str, prompt: object = None) -> None:
        """Take the question."""
        self._question = example

    def init_state(self) -> Thoughts:
        """Start without a thought."""
        return [self._question]

    def step(self, state: Thoughts, action: str) -> tuple[Thoughts, dict[str, Any]]:
        """Think one thought more."""
        return [*state, action], {}

    def is_terminal(self, state: Thoughts) -> bool:
        """Tell whether the depth is reached."""
        return len(state) > DEPTH


class Policy:
    """Asks for all candidates at once, and for the score of each in a call of its own."""

    def __init__(self) -> None:
        self._client = import_module("openai").OpenAI()
        self.calls = self._expansions = 0

    def update_example(self, example: str, prompt: object = None) -> None:
        """Begin to count; the question is in the state."""
        self.calls = self._expansions = 0

    def get_actions(self, state: Thoughts) -> list[str]:
        """Sample the next thoughts; none once the expansions are used up, for the library has no such limit."""
        if self._expansions == EXPANSIONS:
            return []
        self._expansions += 1
        return self._ask([*state, "The next step?"], WIDTH)

    def fast_reward(self, state: Thoughts, action: str) -> tuple[float, dict[str, Any]]:
        """Have a thought rated."""
        score = float(self._ask([*state, action, "Rate from 0 to 1, with only a number."], 1)[0])
        return score, {"score": score}

    def reward(self, state: Thoughts, action: str, score: float) -> tuple[float, dict[str, Any]]:
        """Return the same score again."""
        return score, {}

    def _ask(self, lines: list[str], n: int) -> list[str]:
        self.calls += 1
        messages = [{"role": "user", "content": "\n".join(lines)}]
        reply = self._client.chat.completions.create(model="bench", messages=messages, n=n)
        return [str(choice.message.content) for choice in reply.choices]


class Search:
    """A `Reasoner` to depth 4; the setting is "mcts" (10 rollouts, rewards as in its RAP) or "beam" (3 beams)."""

    def __init__(self, setting: str) -> None:
        _stand_in()
        library, self._policy = import_module("reasoners.algorithm"), Policy()
        if setting == "mcts":
            self._algorithm = library.MCTS(
                n_iters=10, depth_limit=DEPTH, cum_reward=mean, calc_q=max, disable_tqdm=True
            )
        else:
            self._algorithm = library.BeamSearch(beam_size=3, max_depth=DEPTH)
        self._reasoner = import_module("reasoners").Reasoner(World(), self._policy, self._algorithm)

    @property
    def calls(self) -> int:
        """Calls that the policy has made."""
        return self._policy.calls

    def run(self, question: str) -> None:
        """Search."""
        self._result: Any = None
        self._result = self._reasoner(question)

    def root(self) -> Any:
        """Return the root: the question. MCTS holds its tree while it runs, beam search returns it at the end."""
        return getattr(self._algorithm, "root", None) or getattr(self._result, "tree", None)


def _stand_in() -> None:
    """Put empty modules in the place of torch and transformers, which its searches import and never use."""
    transformers = ModuleType("transformers")
    transformers.StoppingCriteriaList = list  # type: ignore[attr-defined]
    sys.modules.update(torch=ModuleType("torch"), transformers=transformers)
