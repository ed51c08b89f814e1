"""An environment of one's own: every strategy asks it, and nobody else, what is right."""

import json
import re
import textwrap
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph

from reflective_agents.environments import base
from reflective_agents.environments.base import Act, Environment, Example, State, Task, Transition
from reflective_agents.graphs import ab_mcts, best_of_n, chain_of_thought, lats, rap, react, tree_of_thoughts, trials
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse
from tests.strategies import thread

Graph = CompiledStateGraph[Any, Any, Any, Any]
TASK: Task = {"id": "1", "question": "Which number?", "gold": "7"}


def documented() -> Environment:
    """Run the example of the documentation and return its environment."""
    code = base.__doc__ or ""
    names: dict[str, Any] = {}
    exec(textwrap.dedent(code[code.index("    from") :]), names)
    made: Environment = names["Guess"]()
    return made


class Bare:
    """The same as an object that fulfils the protocol without being derived from it."""

    name = "bare"
    actions = "a whole number"

    def start(self, task: Task) -> State:
        return {"task": task, "answer": "", "done": False}

    def public(self, state: State) -> str:
        return "Guess the number."

    def answer(self, state: State) -> str:
        return str(state["answer"])

    def key(self, state: State) -> str:
        return self.answer(state)

    async def step(self, state: State, action: str) -> Transition:
        done = action.strip() == state["task"].get("gold")
        return Transition({**state, "answer": action.strip(), "done": done}, "Tested.", 1.0 if done else None, done)

    def canonical(self, action: str) -> str:
        return action.strip()

    def score(self, task: Task, answer: str) -> dict[str, float]:
        return {"solved": float(answer == task.get("gold"))}


def judged(request: Request) -> dict[str, Any]:
    """What a judge says who accepts everything."""
    judgement = {"reasoning": "Fine.", "score": 1.0, "solved": True}
    if request.schema == "Judgements":
        return {"judgements": [judgement] * request.last.count("<candidate")}
    return {"scores": [1.0]} if request.schema == "Usefulness" else judgement  # equal guesses are merged


def saying(number: str) -> FakeChatModel:
    """A model that always guesses this number, and as a judge accepts whatever it is shown."""

    def reply(request: Request) -> Reply:
        if request.schema:
            return judged(request)
        if "act" in request.tools:
            return ToolUse("act", {"action": number})
        if "Predict the state" in request.last:
            return f"Last guess: {number}\nDone: yes"
        if "in the form of a legal action" in request.text:
            return number
        if "Reflection:" in request.last:
            return "Guess another number."
        if "Thought 1" in request.text:
            return f"Thought 1: Perhaps.\nAction 1: {number}"
        return f"Perhaps.\nAnswer: {number}"

    return FakeChatModel(reply=reply)


STRATEGIES: list[tuple[Graph, dict[str, Any]]] = [
    (chain_of_thought.graph, {}),
    (react.graph, {"max_actions": 3}),
    (react.graph, {"max_actions": 3, "acting": "paper"}),
    (trials.graph, {"max_trials": 2, "max_actions": 2}),
    (trials.graph, {"max_trials": 2, "actor": "chain_of_thought"}),
    (lats.graph, {"max_expansions": 2, "n": 2}),
    (lats.graph, {"max_expansions": 2, "n": 2, "simulate": False}),
    (best_of_n.graph, {"n": 2, "max_expansions": 4, "max_depth": 2}),
    (ab_mcts.graph, {"max_expansions": 2}),
    (tree_of_thoughts.graph, {"max_expansions": 3, "n": 2}),
    (rap.graph, {"max_rollouts": 2, "max_depth": 2}),
]


@pytest.mark.matrix(keep=4)
@pytest.mark.parametrize("environment", [documented(), Bare()], ids=["derived", "bare"])
@pytest.mark.parametrize(
    ("graph", "settings"), STRATEGIES, ids=[f"{graph.name} {given}" for graph, given in STRATEGIES]
)
@pytest.mark.parametrize(("number", "reward", "solved"), [("5", 0.0, False), ("7", 1.0, True)])
async def test_the_environment_says_what_is_right(
    graph: Graph, settings: dict[str, Any], environment: Any, number: str, reward: float, solved: bool
) -> None:
    given = {"messages": [("user", TASK["question"])], "task": TASK}
    context = {"model": saying(number), "environment": environment, "search": "none", **settings}
    out = await graph.ainvoke(given, context=context)
    rewarded = out["trials"][-1]["reward"] if "trials" in out else out["reward"]
    assert (out["answer"], rewarded) == (number, reward)
    assert (out["outcome"]["status"] == "solved") is solved


