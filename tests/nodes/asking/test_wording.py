"""Prompts in other words, and worked examples of one's own: what the models are told."""

import ast
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.graphs import graph_of
from reflective_agents.nodes.asking.wording import replacements, templates
from reflective_agents.state import policy
from reflective_agents.state.errors import BadPrompt, OperatorOnly
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from tests.strategies import ASK, STRATEGIES, Strategy, name_of

ROOT = Path(__file__).parents[3]
ROOMS = ("graphs", "nodes", "reflective_agents/tree_search")
SOLVE = "Answer like a pirate. {task}{form}{lessons}"


async def ran(strategy: str, **settings: Any) -> tuple[Any, FakeChatModel]:
    def answer(request: Request) -> Reply:
        if request.schema == "Critique":
            return {"critique": "Good.", "score": 0.9, "accept": True}
        return "Answer: because"

    model = FakeChatModel(reply=answer)
    graph: Any = graph_of(strategy)
    return await graph.ainvoke(ASK, context={"model": model, **settings}), model


def test_every_prompt_is_looked_up_when_it_is_used() -> None:
    """What is bound when a module is loaded could not be replaced."""
    bound = []
    for path in [path for folder in ROOMS for path in (ROOT / folder).rglob("*.py")]:
        tree = ast.parse(path.read_text())
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom) and str(statement.module).startswith("reflective_agents.prompts."):
                names = [f"{str(statement.module).rpartition('.')[2]}.{alias.name}" for alias in statement.names]
                bound += [(path.name, name) for name in names if name in templates()]
            if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                used = [node for node in ast.walk(statement) if isinstance(node, ast.Attribute) and node.attr.isupper()]
                bound += [(path.name, node.attr) for node in used if ast.unparse(node.value) == "prompts"]
    assert bound == []


@pytest.mark.parametrize("strategy", [strategy for strategy in STRATEGIES if strategy.name != "town"], ids=name_of)
async def test_each_strategy_speaks_in_the_words_that_it_is_given(strategy: Strategy) -> None:
    """Every chat template with a system message is given a mark: all requests carry one."""
    marked = {}
    for name, template in templates().items():
        first = getattr(template, "messages", [None])[0]
        text = getattr(getattr(first, "prompt", None), "template", None)
        if type(first).__name__.startswith("System") and text and "{{" not in text:
            marked[name] = f"{text} MARKED {name}."
    model = FakeChatModel(reply=strategy.solving)
    result = await strategy.graph.ainvoke(ASK, context=strategy.make(model=model, prompts=marked))
    assert result["answer"]
    unmarked = [request for request in model.calls if "MARKED" not in request.text]
    assert len(unmarked) <= len(model.calls) // 2


