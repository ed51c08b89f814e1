"""Images of a question: every prompt that shows the question in words shows its images too."""

import re
from collections.abc import Sequence
from itertools import chain
from typing import TypeAlias, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage

from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonMapping, JsonObject

M = TypeVar("M", bound=BaseMessage)
Block: TypeAlias = str | JsonObject
"""A part of a message's content, as LangChain has it."""
TOKENS = 2_000
"""What an image is taken to cost, about as much as a large one does."""
_ABOUT_IMAGES = re.compile(r"image|vision|multi-?modal|mmproj", re.IGNORECASE)


def images_of(message: BaseMessage) -> list[Block]:
    """Return the images in a message, in OpenAI's form or LangChain's."""
    if isinstance(message.content, str):
        return []
    return [block for block in message.content if _kind(block) in ("image", "image_url")]


def check_content(messages: Sequence[BaseMessage]) -> None:
    """Refuse questions that hold more than text and images.

    Raises:
        Misuse: if one does; the message names what it holds.
    """
    kinds = set[str]()
    for message in messages:
        if message.type == "human":
            kinds.update(map(_kind, _blocks(message)))
    unsupported = sorted(kinds - {"text", "image", "image_url"})
    if unsupported:
        raise Misuse(
            f"a question may hold text and images, and this one holds {', '.join(unsupported)}: leave that out"
        )


def show_images(prompt: Sequence[M], conversation: Sequence[BaseMessage]) -> list[M]:
    """Add to a prompt the images of all questions whose words it shows, unless it has them.

    Args:
        prompt: The prompt.
        conversation: What the run was asked, with its images.
    """
    shown = list(prompt)
    for message in conversation:
        images = images_of(message)
        held = [*chain.from_iterable(map(_blocks, shown))] if images else []
        missing = [image for image in images if image not in held]
        # Only where the words are: a prompt without the question, such as a summary's, is not about its images.
        index = _where(message.text, shown) if missing else None
        if index is not None:
            content = [*_blocks(shown[index]), *missing]
            shown[index] = shown[index].model_copy(update={"content": content})
    return shown


def about_images(prompt: Sequence[BaseMessage], refusal: str) -> bool:
    """Tell whether a server refuses a prompt for its images."""
    return any(map(images_of, prompt)) and bool(_ABOUT_IMAGES.search(refusal))


def _where(text: str, prompt: Sequence[BaseMessage]) -> int | None:
    """Return which of a user's messages to show an image in: the last one with these words, else the last one; None if
    the prompt has these words nowhere."""
    showing = [index for index, message in enumerate(prompt) if _plain(text) in _plain(message.text)]
    asking = [index for index, message in enumerate(prompt) if isinstance(message, HumanMessage)]
    if not showing or not asking:
        return None
    return max({*showing} & {*asking}, default=asking[-1])


def _plain(text: str) -> str:
    """Return a text as it was before it was quoted."""
    return " ".join(text.replace("<\\", "<").split())


def _blocks(message: BaseMessage) -> list[Block]:
    if isinstance(message.content, str):
        return [{"type": "text", "text": message.content}]
    return message.content


def _kind(block: Block | JsonMapping) -> str:
    return "text" if isinstance(block, str) else str(block.get("type"))
