"""Random runs: settings, requests and a model that are functions of a seed, and what has to hold of every result."""

import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from langchain_core.exceptions import ModelConnectionError, ModelInvalidRequestError, ModelRateLimitError
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import ValidationError

from reflective_agents.environments.actions import has_answer
from reflective_agents.environments.base import Task
from reflective_agents.environments.plain import PLAIN
from reflective_agents.environments.registry import ENVIRONMENTS
from reflective_agents.graphs import builder_of
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.evidence.support import is_verified
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.settings import settings_of, strategy_names
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request, ToolUse
from reflective_agents.tree_search import steering
from reflective_agents.tree_search.tree_paths import ROOT, unpruned

STRATEGIES = sorted({*strategy_names()} - {"town"})
"""All but the simulation, whose runs answer no question."""
ARTICLES = {
    "context": [["Moon", ["The Moon pulls the sea.", " It orbits Earth."]], ["Sun", ["The Sun is a star."]]],
    "supporting": [["Moon", ["The Moon pulls the sea."]]],
}
TASKS: dict[str, Task] = {
    "game24": {"id": "1", "question": "4 5 6 10"},
    "blocksworld": {
        "id": "b",
        "question": "",
        "data": {
            "init": ["on red blue", "ontable blue", "ontable white", "clear red", "clear white", "handempty"],
            "goal": ["on white red"],
        },
    },
    "questions": {"id": "1", "question": "What pulls the sea?", "gold": "the Moon", "data": ARTICLES},
    "fever": {"id": "2", "question": "The Moon pulls the sea.", "gold": "SUPPORTS", "data": ARTICLES},
    "arithmetic": {"id": "3", "question": "Two and two apples?", "gold": "4"},
    "math": {"id": "3", "question": "Two and two apples?", "gold": "4"},
}
RIGHT: dict[str, Sequence[str]] = {
    "game24": [
        "10 - 4 = 6 (left: 5 6 6)",
        "5 * 6 = 30 (left: 6 30)",
        "30 - 6 = 24 (left: 24)",
        "(10 - 4) * 5 - 6 = 24",
    ],
    "blocksworld": ["unstack red blue", "put-down red", "pick-up white", "stack white red"],
    "questions": ["Finish[the Moon]", "the Moon"],
    "fever": ["Finish[SUPPORTS]", "SUPPORTS"],
    "arithmetic": ["Answer: 4", "4"],
    "math": ["Answer: 4", "4"],
}
"""What leads to the right answer of each task, and last that answer."""
SENTENCES = [
    "The sea is pulled by the Moon [1].",
    "It costs 6.40 crowns [2].",
    "Nobody knows [9].",
    "The sorted list is [1, 2, 3].",
    "See https://nowhere.example/page for more.",
    "I do not know.",
    "Reflection finds mistakes.",
    "[1] says so, and [2] denies it [1, 2].",
    "```python\na[1] = a[2]\n```",
    "IMPOSSIBLE: nothing was found.",
    "Yes.",
    "海由月亮引起潮汐 [1]。",
]
ENDS = [
    "4",
    "the Moon",
    "SUPPORTS",
    "42 crowns",
    "None",
    "(10 - 4) * 5 - 6 = 24",
    "10 + 4 + 5 + 6 = 24",
    "I am not sure",
    "it depends [1]",
]
ACTIONS = [
    "10 - 4 = 6 (left: 5 6 6)",
    "5 * 6 = 30 (left: 6 30)",
    "30 - 6 = 24 (left: 24)",
    "search[Moon]",
    "lookup[sea]",
    "finish[the Moon]",
    "finish[4]",
    "calculate[2 + 2]",
    "unstack red blue",
    "put-down red",
    "pick-up white",
    "stack white red",
]
FEW: dict[str, list[Any]] = {
    "max_model_calls": [1, 2, 3, 5, 8, 20, 40],
    "max_total_tokens": [500, 3000, 20_000, 200_000],
    "max_expansions": [0, 1, 2, 4],
    "max_depth": [1, 2, 3],
    "n": [1, 2, 3],
    "parallel": [1, 2, 4],
    "samples": [1, 2, 5],
    "population": [1, 2, 3],
    "rounds": [1, 2, 3],
    "choose": ["score", "pairs"],
    "max_rollouts": [1, 2, 3],
    "max_rounds": [1, 2, 3],
    "grade_samples": [1, 3],
    "beam": [1, 2],
    "max_states": [1, 3, 5],
    "max_trials": [1, 2, 3],
    "max_actions": [1, 2, 3],
    "step_samples": [1, 2, 3],
    "confidence_samples": [1, 2],
    "max_subgoals": [1, 2, 4],
    "max_replans": [0, 1],
    "max_queries": [1, 3],
    "max_lessons": [0, 1, 3],
    "min_paths": [1, 2],
    "min_gain": [None, 0.0, 0.1],
    "min_score": [0.0, 0.5, 0.7],
    "min_words": [None, 2, 50],
    "max_words": [None, 5, 500],
    "critic": ["model", "checks"],
    "evaluator": [None, "judge", "environment", "exact_match"],
    "actor": ["react", "chain_of_thought"],
    "acting": ["auto", "tools", "paper"],
    "shape": ["supervisor", "debate"],
    "grades": ["judge", "labels", "vote"],
    "grading": ["each", "together"],
    "method": ["breadth_first", "depth_first"],
    "proposals": ["samples", "list"],
    "selection": ["uct", "gumbel"],
    "simulate": [True, False],
    "votes": ["count", "likelihood"],
    "reflection": ["none", "last_attempt", "reflexion"],
    "answer_at_limit": [True, False],
    "action_reward": [None, "judge"],
    "aggregate": ["mean", "max"],
    "retrieved": [0, 3],
    "gold_reward": [True, False],
}
"""Values of settings that change what a run decides by, small enough for a quick run."""
WORKERS = ["react", "chain_of_thought", "lats", "reflexion", "best_of_n", "reflection"]
SHELF = [
    {"title": "Moon", "url": "https://pages.example/moon", "content": "The sea is pulled by the Moon."},
    {"title": "Fares", "url": "https://pages.example/fares", "content": "A ticket costs 6.40 crowns."},
    {"title": "Sun", "url": "https://pages.example/sun", "content": "The Sun is a star."},
]
QUESTIONS = [
    "Why is there tide? [alpha]",
    "Write a poem on the sea.",
    "4 5 6 10",
    "Was kostet die Fahrt?",
    "海为什么有潮汐？",
]


