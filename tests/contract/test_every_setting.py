"""Every setting of every strategy has an effect: two values of it differ in what is asked, answered or refused."""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import pytest
from annotated_types import Ge
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.exceptions import ModelAuthenticationError
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore
from pydantic import ValidationError

from reflective_agents.graphs import builder_of
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.nodes.remembering.experience import experience_of
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse
from reflective_agents.state.memories import new_memory
from reflective_agents.state.settings import settings_of
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.responder import respond
from reflective_agents.testing.script import Reply, Request, Script, ToolUse
from tests.strategies import ASK, STRATEGIES, THROUGHOUT, Strategy, every_strategy

TASKS = {
    "game24": {"id": "1", "question": "4 5 6 10"},
    "arithmetic": {"id": "1", "question": "What is 4 times 6?", "gold": "24"},
    "questions": {"id": "1", "question": "What pulls the sea?", "gold": "the Moon", "data": {"context": []}},
}
ELSEWHERE = {"thinking", "town", "unsafe_code", "compact", "compact_model", "compact_share"}
"""What shows only with a model that thinks, with a town of one's own, on a machine without a sandbox, or in a long
thread: see tests/models, tests/town, tests/tools and test_long_threads.py."""
FORM = {"type": "object", "properties": {"so": {"type": "string"}}, "required": ["so"]}


def weigh(thing: str) -> str:
    """Weigh a thing."""
    return "7"


CLIENTS = {"type": "function", "function": {"name": "weigh", "parameters": {"type": "object", "properties": {}}}}
SOLVER = {"name": "solver", "instructions": "Solve it.", "strategy": "react"}
EXAMPLE = {"task": "Why?", "reasoning": "BECAUSE", "acts": [["BECAUSE", "search[x]", "x"]]}
AGENT: Any = RunnableLambda(lambda _: {"messages": [AIMessage("An agent's answer.")]})


ANOTHER = FakeChatModel(reply=lambda _: "Another.")


def playing(request: Request) -> Reply:
    """Take a legal first step of the game."""
    if request.schema:
        return respond(request)
    step = "4 + 6 = 10 (left: 5 10 10)"
    return step if "Possible next steps" in request.last else f"Thought: So.\nAction: {step}"


def disagreeing(request: Request) -> Reply:
    """Answer differently, mostly alike."""
    if request.schema:
        return respond(request)
    return f"Answer: {int(request.key, 16) % 3 + request.index // 7}"


def comparing(request: Request) -> Reply:
    """Answer differently each time, and prefer the higher number."""
    if request.schema == "Comparison":
        first, second = [part.count("7") for part in request.last.split("</candidate>")[:2]]
        return {"reasoning": "So.", "better": 1 if first > second else 2}
    if request.schema:
        return respond(request)
    return f"So.\nAnswer: {'7' * (request.index + 1)}{request.attempt}"


