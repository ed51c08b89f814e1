"""Messages as quoted text, so that a critic or judge reads them as material and the roles cannot be confused."""

import json
import re
from collections import deque
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from reflective_agents.state.tool_calls import every_call

TAGS = """
    about action agent aim answer asked attempt author before candidate checked conversation criterion critique
    doing document draft failure hint lesson map member memory observation outcome part passage question remark report
    request right_answer said seen sentence state subgoal subquestion summary task thought time trajectory turn usual
    verdict
""".split()  # noqa: SIM905 - the words are easier to read
"""All tags in which prompts hold material."""
_UNSEEN = (
    "\\x00-\\x1f\\x7f-\\x9f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e"
    "\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufff8\\U000e0000-\\U000e0fff"
)
"""Characters that leave no mark, among them all that Unicode lets programs ignore."""
_OPENS, _WIDE = "<\uff1c\ufe64", 0xFEE0
"""The sign that opens a tag and its wide and small forms; and how far a wide letter stands from its plain form."""
_LIKE = {"i": "\u0130\u0131", "k": "\u212a", "s": "\u017f"}
"""Other letters that differ from one in their case alone: dotted and dotless i, the sign of Kelvin, long s."""


def _forms(letter: str) -> str:
    """Return a small letter, its capital, their wide forms, and what else a reader may take for it. Listed, since a
    pattern that ignores the case takes twice as long."""
    wide = chr(ord(letter) + _WIDE)
    return f"{letter}{letter.upper()}{wide}{wide.upper()}{_LIKE.get(letter, '')}"


def _tag_pattern(tag: str) -> str:
    """Return a pattern of a tag's name that nothing unseen between the letters, and no wide letter, escapes."""
    return rf"[{_UNSEEN}]*".join(f"[{_forms(letter)}]" for letter in tag)


@cache
def _like_a_tag() -> re.Pattern[str]:
    """Return the pattern of all tags; made when it is first used, since that takes a while."""
    # By first letters, so that most of what is no tag is passed at once: a client's document may be millions of "<", of
    # which none that is followed by another opens anything.
    firsts, names = "", list[str]()
    for letter, tags in groupby(sorted(TAGS), key=itemgetter(0)):
        rests = "|".join(_tag_pattern(tag[1:]) for tag in tags)
        firsts += _forms(letter)
        names.append(rf"{_tag_pattern(letter)}[{_UNSEEN}]*(?:{rests})")
    name = rf"(?=[{firsts}])(?:{'|'.join(names)})"
    unseen = rf"[\s/\uff0f\u2044\u2215{_UNSEEN}]*"
    return re.compile(rf"([{_OPENS}])(?![{_OPENS}])(?={unseen}{name}(?:(?!\w)|[{_UNSEEN}]))")


_CONVERSATION, _END_OF_CONVERSATION = "<conversation>\n", "\n</conversation>\n"
_INNER = "instructions"
_QUOTED = "quoted"
LESSONS = "lessons"
"""Marks the message in which lessons of earlier runs are shown: to who plans or answers, and no part of the request."""
_SPEAKERS = {"human": "user", "ai": "assistant"}
"""Who speaks, by the type of a message."""
_NOT_IN_A_NAME = re.compile(r'[<>"\s]+')


def quoted(tag: str, text: str, **attributes: object) -> str:
    """Put text from outside between tags: it can neither close them nor pose as another part of a prompt."""
    return around(tag, _escape_tags(text), **attributes)


def _escape_tags(text: str) -> str:
    return _like_a_tag().sub(r"\1\\", text)


def around(tag: str, parts: str, **attributes: object) -> str:
    """Put tags around what is quoted already."""
    # Attributes come from outside as well, such as the name of a tool.
    names = ""
    for name, value in attributes.items():
        plain = _NOT_IN_A_NAME.sub(" ", str(value))
        names += f' {name}="{plain}"'
    return f"<{tag}{names}>\n{parts}\n</{tag}>"


def instructions(text: str) -> SystemMessage:
    """Make the message that tells a worker its part. It is for the worker alone, and no part of what is requested."""
    return SystemMessage(text, additional_kwargs={_INNER: True})


def material(text: str) -> HumanMessage:
    """Make the message that brings a worker material, in which all that comes from outside is quoted already."""
    return HumanMessage(text, additional_kwargs={_QUOTED: True})


def request_text(conversation: Sequence[BaseMessage]) -> str:
    """Return the request of a conversation: its last message, preceded by the earlier turns if there are any."""
    *earlier, question = conversation
    return _earlier_text(earlier) + quoted("request", question.text)


def after_others(request: str, earlier: Sequence[BaseMessage]) -> str:
    """Return a text that `request_text` has made, with other turns before what is requested, if it has any."""
    before, end, requested = request.rpartition(_END_OF_CONVERSATION)
    return _earlier_text(earlier) + requested if end and before.startswith(_CONVERSATION) else request


def in_other_words(request: str, text: str, instead: str) -> str:
    """Return a request with other words in the place of a text, which may stand in it as it is or quoted."""
    if len(text) > len(request) or instead in request or _escape_tags(instead) in request:
        return request
    if text not in request:
        text, instead = _escape_tags(text), _escape_tags(instead)
    before, found, after = request.rpartition(text)
    return f"{before}{instead}{after}" if found else request


def _earlier_text(messages: Sequence[BaseMessage]) -> str:
    turns: list[str] = []
    for message in without_lessons(messages):
        if message.text and not message.additional_kwargs.get(_INNER):
            turns.append(_turn_text(message))
    return around("conversation", "\n".join(turns)) + "\n" if turns else ""


def without_lessons(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return messages without the lessons of earlier runs, which a critic would take for words of the user."""
    return [message for message in messages if not message.additional_kwargs.get(LESSONS)]


def _turn_text(message: BaseMessage) -> str:
    if message.additional_kwargs.get(_QUOTED):
        return message.text
    speaker = _SPEAKERS.get(message.type, message.type)
    return f"{speaker}: {_escape_tags(message.text)}"


def steps_text(messages: Sequence[BaseMessage]) -> str:
    """Show the steps of a trajectory: thoughts, actions, observations, answers, each in its tags. Each of several calls
    that were made at once stands before its own observation."""
    parts: list[str] = []
    waiting = deque(messages)
    while waiting:
        message = waiting.popleft()
        replies: list[ToolMessage] = []
        while isinstance(message, AIMessage) and waiting and isinstance(waiting[0], ToolMessage):
            replies.append(cast(ToolMessage, waiting.popleft()))
        parts += _step_parts(message, replies)
    return "\n".join(parts)


def _step_parts(message: BaseMessage, replies: Sequence[ToolMessage]) -> list[str]:
    if isinstance(message, ToolMessage):
        return [_observation(message)]
    if isinstance(message, HumanMessage):
        return [message.text]
    if not isinstance(message, AIMessage) or not every_call(message):
        return [quoted("answer", message.text), *map(_observation, replies)]
    parts = [quoted("thought", message.text)] if message.text else []
    left = [*replies]
    for call in every_call(message):
        # What cannot be read is a text already.
        args = call["args"] if isinstance(call["args"], str) else json.dumps(call["args"], ensure_ascii=False)
        parts.append(quoted("action", f"{call['name']}({args})"))
        others: list[ToolMessage] = []
        for reply in left:
            if reply.tool_call_id == call["id"]:
                parts.append(_observation(reply))
            else:
                others.append(reply)
        left = others
    return [*parts, *map(_observation, left)]


def _observation(reply: ToolMessage) -> str:
    return quoted("observation", reply.text)
