"""A compiled strategy as a part of something else: with settings of its own, as a node, as a tool."""

import operator
import re
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import ValidationError

from reflective_agents.graphs import graph_of, lats, react, reflection, reflexion, with_settings
from reflective_agents.state import policy
from reflective_agents.state.errors import EmptyQuestion, Misuse, OperatorOnly
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.state.settings.reflection import ReflectionContext
from reflective_agents.state.settings.reflexion import ReflexionContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse
from tests.strategies import ASK, Strategy, every_strategy

REJECTED = {"critique": "More.", "score": 0.2, "accept": False}


@dataclass
class Tenant:
    """What a product gives its own nodes."""

    tenant: str = "acme"
    model: str = "nobody:nothing"


def critic(request: Request) -> Reply:
    return REJECTED if request.schema == "Critique" else "A draft."


def writer(**settings: Any) -> Any:
    return with_settings(reflection.graph, model=FakeChatModel(reply=critic), **settings)


def parent(*graphs: Any, context_schema: Any = None) -> Any:
    """The graphs as nodes, one after the other."""
    builder: Any = StateGraph(MessagesState, context_schema=context_schema)
    names = [f"node_{number}" for number in range(len(graphs))]
    for name, graph in zip(names, graphs, strict=True):
        builder.add_node(name, graph)
    for before, after in zip([START, *names], names, strict=False):
        builder.add_edge(before, after)
    return builder.compile(checkpointer=InMemorySaver())


def thread() -> Any:
    return {"configurable": {"thread_id": "1"}}


def drafts(result: Any) -> int:
    return len(result["drafts"])


def test_its_settings_hold_where_a_run_is_given_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_MAX_ROUNDS", "3")
    graph = writer(max_rounds=2)
    assert drafts(graph.invoke(ASK)) == 2
    assert drafts(graph.invoke(ASK, context={})) == 2
    assert drafts(graph.invoke(ASK, context={"max_rounds": 1})) == 1
    assert drafts(graph.invoke(ASK, context={"max_rounds": 3})) == 3
    assert drafts(graph.invoke(ASK, context=ReflectionContext(max_rounds=1))) == 1
    assert drafts(writer().invoke(ASK)) == 3


async def test_they_hold_in_asynchronous_runs_and_in_streams() -> None:
    graph = writer(max_rounds=2)
    assert drafts(await graph.ainvoke(ASK)) == 2
    values = [value async for value in graph.astream(ASK, stream_mode="values")]
    events = [event async for event in graph.astream_events(ASK, version="v2")]
    assert drafts(values[-1]) == drafts(events[-1]["data"]["output"]) == 2


def test_the_graph_that_it_is_made_from_stays_as_it_is() -> None:
    graph = writer(max_rounds=2)
    assert dict(reflection.graph.settings) == {}
    assert drafts(with_settings(graph, max_rounds=1).invoke(ASK)) == 1
    assert drafts(graph.invoke(ASK)) == 2


def test_it_is_a_graph_with_a_name() -> None:
    graph = with_settings(lats.graph, name="thinker", n=2)
    assert (graph.name, lats.graph.name, with_settings(graph, n=3).name) == ("thinker", "lats", "thinker")
    assert isinstance(graph, type(lats.graph))
    assert graph.copy({"checkpointer": InMemorySaver()}).settings == graph.with_config(tags=["a"]).settings == {"n": 2}


def test_a_misspelt_setting_is_refused_at_once() -> None:
    with pytest.raises(ValidationError, match="max_rounds"):
        with_settings(reflection.graph, max_roundz=1)
    with pytest.raises(ValidationError, match="max_rounds"):
        writer(max_rounds=1).invoke(ASK, context={"max_roundz": 1})


async def test_settings_as_arguments_are_refused() -> None:
    """LangChain's `bind` makes arguments of them, and LangGraph drops what it does not know."""
    for graph in (reflection.graph, writer()):
        bound = graph.bind(max_rounds=1)
        with pytest.raises(Misuse, match="with_settings"):
            bound.invoke(ASK)
        with pytest.raises(Misuse, match="max_rounds"):
            await bound.ainvoke(ASK)
    assert (
        drafts(reflection.graph.bind(context={"model": FakeChatModel(reply=critic), "max_rounds": 1}).invoke(ASK)) == 1
    )