@pytest.mark.parametrize("how", ["data", "text", "folder", "environment"])
async def test_prompts_come_in_many_ways(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chain_of_thought.SOLVE.txt").write_text(f"{SOLVE}\n")
    text = f'{{"chain_of_thought.SOLVE": "{SOLVE}"}}'
    given: Any = {"data": {"chain_of_thought.SOLVE": SOLVE}, "text": text, "folder": str(tmp_path)}.get(how)
    if how == "environment":
        monkeypatch.setenv("REFLECT_PROMPTS", str(tmp_path))
    _, model = await ran("chain_of_thought", **({"prompts": given} if given else {}))
    assert model.calls[0].messages[0].text.startswith("Answer like a pirate. ")
    assert "Why does reflection help?" in model.calls[0].text


async def test_a_whole_chat_may_be_given() -> None:
    chat = [
        ["system", "{task}{form}"],
        ["placeholder", "{conversation}"],
        ["human", "{lessons}{material}Now: {request}"],
    ]
    _, model = await ran("chain_of_thought", prompts={"chain_of_thought.SOLVE": chat})
    assert "Now: " in model.calls[0].messages[-1].text


async def test_runs_at_once_do_not_hear_each_others_words() -> None:
    import asyncio

    runs = await asyncio.gather(
        ran("chain_of_thought", prompts={"chain_of_thought.SOLVE": SOLVE}), ran("chain_of_thought")
    )
    assert ["pirate" in model.calls[0].text for _, model in runs] == [True, False]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"chain_of_thought.SOLV": SOLVE}, r"there is no prompt 'chain_of_thought\.SOLV'; did you mean chain_of_th"),
        ({"chain_of_thought.SOLVE": "Be brief."}, r"chain_of_thought\.SOLVE lacks \{form\}, \{lessons\}, \{task\}"),
        ({"chain_of_thought.SOLVE": SOLVE + "{mood}"}, r"has the unknown \{mood\}"),
        ({"chain_of_thought.SOLVE": SOLVE + "{"}, "braces that are meant as such are doubled"),
        ({"chain_of_thought.SOLVE": SOLVE.replace("{task}", "{task!r}")}, r"\{task\} stands for itself"),
        ({"chain_of_thought.SOLVE": [["system", [{"type": "text", "text": SOLVE}]]]}, "a role and a text"),
        ({"reflection.REVISE": "Better."}, r"reflection\.REVISE lacks \{critique\}"),
        ("nowhere", "the prompts in nowhere cannot be read"),
    ],
)
async def test_what_does_not_fit_is_misuse_before_any_call(given: object, problem: str) -> None:
    with pytest.raises(BadPrompt, match=problem):
        await ran("chain_of_thought", prompts=given)


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("chain_of_thought.SOLVE", SOLVE.replace("{task}", "{task:>9999999999}")),
        ("lats.ACT", "{situation:>9999999999}"),
        ("experience.RECALLED", "{lessons:>9999999999}"),
        ("experience.RECALLED", "{lessons:{lessons}}"),
    ],
)
def test_no_placeholder_fills_the_memory(name: str, text: str) -> None:
    with pytest.raises(BadPrompt, match="stands for itself"):
        replacements({name: text})


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("given", "bound"),
    [
        (SOLVE + "{task}" * 100, "at most 50 placeholders"),
        ([["system", SOLVE]] * 1000, "at most 10"),
        ("x" * 1_000_000, "at most 200000"),
    ],
    ids=["placeholders", "messages", "characters"],
)
def test_prompts_are_bounded(given: Any, bound: str) -> None:
    with pytest.raises(BadPrompt, match=bound):
        replacements({"chain_of_thought.SOLVE": given})


async def test_on_a_server_words_are_the_callers_and_files_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "_check", None)
    policy.serve_others()
    result, _ = await ran("chain_of_thought", prompts={"chain_of_thought.SOLVE": SOLVE})
    assert result["answer"]
    with pytest.raises(OperatorOnly, match="prompts"):
        await ran("chain_of_thought", prompts="/etc")


# Worked examples

OWN = [
    {
        "task": "Question: How many legs has a spider?",
        "reasoning": "Spiders are arachnids.\nAnswer: 8",
        "acts": [["I look it up.", "search[spider]", "Eight legs."], ["I know it.", "Final Answer: 8", ""]],
    }
]


@pytest.mark.parametrize(
    ("strategy", "settings", "shown"),
    [
        ("chain_of_thought", {}, "Spiders are arachnids.\nAnswer: 8"),
        ("react", {"search": "none"}, "Action 1: search[spider]\nObservation 1: Eight legs."),
        ("react", {"search": "none", "acting": "paper"}, "Action 1: search[spider]\nObservation 1: Eight legs."),
        ("react", {"environment": "arithmetic"}, "Action 1: search[spider]\nObservation 1: Eight legs."),
        ("best_of_n", {"environment": "arithmetic", "n": 1}, "Action 1: search[spider]"),
    ],
)
async def test_examples_of_ones_own_take_the_place_of_ours(strategy: str, settings: dict[str, Any], shown: str) -> None:
    _, model = await ran(strategy, own_examples=OWN, max_model_calls=2, **settings)
    assert shown in model.calls[0].text
    assert "A train leaves" not in model.calls[0].text
    _, model = await ran(strategy, own_examples=OWN, examples=False, max_model_calls=2, **settings)
    assert "spider" not in model.calls[0].text
