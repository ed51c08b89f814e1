"""Citations across several answers: one numbering where they are read together, and a list of its own for each that
stands alone."""

from collections.abc import Mapping, Sequence

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage

from reflective_agents.nodes.evidence.citations import CheckedAnswer
from reflective_agents.nodes.evidence.long_questions import words_of
from reflective_agents.nodes.evidence.marks import replace_citations
from reflective_agents.nodes.evidence.reference_list import reference_line, split_references, titles_in, with_list
from reflective_agents.nodes.evidence.sources import NO_SOURCES, PARTS, Source, Sources, thread_sources
from reflective_agents.state.run import S

MARK = "s"
"""What stands before the numbers of others' sources, where a worker's own results have numbers too: [s1]."""


def number_together(
    answers: Sequence[str], mark: str = "", earlier: Sources = NO_SOURCES
) -> tuple[list[str], dict[int, Source]]:
    """Bring answers under one numbering, so that [1] is the same source in all of them.

    Args:
        answers: Texts, each with a list of references of its own if it cites.
        mark: What stands before each number.
        earlier: Sources that have their numbers already.

    Returns:
        The texts with their lists in the common numbers, and all sources by these.
    """
    sources = dict(earlier)
    numbers = {source.url: number for number, source in sources.items()}
    for answer in answers:
        titles = titles_in(answer)
        _, listed = split_references(answer)
        for url in listed.values():
            if url not in numbers:
                numbers[url] = number = max(sources, default=0) + 1
                sources[number] = Source(number, url, titles.get(url, ""))
    return [_renumbered(answer, numbers, mark) for answer in answers], sources


def in_thread(state: S) -> S:
    """Return the state as a node sees it: a number means the same source in all answers of the conversation.

    Only answers that other programs have numbered are changed.
    """
    messages = state["messages"]
    numbers = {source.url: number for number, source in thread_sources(messages).items()}
    shown = [_in_numbers(message, numbers) if isinstance(message, AIMessage) else message for message in messages]
    if all(new is old for new, old in zip(shown, messages, strict=True)):
        return state
    changed = state.copy()
    changed["messages"] = shown
    return changed


def numbered_in_thread(answer: AIMessage, conversation: Sequence[AnyMessage]) -> AIMessage:
    """Return an answer in the numbers of the conversation that it follows."""
    sources = thread_sources([*conversation, answer])
    shown = _in_numbers(answer, {source.url: number for number, source in sources.items()})
    return shown if shown is answer else shown.model_copy(update={"id": None})  # what was streamed was another text


def without_citations(conversation: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Take the citations and their lists out of the answers in a conversation, and the parts of texts out of its
    questions, for those who number other sources."""
    return [_uncited(message) for message in conversation]


def with_own_references(answer: str, sources: Sequence[str], *, searched: bool, prompt_text: str = "") -> CheckedAnswer:
    """Give the answer of a worker a list of references of its own, which holds what it cites of others' sources too.

    Args:
        answer: The text; [s1] cites the first of the sources, [1] the first of its own list.
        sources: The addresses of what others have found.
        searched: Whether the worker could look things up, and has had its own list checked. What another one lists
            has to be among the sources, or is removed and reported.
        prompt_text: What the worker was shown, in which the titles of the sources stand.
    """
    body, numbered = split_references(answer)
    listed = {str(number): url for number, url in numbered.items()}
    right: dict[str, str] = {}
    for number, url in enumerate(sources, 1):
        right[f"{MARK}{number}"] = url
        if not listed and not searched:
            right[str(number)] = url
    wrong: dict[str, None] = {}
    for mark, url in listed.items():
        if searched or url in sources:
            right[mark] = url
        else:
            wrong[f"[{mark}] {url}"] = None
    order: dict[str, int] = {}

    def correct(marks: Sequence[str]) -> Sequence[str]:
        if searched and not any(mark in right or mark.startswith(MARK) for mark in marks):
            return marks  # checked before: it is none of its list, so it is text
        corrected: dict[str, None] = {}
        for mark in marks:
            if mark in right:
                number = order.setdefault(right[mark], len(order) + 1)
                corrected[str(number)] = None
            elif mark not in listed:
                wrong[f"[{mark}]"] = None
        return list(corrected)

    text = replace_citations(body, {*right, *listed}, correct)
    only_listed = [url for url in listed.values() if url in right.values()]
    urls = [*order] or only_listed
    titles = titles_in(f"{prompt_text}\n{answer}")
    cited = {number: Source(number, url, titles.get(url, "")) for number, url in enumerate(urls, 1)}
    return CheckedAnswer(text.strip(), cited, [*wrong], cited)


def _in_numbers(message: AIMessage, numbers: Mapping[str, int]) -> AIMessage:
    text = message.text
    renumbered = _renumbered(text, numbers)
    return message if renumbered == text else message.model_copy(update={"content": renumbered})


def _uncited(message: BaseMessage) -> BaseMessage:
    if not isinstance(message, AIMessage):
        return without_parts(message)
    body, listed = split_references(message.text)
    if not listed:
        return message
    return message.model_copy(update={"content": replace_citations(body, {*map(str, listed)}, lambda _: ())})


def without_parts(message: BaseMessage) -> BaseMessage:
    """Return a question without the parts of texts that it shows."""
    if PARTS not in message.additional_kwargs:
        return message
    return HumanMessage(words_of(message), id=message.id)


def _renumbered(answer: str, numbers: Mapping[str, int], mark: str = "") -> str:
    """Return an answer with its list in other numbers, which are given by address."""
    body, listed = split_references(answer)
    new = {str(number): f"{mark}{numbers[url]}" for number, url in listed.items()}
    if all(old == name for old, name in new.items()):
        return answer

    def renumber(marks: Sequence[str]) -> Sequence[str]:
        if not new.keys() >= {*marks}:
            return marks
        renamed = [new[mark] for mark in marks]
        return list(dict.fromkeys(renamed))

    titles = titles_in(answer)
    lines: dict[str, None] = {}
    for number, url in listed.items():
        line = reference_line(url, titles.get(url, ""))
        lines[f"[{new[str(number)]}] {line}"] = None
    return with_list(replace_citations(body, new, renumber), lines)
