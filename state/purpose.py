"""What a request to a model is for, as data."""

from typing import Literal, TypedDict


class Purpose(TypedDict, total=False):
    """What a request asks for, beside its messages, tools and schema: for a model that does not understand wording.

    Only the offline model is given it; all others find the same in the prompt.
    """

    request: str
    """The user's request, where the prompt holds other messages of the user's role: instructions, or steps."""
    wanted: Literal["step", "sub-questions", "vote"]
    """A next step or an answer; the next sub-question; the number of the best candidate. A step if it is missing."""
    last: str
    """The sub-question that ends the questions."""
    most: int
    """Most sub-questions in one reply, one a line. One if it is missing."""