@pytest.mark.parametrize("graph", [reflection.graph, writer()], ids=["as it stands", "with settings"])
def test_settings_of_another_strategy_are_refused(graph: Any) -> None:
    for wrong in (ReactContext(), Tenant()):
        with pytest.raises(Misuse, match="ReflectionContext is needed"):
            graph.invoke(ASK, context=wrong)


def test_within_a_parent_with_a_context_of_its_own_they_hold() -> None:
    graph = parent(writer(max_rounds=2), context_schema=Tenant)
    result = graph.invoke(ASK, thread(), context=Tenant())
    assert [message.type for message in result["messages"]] == ["human", "ai"]


@pytest.mark.thorough
def test_without_settings_the_environment_holds_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "offline")
    for context in (Tenant(), ReactContext(model="nobody:nothing"), {"tenant": "acme", "model": "nobody:nothing"}):
        graph = parent(reflexion.graph, lats.graph)
        result = graph.invoke(ASK, thread(), context=context)
        assert [message.type for message in result["messages"]] == ["human", "ai", "ai"]


def test_a_dict_around_holds_if_all_of_it_are_settings() -> None:
    class Counted(MessagesState):
        drafts: Annotated[list[Any], operator.add]

    def rounds(context: dict[str, Any]) -> int:
        builder: Any = StateGraph(Counted)
        builder.add_node("write", writer(max_rounds=2))
        builder.add_edge(START, "write")
        return drafts(builder.compile().invoke(ASK, context=context))

    assert rounds({"max_rounds": 3}) == 3
    assert rounds({"max_rounds": 3, "tenant": "acme"}) == 2


def test_two_graphs_of_one_strategy_work_after_another() -> None:
    requests: list[Request] = []

    def reply(request: Request) -> Reply:
        requests.append(request)
        return f"Draft {len(requests)}."

    first, second = (
        with_settings(react.graph, name=name, model=FakeChatModel(reply=reply), search="none")
        for name in ("writer", "editor")
    )
    result = parent(first, second).invoke(ASK, thread())
    answers = result["messages"][1:]
    assert [(message.name, message.text) for message in answers] == [("writer", "Draft 1."), ("editor", "Draft 2.")]
    assert "Draft 1." in requests[1].text
    assert all(message.type != "ai" for message in requests[1].messages)
    with pytest.raises(EmptyQuestion):
        second.invoke({"messages": [result["messages"][0], result["messages"][2]]})


def test_it_names_itself_as_agents_of_langchain_do() -> None:
    graph: Any = parent(react.graph, with_settings(react.graph, name="editor"), react.builder.compile()).with_config(
        metadata={"lc_agent_name": "boss"}
    )
    model = FakeChatModel(reply=lambda request: request.key)
    names = [
        metadata["lc_agent_name"]
        for _, (_, metadata) in graph.stream(
            ASK, thread(), context={"model": model, "search": "none"}, stream_mode="messages", subgraphs=True
        )
    ]
    assert {name: names.count(name) for name in names} == {"react": 1, "editor": 1, None: 1}
    bound = react.graph.with_config(metadata={"lc_agent_name": "helper"})
    result = bound.invoke(ASK, context={"model": model, "search": "none"})
    assert result["messages"][-1].name == "helper"


def test_a_parent_sees_its_nodes_and_its_state() -> None:
    graph = parent(writer(name="writer", critic="human"), context_schema=Tenant)
    assert "node_0:generate" in graph.get_graph(xray=True).draw_mermaid().replace("\\3a", ":")
    graph.invoke(ASK, thread(), context=Tenant())
    [task] = graph.get_state(thread(), subgraphs=True).tasks
    assert task.state.next == ("reflect",)
    result = graph.invoke(Command(resume="accept"), thread(), context=Tenant())
    assert result["messages"][-1].text == "A draft."


def test_what_a_run_was_given_holds_when_it_is_resumed_without() -> None:
    bound = with_settings(reflection.graph, model=FakeChatModel(reply=critic), critic="human", max_rounds=2)
    graph = bound.copy({"checkpointer": InMemorySaver()})
    paused = graph.invoke(ASK, thread(), context={"max_rounds": 1})
    assert "__interrupt__" in paused
    result = graph.invoke(Command(resume="Again."), thread())
    assert (drafts(result), result["outcome"]["limit"]["most"]) == (1, 1)


def test_the_operator_may_bind_what_a_request_may_not_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.md").write_text("# UCT\n\nUCT balances exploration and exploitation.")
    monkeypatch.setattr(policy, "_check", lambda *_: None)
    graph = with_settings(reflexion.graph, model="offline", search="local", corpus=str(folder))
    assert graph.invoke(ASK)["answer"]
    assert graph.invoke(ASK, context={"max_rounds": 1})["answer"]
    with pytest.raises(OperatorOnly):
        graph.invoke(ASK, context={"corpus": str(folder.parent)})


