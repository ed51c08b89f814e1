"""What models are told of a task: its goal and its rules, in every prompt of every role, in every environment."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from langgraph.graph.state import CompiledStateGraph

from reflective_agents.environments.base import Environment, Example, Task
from reflective_agents.environments.registry import ENVIRONMENTS, get_environment
from reflective_agents.graphs import ab_mcts, best_of_n, chain_of_thought, lats, rap, react, tree_of_thoughts, trials
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse

Graph = CompiledStateGraph[Any, Any, Any, Any]

TASKS: dict[str, Task] = {
    "questions": {"id": "1", "question": "Which peak?", "data": {"context": [["Alpha", ["Alpha is a peak."]]]}},
    "fever": {"id": "1", "question": "Alpha is low.", "data": {"context": [["Alpha", ["Alpha is a peak."]]]}},
    "game24": {"id": "1", "question": "3 5 7 11"},
    "crosswords": {"id": "1", "question": "Clues", "data": {"clues": [f"clue {i}" for i in range(10)]}},
    "programming": {
        "id": "1",
        "question": "Write half(x).",
        "data": {"entry_point": "half", "prompt": "", "tests": [], "hidden": "assert half(2) == 1"},
    },
    "blocksworld": {
        "id": "1",
        "question": "Move them.",
        "data": {
            "init": ["ontable red", "ontable blue", "clear red", "clear blue", "handempty"],
            "goal": ["on blue red"],
        },
    },
    "arithmetic": {"id": "1", "question": "How many legs have 12 ants and a spider?"},
}
ACTS = {
    "game24": ["3 + 5 = 8 (left: 7 8 11)", "3 * 5 = 15 (left: 7 11 15)"],
    "blocksworld": ["pick up the red block", "pick up the blue block"],
}

VOTES = {"method": "breadth_first", "grades": "vote", "proposals": "samples", "max_expansions": 1}
ROLES: dict[str, tuple[Graph, Mapping[str, Any], set[str]]] = {
    "react, text": (react.graph, {"acting": "paper", "max_actions": 1}, {"act", "conclude"}),
    "react, tools": (react.graph, {"acting": "tools", "max_actions": 1}, {"act", "conclude"}),
    "chain_of_thought": (chain_of_thought.graph, {}, {"act"}),
    "lats": (
        lats.graph,
        {"proposals": "samples", "grades": "judge", "max_lessons": 2, "max_expansions": 4, "simulate": False},
        {"act", "Judgement"},
    ),
    "lats, together": (
        lats.graph,
        {"proposals": "samples", "grades": "judge", "grading": "together", "max_expansions": 1, "simulate": False},
        {"act", "Judgements"},
    ),
    "lats, lists": (
        lats.graph,
        {"proposals": "list", "grades": "labels", "max_expansions": 1, "simulate": False},
        {"list", "label"},
    ),
    "depth first": (
        tree_of_thoughts.graph,
        {"method": "depth_first", "proposals": "list", "grades": "labels", "max_expansions": 1},
        {"list", "label"},
    ),
    "votes": (tree_of_thoughts.graph, VOTES, {"act", "vote"}),
    "best_of_n": (best_of_n.graph, {"n": 2, "max_expansions": 2}, {"act"}),
    "ab_mcts": (ab_mcts.graph, {"max_expansions": 2}, {"act", "Judgement"}),
    "rap": (rap.graph, {"proposals": "list", "max_rollouts": 2, "max_expansions": 4}, {"Usefulness", "predict"}),
    "trials": (
        trials.graph,
        {"evaluator": "judge", "max_trials": 2, "max_actions": 1},
        {"act", "conclude", "Judgement", "reflect"},
    ),
}
"""The strategies that know environments, with settings in which they ask for these roles at least."""


def acts(environment: Environment) -> list[str]:
    """Actions that the environment takes, or that it refuses."""
    examples: list[Example] = list(environment.examples)
    return ACTS.get(environment.name) or [act.action for example in examples for act in example.acts]


def role(request: Request) -> str:
    """What a request asks for."""
    marks = {
        "best choice is N": "vote",
        "sure (it can be reached)": "label",
        "Possible next steps:": "list",
        "Predict the state": "predict",
        "Answer this sub-question": "predict",
        "Answer the whole question": "predict",
        "Reflection:": "reflect",
        "'Final Answer: ...'.": "conclude",
        "assert statements": "tests",
        "List up to": "list",
        "different possibilities": "list",
    }
    return request.schema or next((name for mark, name in marks.items() if mark in request.text), "act")


def playing(environment: Environment) -> FakeChatModel:
    """A model that does what the examples do, and finds it neither good nor bad."""
    judgement = {"reasoning": "So so.", "score": 0.5, "solved": False}
    steps = acts(environment)

    def reply(request: Request) -> Reply:
        action = steps[(request.index + request.attempt) % len(steps)]
        candidates = len(re.findall("<candidate ", request.last))
        forms: dict[str, Reply] = {
            "Judgement": judgement,
            "Judgements": {"judgements": [judgement] * candidates},
            "Usefulness": {"scores": [0.5] * candidates},
            "vote": "The best choice is 1",
            "label": "It may be.\nlikely",
            "list": "\n".join(steps),
            "predict": f"State {request.index}\nAnswer: 7\nDone: no",
            "reflect": "Look twice.",
            "conclude": "Final Answer: 7",
            "tests": "assert half(4) == 2",
        }
        if (form := role(request)) in forms:
            return forms[form]
        return ToolUse("act", {"action": action}) if "act" in request.tools else f"Thought: so\nAction: {action}"

    return FakeChatModel(reply=reply)


async def requests_of(name: str, roles: str, **settings: Any) -> list[Request]:
    """What is asked of the model in a run on a task of an environment."""
    graph, own, _ = ROLES[roles]
    model = playing(get_environment(name))
    context = {"environment": name, "unsafe_code": True, "max_model_calls": 60, **own, **settings, "model": model}
    await graph.ainvoke({"messages": [("user", TASKS[name]["question"])], "task": TASKS[name]}, context=context)
    return model.calls


@pytest.mark.matrix(over="name", keep=4)
@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("roles", ROLES)
async def test_every_prompt_says_what_the_task_is(name: str, roles: str) -> None:
    environment, requests = get_environment(name), await requests_of(name, roles)
    for request in requests:
        assert environment.goal in request.text, role(request)
        assert environment.rules in request.text, role(request)
    is_listed = not (environment.multiline or environment.by_subquestions)
    wanted = ROLES[roles][2] - (set() if environment.final_action("") else {"conclude"})  # a board is an answer already
    wanted -= {"Judgement"} if roles == "trials" else set()  # what an environment refuses is not judged
    assert wanted <= {role(request) for request in requests} or not is_listed


@pytest.mark.matrix(over="name", keep=4)
@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("roles", ["react, text", "lats", "lats, lists", "votes", "trials"])
async def test_who_acts_or_judges_is_told_the_actions_and_worked_examples(name: str, roles: str) -> None:
    environment = get_environment(name)
    for request in await requests_of(name, roles):
        assert environment.actions in request.messages[0].text, role(request)
        assert environment.effects in request.messages[0].text, role(request)
        for example in environment.examples:
            shown = [example.task, *(act.thought for act in example.acts), example.why]
            assert all(part in request.messages[0].text for part in shown), role(request)


@pytest.mark.parametrize("roles", ["react, text", "react, tools", "chain_of_thought", "lats", "rap", "trials"])
async def test_one_setting_leaves_the_examples_out(roles: str) -> None:
    requests = await requests_of("game24", roles, examples=False)
    assert requests
    assert not any("Example" in json.dumps(request.text) for request in requests)


async def test_the_roles_of_a_run_share_the_beginning_of_their_prompts() -> None:
    firsts = {request.messages[0].text for request in await requests_of("game24", "lats, lists")}
    task = get_environment("game24").examples[-1].why
    assert len(firsts) == 3, "who lists, who labels and who concludes"
    assert len({first.partition(task)[0] for first in firsts}) == 1
