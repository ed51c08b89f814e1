"""The tasks in LangChain's create_agent."""

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, after_model
from langchain.chat_models import init_chat_model
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from bench.peers.lines.tasks import CRITERION, MODEL, City, population, problem, reward


def use_tool(question: Any) -> Any:
    return create_agent(MODEL, [population]).invoke(question)["messages"][-1].text


def revise(question: Any) -> Any:
    @after_model(can_jump_to=["model"])
    def check(state: Any, runtime: Any) -> Any:
        wrong = problem(state["messages"][-1].text)
        return {"messages": [("user", wrong)], "jump_to": "model"} if wrong else None

    return create_agent(MODEL, middleware=[check]).invoke(question)["messages"][-1].text


def choose(question: Any) -> Any:
    class Score(BaseModel):
        score: float

    judge = init_chat_model(MODEL).with_structured_output(Score)
    answers = [out["messages"][-1].text for out in create_agent(MODEL).batch([question] * 4)]
    scores: Any = judge.batch([f"Score from 0 to 1 how well this answers {question}: {text}" for text in answers])
    return max(zip(answers, scores, strict=True), key=lambda pair: pair[1].score)[0]


def choose_by(question: Any) -> Any:
    answers = [out["messages"][-1].text for out in create_agent(MODEL).batch([question] * 4)]
    return max(answers, key=reward)


def criteria(question: Any) -> Any:
    class Met(BaseModel):
        reason: str
        met: bool

    judge = init_chat_model(MODEL).with_structured_output(Met)

    @after_model(can_jump_to=["model"])
    def check(state: Any, runtime: Any) -> Any:
        found: Any = judge.invoke(f"Is this met? {CRITERION} <answer>{state['messages'][-1].text}</answer>")
        return None if found.met else {"messages": [("user", found.reason)], "jump_to": "model"}

    return create_agent(MODEL, middleware=[check]).invoke(question)["messages"][-1].text


def fill_in(question: Any) -> Any:
    return create_agent(MODEL, response_format=City).invoke(question)["structured_response"]


def stop(question: Any) -> Any:
    limit = ModelCallLimitMiddleware(run_limit=3)
    return create_agent(MODEL, [population], middleware=[limit]).invoke(question)["messages"][-1].text


def go_on(first: Any, second: Any) -> Any:
    agent = create_agent(MODEL, checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    agent.invoke(first, thread)
    return agent.invoke(second, thread)["messages"][-1].text
