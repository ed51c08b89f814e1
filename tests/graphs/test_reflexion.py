"""Draft, search, revise: control flow, retries and citations, and what published versions get wrong."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver

from reflective_agents.graphs.reflexion import builder, graph
from reflective_agents.prompts import reflexion as prompts
from reflective_agents.state.settings.reflexion import ReflexionContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse

QUESTION = {"messages": [("user", "What do tides do?")]}
Revise = Callable[[Request, int], dict[str, Any]]


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    for name in ("moon", "tides", "sand"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\nThe {name} moves the water of the ocean every single day.\n")
    return str(tmp_path)


def revision(round: int, **changes: Any) -> dict[str, Any]:
    value = {
        "answer": f"Revision {round} [1].",
        "reflection": {"missing": "more", "superfluous": "", "complete": False},
        "search_queries": [f"moon {round}"],
    }
    return {**value, **changes}


def model(revise: Revise = lambda _, round: revision(round), **draft: Any) -> FakeChatModel:
    """A responder whose revisions are `revise(request, round)`."""

    def reply(request: Request) -> Reply:
        if request.schema == "AnswerQuestion":
            critique = {"missing": "evidence", "superfluous": "", "complete": False}
            return {"answer": "Draft.", "reflection": critique, "search_queries": ["moon"], **draft}
        return revise(
            request, sum(message.type == "tool" and "does not fit" not in message.text for message in request.messages)
        )

    return FakeChatModel(reply=reply)


async def run(fake: FakeChatModel, corpus: str | None, **context: Any) -> Any:
    settings = {"model": fake, "search": "local", "corpus": corpus, "verify_sources": False, **context}
    return await graph.ainvoke(QUESTION, context=ReflexionContext.model_validate(settings))


async def test_the_final_message_is_the_answer_with_its_references(corpus: str) -> None:
    fake = model(lambda _, round: revision(round, reflection={"missing": "", "superfluous": "", "complete": True}))
    out = await run(fake, corpus)
    final = out["messages"][-1]
    assert isinstance(final, AIMessage)
    assert not final.tool_calls
    assert not final.invalid_tool_calls
    assert final.text == out["answer"] == "Revision 1 [1].\n\nReferences:\n[1] corpus:moon.md"
    assert out["outcome"]["status"] == "answered"


@pytest.mark.parametrize("rounds", [1, 2, 4])
async def test_rounds_are_counted_not_messages(rounds: int, corpus: str) -> None:
    fake = model(lambda _, round: revision(round, search_queries=[f"moon {round} {i}" for i in range(3)]))
    out = await run(fake, corpus, max_rounds=rounds)
    assert [answer["round"] for answer in out["answers"]] == list(range(rounds + 1))
    assert out["outcome"]["status"] == "limit_reached"
    assert out["outcome"]["limit"] == {"name": "max_rounds", "most": rounds, "spent": rounds}
    assert len(fake.calls) == rounds + 1


@pytest.mark.parametrize("missing", ["", "None", "Nothing significant is missing.", "没有遗漏。"])
async def test_it_stops_when_the_answer_is_complete(missing: str, corpus: str) -> None:
    fake = model(lambda _, round: revision(round, reflection={"missing": missing, "superfluous": "", "complete": True}))
    out = await run(fake, corpus, max_rounds=5)
    assert (out["outcome"]["status"], len(fake.calls)) == ("answered", 2)


async def test_it_stops_after_a_revision_without_a_new_query(corpus: str) -> None:
    out = await run(model(lambda _, round: revision(round, search_queries=["  MOON "])), corpus)
    assert (out["outcome"]["status"], len(out["answers"])) == ("exhausted", 3)


async def test_what_its_own_critique_calls_wrong_is_mended_without_a_search(corpus: str) -> None:
    def revise(_: Request, round: int) -> dict[str, Any]:
        wrong = {"missing": "The driver was counted twice: it is 34.80.", "superfluous": "", "complete": False}
        right = {"missing": "", "superfluous": "", "complete": True}
        price = "41.20" if round == 1 else "34.80"
        return revision(
            round, answer=f"It costs {price} [1].", reflection=wrong if round == 1 else right, search_queries=[]
        )

    fake = model(revise)
    out = await run(fake, corpus)
    assert out["answer"].startswith("It costs 34.80")
    assert (out["outcome"]["status"], len(fake.calls)) == ("answered", 3)
    assert "the faults that your own critique has named" in fake.calls[-1].last


async def test_the_end_is_the_last_event_where_a_limit_meets_a_search_in_flight() -> None:
    def slow(query: str) -> list[dict[str, str]]:
        time.sleep(0.05)
        return []

    def reply(request: Request) -> Reply:
        critique = {"missing": "evidence", "superfluous": "", "complete": False}
        if request.schema:
            return {"answer": "Draft.", "reflection": critique, "search_queries": ["moon"]}
        return ToolUse("lookup", {"word": "moon"})

    def lookup(word: str) -> str:
        """Look a word up."""
        return word

    context = ReflexionContext(model=FakeChatModel(reply=reply), search=slow, tools=[lookup], max_model_calls=2)
    events = [event async for event in graph.astream(QUESTION, context=context, stream_mode="custom")]
    assert [event["event"] for event in events][-2:] == ["search", "end"]


async def test_an_answer_that_says_what_nobody_could_find_ends_without_a_further_search(corpus: str) -> None:
    lacking = {"missing": "who measured it first", "superfluous": "", "complete": False}
    fake = model(lambda _, round: revision(round, reflection=lacking, search_queries=[]))
    out = await run(fake, corpus)
    assert (out["outcome"]["status"], len(fake.calls)) == ("exhausted", 3)
    assert [answer["searched"] for answer in out["answers"]] == [["moon"], [], []]
    assert out["outcome"]["reason"].endswith(": who measured it first")
    assert "What was searched for and not found, the answer says" in fake.calls[-1].messages[0].text
    assert "false also if it cannot be found" in str(fake.calls[-1].schemas["ReviseAnswer"])
    assert "no search can complete it" in str(fake.calls[-1].schemas["ReviseAnswer"])


async def test_an_answer_that_stays_the_same_after_a_search_is_not_mended_once_more(corpus: str) -> None:
    lacking = {"missing": "her name", "superfluous": "", "complete": False}
    fake = model(
        lambda _, round: revision(
            round, answer="Nobody knows [1].", reflection=lacking, search_queries=["sand"] if round == 1 else []
        )
    )
    out = await run(fake, corpus)
    assert (out["outcome"]["status"], len(fake.calls)) == ("exhausted", 3)


async def test_the_responder_is_told_when_searches_bring_nothing_new(corpus: str) -> None:
    fake = model(lambda _, round: revision(round, search_queries=["moon water"]), search_queries=["moon", "water"])
    await run(fake, corpus, max_rounds=2)
    first, second = (request.last for request in fake.calls[1:])
    assert first == prompts.TODO
    assert second == prompts.TODO_NOTHING_NEW + prompts.LAST_TODO


@pytest.mark.parametrize(
    ("queries", "todo"), [([], prompts.TODO_ALONE), (["sand castles xyz"], prompts.TODO_NOTHING_NEW)]
)
async def test_searches_have_brought_nothing_only_where_some_were_made(queries: list[str], todo: str) -> None:
    done = {"missing": "", "superfluous": "", "complete": True}
    fake = model(lambda _, round: revision(round, answer="So.", reflection=done), search_queries=queries)
    await run(fake, None, search=lambda query: [])
    assert fake.calls[1].last == todo


@pytest.mark.parametrize(("missing", "calls"), [("", 1), ("the wind", 2)])
async def test_a_complete_draft_is_the_answer_where_nothing_can_be_searched(missing: str, calls: int) -> None:
    done = {"missing": "", "superfluous": "", "complete": True}
    fake = model(
        lambda _, round: revision(round, reflection=done, search_queries=[]),
        reflection={"missing": missing, "superfluous": "", "complete": True},
        search_queries=[],
    )
    out = await run(fake, None, search="none")
    assert (len(fake.calls), out["outcome"]["status"]) == (calls, "answered")


async def test_only_who_searches_later_is_told_that_the_next_answer_names_the_sources(corpus: str) -> None:
    drafts = []
    for search in ("local", "none"):
        fake = model(lambda _, round: revision(round, answer="So.", search_queries=[]))
        await run(fake, corpus if search == "local" else None, search=search)
        drafts.append(fake.calls[0].messages[0].text)
    assert ["the next one cites" in text for text in drafts] == [True, False]
    assert not [text for text in drafts if "Cite nothing" in text]


async def test_a_second_question_on_the_thread_is_accepted(corpus: str) -> None:
    fake, thread = model(), builder.compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    context = ReflexionContext(model=fake, search="local", corpus=corpus, max_rounds=1)
    await thread.ainvoke(QUESTION, config, context=context)
    out = await thread.ainvoke({"messages": [("user", "And why?")]}, config, context=context)
    assert [message.type for message in out["messages"]] == ["human", "ai", "human", "ai"]
    assert len(out["answers"]) == 2


class TestResponder:
    """What does not fit the schema goes back to the model."""

    async def test_the_validation_error_is_told_and_the_corrected_answer_taken(self, corpus: str) -> None:
        def revise(request: Request, round: int) -> dict[str, Any]:
            return revision(round) if "That does not fit" in request.last else {"reflection": {}}

        fake = model(revise)
        out = await run(fake, corpus, max_rounds=1)
        assert out["answer"].startswith("Revision 1")
        assert "answer: is missing" in fake.calls[-1].last
        assert out["usage"]["parse_failures"] == 1

    async def test_plain_text_is_no_answer(self, corpus: str) -> None:
        fake = FakeChatModel(reply=lambda request: AIMessage("I think it is the moon."))
        out = await run(fake, corpus)
        assert (out["answer"], out["outcome"]["status"], len(fake.calls)) == (None, "failed", 3)
        assert [message.type for message in out["messages"]] == ["human"]
        assert fake.calls[0].tool_choice == "AnswerQuestion"

    async def test_after_three_attempts_an_earlier_valid_answer_is_returned(self, corpus: str) -> None:
        def revise(request: Request, round: int) -> dict[str, Any]:
            return revision(round) if round == 1 else {"answer": "invalid"}

        out = await run(model(revise), corpus)
        assert out["answer"].startswith("Revision 1")
        assert (out["outcome"]["status"], out["usage"]["parse_failures"]) == ("exhausted", 3)

    async def test_no_more_than_three_queries_fit(self, corpus: str) -> None:
        out = await run(model(search_queries=["a", "b", "c", "d"]), corpus)
        assert out["outcome"]["status"] == "failed"
        assert "search_queries" in out["outcome"]["reason"]


class TestCitations:
    """The responder cites the numbers of results; the list of references is built of them."""

    @pytest.mark.parametrize(
        ("answer", "problem"),
        [
            ("See [1] and [7].", "[7]"),
            ("See [1, 3, 9].", "[9]"),
            ("See [1].\n\nReferences:\n[1] https://made.up/page", "[1] https://made.up/page"),
            ("See [1] and https://made.up/page.", "https://made.up/page"),
        ],
    )
    async def test_what_was_never_found_is_told_once(self, answer: str, problem: str, corpus: str) -> None:
        def revise(request: Request, round: int) -> dict[str, Any]:
            return revision(round, **({} if "That does not fit" in request.last else {"answer": answer}))

        fake = model(revise)
        out = await run(fake, corpus, max_rounds=1)
        assert problem in fake.calls[-1].last
        assert out["answer"] == "Revision 1 [1].\n\nReferences:\n[1] corpus:moon.md"
        assert out["answers"][1]["references"] == ["corpus:moon.md"]

    async def test_a_revision_is_kept_without_a_citation_that_stays_wrong_and_is_not_solved(self, corpus: str) -> None:
        good = {"complete": True, "missing": "", "superfluous": ""}
        fake = model(lambda _, round: revision(round, answer="Tides [1], winds [7].", reflection=good))
        out = await run(fake, corpus, max_rounds=1)
        assert out["answer"] == "Tides [1], winds.\n\nReferences:\n[1] corpus:moon.md"
        assert len(fake.calls) == 3
        assert out["outcome"]["status"] != "solved"
        assert "[7]" in out["outcome"]["reason"]

    async def test_the_next_round_is_told_what_was_removed(self, corpus: str) -> None:
        fake = model(lambda _, round: revision(round, answer="Winds [7]."))
        await run(fake, corpus, max_rounds=2)
        results = fake.calls[-1].messages[-4 if "fit" in fake.calls[-1].last else -2]
        assert "that was removed: [7]" in results.text

    async def test_results_are_numbered_once_for_the_run_and_found_once(self, corpus: str) -> None:
        fake = model(lambda _, round: revision(round, search_queries=["tides", "sand"]))
        out = await run(fake, corpus, max_rounds=2)
        first, second = [
            json.loads(message.text)["results"] for message in fake.calls[-1].messages if message.type == "tool"
        ]
        urls = [source["url"] for source in out["sources"]]
        assert [found["number"] for found in [*first, *second]] == [1 + urls.index(u) for u in dict.fromkeys(urls)]
        assert "references" not in str(fake.calls[-1].schemas["ReviseAnswer"])

    async def test_a_list_of_its_own_counts_by_its_addresses_and_is_replaced(self, corpus: str) -> None:
        text = "It is so [4].\n\n## References\n- [4] corpus:moon.md"
        out = await run(model(lambda _, round: revision(round, answer=text)), corpus, max_rounds=1)
        assert out["answer"] == "It is so [1].\n\nReferences:\n[1] corpus:moon.md"

    async def test_a_draft_that_cites_without_references_loses_its_citations(self, corpus: str) -> None:
        out = await run(model(answer="Known since 1687 [1][2]."), corpus, max_model_calls=1)
        assert out["answer"] == "Known since 1687."


class TestSearch:
    """Queries are capped, run at once, never twice, and a failing one kills nothing."""

    async def test_queries_are_deduplicated_within_and_across_rounds(self, corpus: str) -> None:
        def revise(request: Request, round: int) -> dict[str, Any]:
            return revision(round, search_queries=["Moon", f"tides {round}"])

        out = await run(model(revise, search_queries=["moon", "MOON ", "tides"]), corpus, max_rounds=2)
        assert out["usage"]["tool_calls"] == 3

    async def test_queries_are_capped(self, corpus: str) -> None:
        out = await run(model(search_queries=["moon", "tides", "sand"]), corpus, max_rounds=1, max_queries=2)
        assert out["usage"]["tool_calls"] == 2

    async def test_results_reach_the_responder_as_the_answer_to_its_call(self, corpus: str) -> None:
        fake = model()
        await run(fake, corpus, max_rounds=1)
        *_, call, results, instruction = fake.calls[-1].messages
        assert isinstance(call, AIMessage)
        assert results.tool_call_id == call.tool_calls[0]["id"]  # type: ignore[attr-defined]
        assert {found["url"] for found in json.loads(results.text)["results"]} >= {"corpus:moon.md"}
        assert instruction.type == "human"

    async def test_a_search_that_finds_nothing_kills_nothing(self, corpus: str) -> None:
        fake = model(lambda _, round: revision(round, answer="None."), search_queries=["xyzzy"])
        out = await run(fake, corpus, max_rounds=1)
        assert out["answer"] == "None."
        assert out["usage"]["tool_errors"] == 1

    async def test_each_problem_of_a_round_is_told_once(self, corpus: str) -> None:
        """A citation that was removed, a search that fails and a tool that fails."""
        responder = model(lambda _, round: revision(round, answer="Winds [7].", search_queries=["xyzzy"])).reply

        def reply(request: Request) -> Reply | Sequence[Reply]:
            return responder(request) if request.schema else ToolUse("weigh", {"what": "the moon"})

        @tool
        async def weigh(what: str) -> str:
            """Weigh something."""
            raise ToolException(f"no scales for {what}")

        fake = FakeChatModel(reply=reply)
        out = await run(fake, corpus, max_rounds=2, tools=[weigh])
        problems = out["answers"][1]["problems"]
        assert [sum(cause in problem for problem in problems) for cause in ("[7]", "xyzzy", "no scales")] == [1, 1, 1]
        assert fake.calls[-1].text.count("no scales") == 2, "once for each of two rounds"

    async def test_without_a_search_engine_it_mends_its_answer_once_and_ends(self) -> None:
        fake = model(lambda _, round: revision(round, answer="Better."))
        out = await graph.ainvoke(QUESTION, context={"model": fake, "search": "none"})
        assert (out["answer"], out["outcome"]["status"], len(fake.calls)) == ("Better.", "exhausted", 3)