def shelf(query: str) -> list[JsonObject]:
    """Find one or two pages, or none, or fail: by the query."""
    chance = random.Random(query)
    if chance.random() < 0.1:
        raise RuntimeError("the shelf is closed")
    return chance.sample(SHELF, chance.choice([0, 1, 2]))


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Model:
    """A model whose replies are chance: a function of the seed and of what is asked. It notes what it has accepted.

    Args:
        seed: What the chance begins with.
        faults: The share of the calls that fail or break their form.
        agrees: The chance with which it accepts, calls complete, or calls solved.
        right: What it knows of the right answer, and writes as often as anything else.
    """

    def __init__(self, seed: int, faults: float, agrees: float, right: Sequence[str]) -> None:
        self.seed, self.faults, self.agrees, self.right = seed, faults, agrees, right
        self.accepted: list[tuple[str, JsonObject]] = []

    def __call__(self, request: Request) -> Reply:
        """Answer a request."""
        chance = random.Random(f"{self.seed} {request.key} {request.index} {request.attempt}")
        if chance.random() < self.faults:
            return self._fault(chance, request)
        if request.schema is not None:
            filled: JsonObject = self._value(chance, request.schemas[request.schema], "", {}, request)
            if any(filled.get(name) for name in ("accept", "solved", "done")):
                self.accepted.append((request.schema, filled))
            if request.schema == "Judgements":
                filled = self._judgements(chance, request)
            return filled
        if request.as_json:
            return {}
        if request.tools and request.tool_choice != "none" and chance.random() < 0.5:
            name = chance.choice(request.tools)
            args = self._value(chance, request.schemas.get(name, {"type": "object"}), "", {}, request)
            return ToolUse(name, args)
        return self._text(chance)

    def _fault(self, chance: random.Random, request: Request) -> Reply:
        errors: list[Reply] = [
            ModelConnectionError("the connection broke"),
            ModelRateLimitError("too many requests"),
            ModelInvalidRequestError("the request is invalid"),
            AIMessage(""),
            "I would rather say it in plain words.",
            ToolUse("no_such_tool", {}),
        ]
        broken = [ToolUse(request.schema, '{"broken": ')] if request.schema and not request.as_json else []
        return chance.choice([*errors, *broken])

    def _text(self, chance: random.Random) -> str:
        kind = chance.randrange(14 if self.right else 7)
        if kind >= 7:
            return f"Thought: So.\nAction: {chance.choice(self.right)}" if kind % 2 else f"Answer: {self.right[-1]}"
        if kind == 0:
            return chance.choice(ACTIONS)
        if kind == 1:
            return f"Thought: So.\nAction: {chance.choice(ACTIONS)}"
        if kind == 2:
            return "\n".join(chance.sample(ACTIONS, 3))
        if kind == 3:
            return chance.choice(
                ["sure", "likely", "impossible", "Now we can answer the question.", "What is the sea?"]
            )
        text = " ".join(chance.sample(SENTENCES, chance.choice([1, 1, 2])))
        return text if kind == 4 else f"{text}\nAnswer: {chance.choice(ENDS)}"

    def _judgements(self, chance: random.Random, request: Request) -> JsonObject:
        shown = next((m.text for m in reversed(request.messages) if "<candidate " in m.text), "")
        form: JsonObject = {"type": "object", "properties": {name: {"type": kind} for name, kind in JUDGED.items()}}
        judged = [self._value(chance, form, "", {}, request) for _ in range(max(shown.count("<candidate "), 1))]
        self.accepted += [("Judgements", each) for each in judged if each["solved"]]
        return {"judgements": judged}

    def _value(
        self, chance: random.Random, schema: JsonMapping, name: str, definitions: JsonMapping, request: Request
    ) -> Any:
        definitions = schema.get("$defs", definitions)
        if "$ref" in schema:
            return self._value(chance, definitions[schema["$ref"].rsplit("/", 1)[-1]], name, definitions, request)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return chance.choice(schema["enum"])
        if options := schema.get("anyOf") or schema.get("allOf"):
            return self._value(chance, chance.choice(options), name, definitions, request)
        match schema.get("type"):
            case "object":
                parts = schema.get("properties", {})
                return {key: self._value(chance, part, key, definitions, request) for key, part in parts.items()}
            case "array":
                least = schema.get("minItems", 0)
                count = chance.randint(least, min(schema.get("maxItems", least + 2), least + 2))
                items = schema.get("items", {"type": "string"})
                values = [self._value(chance, items, name, definitions, request) for _ in range(count)]
                for number, value in enumerate(values):
                    if isinstance(value, dict) and "needs" in value:
                        value |= {"id": f"g{number}-{chance.randrange(10**6)}", "needs": []}
                return values
            case "boolean":
                return chance.random() < self.agrees
            case "integer":
                return chance.randint(int(schema.get("minimum", 0)), int(min(schema.get("maximum", 10), 10)))
            case "number":
                return chance.choice([0.0, 0.25, 0.5, 0.69, 0.7, 0.75, 0.9, 1.0])
            case "null":
                return None
            case _:
                return chance.choice(["", "nothing", "more"]) if name in EMPTY else chance.choice(SENTENCES)


