"""The tasks in deepagents."""

from typing import Any

from deepagents import RubricMiddleware, create_deep_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, after_model
from langchain.chat_models import init_chat_model
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from bench.peers.lines.tasks import CRITERION, MODEL, City, population, problem, reward

CHAT = init_chat_model(MODEL)  # a name alone means OpenAI's responses, which the local server does not speak


def use_tool(question: Any) -> Any:
    return create_deep_agent(CHAT, [population]).invoke(question)["messages"][-1].text


def revise(question: Any) -> Any:
    @after_model(can_jump_to=["model"])
    def check(state: Any, runtime: Any) -> Any:
        wrong = problem(state["messages"][-1].text)
        return {"messages": [("user", wrong)], "jump_to": "model"} if wrong else None

    return create_deep_agent(CHAT, middleware=[check]).invoke(question)["messages"][-1].text


def choose(question: Any) -> Any:
    class Score(BaseModel):
        score: float

    judge = CHAT.with_structured_output(Score)
    answers = [out["messages"][-1].text for out in create_deep_agent(CHAT).batch([question] * 4)]
    scores: Any = judge.batch([f"Score from 0 to 1 how well this answers {question}: {text}" for text in answers])
    return max(zip(answers, scores, strict=True), key=lambda pair: pair[1].score)[0]


def choose_by(question: Any) -> Any:
    answers = [out["messages"][-1].text for out in create_deep_agent(CHAT).batch([question] * 4)]
    return max(answers, key=reward)


def criteria(question: Any) -> Any:
    agent: Any = create_deep_agent(CHAT, middleware=[RubricMiddleware(model=CHAT)])
    return agent.invoke({**question, "rubric": CRITERION})["messages"][-1].text


def fill_in(question: Any) -> Any:
    return create_deep_agent(CHAT, response_format=City).invoke(question)["structured_response"]


def stop(question: Any) -> Any:
    limit = ModelCallLimitMiddleware(run_limit=3)
    return create_deep_agent(CHAT, [population], middleware=[limit]).invoke(question)["messages"][-1].text


def go_on(first: Any, second: Any) -> Any:
    agent = create_deep_agent(CHAT, checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    agent.invoke(first, thread)
    return agent.invoke(second, thread)["messages"][-1].text
