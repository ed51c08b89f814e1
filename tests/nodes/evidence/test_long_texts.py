"""Long texts: what is a question apart from a text, what is shown, and how much is kept."""

import json
import threading
from typing import Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import ToolException
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from reflective_agents.nodes.evidence import long_texts
from reflective_agents.nodes.evidence.long_questions import (
    MOST_CHARACTERS,
    parts_of,
    split_question,
    with_texts,
    words_of,
)
from reflective_agents.nodes.evidence.long_texts import ALONE, HOLDS, TITLE, LongTexts
from reflective_agents.nodes.evidence.sources import thread_sources
from reflective_agents.prompts import long_texts as prompts
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse
from reflective_agents.state.run import MOST_KEPT, LongText, keep_texts
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.web_search import passages

LINE = "On that day the harbour was quiet. "
TEXT = LINE * 1_000 + "The code of the northern gate is 7341. " + LINE * 1_000
QUESTION = "Which code has the northern gate?"


def context() -> Context:
    return Context(model=FakeChatModel(reply=lambda _: ""), context_window=8_192)


async def shown(*messages: AnyMessage, begins: bool = True) -> list[AnyMessage]:
    """Return messages as a node sees them."""
    state: Any = {"messages": list(messages)}
    seen: list[AnyMessage] = (await with_texts(state, LongTexts(context(), {}), context(), begins=begins))["messages"]
    return seen


def test_a_question_stands_at_an_edge() -> None:
    for message, question in [
        (f"{QUESTION}\n\n{TEXT}", QUESTION),
        (f"{QUESTION}\n{TEXT}", QUESTION),
        (f"{TEXT}\n\nIn one word: {QUESTION} Thank you.", f"In one word: {QUESTION} Thank you."),
        (f"{TEXT}{QUESTION}", QUESTION),
        (f"{LINE * 900}北门的密码是多少？", "北门的密码是多少？"),
        (f"{QUESTION}\n{TEXT}\nAnd why?", f"{QUESTION}\nAnd why?"),
        (TEXT, ""),
        (f"Chapter 1\n\n{TEXT}", ""),
        ("?" * 50_000, ""),
    ]:
        found, text = split_question(message)
        assert found == question
        assert not question or question.split("\n")[0] not in text


async def test_a_text_may_be_a_message_or_a_block_of_its_own() -> None:
    *_, last = await shown(HumanMessage(TEXT), HumanMessage(QUESTION))
    assert (words_of(last), "7341" in last.text) == (QUESTION, True)
    (block,) = await shown(HumanMessage([{"type": "text", "text": TEXT}, {"type": "text", "text": QUESTION}]))
    assert (words_of(block), "7341" in block.text) == (QUESTION, True)
    assert len(block.text) < 8_192


async def test_the_parts_of_a_question_are_sources() -> None:
    messages = await shown(HumanMessage(f"{TEXT}\n{QUESTION}"))
    sources = thread_sources(messages)
    assert [*sources] == [*range(1, len(sources) + 1)]
    assert sum("7341" in source.passages[0] for source in sources.values()) == 1
    for source in sources.values():
        begin, end = map(int, source.url.partition("#char=")[2].split(","))
        assert source.passages == (TEXT.strip()[begin:end].strip(),)


async def test_a_text_that_is_marked_is_a_source_however_short_it_is() -> None:
    """Its title is that of the source, and what it ends with is no question."""
    marked = [
        HumanMessage(text, additional_kwargs={HOLDS: ALONE, TITLE: title})
        for title, text in (("a.txt", "The Petrel was built in 1907. By whom?"), ("b.txt", "It is green."))
    ]
    messages = await shown(*marked, HumanMessage(QUESTION))
    sources = {source.passages[0]: source.title for source in thread_sources(messages).values()}
    assert {*sources} == {"The Petrel was built in 1907. By whom?", "It is green."}
    assert sources["It is green."].startswith("b.txt")
    assert words_of(messages[-1]) == QUESTION
    urls = [source.url for source in thread_sources(messages).values()]
    assert parts_of(marked, urls).keys() == {*urls}


async def test_what_is_too_long_to_be_kept_is_refused_at_once() -> None:
    message = HumanMessage(f"{QUESTION}\n{'x' * MOST_CHARACTERS}")
    with pytest.raises(Misuse, match="corpus"):
        await shown(message)


async def test_texts_are_cut_and_searched_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = list[threading.Thread]()
    cut = passages.passages_of

    def noted(text: str) -> Any:
        threads.append(threading.current_thread())
        return cut(text)

    monkeypatch.setattr(long_texts, "passages_of", noted)
    await shown(HumanMessage(f"{TEXT}\n{QUESTION}"))
    await LongTexts(context(), {}).shown([ToolMessage(TEXT, tool_call_id="1", name="fetch")], [QUESTION])
    assert len(threads) == 2
    assert threading.main_thread() not in threads