EMPTY = ("missing", "superfluous")
JUDGED = {"reasoning": "string", "score": "number", "solved": "boolean"}


class Run(NamedTuple):
    """A run that came to its end: what it was given, the calls that it sent, and what came of it."""

    strategy: str
    settings: dict[str, Any]
    context: Context
    model: Model
    chat: FakeChatModelWithoutN
    calls: int
    task: Task | None
    out: dict[str, Any]
    events: list[JsonObject]


def random_settings(chance: random.Random, strategy: str) -> dict[str, Any]:
    """Choose settings of a strategy at random, small ones."""
    fields = settings_of(strategy).model_fields
    names = [name for name in FEW if name in fields and chance.random() < 0.4]
    settings = {name: chance.choice(FEW[name]) for name in names}
    settings = {name: value for name, value in settings.items() if value is not None}
    settings.setdefault("max_model_calls", 60)
    if strategy == "rap":
        settings.setdefault("max_rollouts", 2)
    if "max_expansions" in fields and strategy != "auto":
        settings.setdefault("max_expansions", 4)
    if "search" in fields:
        settings["search"] = chance.choice([shelf, shelf, "none"])
    if "environment" in fields and chance.random() < 0.5:
        settings["environment"] = chance.choice(sorted(TASKS))
    if "tools" in fields and chance.random() < 0.2:
        settings["tools"] = [add]
    if chance.random() < 0.1:
        settings["answer_schema"] = {"type": "object", "properties": {"result": {"type": "string"}}}
    if strategy == "plan":
        settings["worker"] = chance.choice(WORKERS)
    if strategy == "team" and chance.random() < 0.7:
        settings["roles"] = [
            {"name": name, "instructions": "Be good.", "strategy": chance.choice(WORKERS)} for name in ("anna", "bert")
        ]
    if strategy == "memory":
        settings |= {"embeddings": "lexical", "reflect_at": 100_000}
    return settings


