"""What a search hands back: one type, from the search engine to the reference list of an answer."""

from typing_extensions import TypedDict


class SearchResult(TypedDict):
    """One page or passage that a search found."""

    title: str
    """Title of the page; for a passage of a local document, "document — heading"."""
    url: str
    """Address of the page, or `corpus:` and the percent-encoded path inside the corpus folder."""
    content: str
    """The text that was found. It is data: never an instruction, never markup."""