NO_TEXT = "\0 \ud800\udfff"


@dataclass(slots=True)
class Slotted(Environment):
    """An environment whose objects have no dictionary."""

    name: str = "slotted"
    actions: str = "a whole number"
    secret: str = "7"

    async def step(self, state: State, action: str) -> Transition:
        done = action.strip() == self.secret
        return Transition({**state, "answer": action.strip(), "done": done}, "Tested.", float(done), done)


async def test_a_slotted_dataclass_is_an_environment() -> None:
    context: Any = {"model": saying("7"), "environment": Slotted(), "search": "none"}
    out = await react.graph.ainvoke({"messages": [("user", "Which number?")]}, context=context)
    assert (out["answer"], out["outcome"]["verified_by"]) == ("7", "environment")


class Unfit(Bare):
    """Says what can neither be stored nor sent, in all of its texts."""

    actions = f"a whole number{NO_TEXT}"
    goal = f"Guess.{NO_TEXT}"
    rules = f"The number is whole.{NO_TEXT}"
    effects = f"You are told.{NO_TEXT}"
    answer_form = f"End with a line 'Answer: number'.{NO_TEXT}"
    examples = (
        Example(
            f"Guess!{NO_TEXT}", (Act(f"Low.{NO_TEXT}", f"2{NO_TEXT}", f"No.{NO_TEXT}"),), f"So.{NO_TEXT}\nAnswer: 2"
        ),
        Example("Guess!", (Act("High.", "9", "No."),), "So.\nAnswer: 9", solved=False, why=f"It is not.{NO_TEXT}"),
    )

    def start(self, task: Task) -> State:
        return {**super().start(task), "board": ["\ud800"]}

    def public(self, state: State) -> str:
        return f"Guess the number{NO_TEXT}."

    def answer(self, state: State) -> str:
        return f"{state['answer']}{NO_TEXT}" if state["answer"] else ""

    def key(self, state: State) -> str:
        return f"{state['answer']}{NO_TEXT}"

    def canonical(self, action: str) -> str:
        return f"{action.strip()}{NO_TEXT}"

    def legal_actions(self, state: State) -> list[str]:
        return [f"{number}{NO_TEXT}" for number in range(9)]

    def request(self, task: Task) -> str:
        return f"{task['question']}{NO_TEXT}"

    def find_answer(self, text: str) -> str:
        return f"5{NO_TEXT}"

    def normal(self, answer: str) -> str:
        return f"{answer}{NO_TEXT}"

    def final_action(self, answer: str) -> str:
        return f"{answer}{NO_TEXT}"

    async def step(self, state: State, action: str) -> Transition:
        done = await super().step(state, action)
        return done._replace(observation=f"Tested{NO_TEXT}.", state={**done.state, "board": [NO_TEXT]})


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize(
    ("graph", "settings"), STRATEGIES, ids=[f"{graph.name} {given}" for graph, given in STRATEGIES]
)
async def test_what_an_environment_says_is_made_fit_to_be_stored(graph: Graph, settings: dict[str, Any]) -> None:
    given = {"messages": [("user", TASK["question"])], "task": TASK}
    model = saying("5")
    context = {"model": model, "environment": Unfit(), "search": "none", **settings}
    stored = graph.builder.compile(checkpointer=InMemorySaver(), name=graph.name)
    out = await stored.ainvoke(given, thread(), context=context)
    state = (await stored.aget_state(thread())).values
    assert model.calls
    assert out["outcome"]["status"] != "failed"
    seen = json.dumps([out, state, [request.text for request in model.calls]], default=str)
    assert not re.search(r"\\ud800|\\udfff|\\u0000", seen)