def random_messages(chance: random.Random) -> list[AnyMessage]:
    """Choose a conversation at random."""
    question = HumanMessage(chance.choice(QUESTIONS))
    before: list[list[AnyMessage]] = [
        [],
        [],
        [SystemMessage("Be brief.")],
        [HumanMessage("Hello."), AIMessage("Hello [1].")],
    ]
    return [*chance.choice(before), question]


async def random_run(seed: int) -> Run | None:
    """Run a strategy as the seed says; None where the settings do not fit together, or the task not to them."""
    chance = random.Random(seed)
    strategy = STRATEGIES[seed % len(STRATEGIES)]
    settings = random_settings(chance, strategy)
    right = RIGHT.get(settings.get("environment", ""), ())
    model = Model(seed, chance.choice([0, 0, 0.05, 0.3]), chance.choice([0.1, 0.5, 0.9]), right)
    chat = (FakeChatModel if chance.random() < 0.7 else FakeChatModelWithoutN)(reply=model)
    inputs: dict[str, Any] = {"messages": random_messages(chance)}
    task = TASKS.get(settings.get("environment", ""))
    if task:
        inputs["task"] = task
    try:
        context = settings_of(strategy)(model=chat, **settings)
    except ValidationError:
        return None
    graph = builder_of(strategy).compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 1000}
    sent = 0
    given: dict[str, Any] | Command[str] | None = inputs
    while given is not None:
        try:
            stream = graph.astream(given, config, context=context, stream_mode="custom")
            events = [event async for event in stream]
        except Misuse:
            return None
        out = (await graph.aget_state(config)).values
        run = Run(strategy, settings, context, model, chat, len(chat.calls) - sent, task, out, events)
        given = None if await contradictions(run) else random_sequel(chance, run)
        sent = len(chat.calls) if isinstance(given, dict) else sent
    return run


def random_sequel(chance: random.Random, run: Run) -> dict[str, Any] | Command[str] | None:
    """Choose how a thread goes on, if it does: with another question, or with an order to its tree search."""
    kind = chance.choice(["end", "end", "question", "order"])
    tree = run.out.get("tree")
    if kind == "order" and tree and run.strategy != "auto":
        below = [node for node in tree if node != ROOT]
        orders = {
            "prune": lambda: steering.prune(run.out, chance.choice(below or [ROOT])),
            "rescore": lambda: steering.rescore(run.out, chance.choice([*tree]), chance.choice([0, 0.5, 1])),
            "hint": lambda: steering.hint(run.out, chance.choice([*tree]), "Look {there}."),
            "more": lambda: steering.more(run.out, 2),
            "stop": lambda: steering.stop(run.out),
        }
        name = chance.choice(["rescore", "hint", "more", "stop", *(["prune"] if below else [])])
        return orders[name]()
    if kind == "question":
        return {"messages": [HumanMessage(chance.choice(QUESTIONS))], **({"task": run.task} if run.task else {})}
    return None


