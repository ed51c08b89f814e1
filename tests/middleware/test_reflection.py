"""Reflection as a middleware of an agent that somebody else has built."""

import re
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel
from typing_extensions import TypedDict

from reflective_agents import parsed
from reflective_agents.middleware import ReflectionMiddleware
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, Script, ToolUse
from tests.nodes.acting.test_own_agent import ASK, population


def drafting(request: Request) -> Reply:
    """An agent that uses a tool, and then answers worse and better in turns."""
    if not any(message.type == "tool" for message in request.messages):
        return ToolUse("population", {"city": "Paris"})
    return f"Draft {sum('<critique>' in message.text for message in request.messages) + 1}"


def critic(*scores: float) -> FakeChatModel:
    """A critic with a score for each draft, who accepts from 0.9 on."""

    def judge(request: Request) -> Reply:
        number = int(request.last.rpartition("Draft ")[2][0])
        return {"critique": f"On {number}.", "score": scores[number - 1], "accept": scores[number - 1] >= 0.9}

    return FakeChatModel(reply=judge)


def reflecting(model: FakeChatModel, critics: FakeChatModel | None = None, **settings: Any) -> Any:
    middleware = ReflectionMiddleware(model=critics or "offline", **settings)
    return create_agent(model, [population], middleware=[middleware], checkpointer=InMemorySaver())


THREAD: Any = {"configurable": {"thread_id": "1"}}


def texts(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message.type, message.text) for message in result["messages"]]


@pytest.mark.parametrize("synchronous", [False, True])
async def test_an_answer_is_sent_back_until_the_critic_accepts(synchronous: bool) -> None:
    model, judge = FakeChatModel(reply=drafting), critic(0.4, 0.9)
    agent = reflecting(model, judge)
    result = agent.invoke(ASK, THREAD) if synchronous else await agent.ainvoke(ASK, THREAD)
    kinds = [kind for kind, _ in texts(result)]
    assert kinds == ["human", "ai", "tool", "ai"]
    assert result["messages"][-1].text == "Draft 2"
    assert (result["reflection"]["outcome"]["status"], len(result["reflection"]["drafts"])) == ("solved", 2)
    assert result["reflection"]["usage"]["model_calls"] == len(judge.calls) == 2
    assert len(model.calls) == 3
    assert "How many people" in judge.calls[0].text


async def test_the_best_draft_has_the_last_word() -> None:
    model = FakeChatModel(reply=drafting)
    result = await reflecting(model, critic(0.5, 0.8, 0.6)).ainvoke(ASK, THREAD)
    assert texts(result)[-1] == ("ai", "Draft 2")
    assert "Draft 3" not in str(texts(result))
    outcome = result["reflection"]["outcome"]
    assert (outcome["status"], outcome["limit"]["name"]) == ("limit_reached", "max_rounds")


async def test_the_outcome_is_that_of_the_best_draft() -> None:
    def reply(request: Request) -> Reply:
        written = drafting(request)
        return "I could not find it (Draft 2)." if written == "Draft 2" else written

    result = await reflecting(FakeChatModel(reply=reply), critic(0.5, 0.8, 0.6)).ainvoke(ASK, THREAD)
    assert texts(result)[-1] == ("ai", "I could not find it (Draft 2).")
    assert result["reflection"]["outcome"]["answered"] is False


async def test_a_second_question_begins_anew() -> None:
    agent = reflecting(FakeChatModel(reply=drafting), critic(0.4, 0.9))
    await agent.ainvoke(ASK, THREAD)
    result = await agent.ainvoke({"messages": [("user", "And in Rome?")]}, THREAD)
    assert len(result["reflection"]["drafts"]) == 2
    assert [kind for kind, _ in texts(result)] == ["human", "ai", "tool", "ai", "human", "ai"]


async def test_checks_and_people_criticise_too() -> None:
    agent = reflecting(FakeChatModel(reply=drafting), critic="human", verifiers=[lambda _, draft: None])
    paused = await agent.ainvoke(ASK, THREAD)
    assert paused["__interrupt__"][0].value["draft"] == "Draft 1"
    paused = await agent.ainvoke(Command(resume="Longer, please."), THREAD)
    assert paused["__interrupt__"][0].value["draft"] == "Draft 2"
    result = await agent.ainvoke(Command(resume="accept"), THREAD)
    assert texts(result)[-1] == ("ai", "Draft 2")


async def test_a_critic_that_fails_leaves_the_answer() -> None:
    agent = reflecting(FakeChatModel(reply=drafting), FakeChatModel(reply=lambda _: "no form"), max_model_calls=2)
    result = await agent.ainvoke(ASK, THREAD)
    assert texts(result)[-1] == ("ai", "Draft 1")
    assert result["reflection"]["outcome"]["status"] in ("limit_reached", "exhausted")
    assert result["reflection"]["usage"]["model_calls"] == 2


