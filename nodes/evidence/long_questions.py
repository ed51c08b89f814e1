"""Messages of the user's that are too long for the model: it is shown the question, and what fits it of the text.

The thread's messages stay whole, and so the texts belong to their thread alone. What is shown is made anew from them
for each node; the last message holds the passages that fit its question, of all texts of the thread.
"""

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from reflective_agents.models.context_window import BYTES_OF_MESSAGE
from reflective_agents.models.images import images_of
from reflective_agents.nodes.evidence.long_texts import (
    ALONE,
    HOLDS,
    TITLE,
    LongTexts,
    context_tokens_of,
    longest_prompt,
    text_url,
)
from reflective_agents.nodes.evidence.sources import PARTS, numbers_of, thread_sources, with_number
from reflective_agents.prompts import long_texts as prompts
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse
from reflective_agents.state.run import LongText, S
from reflective_agents.text.joined import joined

MOST_CHARACTERS = 5_000_000
"""Characters of a message at most."""
ALWAYS_WHOLE = 2_000
"""Characters of a message that is shown whole, whatever the model holds."""
LONGEST_UNKNOWN = 200_000
"""Bytes of a message that is shown whole while nobody knows what the model's context holds."""
INPUT_SHARE = 2
"""Which part of the longest prompt that the settings allow a message may take: a half."""
LONGEST_QUESTION, LONGEST_REMARK = 2_000, 500
"""Characters of a paragraph that ends with a question mark, or that has one in it, and so is a question."""
QUESTION = "question"
"""Where a message that is shown in part holds the words of its question alone."""
SCHEME = "message:"
"""How the addresses of messages begin."""
_PART = re.compile(r"(message:\w+)#char=(\d{1,9}),(\d{1,9})")
_ASKS = re.compile(r"[?\uff1f\u061f][\s\"'\u201d\u2019\u300d\u300f)\uff09*_]*\Z")
_EDGES = (re.compile(r"\n\s{0,50}\n"), re.compile(r"\n"), re.compile(r"(?<=[.!?])\s|(?<=[\u3002\uff01\uff1f])"))
"""What divides a question from a text: an empty line, or else the end of a line, or of a sentence."""


async def with_texts(state: S, texts: LongTexts, context: Context, *, begins: bool = False) -> S:
    """Return the state as a node sees it: with the long messages of the user in part.

    Args:
        state: The state, with its question last.
        texts: The texts of the run, which are given those of the user.
        context: The settings of the run.
        begins: Whether the turn begins, so that a text without a question is refused.

    Raises:
        Misuse: if there is no question apart from the text of the last message, or it is too long.
    """
    messages = state["messages"]
    if not any(map(is_long, messages)):
        return state
    most = longest_message(context)
    shown = [_in_part(message, texts, most, refuses=begins and message is messages[-1]) for message in messages]
    if all(new is old for new, old in zip(shown, messages, strict=True)):
        return state
    changed = state.copy()
    changed["messages"] = [*shown[:-1], await _with_passages(shown, texts)]
    return changed


def is_long(message: BaseMessage) -> bool:
    """Tell whether a message of the user's is so long that it may be shown in part, or is a text to be cited."""
    text = message.content if isinstance(message.content, str) else message.text
    return message.type == "human" and (len(text) > ALWAYS_WHOLE or is_text(message))


def is_text(message: BaseMessage) -> bool:
    """Tell whether a message is a text that asks nothing: its parts have numbers by which they are cited."""
    return message.additional_kwargs.get(HOLDS) == ALONE


def longest_message(context: Context) -> int:
    """Return how many bytes of a message a model is shown."""
    known = context_tokens_of(context)
    most = longest_prompt(context, None) / INPUT_SHARE
    return LONGEST_UNKNOWN if known is None else int(min(BYTES_OF_MESSAGE * known, most))


def words_of(message: BaseMessage) -> str:
    """Return the words of a question, without what is shown of the text that came with it."""
    return str(message.additional_kwargs.get(QUESTION, message.text))


def parts_of(messages: Sequence[AnyMessage], urls: Iterable[str]) -> dict[str, str]:
    """Return the parts of long messages that have these addresses, by address."""
    by_url: dict[str, str] = {}
    for message in messages:
        if isinstance(message, HumanMessage) and is_long(message):
            _, text = _parts_of(message)
            by_url[text_url(SCHEME, text)] = text
    parts: dict[str, str] = {}
    for url in urls:
        part = _PART.fullmatch(url)
        if part and part[1] in by_url:
            begin, end = int(part[2]), int(part[3])
            parts[url] = by_url[part[1]][begin:end]
    return parts


def holds_text(messages: Sequence[AnyMessage]) -> bool:
    """Tell whether a strategy was handed a long text of the user's."""
    return any(HOLDS in message.additional_kwargs for message in messages)