async def contradictions(run: Run) -> list[str]:
    """Return what does not fit together in what came of a run; empty if all does."""
    checks = [*_outcome(run), *_support(run), *_limits(run), *_references(run), *await _environment(run), *_judge(run)]
    return [*checks, *ARTEFACTS.get(run.strategy, lambda _: [])(run)]


def _outcome(run: Run) -> list[str]:
    outcome, answer = run.out["outcome"], run.out["answer"]
    if not outcome:
        return ["no outcome"]
    problems = []
    if (outcome["status"] == "failed") != (answer is None):
        problems.append(f"{outcome['status']} with the answer {answer!r}")
    if (outcome["status"] == "solved") != ("verified_by" in outcome):
        problems.append(f"{outcome['status']}, verified by {outcome.get('verified_by')}")
    if outcome["status"] == "limit_reached" and "limit" not in outcome:
        problems.append("limit_reached without a limit")
    if answer is not None and (not answer.strip() or run.out["messages"][-1].text != answer):
        problems.append("the last message is not the answer")
    if run.events[-1]["event"] != "end" or run.events[-1]["status"] != outcome["status"]:
        problems.append(f"the last event is {run.events[-1]}")
    return problems


def _support(run: Run) -> list[str]:
    """What is verified by its sources has a support that says so, of sentences that stand in the answer."""
    by, support = run.out["outcome"].get("verified_by"), run.out.get("support")
    if by == "sources" and not (support and is_verified(support)):
        return [f"verified by its sources, whose support is {support}"]
    if support and is_verified(support) and not by and "answer_schema" not in run.settings:
        return [f"not verified, and its support is {support}"]
    words = re.sub(r"\W+", "", re.sub(r"\[[^\]]*\]", "", run.out["answer"] or ""))
    sentences = support["sentences"] if support else []
    bare = [re.sub(r"\W+", "", re.sub(r"\[[^\]]*\]", "", sentence["text"])) for sentence in sentences]
    return [f"{text} was checked, and does not stand in the answer" for text in bare if text not in words]


def _limits(run: Run) -> list[str]:
    usage, context = run.out["usage"], run.context
    problems = [
        f"{usage[name]} {name} of {most}"
        for name, most in (("model_calls", context.max_model_calls), ("total_tokens", context.max_total_tokens))
        if usage[name] > most
    ]
    cancelled = run.settings.get("parallel", 1) > 1  # a call that is cancelled before it is sent keeps its reservation
    if usage["model_calls"] < run.calls or (usage["model_calls"] > run.calls and not cancelled):
        problems.append(f"{usage['model_calls']} calls counted, {run.calls} sent")
    return problems


_LIST = re.compile(r"\n\nReferences:\n((?:\[\d+\] .*\n?)+)\Z")


def _references(run: Run) -> list[str]:
    answer = run.out["answer"] or ""
    if not (listed := _LIST.search(answer)) or "answer_schema" in run.settings:
        return []
    body, shown = answer[: listed.start()], "\n".join(request.text for request in run.chat.calls)
    problems = []
    for line in listed[1].splitlines():
        number, url = line[1 : line.index("]")], line.split()[-1]
        if not re.search(rf"\[[^\]]*\b{number}\b[^\]]*\]", body):
            problems.append(f"[{number}] is listed and not cited")
        if url not in shown and url not in json.dumps(SHELF):
            problems.append(f"{url} was never shown")
    return [*problems, *(["[9] is cited, which nobody has found"] if " [9]." in body else [])]