async def test_deepagents_take_it() -> None:
    model = FakeChatModel(reply=lambda request: f"Draft {request.text.count('<critique>') + 1}")
    agent: Any = create_deep_agent(model=model, middleware=[ReflectionMiddleware(model=critic(0.4, 0.9))])
    result = await agent.ainvoke({"messages": [HumanMessage("How many people live in Paris?")]})
    assert isinstance(result["messages"][-1], AIMessage)
    assert result["messages"][-1].text == "Draft 2"


class Stock(BaseModel):
    """What lies in the store."""

    item: str
    count: int


class Weight(TypedDict):
    item: str
    count: int


def counting(request: Request) -> Reply:
    """An agent that answers in a form, with a higher count after each critique."""
    if not any(message.type == "tool" for message in request.messages):
        return ToolUse("population", {"city": "Paris"})
    count = sum("<critique>" in message.text for message in request.messages) + 1
    return ToolUse(request.tools[-1], {"item": "Draft", "count": count})


def counts(*scores: float) -> FakeChatModel:
    """A critic with a score for each count, who accepts from 0.9 on."""

    def judge(request: Request) -> Reply:
        count = int(re.findall(r'"count": ?(\d)', request.text)[-1])
        return {"critique": f"On {count}.", "score": scores[count - 1], "accept": scores[count - 1] >= 0.9}

    return FakeChatModel(reply=judge)


def in_form(form: Any, judge: FakeChatModel, reply: Script = counting) -> Any:
    middleware = ReflectionMiddleware(model=judge)
    return create_agent(FakeChatModel(reply=reply), [population], middleware=[middleware], response_format=form)


@pytest.mark.parametrize("form", [Stock, Weight])
async def test_a_structured_answer_is_criticised(form: Any) -> None:
    judge = counts(0.4, 0.9)
    result = await in_form(ToolStrategy(form), judge).ainvoke(ASK)
    assert parsed(result, form) == form(item="Draft", count=2)
    assert [draft["text"] for draft in result["reflection"]["drafts"]] == [
        '{"item":"Draft","count":1}',
        '{"item":"Draft","count":2}',
    ]
    assert [kind for kind, _ in texts(result)] == ["human", "ai", "tool", "ai", "tool"]
    assert len(judge.calls) == 2


@pytest.mark.parametrize("form", [Stock, Weight])
async def test_the_best_structured_answer_has_the_last_word(form: Any) -> None:
    result = await in_form(ToolStrategy(form), counts(0.5, 0.8, 0.6)).ainvoke(ASK)
    assert parsed(result, form) == form(item="Draft", count=2)
    assert result["messages"][-2].tool_calls[0]["args"]["count"] == 2
    assert [kind for kind, _ in texts(result)] == ["human", "ai", "tool", "ai", "tool"]


async def test_of_several_forms_those_of_the_last_answer_are_compared() -> None:
    class Nothing(BaseModel):
        why: str

    def undecided(request: Request) -> Reply:
        if "<critique>" not in request.text:
            return ToolUse("Nothing", {"why": "Unknown."})
        return ToolUse("Stock", {"item": "Draft", "count": sum("<critique>" in m.text for m in request.messages)})

    def judge(request: Request) -> Reply:
        return {"critique": "No.", "score": 0.8 if "Unknown" in request.text else 0.4, "accept": False}

    result = await in_form(ToolStrategy(Stock | Nothing), FakeChatModel(reply=judge), undecided).ainvoke(ASK)
    assert result["structured_response"] == Stock(item="Draft", count=2)
    assert [call["name"] for call in result["messages"][-2].tool_calls] == ["Stock"]


async def test_calls_beside_an_answer_that_is_sent_back_are_answered() -> None:
    def hasty(request: Request) -> Reply:
        if "<critique>" in request.text:
            return ToolUse("Stock", {"item": "Draft", "count": 2})
        return [ToolUse("population", {"city": "Paris"}), ToolUse("Stock", {"item": "Draft", "count": 1})]

    result = await in_form(ToolStrategy(Stock), counts(0.4, 0.9), hasty).ainvoke(ASK)
    assert result["structured_response"] == Stock(item="Draft", count=2)


async def test_calls_of_several_drafts_may_have_the_same_id() -> None:
    def answer(request: Request) -> AIMessage:
        reply = counting(request)
        assert isinstance(reply, ToolUse)
        calls = [{"name": reply.name, "args": reply.args, "id": reply.name}]
        if reply.name != "population":
            calls.append({"name": "population", "args": {"city": "Rome"}, "id": "population"})
        return AIMessage("", tool_calls=calls)

    agent = in_form(ToolStrategy(Stock), counts(0.5, 0.8, 0.6), answer)
    result = await agent.ainvoke(ASK)
    assert result["structured_response"] == Stock(item="Draft", count=2)
    assert [kind for kind, _ in texts(result)] == ["human", "ai", "tool", "ai", "tool", "tool"]


async def test_without_a_check_nothing_is_accepted() -> None:
    model = FakeChatModel(reply=drafting)
    result = await reflecting(model, critic="checks").ainvoke(ASK, THREAD)
    assert (result["reflection"]["outcome"]["status"], result["messages"][-1].text) == ("answered", "Draft 1")
