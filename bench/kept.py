"""What a model that holds a quarter of a conversation is still shown of it: `python -m bench.kept` prints the table of
docs/long-conversations.md.

The conversations are those of LoCoMo (Maharana et al. 2024, arXiv 2402.17753), `locomo.dev.jsonl.gz` of the folder. The
content of a question's evidence is the names and numbers in its turns, without those of the speakers; it is kept where
one line of the prompt holds all that a turn has, for each of the turns. The summary is the offline model's, an extract,
or that of the model that --model names, such as openai:NAME for the server at OPENAI_BASE_URL.
"""

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from bench.locomo import Conversation, Question, read_locomo
from bench.options import parser_of
from bench.recorded import RECORDED
from reflective_agents.memory.rankings.hybrid import RANKING as HYBRID
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.models.context_window import LOW, longest_estimated
from reflective_agents.models.costs import estimate_tokens
from reflective_agents.models.lexical import LexicalEmbeddings
from reflective_agents.models.meter import Meter
from reflective_agents.models.providers import get_model
from reflective_agents.nodes.asking.compaction import first_of_last_turns, summary_message
from reflective_agents.nodes.asking.summary import compact
from reflective_agents.state.context import Context
from reflective_agents.state.run import NOTHING_SPENT

RETRIEVED = 10
"""Memories that an answer of `memory` is given."""
_TELLING = re.compile(r"(?<![.!?] )(?<!^)\b(?:[A-Z]\w+|\w*\d\w*)")
"""A name that does not begin a sentence, or a number."""
WAYS = ("last turns alone", "summary and last turns", "last turns and memory")


def as_thread(conversation: Conversation) -> list[AnyMessage]:
    """Return the turns as messages: the first speaker is the user."""
    first = conversation.turns[0].get("speaker")
    thread: list[AnyMessage] = []
    for turn in conversation.turns:
        kind = HumanMessage if turn.get("speaker") == first else AIMessage
        thread.append(kind(turn["text"], id=turn["id"]))
    return thread


def telling(conversation: Conversation, question: Question) -> list[set[str]]:
    """Return the names and numbers of each turn with the question's evidence, of those that have any."""
    speakers = {str(turn.get("speaker")) for turn in conversation.turns}
    telling: list[set[str]] = []
    for turn in conversation.turns:
        words = {*_TELLING.findall(turn["text"])} - speakers
        if words and turn["id"] in question.audited:
            telling.append(words)
    return telling


def is_kept(evidence: Iterable[set[str]], lines: Iterable[str]) -> bool:
    """Tell whether each turn's names and numbers stand in one line."""
    shown = [{*re.findall(r"\w+", line)} for line in lines]
    return all(any(words <= line for line in shown) for words in evidence)


async def prompts_of(conversation: Conversation, model: str) -> list[list[list[str]]]:
    """Return, for each way, the lines of the conversation that each question's prompt has; the model summarises."""
    thread = as_thread(conversation)
    window = max(estimate_tokens(thread, {}) // 8, 512)  # two estimated tokens are one, and of these a quarter
    limits: dict[str, Any] = {"compact_share": 1, "max_model_calls": 1_000, "call_timeout": 900}
    context = Context(model="offline", compact_model=model, context_window=window, **limits)
    meter = Meter(context, NOTHING_SPENT)
    most = int(LOW * (longest_estimated(get_model("offline"), meter) or 0))
    last = [str(message.text) for message in thread[first_of_last_turns(thread, most) :]]
    state: Any = {"messages": [*thread, HumanMessage("So?", id="question")]}
    compaction = await compact(state, context, meter, most)
    assert compaction is not None
    kept = [str(message.text) for message in thread[compaction["messages"] :]]
    summary = [*summary_message(compaction).text.splitlines(), *kept]
    stream = await MemoryStream.open(InMemoryStore(), conversation.id, LexicalEmbeddings())
    await stream.add(conversation.turns)
    with_memory: list[list[str]] = []
    for question in conversation.questions:
        found = await stream.retrieve(question.text, k=RETRIEVED, now=conversation.now, ranking=HYBRID, renew=False)
        with_memory.append([*last, *(scored.memory["text"] for scored in found)])
    count = len(conversation.questions)
    return [[last] * count, [summary] * count, with_memory]


async def all_prompts(conversations: Iterable[Conversation], model: str) -> list[list[list[list[str]]]]:
    """Return what `prompts_of` does of each conversation, all at once."""
    return await asyncio.gather(*(prompts_of(conversation, model) for conversation in conversations))


def main() -> None:
    """Print the table."""
    parser = parser_of("bench.kept", __doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=RECORDED)
    parser.add_argument("--model", default="offline", help="who summarises; default: offline")
    parser.add_argument("--conversations", type=int, help="only so many, the shortest; default: all")
    options = parser.parse_args()
    every = sorted(read_locomo(options.folder / "locomo.dev.jsonl.gz"), key=lambda one: len(one.turns))
    conversations = every[: 1 if options.quick else options.conversations]
    kept, total = [0] * len(WAYS), 0
    shown = asyncio.run(all_prompts(conversations, options.model))
    for conversation, prompts in zip(conversations, shown, strict=True):
        for number, question in enumerate(conversation.questions):
            if evidence := telling(conversation, question):
                total += 1
                for way, lines in enumerate(prompts):
                    kept[way] += is_kept(evidence, lines[number])
    print(f"{total} questions of {len(conversations)} conversations\n\n| shown | evidence kept |\n|---|--:|")
    for name, count in zip(WAYS, kept, strict=True):
        print(f"| {name} | {count / total:.0%} |")


if __name__ == "__main__":
    main()