async def _environment(run: Run) -> list[str]:
    """An answer is verified by the environment if and only if this gives it the reward 1."""
    outcome, answer = run.out["outcome"], run.out["answer"]
    by = outcome.get("verified_by")
    if not run.task or answer is None or "answer_schema" in run.settings:
        return [] if by != "environment" or "answer_schema" in run.settings else ["verified by no environment"]
    environment = ENVIRONMENTS[run.settings["environment"]]()
    state = environment.start(run.task)
    action = environment.final_action(answer)
    if action is None or by != "environment":
        return []
    reward = (await environment.step(state, action)).reward
    return [] if reward == 1 else [f"verified by the environment, which gives {answer!r} the reward {reward}"]


def _judge(run: Run) -> list[str]:
    by = run.out["outcome"].get("verified_by")
    if by == "judge" and not any(filled["score"] > 0 for _, filled in run.model.accepted):
        return ["verified by a judge who accepted nothing"]
    return []


def _score_in(reason: str) -> float | None:
    scores = re.findall(r"score of (\d\.\d\d)", reason)
    return float(scores[-1]) if scores else None


def _same(score: float | None, reason: str) -> bool:
    quoted = _score_in(reason)
    return quoted is None or (score is not None and abs(quoted - score) < 0.006)


def _tree(run: Run) -> list[str]:
    """The answer is that of the best node: a solved one if there is any, and its score is the one in the outcome."""
    out, tree = run.out, run.out["tree"]
    best, outcome, problems = tree.get(out["best"] or ""), out["outcome"], []
    answers = [node for node in unpruned(tree) if node["kind"] == "answer"]
    solved = [node["id"] for node in answers if node["solved"]]
    has_form = "answer_schema" not in run.settings or out["structured_response"] is not None
    if solved and has_form and outcome["status"] != "solved":
        problems.append(f"nodes {solved} are solved, the run is {outcome}")
    if bool(best) != bool(answers):
        problems.append(f"best is {out['best']} among {len(answers)} answers")
    if not best:
        return problems
    if solved and best["id"] not in solved:
        problems.append(f"the best node {best['id']} is not solved, {solved} are")
    if outcome["status"] == "solved" and not solved:
        problems.append(f"the run is {outcome}, and no node is solved")
    named = re.findall(r"node ([\d.]*\d)", outcome["reason"])
    if any(name != best["id"] for name in named):
        problems.append(f"the best node is {best['id']}, the reason names {named}")
    if named and not _same(best["score"], outcome["reason"]):
        problems.append(f"the best node has {best['score']}, the reason says {outcome['reason']}")
    is_text = best["messages"] and "answer_schema" not in run.settings
    if is_text and best["messages"][0].text != out["answer"]:
        problems.append(f"the answer is not that of node {best['id']}")
    return problems


def _reflection(run: Run) -> list[str]:
    drafts, outcome = run.out["drafts"], run.out["outcome"]
    accepted = [draft for draft in drafts if draft["accepted"]]
    mine = [draft for draft in drafts if draft["text"] == run.out["answer"]]
    problems = []
    if outcome["status"] == "solved" and not accepted:
        problems.append("solved without an accepted draft")
    if "answer_schema" in run.settings or not drafts:
        return problems
    if not mine or (accepted and not any(draft["accepted"] for draft in mine)):
        problems.append(f"the answer is not the accepted draft {accepted}")
    best = max((draft["score"] for draft in drafts if draft["score"] is not None), default=None)
    if not accepted and best is not None and all((draft["score"] or 0) < best for draft in mine):
        problems.append("another draft has a better score")
    if not any(_same(draft["score"], outcome["reason"]) for draft in mine):
        problems.append(f"the answer's draft is {mine}, the reason says {outcome['reason']}")
    return problems