@every_strategy
async def test_every_strategy_travels_with_its_settings(strategy: Strategy) -> None:
    """As a node under a context that is not for it, with all that its quick runs are given."""
    model, same = FakeChatModel(reply=strategy.solving), FakeChatModel(reply=strategy.solving)
    bound = with_settings(strategy.graph, name="worker", model=model, **strategy.settings)
    result = await parent(bound, context_schema=Tenant).ainvoke(ASK, thread(), context=Tenant())
    assert [message.type for message in result["messages"]] == ["human", "ai"]
    alone = await strategy.graph.ainvoke(ASK, context=strategy.make(model=same))
    assert (len(model.calls), result["messages"][-1].text) == (len(same.calls), alone["answer"])


def boss(request: Request) -> Reply:
    """Ask the tool that there is, and pass on what it says."""
    [tool] = {*request.tools} - {"calculator"}
    return request.last if request.messages[-1].type == "tool" else ToolUse(tool, {"question": "Why?"})


@pytest.mark.parametrize("is_async", [False, True])
async def test_as_a_tool_it_answers_a_question(is_async: bool) -> None:
    tool = writer(name="careful_writer", max_rounds=1).as_tool()
    agent: Any = create_agent(FakeChatModel(reply=boss), [tool], context_schema=Tenant)
    result = await agent.ainvoke(ASK, context=Tenant()) if is_async else agent.invoke(ASK, context=Tenant())
    [reply] = [message for message in result["messages"] if isinstance(message, ToolMessage)]
    assert (reply.text, reply.name) == ("A draft.", "careful_writer")
    assert reply.artifact["outcome"]["status"] == "limit_reached"
    assert reply.artifact.keys() == {"answer", "outcome", "usage", "drafts"}


def test_the_tool_says_what_it_is_for() -> None:
    tool = reflexion.graph.as_tool()
    assert tool.args.keys() == {"question"}
    assert ReflexionContext.use_when in tool.description
    named = reflexion.graph.as_tool(name="research", description="Look it up.")
    assert (named.name, named.description) == ("research", "Look it up.")


@pytest.mark.filterwarnings("ignore:This API is in beta")
def test_with_other_arguments_it_is_langchains_tool() -> None:
    tool = writer(max_rounds=1).as_tool(arg_types={"messages": list})
    assert tool.args.keys() == {"messages"}
    assert tool.invoke(ASK)["answer"] == "A draft."


def test_a_tool_without_an_answer_says_why() -> None:
    graph = with_settings(reflection.graph, model=FakeChatModel(reply=critic), max_total_tokens=1)
    tool = graph.as_tool()
    call = {"type": "tool_call", "name": "reflection", "id": "1", "args": {"question": "Why?"}}
    reply = tool.invoke(call)
    assert reply.artifact["outcome"]["reason"] in reply.content
    assert reply.artifact["answer"] is None


def test_a_strategy_may_be_the_tool_of_another() -> None:
    model = FakeChatModel(reply=boss)
    graph = with_settings(react.graph, model=model, search="none", tools=[writer(max_rounds=1).as_tool()])
    assert graph.invoke(ASK)["answer"] == "A draft."


@pytest.mark.parametrize(
    ("name", "settings", "inner"),
    [
        ("plan", {}, {"work_react"}),
        ("plan", {"worker": "lats"}, {"work_lats"}),
        ("plan", {"agent": create_agent(FakeChatModel(reply=critic), name="mine")}, {"work_mine"}),
        ("plan", {"agent": RunnableLambda(lambda inputs: inputs)}, set()),
        ("team", {}, {"member_researcher", "member_writer", "member_critic"}),
        ("team", {"shape": "debate"}, {"member_searcher", "member_reviser", "member_thinker"}),
        ("trials", {"actor": "chain_of_thought"}, {"attempt_chain_of_thought"}),
        ("auto", {}, {"look_up_reflexion"}),
        ("lats", {}, set()),
    ],
)
def test_a_drawing_shows_the_strategies_that_work_within(name: str, settings: dict[str, Any], inner: set[str]) -> None:
    graph = with_settings(graph_of(name), **settings)
    drawn = graph.get_graph(xray=True)
    assert {node.partition(":")[0] for node in drawn.nodes if ":" in node} == inner
    sources, targets = {edge.source for edge in drawn.edges}, {edge.target for edge in drawn.edges}
    assert {*drawn.nodes} == sources | targets
    assert {node for node in drawn.nodes if node not in targets} == {"__start__"}
    assert {node for node in drawn.nodes if node not in sources} == {"__end__"}
    assert {*re.findall(r"subgraph (\w+)", drawn.draw_mermaid())} == inner
    assert not any(":" in node for node in graph.get_graph().nodes)