def _in_part(message: AnyMessage, texts: LongTexts, most: int, *, refuses: bool) -> AnyMessage:
    """Return a message of the user's as it is shown, and give its text to the others if it is too long."""
    size = len(message.text)
    is_shown = _fits(message.text, most) and not is_text(message)
    if not isinstance(message, HumanMessage) or is_shown:
        return message
    if refuses and size > MOST_CHARACTERS:
        raise Misuse(prompts.TOO_LONG.format(characters=size, most=MOST_CHARACTERS))
    question, text = _parts_of(message)
    if refuses and not question:
        raise Misuse(prompts.NO_QUESTION.format(characters=size))
    url = text_url(SCHEME, text)
    beginning = " ".join(text[:40].split())
    title = str(message.additional_kwargs.get(TITLE) or f"{beginning} ...")
    texts.give(url, LongText(title=title, text=text), message.id)
    words = prompts.NAMED if is_text(message) else prompts.GIVEN
    about = words.format(characters=len(text), url=url, title=title)
    return _showing(message, question, f"{question}\n\n{about}".strip())


async def _with_passages(shown: Sequence[AnyMessage], texts: LongTexts) -> AnyMessage:
    """Return the last message with the passages that fit it."""
    last = shown[-1]
    question = words_of(last)
    parts = await texts.given_parts(question)
    numbers = numbers_of(parts, thread_sources(shown))
    numbered = [with_number(part, numbers) for part in parts]
    passages = prompts.SHOWN.format(passages=json.dumps(numbered, ensure_ascii=False))
    message = _showing(last, question, f"{last.text}\n\n{passages}")
    message.additional_kwargs[PARTS] = numbered
    return message


def _fits(text: str, most: int) -> bool:
    """Tell whether a text has so many bytes at most; they are counted only where the characters do not tell."""
    if 3 * len(text) <= most:
        return True
    return len(text) <= most and len(text.encode(errors="surrogatepass")) <= most


def _showing(message: AnyMessage, question: str, text: str) -> AnyMessage:
    images = images_of(message)
    content = [{"type": "text", "text": text}, *images] if images else text
    return HumanMessage(content, id=message.id, additional_kwargs={**message.additional_kwargs, QUESTION: question})


def _parts_of(message: HumanMessage) -> tuple[str, str]:
    """Return the question of a message, and its text. Of a message in several blocks, the short ones ask."""
    if message.additional_kwargs.get(HOLDS) == ALONE:
        return "", message.text
    if isinstance(message.content, list):
        blocks = [block if isinstance(block, str) else str(block.get("text", "")) for block in message.content]
        short = [block for block in blocks if block.strip() and len(block) <= LONGEST_QUESTION]
        question = "\n".join(short)
        if short and len(question) <= 2 * LONGEST_QUESTION:
            long = [block for block in blocks if len(block) > LONGEST_QUESTION]
            return question, "\n".join(long)
        return split_question("\n\n".join(blocks))
    return split_question(message.text)


@lru_cache(maxsize=16)
def split_question(message: str) -> tuple[str, str]:
    """Split a long message into the question, in its first or last paragraph, line or sentence, and the text.

    Returns:
        The question, empty if there is none, and the rest.
    """
    text = message.strip()
    first = _question_among([_first(text, edge) for edge in _EDGES])
    rest = text[len(first) :]
    last = _question_among([_last(rest, edge) for edge in _EDGES])
    rest = rest[: len(rest) - len(last)]
    return joined([first.strip(), last.strip()]), rest.strip()


def _question_among(paragraphs: Iterable[str]) -> str:
    """Return the first that may be a question; empty if none may."""
    for paragraph in paragraphs:
        if asks(paragraph):
            return paragraph
    return ""


def asks(paragraph: str) -> bool:
    """Tell whether a paragraph may be a question: by its question mark, whatever its language."""
    text = paragraph.strip()
    if len(text) > LONGEST_QUESTION:
        return False
    has_mark = "?" in text or "\uff1f" in text
    return _ASKS.search(text) is not None or (has_mark and len(text) <= LONGEST_REMARK)


def _first(text: str, edge: re.Pattern[str]) -> str:
    """Return what stands before the first edge, if that is near the beginning."""
    found = edge.search(text, 0, LONGEST_QUESTION + ALWAYS_WHOLE)
    return text[: found.start()] if found else ""


def _last(text: str, edge: re.Pattern[str]) -> str:
    """Return what stands behind the last edge, if that is near the end."""
    tail = text[-LONGEST_QUESTION - ALWAYS_WHOLE :].rstrip()
    ends = [found.end() for found in edge.finditer(tail) if found.end() < len(tail)]
    return text[len(text) - len(tail) + ends[-1] :] if ends else ""