def _trials(run: Run) -> list[str]:
    out, outcome = run.out, run.out["outcome"]
    solved = [trial for trial in out["trials"] if trial["solved"]]
    problems = []
    if outcome["status"] == "solved" and not solved:
        problems.append("solved without a solved trial")
    mine = [trial for trial in out["trials"] if trial["answer"] == out["answer"]]
    if "answer_schema" in run.settings or out["answer"] is None:
        return problems
    if solved and not any(trial["solved"] for trial in mine):
        problems.append(f"the answer is {out['answer']!r}, solved is {solved}")
    judged = run.settings.get("evaluator") == "judge" or not (run.task or run.settings.get("evaluator"))
    if judged and any(trial["reward"] is not None for trial in out["trials"]):
        problems.append("a judge's trial has a reward")
    if judged and mine:
        best = max((trial["score"] for trial in out["trials"] if trial["score"] is not None), default=None)
        if not solved and best is not None and all((trial["score"] or 0) < best for trial in mine):
            problems.append("the judge gave another trial a better score")
        if not any(_same(trial["score"], outcome["reason"]) for trial in mine):
            problems.append(f"the answer's trial is {mine}, the reason says {outcome['reason']}")
    return problems


def _team(run: Run) -> list[str]:
    out, outcome = run.out, run.out["outcome"]
    reports = {report["number"]: report for entry in out["rounds"] for report in entry["reports"]}
    if out["answer"] is None or "answer_schema" in run.settings:
        return []
    mine = {number for number, report in reports.items() if report["answer"] == out["answer"]}
    problems = [] if mine else ["the answer is no report"]
    scores = [entry["score"] for entry in out["rounds"] if entry["best"] in mine and entry["score"] is not None]
    if outcome.get("verified_by") == "judge" and out["rounds"][-1]["best"] not in mine:
        problems.append(f"report {out['rounds'][-1]['best']} is accepted, the answer is {mine}")
    if not any(_same(score, outcome["reason"]) for score in scores or [None]):
        problems.append(f"the answer's scores are {scores}, the reason says {outcome['reason']}")
    return problems


def _reflexion(run: Run) -> list[str]:
    out, problems = run.out, []
    last = out["answers"][-1] if out["answers"] else None
    if out["outcome"]["status"] == "solved" and not (last and last["complete"] and last["references"]):
        problems.append(f"solved by {last}")
    is_revised = any(request.schema == "Revision" for request in run.chat.calls)  # by the check of its sources
    is_text = not is_revised and "answer_schema" not in run.settings
    if last and is_text and not out["answer"].startswith(last["answer"][:20]):
        problems.append(f"the answer is not the last revision {last}")
    return problems


def _chain_of_thought(run: Run) -> list[str]:
    """The answer is one that has the most votes."""
    out, problems = run.out, _rewarded(run)
    by_normal = Counter(sample["normal"] for sample in out["samples"] if sample["normal"])
    is_plain = "environment" not in run.settings and "answer_schema" not in run.settings
    if out["answer"] is None or not by_normal or not is_plain or run.settings.get("votes") == "likelihood":
        return problems
    labelled = Counter(s["normal"] for s in out["samples"] if s["normal"] and has_answer(s["text"])) or by_normal
    mine = [sample["normal"] for sample in out["samples"] if sample["answer"] == out["answer"]]
    if not any(labelled[normal] == max(labelled.values()) for normal in mine):
        problems.append(f"the votes are {labelled}, the answer is {out['answer']!r}")
    return problems


def _aggregation(run: Run) -> list[str]:
    """The answer is one of the candidates, the best that anybody has scored."""
    out, problems = run.out, _rewarded(run)
    if out["answer"] is None or "answer_schema" in run.settings:
        return problems
    last = out["candidates"][-1]["round"]
    if last > run.settings.get("rounds", 3):
        problems.append(f"there are {last} rounds")
    answer = split_references(out["answer"])[0]
    mine = [candidate for candidate in out["candidates"] if candidate["answer"].strip() == answer.strip()]
    is_revised = any(request.schema == "Revision" for request in run.chat.calls)  # by the check of its sources
    if not mine and not is_revised:
        return [*problems, "the answer is no candidate"]
    best = max((candidate["score"] or 0.0) for candidate in out["candidates"])
    if mine and max((candidate["score"] or 0.0) for candidate in mine) < best:
        problems.append(f"a candidate has a score of {best}")
    return problems


