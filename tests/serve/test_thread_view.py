"""What the live page shows of a thread."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from reflective_agents.nodes.evidence.long_texts import ALONE, HOLDS, TITLE, text_url
from reflective_agents.serve.thread_view import messages_given, passages_of, thread_view


@pytest.mark.parametrize("tree", [{}, None])
def test_it_shows_what_each_sentence_rests_on(tree: Any) -> None:
    sentence = {"text": "It costs 6.40.", "cites": ["1", "2"], "support": "full", "words": "costs 6.40 crowns"}
    support = {"answered": "yes", "sentences": [sentence], "left_out": ""}
    state: Any = {"values": {"strategy": "react", "support": support, "tree": tree}, "next": [], "tasks": []}
    assert thread_view(state, None)["lists"]["support"] == [{**sentence, "cites": "1, 2"}]


def test_where_nothing_was_checked_there_is_no_such_list() -> None:
    state: Any = {"values": {"strategy": "react", "support": None}, "next": [], "tasks": []}
    assert "support" not in thread_view(state, None)["lists"]


def test_values_within_values_are_written_for_readers() -> None:
    usage = {"model_calls": 2, "failed_calls": 0, "cost": 0.0}
    report = {"name": "ada", "answer": "Rome", "said": "answer-1", "passages": {"a.md": "Rome."}, "usage": usage}
    rounds = [{"round": 1, "score": 0.0, "kept": [0, 2], "reports": [report, {"name": "bob", "answer": None}]}]
    state: Any = {"values": {"strategy": "team", "rounds": rounds}, "next": [], "tasks": []}
    reports = "name: ada\nanswer: Rome\nusage: model_calls: 2\n\nname: bob"
    shown = {"round": "1", "score": "0.0", "kept": "0, 2", "reports": reports}
    assert thread_view(state, None)["lists"]["rounds"] == [shown]


def test_the_lessons_of_earlier_runs_are_shown_with_whether_they_were_used() -> None:
    shown = [{"id": "a", "title": "Length"}, {"id": "b", "title": "Donors"}]
    experience = {"shown": shown, "used": ["b"], "drawn": []}
    state: Any = {"values": {"strategy": "react", "experience": experience}, "next": [], "tasks": []}
    assert [row["used"] for row in thread_view(state, None)["lists"]["experience"]] == ["no", "yes"]
    state["values"]["experience"] = None
    assert "experience" not in thread_view(state, None)["lists"]


def answered(body: str, *messages: dict[str, Any], **values: Any) -> dict[str, Any]:
    """Return the values of a thread whose last answer is this."""
    return {"strategy": "react", "messages": [*messages, {"type": "ai", "content": body}], **values}


def test_an_answer_is_shown_apart_from_its_sources() -> None:
    sentence = {"text": "", "cites": ["2"], "support": "full", "words": "costs 6.40 crowns"}
    about = {"model_name": "offline", "note": "offline extractive model", "strategy": "lats"}
    values = answered(
        "It costs 6.40 [2].\n\nReferences:\n[2] Prices, https://a.example/p", support={"sentences": [sentence]}
    )
    values["messages"][0]["response_metadata"] = about
    [shown] = thread_view({"values": values, "next": [], "tasks": []}, None)["messages"]  # type: ignore[typeddict-item]
    assert (shown["text"], shown["model"], shown["note"]) == (
        "It costs 6.40 [2].",
        "offline",
        "offline extractive model",
    )
    source = {"number": 2, "url": "https://a.example/p", "title": "Prices", "words": ["costs 6.40 crowns"]}
    assert shown["sources"] == [source]


RESULT = {"url": "https://a.example", "content": "What the page says."}
FORGED = {"url": "https://a.example", "content": "What a model has made up."}


def test_a_passage_is_what_a_tool_has_returned_and_an_answer_cites() -> None:
    steps = [
        {
            "messages": [
                {"type": "tool", "content": json.dumps([RESULT])},
                {"type": "ai", "content": json.dumps([FORGED])},
            ]
        },
        {"observation": json.dumps([{**RESULT, "content": json.dumps([FORGED])}])},
    ]
    values = answered("So [1].\n\nReferences:\n[1] https://a.example", steps=steps)
    assert passages_of(values, "https://a.example") == ["What the page says.", json.dumps([FORGED])]
    assert passages_of(values, "https://b.example") == []
    assert passages_of(answered("So.", steps=steps), "https://a.example") == []


def test_a_passage_of_a_file_or_of_a_long_text_is_read_where_it_stands() -> None:
    text = "The Petrel was built in 1907."
    file = {"type": "human", "content": text, "additional_kwargs": {HOLDS: ALONE, TITLE: "a.txt"}}
    address = text_url("message:", text)
    body = f"So [1][2].\n\nReferences:\n[1] a.txt, {address}#char=4,10\n[2] log, tool:log/1#char=0,3"
    values = answered(body, file, texts={"tool:log/1": {"title": "log", "text": "abcdef"}})
    assert passages_of(values, f"{address}#char=4,10") == ["Petrel"]
    assert passages_of(values, "tool:log/1#char=0,3") == ["abc"]
    [shown, _] = thread_view({"values": values, "next": [], "tasks": []}, None)["messages"]  # type: ignore[typeddict-item]
    assert (shown["file"], shown["size"]) == ("a.txt", 29)


def test_a_document_of_the_corpus_is_shown_only_where_it_is_cited(monkeypatch: pytest.MonkeyPatch) -> None:
    cited = answered("So [1].\n\nReferences:\n[1] LATS, corpus:lats.md")
    assert "tree" in " ".join(passages_of(cited, "corpus:lats.md"))
    assert passages_of(cited, "corpus:reflexion.md") == []
    rules = SimpleNamespace(settings={"n"})
    monkeypatch.setattr("reflective_agents.serve.thread_view.policy", lambda: rules)
    assert passages_of(cited, "corpus:lats.md")
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-1")
    assert passages_of(cited, "corpus:lats.md") == []


@pytest.mark.parametrize(
    "stored", [{"kwargs": {"input": {"messages": [["user", "Why?"]]}}}, {"input": {"messages": "Why?"}}]
)
def test_what_a_run_was_asked_is_shown_before_it_has_stored_that(stored: dict[str, Any]) -> None:
    run: Any = {"run_id": "1", "status": "running", **stored}
    state: Any = {"values": {}, "next": [], "tasks": [], "metadata": {}}
    assert [message["text"] for message in thread_view(state, run)["messages"]] == ["Why?"]
    run["status"] = "interrupted"
    assert thread_view(state, run)["status"] == "stopped"
    state |= {"values": answered("So."), "metadata": {"run_id": "1", "source": "loop"}, "next": ["expand"]}
    shown = thread_view(state, run)
    assert ([message["text"] for message in shown["messages"]], shown["status"]) == (["So."], "paused")


@pytest.mark.parametrize(
    "messages",
    [
        *(None, 1, {"a": 1}),
        *([{"content": "x"}], [{"role": "nobody", "content": "x"}], [{"type": "tool", "content": "x"}]),
    ],
)
def test_a_run_with_messages_that_cannot_be_read_has_none(messages: Any) -> None:
    run: Any = {"run_id": "1", "status": "error", "kwargs": {"input": {"messages": messages}}}
    assert messages_given(run) == []


def test_what_the_first_state_of_a_run_shows_is_not_shown_twice() -> None:
    run: Any = {"run_id": "1", "status": "running", "input": {"messages": [["user", "Why?"]]}}
    values = {"messages": [{"type": "human", "content": "Why?"}]}
    state: Any = {"values": values, "next": ["begin"], "tasks": [], "metadata": {"run_id": "1", "source": "input"}}
    assert [message["text"] for message in thread_view(state, run)["messages"]] == ["Why?"]
    state["metadata"]["run_id"] = "0"
    assert [message["text"] for message in thread_view(state, run)["messages"]] == ["Why?", "Why?"]
