"""Answers held against their sources at the end of a run, by strategies: what is verified, revised, left out, and what
is streamed."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from reflective_agents.graphs import auto, graph_of, memory, plan, react, reflexion, team
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.models.costs import estimate_tokens
from reflective_agents.nodes.remembering.remember import owner_of
from reflective_agents.prompts.support import FAULTS
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.testing.checker import support
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse

QUESTION = {"messages": [("user", "What does a ticket to Orra cost?")]}
PAGE = "A single ticket to Orra costs 6.40 crowns. Dogs travel free."
RIGHT = "A ticket to Orra costs 6.40 crowns [1]."
WRONG = "The Petrel sank in 1901 [1]."
Script = Callable[[Request], Reply]


def fares(query: str) -> list[dict[str, str]]:
    """Find the one page that there is."""
    return [{"title": "Fares", "url": "https://fares.example/", "content": PAGE}]


def honest(request: Request) -> Reply:
    """Support what stands on the page, and nothing else."""
    form = support(request)
    for check, text in zip(form["sentences"], sentences(request), strict=True):
        check["fact"] = "Safe travels" not in text
        check.update({} if "6.40" in text or "free" in text else {"support": "none", "words": ""})
    return form


def sentences(request: Request) -> list[str]:
    parts = request.last.split("</sentence>")[:-1]
    return [part.rpartition("<sentence")[2].partition(">")[2].strip() for part in parts]


def agent(answer: str, check: Script = honest, revised: str = "") -> Script:
    """A model that looks once, then answers; its answer is checked, and revised to a text."""

    def reply(request: Request) -> Reply:
        if request.schema == "SupportCheck":
            return check(request)
        if request.schema == "Revision":
            return {"sentences": [{"number": number, "text": revised} for number in (1, 2, 3)]}
        return answer if "crowns" in request.text else ToolUse("search", {"query": "fares"})

    return reply


async def run(script: Script, **settings: Any) -> tuple[Any, list[str]]:
    """Run react; return what it returns and which forms were filled in."""
    model = FakeChatModel(reply=script)
    out = await react.graph.ainvoke(QUESTION, context=ReactContext(model=model, search=fares, **settings))
    return out, [request.schema for request in model.calls if request.schema]


def levels(out: Any) -> list[str]:
    return [sentence["support"] for sentence in out["support"]["sentences"]]


async def test_a_supported_answer_is_solved_with_one_call_more() -> None:
    out, forms = await run(agent(f"{RIGHT} Dogs travel free [1]."))
    assert (out["outcome"]["status"], out["outcome"]["verified_by"]) == ("solved", "sources")
    assert (out["usage"]["model_calls"], forms) == (3, ["SupportCheck"])
    assert out["support"]["sentences"][0] == {
        "text": "A ticket to Orra costs 6.40 crowns.",
        "cites": ["1"],
        "support": "full",
        "words": f"Fares\n{PAGE}".partition("\n")[0] + f"\n{PAGE}",
    }


@pytest.mark.parametrize(
    ("answer", "supported"),
    [
        (f"{RIGHT} {WRONG}", ["full", "none"]),
        (f"{RIGHT} Dogs travel free.", ["full", "uncited"]),
        ("The Petrel sank in 1901.", ["uncited"]),
    ],
)
async def test_one_unsupported_sentence_is_enough_for_no_more_than_answered(answer: str, supported: list[str]) -> None:
    out, _ = await run(agent(answer), max_model_calls=3)
    assert (out["outcome"]["status"], levels(out)) == ("answered", supported)
    assert out["answer"].startswith(answer)
    assert out["support"]["sentences"][-1]["text"] in out["outcome"]["reason"]


@pytest.mark.parametrize(("answered", "status"), [("no", "exhausted"), ("partly", "answered"), ("yes", "solved")])
async def test_a_supported_answer_to_another_question_is_not_solved(answered: str, status: str) -> None:
    out, forms = await run(agent(RIGHT, lambda request: support(request, answered=answered)))
    assert (out["outcome"]["status"], forms) == (status, ["SupportCheck"])
    assert out["support"]["answered"] == answered


async def test_a_revision_changes_the_named_sentences_alone() -> None:
    out, forms = await run(agent(f"{RIGHT} {WRONG}\n\nSafe travels!", revised="Dogs travel free [1]."))
    assert forms == ["SupportCheck", "Revision", "SupportCheck"]
    assert out["answer"].startswith(f"{RIGHT} Dogs travel free [1].\n\n")
    assert "1901" not in out["answer"]


async def test_a_revised_answer_whose_facts_are_supported_is_solved() -> None:
    out, _ = await run(agent(f"{RIGHT} {WRONG}", revised="Dogs travel free [1, 7]."))
    assert (out["outcome"]["status"], levels(out)) == ("solved", ["full", "full"]), "[7] cites nothing"
    assert out["answer"] == out["messages"][-1].text
    assert out["answer"].endswith("\n\nReferences:\n[1] Fares, https://fares.example/")


async def test_a_sentence_that_nothing_supports_is_left_out() -> None:
    out, _ = await run(agent(f"{RIGHT} {WRONG} Dogs travel free [1]."))
    assert out["answer"].partition("\n")[0] == f"{RIGHT} Dogs travel free [1]."
    assert out["outcome"]["status"] == "solved"


async def test_an_answer_is_not_left_empty() -> None:
    out, _ = await run(agent(WRONG))
    assert (out["answer"].partition("\n")[0], out["outcome"]["status"]) == (WRONG, "answered")


async def test_a_revision_brings_no_list_and_no_source_of_its_own() -> None:
    listed = "Dogs travel free [1].\n\nReferences:\n[1] https://invented.example/"
    out, _ = await run(agent(f"{RIGHT} {WRONG}\n\nSafe travels!", revised=listed))
    assert out["answer"].startswith(RIGHT)
    assert out["answer"].endswith("Safe travels!\n\nReferences:\n[1] Fares, https://fares.example/")


async def test_a_revision_that_answers_no_longer_is_not_taken() -> None:
    def check(request: Request) -> Reply:
        checked: Any = honest(request)
        return {**checked, "answered": "yes" if "1901" in request.last else "no"}

    out, _ = await run(agent(f"{WRONG} Dogs travel free [1].", check))
    assert (out["answer"].partition("\n")[0], out["outcome"]["status"]) == (
        f"{WRONG} Dogs travel free [1].",
        "answered",
    )


async def test_a_revision_that_cannot_be_checked_is_not_taken() -> None:
    out, _ = await run(agent(f"{RIGHT} {WRONG}", revised="Dogs travel free [1]. " * 50))
    assert (out["answer"].partition("\n")[0], levels(out)) == (f"{RIGHT} {WRONG}", ["full", "none"])


async def test_what_only_an_earlier_answer_cites_is_not_taken_out() -> None:
    """Its page was read for another question, so that nobody can say now what it supports."""
    thread = react.builder.compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    await thread.ainvoke(QUESTION, config, context=ReactContext(model=FakeChatModel(reply=agent(RIGHT)), search=fares))

    def dogs(query: str) -> list[dict[str, str]]:
        return [{"title": "Dogs", "url": "https://dogs.example/", "content": "On the crowns of Orra dogs bark."}]

    def check(request: Request) -> Reply:
        form = support(request)
        form["sentences"][0].update({"support": "none", "words": ""})
        return form

    answer = f"{RIGHT} On the crowns of Orra dogs bark [2]."

    def reply(request: Request) -> Reply:
        if request.schema:
            return check(request) if request.schema == "SupportCheck" else {"sentences": [{"number": 1, "text": ""}]}
        return answer if "bark" in request.text else ToolUse("search", {"query": "dogs"})

    model = FakeChatModel(reply=reply)
    context = ReactContext(model=model, search=dogs)
    out: Any = await thread.ainvoke({"messages": [("user", "And dogs?")]}, config, context=context)
    assert (out["answer"].partition("\n")[0], levels(out)) == (answer, ["unseen", "full"])
    assert [call.schema for call in model.calls if call.schema] == ["SupportCheck"], "there is nothing to revise"


async def test_what_was_streamed_stays_and_what_is_unsupported_is_told() -> None:
    model = FakeChatModel(reply=agent(f"{RIGHT} {WRONG} And this is more of the same kind." * 3))
    texts, events = list[str](), list[dict[str, Any]]()
    out: Any = None
    stream: Any = react.graph.astream(
        QUESTION,
        context=ReactContext(model=model, search=fares),
        stream_mode=["messages", "custom", "values"],
    )
    async for mode, part in stream:
        if mode == "messages" and isinstance(part[0], AIMessageChunk):
            texts.append(part[0].text)
        events += [part] if mode == "custom" else []
        out = part if mode == "values" else out
    assert "withdrawn" not in [event["event"] for event in events]
    assert [request.schema for request in model.calls if request.schema] == ["SupportCheck"]
    assert (out["outcome"]["status"], "none" in levels(out)) == ("answered", True)
    [event] = [event for event in events if event["event"] == "support"]
    assert "The Petrel sank in 1901." in event["unsupported"]
    assert "".join(texts).strip().startswith(RIGHT)


async def test_the_check_is_left_out_with_a_reason_where_no_call_is_left() -> None:
    out, forms = await run(agent(RIGHT), max_model_calls=2)
    assert (out["outcome"]["status"], forms, out["usage"]["model_calls"]) == ("limit_reached", [], 2)
    assert out["support"]["answered"] is None
    assert "max_model_calls" in out["support"]["left_out"]
    assert out["support"]["left_out"] in out["outcome"]["reason"]


async def test_a_long_answer_is_not_checked() -> None:
    out, forms = await run(agent(" ".join([RIGHT] * 41)))
    assert (out["outcome"]["status"], forms) == ("answered", [])
    assert "41 sentences" in out["support"]["left_out"]


async def test_a_form_that_cannot_be_had_leaves_the_answer_as_it_is() -> None:
    out, _ = await run(agent(RIGHT, lambda _: "I would rather not."))
    assert (out["outcome"]["status"], out["support"]["answered"]) == ("answered", None)


async def test_it_can_be_turned_off() -> None:
    out, forms = await run(agent(RIGHT), verify_sources=False)
    assert (out["outcome"]["status"], forms, "support" in out) == ("answered", [], False)


async def test_without_sources_there_is_nothing_to_check() -> None:
    model = FakeChatModel(reply=lambda _: "It costs 6.40.")
    out = await react.graph.ainvoke(QUESTION, context=ReactContext(model=model, search=fares))
    assert (out["outcome"]["status"], len(model.calls), "support" in out) == ("answered", 1, False)


async def test_the_judge_is_asked_where_there_is_one() -> None:
    judge = FakeChatModel(reply=honest)
    out, forms = await run(agent(RIGHT), judge_model=judge)
    assert (forms, len(judge.calls), out["outcome"]["verified_by"]) == ([], 1, "sources")


async def test_a_second_question_forgets_the_first_ones_support() -> None:
    thread = react.builder.compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    context = ReactContext(model=FakeChatModel(reply=agent(RIGHT)), search=fares)
    first: Any = await thread.ainvoke(QUESTION, config, context=context)
    plain = ReactContext(model=FakeChatModel(reply=lambda _: "Yes."), search=fares)
    second: Any = await thread.ainvoke({"messages": [("user", "Sure?")]}, config, context=plain)
    assert (bool(first["support"]), second["support"]) == (True, None)


def on_a_thread(*replies: Reply) -> FakeChatModel:
    script = iter(replies)
    return FakeChatModel(reply=lambda request: support(request) if request.schema == "SupportCheck" else next(script))


@pytest.mark.parametrize(
    ("second", "supported", "status"),
    [
        (["Dogs travel free [1]."], None, "answered"),
        ([ToolUse("search", {"query": "moon"}), "All of the moon [2]."], ["full"], "solved"),
        ([ToolUse("search", {"query": "moon"}), f"All of the moon [2]. {RIGHT}"], ["full", "unseen"], "answered"),
    ],
)
async def test_a_second_answer_is_not_verified_by_what_only_the_first_has_read(
    second: list[Reply], supported: list[str] | None, status: str
) -> None:
    def pages(query: str) -> list[dict[str, str]]:
        return [{"title": query, "url": f"https://{query}.example/", "content": f"{PAGE} All of the {query}."}]

    thread = react.builder.compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    context = ReactContext(model=on_a_thread(ToolUse("search", {"query": "fares"}), RIGHT, *second), search=pages)
    first: Any = await thread.ainvoke(QUESTION, config, context=context)
    out: Any = await thread.ainvoke({"messages": [("user", "And the moon?")]}, config, context=context)
    assert (first["outcome"]["status"], out["outcome"]["status"]) == ("solved", status)
    assert out["answer"].startswith(str(second[-1])), "what cannot be checked is not rewritten"
    if supported is None:
        assert out["support"]["left_out"]
        assert out["support"]["left_out"] in out["outcome"]["reason"]
    else:
        assert levels(out) == supported


def responder(answer: str) -> Script:
    """A responder that calls its second answer complete."""

    def reply(request: Request) -> Reply:
        if request.schema == "SupportCheck":
            return honest(request)
        if request.schema == "Revision":
            return {"sentences": []}
        last = request.schema == "ReviseAnswer"
        reflection = {"missing": "" if last else "all", "superfluous": "", "complete": last}
        queries = [] if last else ["fares"]
        return {"answer": answer if last else "?", "reflection": reflection, "search_queries": queries}

    return reply


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (RIGHT, "solved"),
        ("A single ticket to Orra costs 99 crowns, and the Petrel sank in 1901 [1].", "answered"),
        (f"{RIGHT} The Petrel sank in 1901.", "answered"),
    ],
)
async def test_reflexion_is_solved_by_what_the_page_says_not_by_its_own_word(answer: str, status: str) -> None:
    context = {"model": FakeChatModel(reply=responder(answer)), "search": fares}
    out = await reflexion.graph.ainvoke(QUESTION, context=context)
    assert out["outcome"]["status"] == status
    assert out["outcome"].get("verified_by") == ("sources" if status == "solved" else None)


async def test_an_answer_that_only_says_what_was_not_found_is_not_solved() -> None:
    answer = "The price for children could not be found; the page on fares [1] does not give it."

    def reply(request: Request) -> Reply:
        if request.schema == "SupportCheck":
            return support(request, answered="no", fact=False)
        return responder(answer)(request)

    out = await reflexion.graph.ainvoke(QUESTION, context={"model": FakeChatModel(reply=reply), "search": fares})
    assert out["outcome"]["status"] == "exhausted"


async def test_reflexion_at_its_last_round_is_not_revised() -> None:
    model = FakeChatModel(reply=responder(f"{RIGHT} {WRONG}"))
    context = {"model": model, "search": fares, "max_rounds": 1}
    await reflexion.graph.ainvoke(QUESTION, context=context)
    assert [request.schema for request in model.calls].count("Revision") == 0


@pytest.mark.parametrize(("answer", "by"), [(RIGHT, "sources"), (WRONG, None)])
async def test_auto_ends_on_a_supported_answer_only(answer: str, by: str | None) -> None:
    def reply(request: Request) -> Reply:
        if request.schema in ("AnswerQuestion", "ReviseAnswer", "SupportCheck"):
            return responder(answer)(request)
        return f"Answer: {request.index + request.attempt}"

    context = {"model": FakeChatModel(reply=reply), "search": fares, "max_model_calls": 7, "max_expansions": 0}
    out = await auto.graph.ainvoke(QUESTION, context=context)
    assert out["outcome"].get("verified_by") == by
    assert levels(out) == (["full"] if by else ["none"])
    if by:
        assert out["answer"].startswith(answer)


def planner(request: Request) -> Reply:
    if request.schema == "Plan":
        return {"subgoals": [{"id": "a", "goal": "Find the fares.", "needs": []}]}
    if request.schema == "SupportCheck":
        return honest(request)
    return RIGHT if "crowns" in request.text else ToolUse("search", {"query": "fares"})


async def test_a_plan_is_checked_once_and_its_workers_are_not() -> None:
    model = FakeChatModel(reply=planner)
    out = await plan.graph.ainvoke(QUESTION, context={"model": model, "search": fares, "worker": "react"})
    assert [request.schema for request in model.calls].count("SupportCheck") == 1
    assert out["outcome"]["verified_by"] == "sources"
    assert PAGE in [*out["subgoals"][0]["passages"].values()]


async def test_a_debate_is_checked_where_its_solvers_agree() -> None:
    model = FakeChatModel(reply=agent(RIGHT))
    roles = [{"name": name, "instructions": "Answer.", "strategy": "react"} for name in ("ann", "bob")]
    context = {"model": model, "search": fares, "shape": "debate", "roles": roles}
    out = await team.graph.ainvoke(QUESTION, context=context)
    assert [request.schema for request in model.calls].count("SupportCheck") == 1
    assert out["outcome"]["verified_by"] == "sources"


LONG = f"{'Boats lie in the harbour. ' * 400}{PAGE}"


@pytest.mark.parametrize("strategy", ["plan", "team"])
async def test_what_a_worker_has_read_far_down_a_page_supports_its_answer(strategy: str) -> None:
    def reply(request: Request) -> Reply:
        if request.schema == "SupportCheck" and "costs 6.40" not in request.last.partition("<sentence")[0]:
            return support(request, level="none")
        return planner(request)

    def search(query: str) -> list[dict[str, str]]:
        return [{"title": "Fares", "url": "https://fares.example/", "content": LONG}]

    roles = [{"name": name, "instructions": "Answer.", "strategy": "react"} for name in ("ann", "bob")]
    settings: dict[str, dict[str, Any]] = {"plan": {"worker": "react"}, "team": {"shape": "debate", "roles": roles}}
    context = {"model": FakeChatModel(reply=reply), "search": search, **settings[strategy]}
    out = await graph_of(strategy).ainvoke(QUESTION, context=context)
    assert out["outcome"].get("verified_by") == "sources"


async def test_a_page_that_several_workers_have_read_is_shown_once() -> None:
    def reply(request: Request) -> Reply:
        if request.schema == "Plan":
            goals = [{"id": name, "goal": f"Find the fares, {name}.", "needs": []} for name in "ab"]
            return {"subgoals": goals}
        return planner(request)

    model = FakeChatModel(reply=reply)
    await plan.graph.ainvoke(QUESTION, context={"model": model, "search": fares, "worker": "react"})
    [checked] = [request for request in model.calls if request.schema == "SupportCheck"]
    assert checked.last.count(PAGE) == 1


async def test_a_solver_may_rest_on_what_another_has_found() -> None:
    def search(query: str) -> list[dict[str, str]]:
        return (
            fares(query) if query == "bob" else [{"title": "Dogs", "url": "https://dogs.example/", "content": "Bark."}]
        )

    def reply(request: Request) -> Reply:
        name = "ann" if "Be ann" in request.text else "bob"
        if request.schema == "SupportCheck":
            return honest(request)
        if "[s2]" in request.text:
            return "A ticket to Orra costs 6.40 crowns [s2]."
        if "Bark." in request.text or "crowns" in request.text:
            return "It costs 9 crowns [1]." if name == "ann" else RIGHT
        return ToolUse("search", {"query": name})

    roles = [{"name": name, "instructions": f"Be {name}.", "strategy": "react"} for name in ("ann", "bob")]
    context = {"model": FakeChatModel(reply=reply), "search": search, "shape": "debate", "roles": roles}
    out = await team.graph.ainvoke(QUESTION, context=context)
    assert len(out["rounds"]) == 2
    assert out["outcome"].get("verified_by") == "sources"
    assert levels(out) == ["full"]


async def test_trials_leave_the_verdict_to_their_judge() -> None:
    def reply(request: Request) -> Reply:
        if request.schema == "Judgement":
            return {"reasoning": "Good.", "score": 0.9, "solved": True}
        return agent(RIGHT)(request)

    model = FakeChatModel(reply=reply)
    out = await graph_of("trials").ainvoke(QUESTION, context={"model": model, "search": fares})
    assert [request.schema for request in model.calls].count("SupportCheck") == 0
    assert out["outcome"]["verified_by"] == "judge"


async def test_memories_are_sources_too() -> None:
    def reply(request: Request) -> Reply:
        if request.schema == "SupportCheck":
            return support(request)
        if request.schema:
            return {"facts": []}
        return "You live in Turin [m1]." if "Where" in request.last else "I see."

    graph, model = memory.builder.compile(store=InMemoryStore()), FakeChatModel(reply=reply)
    context = {"model": model, "embeddings": "lexical"}
    await graph.ainvoke({"messages": [("user", "I live in Turin.")]}, context=context)
    out: Any = await graph.ainvoke({"messages": [("user", "Where do I live?")]}, context=context)
    assert out["outcome"]["verified_by"] == "sources"
    assert out["support"]["sentences"][0]["cites"] == ["m1"]


async def converse(*turns: str, reply: Script, **settings: Any) -> tuple[Any, FakeChatModel, InMemoryStore]:
    """Say something on a thread each; return what the last turn returns, with the model and the store."""
    store, model, out = InMemoryStore(), FakeChatModel(reply=reply), None
    graph = memory.builder.compile(store=store)
    for turn in turns:
        context = {"model": model, "embeddings": "lexical", **settings}
        out = await graph.ainvoke({"messages": [("user", turn)]}, context=context)
    return out, model, store


def shown(request: Request, tag: str) -> list[str]:
    """The texts between tags of a kind in a prompt."""
    return re.findall(rf"<{tag} [^>]*>\n(.*?)\n</{tag}>", request.text, re.DOTALL)


async def test_what_the_assistant_said_supports_nothing() -> None:
    def reply(request: Request) -> Reply:
        if request.schema == "SupportCheck":
            return support(request)
        if request.schema:
            return {"facts": []}
        own = re.search(r'number="(m\d)"[^>]*by="assistant"', request.text)
        return f"Your flight is LH 400 [{own[1]}]." if own else "Your flight is LH 400."

    out, model, _ = await converse("Which flight is mine?", "Tell me my flight again.", reply=reply)
    assert out["outcome"]["status"] == "answered"
    assert levels(out) == ["own"]
    assert FAULTS["own"] in out["outcome"]["reason"]
    check = next(request for request in model.calls if request.schema == "SupportCheck")
    assert not [text for text in shown(check, "passage") if "LH 400" in text]


async def test_what_memories_do_not_support_is_not_remembered() -> None:
    def reply(request: Request) -> Reply:
        if request.schema == "SupportCheck":
            form = support(request)
            for each, text in zip(form["sentences"], sentences(request), strict=True):
                each.update({} if "Turin" in text else {"support": "none", "words": ""})
            return form
        if request.schema:
            return {"facts": []}
        return "You live in Turin [m1]. Your cat is Tom [m1]." if "Where" in request.last else "I see."

    out, model, store = await converse("I live in Turin.", "Where do I live?", reply=reply)
    assert (levels(out), out["outcome"]["status"]) == (["full", "none"], "answered")
    assert FAULTS["none"] in out["outcome"]["reason"]
    assert "Tom" in out["answer"]
    stream = await MemoryStream.open(store, owner_of("default"), "lexical")
    kept = [each["text"] async for each in stream.everything() if each.get("speaker") == "assistant"]
    assert kept == ["I see.", "You live in Turin."]
    facts = [request for request in model.calls if request.schema == "Facts"]
    assert "Tom" not in facts[-1].text


async def test_the_passages_of_memories_are_what_the_model_was_shown() -> None:
    def reply(request: Request) -> Reply:
        if request.schema == "SupportCheck":
            return support(request)
        if request.schema:
            fact = {"about": "the user", "statement": "They live in Turin.", "importance": 5, "since": "May"}
            return {"facts": [fact] if "Turin" in shown(request, "said")[-1] else []}
        return "You live in Turin [m1]." if "Where" in request.last else "I see."

    answer = "We packed our things all winter, sold the boat, and now I live in Turin."
    out, model, _ = await converse(answer, "Where do I live?", reply=reply)
    answering = [request for request in model.calls if not request.schema][-1]
    check = next(request for request in model.calls if request.schema == "SupportCheck")
    assert out["outcome"]["verified_by"] == "sources"
    assert [text.partition("\n")[2] for text in shown(check, "passage")][:1] == shown(answering, "memory")[:1]
    assert "since: May" in shown(check, "passage")[0]


async def test_near_its_limit_a_turn_is_remembered_first() -> None:
    def reply(request: Request) -> Reply:
        if request.schema:
            return support(request) if request.schema == "SupportCheck" else {"facts": []}
        return "You live in Turin [m1]." if "Where" in request.last else "I see."

    out, model, _ = await converse("I live in Turin.", "Where do I live?", reply=reply, max_model_calls=2)
    assert [request.schema for request in model.calls] == [None, "Facts"] * 2
    assert (out["outcome"]["status"], bool(out["support"]["left_out"])) == ("answered", True)


async def test_the_check_comes_before_the_form_of_the_answer() -> None:
    schema = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}

    def reply(request: Request) -> Reply:
        return {"price": 6.4} if request.schema == "Answer" else agent(RIGHT)(request)

    out, forms = await run(reply, answer_schema=schema)
    assert forms == ["SupportCheck", "Answer"]
    assert (out["structured_response"], out["outcome"]["verified_by"]) == ({"price": 6.4}, "sources")


async def test_the_check_takes_half_of_a_small_context() -> None:
    def search(query: str) -> list[dict[str, str]]:
        content = f"{PAGE} {'Boats lie in the harbour. ' * 200}"
        return [{"title": f"Fares {n}", "url": f"https://fares.example/{query}/{n}", "content": content} for n in "abc"]

    counts: list[int] = []

    def reply(request: Request) -> Reply:
        if request.schema == "SupportCheck":
            counts.append(estimate_tokens(request.messages, {}))
            return honest(request)
        searches = sum(message.type == "tool" for message in request.messages)
        return ToolUse("search", {"query": f"fares {searches}"}) if searches < 12 else RIGHT

    window = 8_192
    settings: dict[str, Any] = {"context_window": window, "max_answer_tokens": 512, "max_actions": 20}
    context = ReactContext(model=FakeChatModel(reply=reply), search=search, **settings)
    out = await react.graph.ainvoke(QUESTION, context=context)
    assert out["outcome"].get("verified_by") == "sources"
    [length] = counts
    assert window / 2 < length <= window  # the fake model counts a token for about two estimated ones