def wavering(request: Request) -> Reply:
    """Find some sub-questions more useful than others, and answer each differently, on every day alike."""
    key, count = crc32(request.last.encode()), request.last.count("<asked ")
    draw = key % 97 + request.index
    if request.schema:
        return {"scores": [(key // 7**index) % 10 / 10 for index in range(request.text.count("<candidate number="))]}
    if "Write sub-question" in request.last:
        return "Now we can answer the question." if count and draw % 2 == 0 else f"What is {count}.{draw}?"
    return f"So.\nAnswer: {draw}"


def finishing(request: Request) -> Reply:
    """Give the right answer at once."""
    return respond(request) if request.schema else "Thought: So.\nAction: Finish[the Moon]\nAnswer: the Moon"


def citing(request: Request) -> Reply:
    """Search, and cite what is found; no judge says anything."""
    if request.schema:
        return "Well." if request.schema == "Verdict" else respond(request)
    searched = any(message.type == "tool" for message in request.messages)
    return ToolUse("search", {"query": "reflection"}) if request.tools and not searched else "Reflection helps [1]."


def calling(request: Request) -> Reply | Sequence[Reply]:
    """Calculate twice at once, then answer."""
    if request.schema or not request.tools or any(message.type == "tool" for message in request.messages):
        return respond(request)
    return [ToolUse("calculator", {"expression": f"1 + {number}"}) for number in range(2)]


def repeating(request: Request) -> Reply:
    """Do the same again and again."""
    return ToolUse("calculator", {"expression": "1 + 1"}) if request.tools else respond(request)


def applying(request: Request) -> Reply:
    """Let all lessons apply, and draw one."""
    if request.schema == "Applying":
        return {"applies": [1, 2, 3, 4]}
    if request.schema == "Drawn":
        item = {"title": "So", "applies_when": "Always.", "advice": "Do.", "evidence": "So.", "kind": "success"}
        return {"items": [item]}
    return respond(request)


def searching(request: Request) -> Reply:
    """Look an article up."""
    return respond(request) if request.schema else "Thought: So.\nAction: search[Reflexion]"


def failing(_: Request) -> Reply:
    """Give no answer, and never will."""
    return ModelAuthenticationError("no such key")


async def sleepy(request: str, answer: str) -> bool:
    """Take some time to accept an answer."""
    await asyncio.sleep(0.02)
    return True


class Default:
    """Stands for a setting that is not given."""


DEFAULT = Default()


class Case(NamedTuple):
    """Two values of a setting that must differ, and what else is set; in an environment the offline model works."""

    value: Any
    other: Any = DEFAULT
    settings: Mapping[str, Any] = {}
    script: Script | None = None


OFFLINE = {"model": "offline"}
GAME = {**OFFLINE, "environment": "game24"}
FOUR = {"n": 4, "population": 4, "rounds": 1, "search": "none"}
DEEP = {"method": "depth_first"}
CASES: dict[str, Case] = {
    "actor": Case("react", "chain_of_thought", OFFLINE),
    "acting": Case("text", "tools"),
    "action_reward": Case("likelihood", "judge"),
    "agent": Case(AGENT, None),
    "aggregate": Case("mean", "max", {"n": 4, "max_model_calls": 200, "max_rollouts": 12, "min_paths": 100}, wavering),
    "alpha": Case(0.0, 1.0),
    "answer_at_limit": Case(False, True, {"max_actions": 1}),
    "answer_schema": Case(FORM, None, OFFLINE),
    "arms": Case(["offline"], None),
    "batch": Case(1, 3, {"samples": 3, "confidence": 0.99, "actor": "chain_of_thought"}),
    "beam": Case(1, 3),
    "calculator": Case(True, False),
    "call_client_tool": Case(True, False, {"client_tools": [CLIENTS], "max_model_calls": 40, "roles": [SOLVER]}),
    "call_cost": Case(0.0, 1.0, {**OFFLINE, "max_model_calls": 30}),
    "call_timeout": Case(0.000001, 100),
    "choose": Case("score", "pairs", {**FOUR, "call_cost": 0.3}, comparing),
    "client_tools": Case([CLIENTS], []),
    "comparisons": Case(
        1, 10, {**FOUR, "samples": 4, "choose": "pairs", "call_cost": 0.3, "max_model_calls": 40}, comparing
    ),
    "confidence": Case(0.51, 0.999, {"samples": 9, "batch": 1, "actor": "chain_of_thought"}, disagreeing),
    "confidence_samples": Case(1, 4),
    "context_window": Case(512, None),
    "corpus": Case("docs", None, {**OFFLINE, "search": "local"}),
    "critic": Case("model", "checks"),
    "critic_model": Case("offline", None),
    "critic_tools": Case(["calculator"], []),
    "docstore": Case("docs", None, {"environment": "questions", "max_model_calls": 40}, searching),
    "embeddings": Case("lexical", DeterministicFakeEmbedding(size=8)),
    "environment": Case("game24", None, OFFLINE),
    "evaluator": Case("exact_match", "judge", {"environment": "questions"}, finishing),
    "examples": Case(False, True, GAME),
    "experience": Case("lessons", None),
    "experience_from": Case("judged", "verified", {"experience": "lessons"}, applying),
    "experience_model": Case(ANOTHER, None, {"experience": "lessons"}, applying),
    "expand_from": Case(0.0, 1.0, {"max_model_calls": 40}),
    "exploration_weight": Case(0.0, 100.0, {"max_model_calls": 40}),
    "fact": Case("garden", "moon"),
    "fact_tokens": Case(0, 4000, {"retrieved": 1}),
    "fallback_models": Case([ANOTHER], None, script=failing),
    "generate_prompt": Case("In verse.", None),
    "gold_reward": Case(True, False, {"environment": "questions"}, finishing),
    "grade_samples": Case(1, 4, {"environment": "game24", "grades": "labels", "max_model_calls": 80}, playing),
    "grades": Case("labels", "judge", {"environment": "game24"}, playing),
    "grading": Case("each", "together"),
    "group": Case(1, 2),
    "importance": Case(0.0, 100.0),
    "judge_model": Case(ANOTHER, None),
    "judge_temperature": Case(0.1, None, {"worker": "lats"}),
    "judge_weight": Case(0.0, 1.0),
    "keep_memories": Case(True, False),
    "ladder": Case(["offline", "offline"], None, {"model": None}),
    "language": Case("German", "French"),
    "last": Case("population", "single"),
    "lists": Case(1, 3, {**GAME, "proposals": "list"}),
    "max_actions": Case(1, 3),
    "max_answer_tokens": Case(300, 400),
    "max_context_tokens": Case(500, 100_000),
    "max_cost": Case(0.000001, 10, {"prices": {"*": {"input": 1000, "output": 1000}}}),
    "max_depth": Case(1, 4),
    "max_expansions": Case(1, 3),
    "max_lessons": Case(0, 4),
    "max_memories": Case(10, 100),
    "max_model_calls": Case(1, 10, {"answer_schema": FORM}),
    "max_queries": Case(1, 3),
    "max_repeats": Case(1, 3, script=repeating),
    "max_replans": Case(0, 2),
    "max_rollouts": Case(1, 6, {"max_model_calls": 60}),
    "max_rounds": Case(1, 3),
    "max_seconds": Case(0.000001, 100),
    "max_states": Case(1, 10, DEEP),
    "max_steps": Case(1, 5),
    "max_subgoals": Case(1, 4),
    "max_total_tokens": Case(10, 100_000),
    "max_trials": Case(1, 3, {"max_model_calls": 150, "max_expansions": 2, "call_cost": 0.0}),
    "max_turns": Case(1, 4),
    "max_words": Case(1, None, {"critic": "checks"}),
    "memory_size": Case(1, 3, {"max_trials": 4, "experience": "lessons"}, applying),
    "memory_queries": Case(0, 2, {"retrieved": 3}),
    "method": Case("breadth_first", "depth_first"),
    "min_gain": Case(1.0, None),
    "min_paths": Case(1, 5),
    "min_score": Case(0.0, 1.0, {"min_paths": 2, "max_model_calls": 60, "max_rounds": 0}),
    "min_words": Case(500, None, {"critic": "checks"}),
    "minutes": Case(30, 120),
    "model": Case("offline", ANOTHER),
    "model_parameters": Case({"top_p": 0.1}, {"top_p": 0.2}),
    "n": Case(1, 3),
    "own_examples": Case([EXAMPLE], []),
    "parallel": Case(1, 4, {"beam": 3}),
    "parallel_calls": Case(True, False, {"client_tools": [CLIENTS], "calculator": True}, calling),
    "population": Case(1, 3),
    "prices": Case({"*": {"input": 1, "output": 1}}, {"*": {"input": 2, "output": 2}}),
    "prior": Case(0.01, 100.0, {"max_model_calls": 40}),
    "prompts": Case({"answer_form.FILL": "Fill in."}, None, {"answer_schema": FORM}),
    "proposals": Case("samples", "list", GAME),
    "proposers": Case([ANOTHER], None),
    "prune_below": Case(0.0, 1.0, DEEP),
    "ranking": Case("hybrid", "paper"),
    "recency": Case(0.0, 100.0),
    "reflect_at": Case(0.0, 100_000),
    "reflect_prompt": Case("Be strict.", None),
    "reflection": Case("none", "reflexion"),
    "relevance": Case(0.1, 100.0),
    "retrieved": Case(1, 10),
    "revise_answers": Case(True, False),
    "roles": Case(None, [{"name": "a", "instructions": "So."}]),
    "rounds": Case(1, 3),
    "samples": Case(1, 3, {"actor": "chain_of_thought"}),
    "search": Case("none", "local"),
    "seed": Case(1, 2),
    "selection": Case("uct", "gumbel", {"max_model_calls": 40}),
    "shape": Case("supervisor", "debate"),
    "simulate": Case(True, False),
    "step_samples": Case(1, 3),
    "structured": Case("tool", "json_schema", {"answer_schema": FORM}),
    "talk_again": Case(0, 1440),
    "temperature": Case(0.1, 0.2),
    "tools": Case([weigh], []),
    "threshold": Case(0.5, 1.0, {"verifiers": [lambda request, answer: 0.7]}),
    "user": Case("ada", "bob"),
    "verifier_timeout": Case(0.001, 60, {"verifiers": [sleepy]}),
    "verifiers": Case([{"min_words": 9_999}], []),
    "verify_sources": Case(
        True, False, {"search": "local", "shape": "debate", "roles": None, "max_model_calls": 60}, citing
    ),
    "votes": Case("equal", "likelihood", {"samples": 3, "actor": "chain_of_thought"}),
    "worker": Case("react", "chain_of_thought", OFFLINE),
    "worker_settings": Case({"max_seconds": 0.000001}, None),
}


class Recorder(BaseCallbackHandler):
    """Writes down what models are asked, with the parameters of each request."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.in_flight = self.most_in_flight = 0

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **kwargs: Any) -> None:
        written = [[message.type, message.content] for prompt in messages for message in prompt]
        self.in_flight += 1
        self.most_in_flight = max(self.in_flight, self.most_in_flight)
        parameters = {name: value for name, value in kwargs["invocation_params"].items() if name != "reply"}
        self.requests.append(json.dumps([written, parameters], default=lambda value: type(value).__name__))

    def on_llm_end(self, *_: Any, **__: Any) -> None:
        self.in_flight -= 1

    def on_llm_error(self, *_: Any, **__: Any) -> None:
        self.in_flight -= 1


class Store(InMemoryStore):
    """Writes down what is looked up and kept."""

    def __init__(self) -> None:
        super().__init__()
        self.accesses: list[str] = []

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations."""
        listed = list(ops)
        self.accesses += [f"{type(op).__name__} {op[0]} {getattr(op, 'limit', '')}" for op in listed]
        return await super().abatch(listed)


async def observe(strategy: str, settings: Mapping[str, Any]) -> list[Any] | str:
    """Run a strategy, and return what is asked, what is looked up and what comes of it; or why it is refused."""
    recorder, store = Recorder(), Store()
    if settings.get("experience"):
        stream = await MemoryStream.open(store, experience_of(settings["experience"]))
        await stream.add([new_memory(f"Reflection helps, {n}.", created=n, kind="reflection") for n in range(4)])
    graph = builder_of(strategy).compile(store=store, checkpointer=InMemorySaver())
    inputs: Any = {**ASK, "task": TASKS[world]} if (world := settings.get("environment")) else ASK
    config: Any = {"callbacks": [recorder], "recursion_limit": 500, "configurable": {"thread_id": "1"}}
    try:
        result = await graph.ainvoke(inputs, config, context=dict(settings))
    except (Misuse, ValidationError) as error:
        return str(error)
    usage = {name: amount for name, amount in result["usage"].items() if name != "seconds"}
    came_of_it = [result.get("answer"), result.get("outcome"), usage, "__interrupt__" in result]
    if "parallel" in settings:  # elsewhere it depends on how busy the machine is
        came_of_it.append(recorder.most_in_flight)
    return [sorted(recorder.requests), sorted(store.accesses), came_of_it]


class Scenario(NamedTuple):
    """What to run: with a scripted model, or the offline one."""

    settings: Mapping[str, Any]
    script: Script | None = None

    def changed(self, name: str, value: Any) -> "Scenario":
        """Return it with another value of a setting."""
        others = {key: held for key, held in self.settings.items() if key != name}
        return self._replace(settings=others if value is DEFAULT else {**others, name: value})

    def model(self) -> object:
        """Return its model, a new one, since a scripted model counts what it is asked."""
        script = self.script
        if script is None:
            return "offline"

        def reply(request: Request) -> Reply | Sequence[Reply]:
            try:
                return script(request)
            except (AssertionError, LookupError, ValueError):
                return respond(request)

        return FakeChatModel(reply=reply)


def scenarios(strategy: Strategy, case: Case) -> Iterator[Scenario]:
    """Yield what to run: with models that go on or come to an end, and the offline model."""
    names = settings_of(strategy.name).model_fields
    others = {name: value for name, value in case.settings.items() if name in names}
    usual = {name: value for name, value in strategy.settings.items() if name != "corpus"}
    for script in (*([case.script] if case.script else []), strategy.solving, strategy.endless):
        yield Scenario({**usual, "max_model_calls": 12, **others}, script)
    yield Scenario({**usual, "max_model_calls": 40, **others})
    if "search" in names:
        yield Scenario({"max_model_calls": 20, **others, "search": "local"})


def case_of(strategy: Strategy, name: str) -> Case:
    """Return two values of a setting; of one that has no case, a number, the least and the usual one."""
    if case := CASES.get(name):
        return case
    [least] = [bound.ge for bound in settings_of(strategy.name).model_fields[name].metadata if isinstance(bound, Ge)]
    return Case(least)


class Observer:
    """Runs a strategy, each scenario once."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self._seen: dict[tuple[Script | None, str], list[Any] | str] = {}

    async def see(self, scenario: Scenario) -> list[Any] | str:
        """Return what is seen of a run, or why it is refused."""
        key = scenario.script, repr(sorted(scenario.settings.items()))
        if key not in self._seen:
            settings = {"model": scenario.model(), **scenario.settings}
            self._seen[key] = await observe(self.strategy.name, settings)
        return self._seen[key]

    async def has_effect(self, name: str) -> bool:
        """Tell whether two values of a setting differ in what is seen of a run that takes both."""
        case = case_of(self.strategy, name)
        for scenario in scenarios(self.strategy, case):
            seen = await self.see(scenario.changed(name, case.value))
            if isinstance(seen, str):
                continue
            other = await self.see(scenario.changed(name, case.other))
            if seen != other and not isinstance(other, str):
                return True
        return False

    async def is_refused(self, name: str) -> bool:
        """Tell whether a setting is refused in all scenarios, unless it is as by default."""
        case = case_of(self.strategy, name)
        for scenario in scenarios(self.strategy, case):
            for value in (case.value, case.other):
                if isinstance(await self.see(scenario.changed(name, value)), str):
                    break
            else:
                return False
        return True


def left_to_others(strategy: Strategy) -> set[str]:
    """Return settings of all strategies that are looked at with others: each comes to four of them, and to `react`."""
    if strategy.name == THROUGHOUT:
        return set()
    turn = STRATEGIES.index(strategy)
    return {name for number, name in enumerate(sorted(Context.model_fields)) if (turn + number) % 4}


@pytest.mark.thorough
@pytest.mark.matrix
@pytest.mark.timeout(300)
@every_strategy
async def test_two_values_of_every_setting_differ(strategy: Strategy) -> None:
    observer = Observer(strategy)
    names = settings_of(strategy.name).model_fields.keys() - ELSEWHERE - {*strategy.refused} - left_to_others(strategy)
    assert [name for name in sorted(names) if not await observer.has_effect(name)] == []
    assert [name for name in strategy.refused if not await observer.is_refused(name)] == []