@every_strategy
def test_every_edge_that_a_router_chooses_has_a_label(strategy: Strategy) -> None:
    assert [edge for edge in strategy.graph.get_graph().edges if edge.conditional and not edge.data] == []


def test_its_settings_are_refused_where_they_have_no_effect() -> None:
    model = FakeChatModel(reply=critic)
    with pytest.raises(Misuse, match=r"^critic_model has an effect only with critic=model"):
        with_settings(reflection.graph, model=model, critic="checks", critic_model="offline").invoke(ASK)
    with pytest.raises(Misuse, match=r"^critic_model has an effect only with critic=model"):
        writer(critic_model="offline").invoke(ASK, context={"critic": "checks"})
    assert model.calls == []


def test_a_tool_that_pauses_outside_of_a_graph_says_so() -> None:
    with pytest.raises(Misuse, match="checkpointer"):
        writer(critic="human").as_tool().invoke({"question": "Write about the sea."})


def test_a_caller_changes_single_parameters_of_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = ReflectionContext
    own = {"model_parameters": '{"top_p": 0.9, "service_tier": "flex"}', "max_rounds": 2}
    merged = schema.merged(own, {"model_parameters": {"top_p": 0.5, "seed": 1}})
    assert merged.model_parameters == {"top_p": 0.5, "service_tier": "flex", "seed": 1}
    assert schema.merged(own, {"max_rounds": 1}).model_parameters == {"top_p": 0.9, "service_tier": "flex"}
    # What only the operator sets is still his: it was not the caller who gave it.
    monkeypatch.setattr(policy, "_check", lambda *_: None)
    policy.check_caller(merged, merged.defaults)
    given = schema.merged(own, {"model_parameters": {"service_tier": "priority"}})
    with pytest.raises(OperatorOnly):
        policy.check_caller(given, given.defaults)


def test_parameters_that_are_bound_later_go_beside_those_that_were_bound_before() -> None:
    first = writer(model_parameters='{"top_p": 0.9, "seed": 1}')
    second = with_settings(first, model_parameters={"top_p": 0.5, "top_k": 3})
    assert second.settings["model_parameters"] == {"top_p": 0.5, "seed": 1, "top_k": 3}
    assert with_settings(second, max_rounds=1).settings["model_parameters"] == second.settings["model_parameters"]
    with pytest.raises(ValidationError):
        with_settings(first, model_parameters="{")


def test_a_graphs_own_parameters_go_before_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_MODEL_PARAMETERS", '{"top_p": 0.9, "seed": 1}')
    own = {"model_parameters": {"top_p": 0.5}}
    given: dict[str, Any] = {"model_parameters": {"top_k": 3}}
    for chosen in (given, ReflectionContext(**given).chosen()):
        merged = ReflectionContext.merged(own, chosen)
        assert merged.model_parameters == {"top_p": 0.5, "seed": 1, "top_k": 3}
    assert ReflectionContext.merged(own, {"model_parameters": {"top_p": 0.9}}).model_parameters["top_p"] == 0.9


def test_a_resumed_run_takes_further_parameters_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = ReflectionContext(model_parameters={"top_p": 0.5, "min_p": 0.1}).explicit_settings()
    anew: dict[str, Any] = {"model_parameters": {"min_p": 0.2}}
    assert ReflectionContext(**anew).resumed(begun).model_parameters == {"top_p": 0.5, "min_p": 0.2}
    assert ReflectionContext().resumed(begun).model_parameters == {"top_p": 0.5, "min_p": 0.1}
    monkeypatch.setenv("REFLECT_MODEL_PARAMETERS", '{"top_p": 0.1, "seed": 1}')
    own = {"model_parameters": {"top_p": 0.9, "top_k": 3}}
    resumed = ReflectionContext.merged(own, anew).resumed(begun)
    assert resumed.model_parameters == {"top_p": 0.5, "min_p": 0.2, "top_k": 3, "seed": 1}
    assert resumed.resumed(begun) == resumed
