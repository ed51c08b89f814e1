"""A tree search that is steered all the way, in Python and on a server: what comes of it is the same."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

from reflective_agents.graphs.lats import builder
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from reflective_agents.tree_search.steering import earlier, go_on, hint, more, prune, rescore, stop

QUESTION: dict[str, Any] = {"messages": [{"role": "user", "content": "An unsolvable question"}]}
SETTINGS: dict[str, Any] = {"search": "none", "n": 2, "max_expansions": 3, "grading": "together"}
Values = Any
Order = Callable[[Values], Command[str]]


def script(request: Request) -> Reply:
    """Answer as the model of the servers does."""
    if request.schema is None:
        return f"Answer {request.index} after {len(request.messages)} messages"
    judgement = {"reasoning": "It does not answer.", "score": 0.3, "solved": False}
    each = [judgement] * request.last.count("<candidate ")
    return judgement if request.schema == "Judgement" else {"judgements": each}


class Place(Protocol):
    """Where a search runs on one thread."""

    async def run(self, given: Any = None, *, step: int | None = None, pause: bool = False) -> Values:
        """Run the thread, from an earlier step of its log if one is given, and return its values."""
        ...


class Python:
    """In this process."""

    def __init__(self) -> None:
        self._graph = builder.compile(name="lats", checkpointer=InMemorySaver())
        self._config: RunnableConfig = {"configurable": {"thread_id": "1"}}

    async def run(self, given: Any = None, *, step: int | None = None, pause: bool = False) -> Values:
        config = self._config
        if step is not None:
            config = await earlier(self._graph, config, step)
        context, stops = (
            LatsContext.model_validate({**SETTINGS, "model": FakeChatModel(reply=script)}),
            ["expand"] if pause else None,
        )
        await self._graph.ainvoke(given, config, context=context, interrupt_before=stops)
        return (await self._graph.aget_state(self._config)).values


class Server:
    """On a server."""

    def __init__(self, client: LangGraphClient) -> None:
        self._client, self.thread = client, str(uuid4())

    async def run(self, given: Any = None, *, step: int | None = None, pause: bool = False) -> Values:
        begin: dict[str, Any] = {"input": given}
        if isinstance(given, Command):
            begin = {"command": {"update": given.update, "goto": given.goto}}
        if step is not None:
            history = await self._client.threads.get_history(self.thread, limit=100)
            fork: Any = next(state for state in history if _log_of(state) == step)
            begin["checkpoint"] = fork["checkpoint"]
        elif given is None:  # Aegra resumes nothing without being told where
            begin["checkpoint"] = (await self._client.threads.get_state(self.thread))["checkpoint"]
        await self._client.runs.wait(
            self.thread,
            "lats",
            **begin,
            context=SETTINGS,
            interrupt_before=["expand"] if pause else None,
            if_not_exists="create",
        )
        return (await self._client.threads.get_state(self.thread))["values"]


def _log_of(state: Any) -> int:
    return len((state["values"] or {}).get("log") or [])


async def steered(engine: Place) -> dict[str, Any]:
    """Steer a search in every way, and return what came of it at each time."""
    states: dict[str, Any] = {}

    async def note(name: str, values: Any) -> Any:
        states[name] = _told(values)
        return values

    now = await note("paused", await engine.run(QUESTION, pause=True))
    now = await note("resumed by a step", await engine.run(None, pause=True))
    now = await note("rescored", await engine.run(rescore(now, "0.1", 0.95), pause=True))
    stale = now
    now = await note("hinted", await engine.run(hint(now, "0.1", "Exploration."), pause=True))
    now = await note("the second is told", await engine.run(prune(stale, "0.1"), pause=True))
    now = await note("ended", await engine.run(None))
    now = await note("pruned", await engine.run(prune(now, "0.1")))
    now = await note("more", await engine.run(more(now, 2)))
    await note("forked", await engine.run(go_on(), step=4))
    now = await engine.run(go_on(), step=3, pause=True)
    await note("stopped", await engine.run(stop(now)))
    return states


def _told(values: Any) -> dict[str, Any]:
    return {
        "tree": {key: (node["score"], node["solved"], node["kind"]) for key, node in sorted(values["tree"].items())},
        "stats": {
            key: (stat["visits"], stat["total"], stat["closed"]) for key, stat in sorted(values["stats"].items())
        },
        "log": [(entry["kind"], entry["node"], entry["added"], entry.get("said")) for entry in values["log"]],
        "answer": values.get("answer"),
        "best": values.get("best"),
        "status": (values.get("outcome") or {}).get("status"),
        "messages": len(values["messages"]),
    }


async def the_same_tree_as_in_python(client: LangGraphClient) -> None:
    here, there = await asyncio.gather(steered(Python()), steered(Server(client)))
    assert there == here
    kinds = [entry[0] for entry in here["more"]["log"]]
    assert {"rescore", "hint", "refused", "prune", "more"} < {*kinds}
    assert (here["paused"]["status"], here["ended"]["status"]) == (None, "limit_reached")
    assert here["forked"]["log"][:4] == here["more"]["log"][:4]
    assert [entry[0] for entry in here["forked"]["log"][4:]] == ["expand", "expand"]
    stopped = here["stopped"]
    assert (stopped["status"], stopped["log"][-1][0], len(stopped["tree"])) == ("exhausted", "stop", 5)
    assert stopped["messages"] == 2


async def a_run_is_stopped_steered_and_goes_on(client: LangGraphClient, slow: dict[str, Any], question: str) -> None:
    """Pause a run that is under way; while it runs, and for who comes second, steering is refused with 409."""
    thread = str(uuid4())
    messages: dict[str, Any] = {"messages": [{"role": "user", "content": question}]}
    run = await client.runs.create(thread, "lats", input=messages, context=slow, if_not_exists="create")
    values: Any = {}
    async with asyncio.timeout(240):
        while len(values.get("tree") or {}) < 3:
            await asyncio.sleep(0.2)
            values = (await client.threads.get_state(thread))["values"] or {}
    order = prune(values, "0.0")
    command: Any = {"update": order.update, "goto": order.goto}
    assert await _refused(client, thread, command) == 409
    await client.runs.cancel(thread, run["run_id"], wait=True, action="interrupt")
    await client.runs.wait(thread, "lats", command=command, multitask_strategy="reject")
    after: Any = (await client.threads.get_state(thread))["values"]
    grown = after["tree"].keys() - values["tree"].keys()
    assert after["outcome"]["status"] == "limit_reached"
    assert not [key for key in grown if key.startswith("0.0.")]
    assert after["expansions"] == slow["max_expansions"]


async def _refused(client: LangGraphClient, thread: str, command: Any) -> int:
    try:
        await client.runs.create(thread, "lats", command=command, multitask_strategy="reject")
    except APIStatusError as error:
        return error.status_code
    return 0