@pytest.mark.matrix
@pytest.mark.parametrize("count", [1, 3, 64])
async def test_results_of_a_step_share_the_window(count: int) -> None:
    replies = [ToolMessage(f"{number} {TEXT}", tool_call_id=f"{number}", name="fetch") for number in range(count)]
    texts = LongTexts(context(), {})
    fitting = await texts.shown(replies, [QUESTION] * count)
    assert len(texts.new) == count
    assert all(len(reply.text) <= max(8_192 // count, 2_500) for reply in fitting)


async def test_of_many_results_the_first_are_shown() -> None:
    results = [{"title": f"T{n}", "url": f"https://a.test/{n}", "content": LINE * 20} for n in range(100)]
    reply = ToolMessage(json.dumps(results), tool_call_id="1", name="search")
    (fitting,) = await LongTexts(context(), {}).shown([reply], [QUESTION])
    assert 0 < len(json.loads(fitting.text)) < 20
    assert json.loads(fitting.text) == results[: len(json.loads(fitting.text))]


@pytest.mark.parametrize(("source", "position"), [("tool:other", 0), ("tool:a", -1), ("tool:a", 70_000), ("", 0)])
def test_nothing_beyond_a_text_is_read(source: str, position: int) -> None:
    texts = LongTexts(context(), {"tool:a": LongText(title="a", text=LINE * 1_000)})
    with pytest.raises(ToolException):
        texts.read(source, position)
    assert len(texts.read("tool:a#char=5,10", 0)["content"]) < 8_192


def test_the_oldest_texts_are_dropped() -> None:
    half = LongText(title="", text="x" * (MOST_KEPT // 2))
    kept = keep_texts({}, [{"a": half}, {"b": half}, {"c": half}])
    assert [*kept] == ["b", "c"]


async def test_many_short_blocks_are_no_question() -> None:
    blocks: list[str | dict[str, Any]] = [{"type": "text", "text": f"Day {day} was quiet. " * 80} for day in range(60)]
    message = HumanMessage([*blocks, {"type": "text", "text": "Who opened the gate?"}])
    [last] = await shown(message)
    assert words_of(last) == "Who opened the gate?"
    assert len(last.text) < 8_192


@pytest.mark.parametrize("count", [2, 5, 30])
async def test_of_several_texts_the_passages_that_fit_are_shown(count: int) -> None:
    texts = [
        f"{TEXT.replace('northern', name).replace('7341', f'70{name}')}" for name in map(str, range(10, 10 + count))
    ]
    *_, last = await shown(*map(HumanMessage, texts), HumanMessage("Which code has the 11 gate?"), begins=False)
    assert "7011" in last.text
    assert len(last.text) < 8_192


@pytest.mark.parametrize(
    "line",
    [
        '"Anna","12","open"\n',
        "ok\n",
        '{"gate": {"name": "north", "open": true}}, ',
        "C:\\\\gates\\\\north\\n",
        "北门关着。\n",
    ],
)
async def test_any_text_can_be_read_on_to_its_end(line: str) -> None:
    text = line * 3_000
    texts = LongTexts(context(), {"tool:a": LongText(title="a", text=text)})
    position, read = 0, list[str]()
    while position < len(text):
        call = {"name": "read_more", "args": {"source": "tool:a", "position": position}, "id": "1", "type": "tool_call"}
        (reply,) = await texts.shown([await texts.tool().ainvoke(call)], [QUESTION])
        assert len(reply.text.encode()) <= texts.most_shown
        (part,) = json.loads(reply.text)
        end = int(part["url"].rpartition(",")[2])
        read.append(text[position:end])
        assert part["content"] == read[-1].strip()
        position = end
    assert len(read) < 40


async def test_what_was_read_on_is_known_as_such_when_it_comes_from_a_checkpoint() -> None:
    texts = LongTexts(context(), {"tool:a": LongText(title="a", text=TEXT)})
    call = {"name": "read_more", "args": {"source": "tool:a"}, "id": "1", "type": "tool_call"}
    saved = JsonPlusSerializer().dumps_typed([await texts.tool().ainvoke(call)] * 2)
    first, _ = await texts.shown(JsonPlusSerializer().loads_typed(saved), [QUESTION] * 2)
    assert first.text == prompts.TOO_MUCH


async def test_what_stands_beside_a_result_takes_its_share_too() -> None:
    results = [{"url": f"https://a.test/{n}", "content": "Short.", "raw": TEXT} for n in range(3)]
    reply = ToolMessage(json.dumps(results), tool_call_id="1", name="search")
    texts = LongTexts(context(), {})
    (fitting,) = await texts.shown([reply], [QUESTION])
    assert len(fitting.text) <= texts.most_shown
    assert "7341" in fitting.text


async def test_the_passages_that_fit_best_are_found_in_whichever_text() -> None:
    other = LongText(title="a", text="The code of a gate is a code of a gate. " * 500)
    texts = LongTexts(context(), {"tool:a": other, "tool:b": LongText(title="b", text=TEXT)})
    found = await texts.find(QUESTION)
    assert "7341" in found[0]["content"]
