"""What strategies make of brackets: lists stay, numbers mean one source in a thread, and what was streamed stands."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from reflective_agents.graphs import graph_of, react, reflexion
from reflective_agents.testing.checker import checked
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse
from reflective_agents.web_search.results import SearchResult

CONFIG: Any = {"configurable": {"thread_id": "t"}}
LIST = "The sorted list is [1, 2, 3]."
PROGRAM = "Two elements of a program change their values:\n\na[1], a[2] = a[2], a[1]\n\n" + "So it is sorted. " * 20
COMPLETE = {"missing": "", "superfluous": "", "complete": True}


async def shelf(query: str) -> list[SearchResult]:
    return [SearchResult(title=query.title(), url=f"https://{query}.example/", content=f"All of the {query}.")]


def saying(*replies: Reply) -> FakeChatModel:
    script: Iterator[Reply] = iter(replies)
    return FakeChatModel(reply=checked(lambda _: next(script)))


def judging(request: Request) -> Reply:
    judgement = {"reasoning": "Right.", "score": 0.95, "solved": True}
    forms: dict[str | None, Reply] = {
        "Judgement": judgement,
        "Judgements": {"judgements": [judgement] * max(request.text.count("<candidate"), 1)},
        "Critique": {"critique": "ok", "score": 1, "accept": True},
    }
    answer: Reply = {"answer": LIST, "reflection": COMPLETE, "search_queries": []}
    return forms.get(request.schema, answer if request.schema in ("AnswerQuestion", "ReviseAnswer") else LIST)


@pytest.mark.parametrize("search", ["none", shelf])
@pytest.mark.parametrize("strategy", ["reflexion", "lats", "ab_mcts", "best_of_n", "react", "trials", "auto"])
async def test_a_list_of_numbers_is_no_citation(strategy: str, search: Any) -> None:
    model = FakeChatModel(reply=judging)
    settings = {"model": model, "search": search}
    out = await graph_of(strategy).ainvoke({"messages": [("user", "Sort 3, 1 and 2.")]}, context=settings)
    assert out["answer"] == LIST
    assert out["outcome"]["status"] != "exhausted"
    assert len(model.calls) <= 8


async def heard(model: FakeChatModel, **settings: Any) -> tuple[str, list[str], str]:
    """What a run of react streams as the answer, its events, and its answer."""
    pieces, events, answer = "", list[str](), ""
    context = {"model": model, "search": shelf, "verify_sources": False, **settings}
    ask = {"messages": [("user", "How is it sorted?")]}
    parts: Any = react.graph.astream(ask, context=context, stream_mode=["messages", "custom", "values"])
    async for mode, part in parts:
        if mode == "messages":
            pieces += part[0].text
        elif mode == "custom":
            events.append(part["event"])
        else:
            answer = part.get("answer") or answer
    return pieces, events, answer


LISTED = "\n\nQuellen:\n[1] https://moon.example/\n[2] https://made.up/"


@pytest.mark.parametrize("acting", ["paper", "tools"])
@pytest.mark.parametrize("answer", [PROGRAM, f"{PROGRAM}So [1], not so [9].", f"{PROGRAM}So [1], so [2].{LISTED}"])
async def test_what_react_streams_stands(acting: str, answer: str) -> None:
    first: Reply = "Action: search[moon]" if acting == "paper" else ToolUse("search", {"query": "moon"})
    pieces, events, whole = await heard(
        saying(first, answer if acting == "tools" else f"Final Answer: {answer}"), acting=acting
    )
    assert pieces == whole
    assert "withdrawn" not in events
    assert "a[1], a[2] = a[2], a[1]" in whole
    assert "[9]" not in whole


@pytest.mark.parametrize("acting", ["paper", "tools"])
async def test_react_is_told_once_of_a_result_that_does_not_exist(acting: str) -> None:
    label = "Final Answer: " if acting == "paper" else ""
    first: Reply = "Action: search[moon]" if acting == "paper" else ToolUse("search", {"query": "moon"})
    model = saying(first, f"{label}Round [9].", f"{label}Quite round [8].")
    settings = {"model": model, "search": shelf, "acting": acting, "verify_sources": False}
    out = await react.graph.ainvoke({"messages": [("user", "What of the moon?")]}, context=settings)
    assert [("do not exist: [9]" in request.text, "do not exist: [8]" in request.text) for request in model.calls] == [
        (False, False),
        (False, False),
        (True, False),
    ]
    assert out["answer"] == "Quite round."
    last = {**settings, "model": saying(first, f"{label}Round [9]."), "max_model_calls": 2}
    out = await react.graph.ainvoke({"messages": [("user", "What of the moon?")]}, context=last)
    assert out["answer"] == "Round."


async def test_a_list_of_numbers_is_not_sent_back() -> None:
    model = saying(ToolUse("search", {"query": "moon"}), LIST)
    out = await react.graph.ainvoke(
        {"messages": [("user", "Sort 3, 1 and 2.")]}, context={"model": model, "search": shelf, "verify_sources": False}
    )
    assert (out["answer"], len(model.calls)) == (LIST, 2)


async def test_react_keeps_the_numbers_of_a_thread() -> None:
    texts = ["Action: search[moon]", "Final Answer: It is round [1].", "Action: search[sea]"]
    texts += ["Final Answer: The sea is deep [2], and the moon is round [1].", "Final Answer: Round [1] and deep [2]."]
    context = {"model": saying(*texts), "search": shelf, "acting": "paper", "verify_sources": False}
    stored = react.builder.compile(checkpointer=InMemorySaver())
    answers = []
    for question in ("What of the moon?", "And the sea?", "In short?"):
        out = await stored.ainvoke({"messages": [("user", question)]}, CONFIG, context=context)
        answers.append(out["answer"].partition("References:\n")[2].splitlines())
    moon, sea = "[1] Moon, https://moon.example/", "[2] Sea, https://sea.example/"
    assert answers == [[moon], [moon, sea], [moon, sea]]


async def test_reflexion_keeps_the_numbers_of_a_thread() -> None:
    def draft(query: str) -> Reply:
        reflection = {"missing": "evidence", "superfluous": "", "complete": False}
        return {"answer": "I know little.", "reflection": reflection, "search_queries": [query]}

    def revised(answer: str) -> Reply:
        return {"answer": answer, "reflection": COMPLETE, "search_queries": []}

    model = saying(
        draft("moon"), revised("Round [1]."), draft("sea"), revised("Deep [2], where the moon is round [1].")
    )
    stored = reflexion.builder.compile(checkpointer=InMemorySaver())
    for question in ("What of the moon?", "And the sea?"):
        out = await stored.ainvoke(
            {"messages": [("user", question)]},
            CONFIG,
            context={"model": model, "search": shelf, "verify_sources": False},
        )
    assert out["answer"].endswith("[1] Moon, https://moon.example/\n[2] Sea, https://sea.example/")
    revision = next(request for request in reversed(model.calls) if request.schema == "ReviseAnswer")
    assert '"number": 2' in revision.text


async def test_answers_that_others_have_numbered_are_shown_in_the_numbers_of_the_thread() -> None:
    moon, sea = "References:\n[1] https://moon.example/", "References:\n[1] https://sea.example/"
    messages = [HumanMessage("a"), AIMessage(f"Round [1].\n\n{moon}"), HumanMessage("b")]
    messages += [AIMessage(f"Deep [1].\n\n{sea}"), HumanMessage("c")]
    model = saying("Final Answer: Deep [2].")
    out = await react.graph.ainvoke(
        {"messages": messages}, context={"model": model, "search": "none", "acting": "paper"}
    )
    assert "Deep [2]." in model.calls[0].text
    assert out["answer"] == "Deep [2].\n\nReferences:\n[2] https://sea.example/"
    assert [message.text for message in out["messages"][:5]] == [message.text for message in messages]
