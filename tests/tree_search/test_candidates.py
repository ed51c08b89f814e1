"""What the steps of a tree search know of those beside them: open questions, where a step may search."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from reflective_agents.graphs import lats
from reflective_agents.prompts import lats as prompts
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse
from reflective_agents.tree_search.base import Job
from reflective_agents.tree_search.candidates import Branch
from reflective_agents.tree_search.conversation import siblings_note
from tests.graphs.lats_scripts import QUESTION, depth, judged, judging


@pytest.fixture
def seas(tmp_path: Path) -> str:
    """Documents of which each is found by its own word only."""
    for name in ("ebb", "flood", "spring", "neap"):
        (tmp_path / f"{name}.md").write_text(f"# {name.title()}\n\nThe {name} is a matter of the moon.\n")
    return str(tmp_path)


async def run(reply: Any, seas: str, **settings: Any) -> tuple[Any, FakeChatModel]:
    model = FakeChatModel(reply=reply)
    given = {"model": model, "search": "local", "corpus": seas, "max_expansions": 1, **settings}
    return await lats.graph.ainvoke(QUESTION, context=LatsContext.model_validate(given)), model


def searching(*queries: str) -> Any:
    """A model that searches for these, one sample after the other, and whose judge accepts nothing."""

    def reply(request: Request) -> Reply:
        if request.schema:
            return judging(0.3)(request)
        return ToolUse("search", {"query": queries[request.index % len(queries)] if depth(request) else "tides"})

    return reply


def asked_for_steps(model: FakeChatModel) -> list[Request]:
    return [request for request in model.calls if not request.schema]


async def test_who_searches_is_told_how_many_do_so_at_once(seas: str) -> None:
    _, model = await run(searching("ebb", "flood"), seas, n=2)
    first, second = asked_for_steps(model)[:2]
    note = prompts.APART.format(width=2)
    assert note not in first.text, "the root is one step"
    assert second.last.endswith(note)


async def test_what_is_said_of_siblings_stands_last_and_the_prefix_stays(seas: str) -> None:
    _, model = await run(searching("ebb", "flood"), seas, n=2, max_expansions=2)
    _, second, third = asked_for_steps(model)[:3]
    kept = second.last.partition(prompts.APART.format(width=2))[0]
    assert [message.text for message in third.messages][: len(second.messages) - 1] == [
        message.text for message in second.messages[:-1]
    ]
    assert third.messages[len(second.messages) - 1].text.startswith(kept.rstrip())


async def test_a_later_step_is_shown_those_that_stand(seas: str) -> None:
    out, _ = await run(searching("ebb", "flood"), seas, n=2)
    branch = Branch(Job(node="0", kind="expand", first=2, width=2), [], "", [], tree=out["tree"])
    (note,) = siblings_note(branch)
    assert '<action>\nsearch({"query": "ebb"})\n</action>' in note
    assert "flood" in note
    assert "tides" not in note, "its own way is in its history"


async def test_steps_may_come_as_one_list_in_one_call(seas: str) -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return judging(0.3)(request)
        if not depth(request):
            return ToolUse("search", {"query": "tides"})
        return [ToolUse("search", {"query": query}) for query in ("ebb", "flood", "neap", "spring")]

    out, model = await run(reply, seas, n=3, proposals="list")
    children = [node for node in out["tree"].values() if node["depth"] == 1]
    queries = [call["args"]["query"] for node in children for call in _calls(node["messages"][0])]
    assert queries == ["ebb", "flood", "neap"]
    assert [len(node["messages"]) for node in children] == [2, 2, 2]
    assert len(asked_for_steps(model)) == 3, "the root, the list, and an answer at the end"
    assert asked_for_steps(model)[1].last.endswith(prompts.LIST_CALLS.format(width=3))


async def test_a_list_may_be_an_answer(seas: str) -> None:
    def reply(request: Request) -> Reply:
        return judged(0.9, solved=True) if request.schema else "They rise and fall."

    out, _ = await run(reply, seas, proposals="list", grading="each")
    assert (out["answer"], out["outcome"]["status"]) == ("They rise and fall.", "solved")


def _calls(message: Any) -> list[Any]:
    assert isinstance(message, AIMessage)
    return list(message.tool_calls)
