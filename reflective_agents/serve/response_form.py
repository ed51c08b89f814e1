"""A response of OpenAI's as its client reads it, whole or as events."""

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from reflective_agents.serve.answering import DONE, Progress, Reply
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.responses_request import ResponsesRequest
from reflective_agents.serve.run_key import RunKey
from reflective_agents.serve.runs import CANCELLED
from reflective_agents.serve.streaming import event, progress_line
from reflective_agents.state.json_types import JsonObject


class _Kind(NamedTuple):
    """What the events are called of an item that is written piece by piece."""

    parts: str
    part: str
    text: str
    number: str
    extra: JsonObject


_SUMMARY = _Kind("summary", "reasoning_summary_part", "reasoning_summary_text", "summary_index", {})
_ANSWER = _Kind("content", "content_part", "output_text", "content_index", {"logprobs": []})


class ResponseForm:
    """A response on its way to the client: a `Form`.

    It has the events of the run as a summary of its reasoning, then the answer, or the calls of the client's tools.

    Args:
        key: The run.
        body: The request.
        created_at: When the request came, in seconds since 1970; now by default.
        completed_at: When its run ended; whenever the form does by default.
    """

    last = DONE

    def __init__(
        self, key: RunKey, body: ResponsesRequest, created_at: int | None = None, completed_at: int | None = None
    ) -> None:
        self._key, self._sequence, self._named = key, -1, body.named()
        self.created_at, self._completed_at = created_at or int(time.time()), completed_at
        self._output: list[JsonObject] = []
        self._item: JsonObject | None = None
        self._kind, self._text = _SUMMARY, ""
        self._response: JsonObject = {
            "id": key.id("resp"),
            "object": "response",
            "created_at": self.created_at,
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "usage": None,
            "thread_id": key.thread_id,
            "truncation": "disabled",
            **body.model_dump(exclude={"input", "settings", "stream", "include", "on_disconnect"}, by_alias=True),
        }

    def begin(self) -> Iterator[JsonObject]:
        """Begin the response."""
        yield self._event("created", response=self.whole())
        yield self._event("in_progress", response=self.whole())

    def progress(self, progress: Progress) -> Iterator[JsonObject]:
        """Add an event of the run to the summary; the item is complete once the answer has begun."""
        if self._kind is _ANSWER:
            return
        if self._item is None:
            item: JsonObject = {"id": self._key.id("rs"), "type": "reasoning", "summary": []}
            yield from self._open(item, _SUMMARY)
        yield from self._delta(progress_line(progress))

    def text(self, text: str) -> Iterator[JsonObject]:
        """Add a piece of the answer."""
        yield from self._answer()
        yield from self._delta(text)

    def end(self, reply: Reply) -> Iterator[JsonObject]:
        """End with the calls of the client's tools, or with the answer."""
        if reply.answer is not None:
            yield from self._answer()
        status = "incomplete" if reply.at_limit else "completed"
        yield from self._close(status)
        for call in reply.calls:
            yield from self._call(call)
        if reply.at_limit:
            self._response["incomplete_details"] = {"reason": "max_output_tokens"}
        completed_at = self._completed_at or int(time.time())
        self._response |= {"status": status, "completed_at": completed_at, "usage": _usage(reply.usage)}
        yield self._event(status, response=self.whole())

    def fail(self, refusal: Refused) -> Iterator[JsonObject]:
        """End with an error, or because the run was cancelled."""
        if refusal.code == CANCELLED:
            self._response |= {"status": "cancelled"}
        else:
            error = {"code": refusal.code or "server_error", "message": str(refusal)}
            self._response |= {"status": "failed", "error": error}
        yield self._event("failed", response=self.whole())

    def whole(self, status: str | None = None) -> JsonObject:
        """Return the response as it is now, with another status if one is given."""
        return {**self._response, **({"status": status} if status else {}), "output": [*self._output]}

    def encode(self, data: JsonObject) -> str:
        """Return an event as it is sent."""
        return f"event: {data['type']}\n{event(data)}"

    def _answer(self) -> Iterator[JsonObject]:
        if self._kind is _SUMMARY:
            yield from self._close("completed")
            item = {"id": self._key.id("msg"), "type": "message", "role": "assistant", "content": []}
            yield from self._open(item, _ANSWER)

    def _open(self, item: JsonObject, kind: _Kind) -> Iterator[JsonObject]:
        self._item, self._kind, self._text = item, kind, ""
        yield self._event("output_item.added", output_index=self._index, item={**item, "status": "in_progress"})
        yield self._of_part(f"{kind.part}.added", part=self._part())

    def _delta(self, text: str) -> Iterator[JsonObject]:
        self._text += text
        yield self._of_part(f"{self._kind.text}.delta", delta=text, **self._kind.extra)

    def _close(self, status: str) -> Iterator[JsonObject]:
        """Complete the item that is being written, if there is one."""
        if self._item is None:
            return
        yield self._of_part(f"{self._kind.text}.done", text=self._text, **self._kind.extra)
        yield self._of_part(f"{self._kind.part}.done", part=self._part())
        yield self._done({**self._item, self._kind.parts: [self._part()], "status": status})
        self._item = None

    def _call(self, call: JsonObject) -> Iterator[JsonObject]:
        full_name, arguments = call["function"]["name"], call["function"]["arguments"]
        namespace, name = self._named.get(full_name, (None, full_name))
        item = {"id": f"fc_{call['id']}", "type": "function_call", "call_id": call["id"], "name": name}
        item |= {"namespace": namespace} if namespace else {}
        index = self._index
        added = {**item, "arguments": "", "status": "in_progress"}
        yield self._event("output_item.added", output_index=index, item=added)
        position = {"item_id": item["id"], "output_index": index}
        yield self._event("function_call_arguments.delta", **position, delta=arguments)
        yield self._event("function_call_arguments.done", **position, name=name, arguments=arguments)
        yield self._done({**item, "arguments": arguments, "status": "completed"})

    def _done(self, item: JsonObject) -> JsonObject:
        index = self._index
        self._output.append(item)
        return self._event("output_item.done", output_index=index, item=item)

    def _part(self) -> JsonObject:
        if self._kind is _SUMMARY:
            return {"type": "summary_text", "text": self._text}
        return {"type": "output_text", "text": self._text, "annotations": [], **self._kind.extra}

    @property
    def _index(self) -> int:
        return len(self._output)

    def _of_part(self, kind: str, **fields: Any) -> JsonObject:
        assert self._item is not None
        position = {"item_id": self._item["id"], "output_index": self._index, self._kind.number: 0}
        return self._event(kind, **position, **fields)

    def _event(self, kind: str, **fields: Any) -> JsonObject:
        self._sequence += 1
        return {"type": f"response.{kind}", "sequence_number": self._sequence, **fields}


def _usage(usage: Mapping[str, float]) -> JsonObject:
    """Translate what was spent into OpenAI's terms, and add calls and dollars. What models cache is not counted."""
    read, written = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": usage.get("thinking_tokens", 0)},
        "total_tokens": read + written,
        "model_calls": usage.get("model_calls", 0),
        "cost": usage.get("cost", 0.0),
    }
