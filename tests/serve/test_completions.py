"""The JSON of an answer."""

import json

import pytest

from reflective_agents.serve.completions import Completion, usage_of
from reflective_agents.serve.streaming import StreamedAnswer, cut, pieces, progress_line


@pytest.mark.parametrize(
    ("stops", "left"),
    [([], "one two"), (["two"], "one "), (["two", "one"], ""), (["three"], "one two")],
)
def test_an_answer_ends_in_front_of_a_stop(stops: list[str], left: str) -> None:
    assert cut("one two", stops) == left


@pytest.mark.parametrize("answer", ["", "short", "long " * 200])
def test_the_pieces_of_an_answer_are_the_answer(answer: str) -> None:
    assert "".join(pieces(answer)) == answer


def test_usage_in_openais_words() -> None:
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7, "model_calls": 2, "cost": 0.5, "seconds": 1.0}
    counted = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "model_calls": 2, "cost": 0.5}
    assert usage_of(usage) == counted


def test_a_chunk_is_one_event() -> None:
    form = Completion("lats", {"thread_id": "t"})
    [text] = map(form.encode, form.text("two\nlines \N{SNOWMAN}"))
    assert text.startswith("data: ")
    assert text.endswith("\n\n")
    assert text.count("\n") == 2
    chunk = json.loads(text.removeprefix("data: "))
    assert (chunk["object"], chunk["thread_id"]) == ("chat.completion.chunk", "t")
    assert chunk["choices"][0]["delta"]["content"] == "two\nlines \N{SNOWMAN}"


def test_a_progress_line_leaves_out_the_cost() -> None:
    line = progress_line(
        {"seq": 3, "event": "draft", "round": 1, "score": 0.400000003, "text": "So.", "why": None, "model_calls": 2}
    )
    assert line == "draft: round=1, score=0.40, text=So.\n"


@pytest.mark.parametrize(
    ("stops", "sent"),
    [([], "one two three"), (["two"], "one "), (["two three four"], "one two three"), (["e t", "o t"], "on")],
)
@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_a_streamed_answer_ends_in_front_of_a_stop(stops: list[str], sent: str, size: int) -> None:
    answer, stream = "one two three", StreamedAnswer(stops)
    streamed = [stream.add(answer[start : start + size]) for start in range(0, len(answer), size)]
    assert "".join(streamed) + (stream.rest(cut(answer, stops)) or "") == sent
    assert sent.startswith("".join(streamed))


def test_an_answer_that_becomes_another_has_no_rest() -> None:
    stream = StreamedAnswer([])
    assert stream.add("The moon") == "The moon"
    assert stream.rest("The sun") is None