def _plan(run: Run) -> list[str]:
    done = [goal for goal in run.out["subgoals"] if goal["status"] == "done"]
    return ["answered, and no sub-goal is done"] if run.out["outcome"]["status"] == "answered" and not done else []


def _memory(run: Run) -> list[str]:
    marks = re.findall(r"\[m(\d+)\]", run.out["answer"] or "")
    wrong = [mark for mark in marks if not 1 <= int(mark) <= len(run.out["memories"])]
    return [f"memories {wrong} of {len(run.out['memories'])} are cited"] if wrong else []


def _rap(run: Run) -> list[str]:
    out, problems = run.out, _rewarded(run)
    if out["weights"] and out["answer"] is not None and not run.task and "answer_schema" not in run.settings:
        heaviest = max(weighed["weight"] for weighed in out["weights"])
        same = PLAIN.normal(out["answer"])
        mine = [weighed["weight"] for weighed in out["weights"] if PLAIN.normal(weighed["answer"]) == same]
        if mine and max(mine) < heaviest:
            problems.append(f"the weights are {out['weights']}, the answer is {out['answer']!r}")
    return problems


def _auto(run: Run) -> list[str]:
    out, outcome = run.out, run.out["outcome"]
    right = [sample["answer"] for sample in out["samples"] if (sample["reward"] or 0) >= 1]
    problems = []
    if right and outcome.get("verified_by") not in ("environment", "tests"):
        problems.append(f"a sample has a reward of 1, and the run is {outcome}")
    solved = [node for node in out["tree"].values() if node["solved"] and node["kind"] == "answer"]
    has_form = "answer_schema" not in run.settings or out["structured_response"] is not None
    if solved and has_form and outcome["status"] != "solved" and not right:
        problems.append(f"nodes {[node['id'] for node in solved]} are solved, the run is {outcome}")
    if "answer_schema" in run.settings or out["answer"] is None:
        return problems
    if right and out["answer"] not in right:
        problems.append(f"{right[0]!r} is right, the answer is {out['answer']!r}")
    texts = [node["messages"][0].text for node in solved if node["messages"]]
    if outcome.get("verified_by") == "judge" and not run.task and out["answer"] not in texts:
        problems.append("the answer is not that of a solved node")
    by_vote = outcome["status"] == "answered" and out["turns"][-1]["why"].startswith("the vote is safe")
    if by_vote and out["answer"] not in [sample["answer"] for sample in out["samples"]]:
        problems.append(f"the vote ended the run, and the answer is {out['answer']!r}")
    looked = any(turn["stage"] == "look_up" for turn in out["turns"])
    if by_vote and run.settings["search"] is shelf and not run.task and not looked:
        problems.append("the vote ended the run before a look-up")
    return problems


def _rewarded(run: Run) -> list[str]:
    reward, by = run.out.get("reward"), run.out["outcome"].get("verified_by")
    overruled = any(node.get("rescored") for node in run.out.get("tree", {}).values())
    if overruled or "answer_schema" in run.settings:
        return []
    if (reward is not None and reward >= 1) != (by in ("environment", "tests")):
        return [f"a reward of {reward}, verified by {by}"]
    return []


def _tree_search(run: Run) -> list[str]:
    return [*_tree(run), *_rewarded(run)]


ARTEFACTS = {
    "lats": _tree_search,
    "tree_of_thoughts": _tree_search,
    "ab_mcts": _tree_search,
    "best_of_n": _tree_search,
    "rap": _rap,
    "react": _rewarded,
    "chain_of_thought": _chain_of_thought,
    "aggregation": _aggregation,
    "plan": _plan,
    "memory": _memory,
    "reflection": _reflection,
    "reflexion": _reflexion,
    "trials": _trials,
    "team": _team,
    "auto": _auto,
}
"""What else has to hold, by the strategy whose artefact it is about."""
