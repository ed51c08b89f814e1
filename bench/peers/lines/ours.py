"""The tasks in this project."""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from bench.peers.lines.tasks import CRITERION, MODEL, City, population, problem, reward
from reflective_agents import parsed
from reflective_agents.graphs import best_of_n, chain_of_thought, react, reflection


def use_tool(question: Any) -> Any:
    return react.graph.invoke(question, context={"model": MODEL, "tools": [population], "search": "none"})["answer"]


def revise(question: Any) -> Any:
    context = {"model": MODEL, "critic": "checks", "verifiers": [lambda request, draft: problem(draft)]}
    return reflection.graph.invoke(question, context=context)["answer"]


def criteria(question: Any) -> Any:
    context = {"model": MODEL, "critic": "checks", "verifiers": [{"rubric": [CRITERION]}]}
    return reflection.graph.invoke(question, context=context)["answer"]


def choose_by(question: Any) -> Any:
    context = {"model": MODEL, "n": 4, "search": "none", "verifiers": [lambda request, answer: reward(answer)]}
    return best_of_n.graph.invoke(question, context=context)["answer"]


def choose(question: Any) -> Any:
    return best_of_n.graph.invoke(question, context={"model": MODEL, "n": 4, "search": "none"})["answer"]


def fill_in(question: Any) -> Any:
    return parsed(chain_of_thought.graph.invoke(question, context={"model": MODEL, "answer_schema": City}), City)


def stop(question: Any) -> Any:
    context = {"model": MODEL, "tools": [population], "search": "none", "max_model_calls": 3}
    return react.graph.invoke(question, context=context)["answer"]


def go_on(first: Any, second: Any) -> Any:
    graph = chain_of_thought.builder.compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    graph.invoke(first, thread, context={"model": MODEL})
    return graph.invoke(second, thread, context={"model": MODEL})["answer"]
