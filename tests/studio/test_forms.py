"""What the studio shows before a run: the strategies, their forms, their drawings, and the server's own pages."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import Assistant

from reflective_agents.state.context import Context
from reflective_agents.state.settings.ab_mcts import AbMctsContext
from reflective_agents.state.settings.aggregation import AggregationContext
from reflective_agents.state.settings.auto import AutoContext
from reflective_agents.state.settings.best_of_n import BestOfNContext
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.state.settings.memory import MemoryContext
from reflective_agents.state.settings.plan import PlanContext
from reflective_agents.state.settings.rap import RapContext
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.state.settings.reflection import ReflectionContext
from reflective_agents.state.settings.reflexion import ReflexionContext
from reflective_agents.state.settings.team import TeamContext
from reflective_agents.state.settings.town import TownContext
from reflective_agents.state.settings.tree_of_thoughts import TreeOfThoughtsContext
from reflective_agents.state.settings.trials import TrialsContext

pytestmark = [pytest.mark.studio, pytest.mark.matrix, pytest.mark.xdist_group("studio")]

CONTEXTS: dict[str, type[Context]] = {
    "auto": AutoContext,
    "reflection": ReflectionContext,
    "reflexion": ReflexionContext,
    "lats": LatsContext,
    "tree_of_thoughts": TreeOfThoughtsContext,
    "rap": RapContext,
    "ab_mcts": AbMctsContext,
    "aggregation": AggregationContext,
    "best_of_n": BestOfNContext,
    "chain_of_thought": ChainOfThoughtContext,
    "react": ReactContext,
    "trials": TrialsContext,
    "plan": PlanContext,
    "team": TeamContext,
    "town": TownContext,
    "memory": MemoryContext,
}
ACTING = (
    "auto",
    "lats",
    "tree_of_thoughts",
    "rap",
    "ab_mcts",
    "aggregation",
    "best_of_n",
    "chain_of_thought",
    "react",
    "trials",
)
ARTEFACTS = {
    "auto": {"tree", "stats", "log", "lessons", "expansions", "reward", "samples", "evidence", "turns"},
    "reflection": {"drafts"},
    "reflexion": {"answers", "sources"},
    "lats": {"tree", "stats", "log", "lessons", "expansions", "reward"},
    "tree_of_thoughts": {"tree", "stats", "log", "lessons", "expansions", "reward"},
    "rap": {"tree", "stats", "log", "lessons", "expansions", "reward", "weights"},
    "ab_mcts": {"tree", "stats", "log", "lessons", "expansions", "reward"},
    "aggregation": {"candidates", "sources", "reward"},
    "best_of_n": {"tree", "stats", "log", "lessons", "expansions", "reward"},
    "chain_of_thought": {"samples", "reward", "observation", "refused"},
    "react": {"steps", "reward"},
    "trials": {"trials"},
    "plan": {"subgoals"},
    "team": {"rounds"},
    "town": {"day", "conversations", "retrievals", "agents", "spread"},
    "memory": {"memories"},
}
EDGES = {
    "auto": {
        "__start__ begin",
        "begin choose",
        "choose sample",
        "sample choose",
        "sample finish",
        "choose look_up",
        "look_up choose",
        "look_up finish",
        "choose search",
        "search choose",
        "search finish",
        "choose conclude",
        "conclude choose",
        "conclude finish",
        "choose trial",
        "trial choose",
        "trial finish",
        "choose climb",
        "climb choose",
        "climb finish",
        "choose finish",
        "finish __end__",
    },
    "reflection": {
        "__start__ begin",
        "begin generate",
        "generate reflect",
        "generate finish",
        "reflect generate",
        "reflect finish",
        "finish __end__",
    },
    "reflexion": {
        "__start__ begin",
        "begin draft",
        "draft execute_tools",
        "draft finish",
        "execute_tools revise",
        "execute_tools finish",
        "revise execute_tools",
        "revise finish",
        "finish __end__",
    },
    "lats": {
        "__start__ begin",
        "begin start",
        "start expand",
        "start finish",
        "expand expand",
        "expand finish",
        "finish __end__",
    },
    "tree_of_thoughts": {
        "__start__ begin",
        "begin start",
        "start expand",
        "start finish",
        "expand expand",
        "expand finish",
        "finish __end__",
    },
    "rap": {
        "__start__ begin",
        "begin start",
        "start expand",
        "start finish",
        "expand expand",
        "expand finish",
        "finish __end__",
    },
    "ab_mcts": {
        "__start__ begin",
        "begin start",
        "start expand",
        "start finish",
        "expand expand",
        "expand finish",
        "finish __end__",
    },
    "aggregation": {
        "__start__ begin",
        "begin look_up",
        "look_up propose",
        "look_up finish",
        "propose aggregate",
        "propose finish",
        "aggregate aggregate",
        "aggregate finish",
        "finish __end__",
    },
    "best_of_n": {
        "__start__ begin",
        "begin start",
        "start expand",
        "start finish",
        "expand expand",
        "expand finish",
        "finish __end__",
    },
    "chain_of_thought": {
        "__start__ begin",
        "begin sample",
        "sample vote",
        "sample finish",
        "vote finish",
        "finish __end__",
    },
    "react": {
        "__start__ begin",
        "begin think",
        "think act",
        "think finish",
        "act think",
        "act finish",
        "finish __end__",
    },
    "trials": {
        "__start__ begin",
        "begin attempt",
        "attempt evaluate",
        "attempt finish",
        "evaluate reflect",
        "evaluate finish",
        "reflect attempt",
        "reflect finish",
        "finish __end__",
    },
    "plan": {
        "__start__ begin",
        "begin plan",
        "plan assign",
        "plan finish",
        "assign work",
        "assign finish",
        "work collect",
        "collect assign",
        "collect plan",
        "collect finish",
        "finish __end__",
    },
    "team": {
        "__start__ begin",
        "begin supervise",
        "begin debate",
        "supervise member",
        "supervise finish",
        "debate member",
        "debate judge",
        "judge debate",
        "debate finish",
        "member listen",
        "listen supervise",
        "listen debate",
        "judge finish",
        "finish __end__",
    },
    "town": {
        "__start__ begin",
        "begin wake",
        "wake tick",
        "wake finish",
        "tick tick",
        "tick finish",
        "finish __end__",
    },
    "memory": {
        "__start__ begin",
        "begin perceive",
        "perceive retrieve",
        "retrieve respond",
        "retrieve finish",
        "respond remember",
        "respond finish",
        "remember reflect",
        "remember finish",
        "reflect finish",
        "finish __end__",
    },
}
strategies = pytest.mark.parametrize("strategy", CONTEXTS)


@pytest.mark.thorough
def test_pages(address: str) -> None:
    assert httpx.get(f"{address}/ok").json()["ok"] is True
    docs = httpx.get(f"{address}/docs")
    assert docs.status_code == 200
    assert docs.headers["content-type"].startswith("text/html")


async def test_the_strategies_are_listed_with_their_descriptions(
    assistants: dict[str, Assistant], checkout: Path
) -> None:
    named = json.loads((checkout / "langgraph.json").read_text())["graphs"]
    described = {name: assistants[name]["description"] for name in assistants if name != "probe"}
    assert described == {name: named[name]["description"] for name in CONTEXTS}
    assert all(description and description.endswith(".") for description in described.values())


@strategies
async def test_form_shows_every_setting(
    client: LangGraphClient, assistants: dict[str, Assistant], strategy: str
) -> None:
    schemas = await client.assistants.get_schemas(assistants[strategy]["assistant_id"])
    form = (schemas["context_schema"] or {})["properties"]
    fields = {name: field for name, field in CONTEXTS[strategy].model_fields.items() if not field.exclude}
    assert form.keys() == fields.keys()
    assert {name: form[name]["description"] for name in form} == {name: f.description for name, f in fields.items()}
    assert {name: form[name]["default"] for name in form} == {name: field.default for name, field in fields.items()}


@strategies
async def test_form_bounds_every_number(
    client: LangGraphClient, assistants: dict[str, Assistant], strategy: str
) -> None:
    schemas = await client.assistants.get_schemas(assistants[strategy]["assistant_id"])
    form = (schemas["context_schema"] or {})["properties"]
    numbers = {name: kind for name in form for kind in kinds(form[name]) if kind["type"] in ("integer", "number")}
    numbers.pop("seed", None)  # any integer is one
    assert numbers["max_model_calls"]["minimum"] == 1
    for ends in ({"maximum", "exclusiveMaximum"}, {"minimum", "exclusiveMinimum"}):
        assert [name for name, kind in numbers.items() if not kind.keys() & ends] == []


async def test_form_bounds_are_those_of_the_settings(client: LangGraphClient, assistants: dict[str, Assistant]) -> None:
    lats = (await client.assistants.get_schemas(assistants["lats"]["assistant_id"]))["context_schema"] or {}
    assert lats["properties"]["n"].items() >= {"minimum": 1, "maximum": 100, "default": 5, "type": "integer"}.items()
    assert lats["properties"]["min_score"].items() >= {"minimum": 0, "maximum": 1, "type": "number"}.items()
    assert lats["properties"]["max_seconds"].items() >= {"exclusiveMinimum": 0, "maximum": 604_800}.items()
    assert lats["properties"]["grading"]["enum"] == ["each", "together"]
    assert kinds(lats["properties"]["search"])[0]["enum"][:3] == ["tavily", "local", "none"]
    reflection = await client.assistants.get_schemas(assistants["reflection"]["assistant_id"])
    form = (reflection["context_schema"] or {})["properties"]
    assert form["critic"]["enum"] == ["model", "human", "checks"]
    assert kinds(form["min_words"])[0].items() >= {"minimum": 1, "maximum": 100_000}.items()


def kinds(field: dict[str, Any]) -> list[dict[str, Any]]:
    """What a field may hold beside nothing."""
    return [kind for kind in field.get("anyOf", [field]) if kind["type"] != "null"]


@strategies
async def test_chat_mode_and_results(client: LangGraphClient, assistants: dict[str, Assistant], strategy: str) -> None:
    schemas = await client.assistants.get_schemas(assistants[strategy]["assistant_id"])
    question, answered = schemas["input_schema"] or {}, schemas["output_schema"] or {}
    assert question["properties"].keys() == {"messages", *(["task", "advice"] if strategy in ACTING else [])}
    assert question["required"] == ["messages"]
    assert question["properties"]["messages"]["type"] == "array"
    assert "HumanMessage" in json.dumps(question["properties"]["messages"]["items"])
    contract = {"messages", "answer", "outcome", "usage", "structured_response", "support", "experience"}
    assert answered["properties"].keys() == contract | ARTEFACTS[strategy]


@strategies
async def test_drawing_shows_all_nodes_and_edges(
    client: LangGraphClient, assistants: dict[str, Assistant], strategy: str
) -> None:
    drawn = await client.assistants.get_graph(assistants[strategy]["assistant_id"])
    assert {f"{edge['source']} {edge['target']}" for edge in drawn["edges"]} == EDGES[strategy]
    assert {str(node["id"]) for node in drawn["nodes"]} == {end for edge in EDGES[strategy] for end in edge.split()}
