"""`reflect run`: one question through a strategy, on a thread that outlives the process."""

import sys
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot

from reflective_agents.cli.artefact import replay
from reflective_agents.cli.checks import check
from reflective_agents.cli.database import open_store
from reflective_agents.cli.options import make_context
from reflective_agents.cli.output import say
from reflective_agents.cli.progress import Event, Progress, details, display, line, redrawable
from reflective_agents.cli.report import report, report_interruption, report_loss, show_draft
from reflective_agents.cli.request import Request, Run
from reflective_agents.cli.signals import ask, run_until_signal
from reflective_agents.cli.threads import (
    Graph,
    Saver,
    config_of,
    config_to_resume,
    exists,
    last_unfinished,
    load,
    lock_thread,
    new_name,
    open_saver,
    read_thread,
    restore_thread,
    stored_settings,
    unfinished,
)
from reflective_agents.evals.transcripts import plain
from reflective_agents.models.providers import close_models
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse, NoDatabase, WrongThread
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.state.outcome import pluralize
from reflective_agents.state.settings import settings_of
from reflective_agents.tree_search.steering import earlier


def run(request: Request) -> int:
    """Carry out a request; where a person is the critic and sits at the terminal, ask them until the run ends.

    Returns:
        The exit code.

    Raises:
        Misuse: if it cannot be carried out.
    """
    request.check()
    done = Run()
    try:
        _run_until_stop(request, done)
        if done.asks and not request.as_json and not _person_present(request):
            show_draft(done.asks)
        while done.asks and _person_present(request):
            critique = _ask_person(done.asks)
            if critique is None:
                break
            _run_until_stop(replace(request, question=None, thread=done.thread, resume=True, critique=critique), done)
    except KeyboardInterrupt:
        return report_interruption(request, done)
    except NoDatabase as error:
        if not done.resumable:
            raise
        return report_loss(request, done, error)
    return report(request, done)


def _run_until_stop(request: Request, done: Run) -> None:
    """Run until the end or until a person is asked. SIGTERM and the terminal's hanging up are treated like Ctrl-C."""

    async def main() -> None:
        try:
            await _advance(request, done)
        finally:
            await close_models()

    run_until_signal(main)


async def _advance(request: Request, done: Run) -> None:
    """Check everything, and only then write to the thread."""
    context = make_context(settings_of(request.strategy), request.settings)
    if not request.resume:
        done.choice = await check(context, request.settings)
    async with open_saver() as saver:
        graph = load(request.strategy, saver)
        if request.thread:
            done.thread = request.thread
        elif request.resume:
            done.thread = await last_unfinished(graph, saver)
        else:
            done.thread = new_name(request.strategy)
        async with lock_thread(saver, done.thread):
            await _run_on(request, done, graph, saver)


async def _run_on(request: Request, done: Run, graph: Graph, saver: Saver) -> None:
    """Run on the chosen thread, which no other run of the command uses meanwhile."""
    state = await _read(request, done.thread, graph, saver)
    settings = request.settings
    if request.resume:
        settings = {**stored_settings(state), **settings}
    context = make_context(settings_of(request.strategy), settings)
    if request.resume:
        done.choice = await check(context, settings)
        done.resumable = True
    _check_user(context, state)
    if _has_ended(request, state):
        say(f"the last run on thread {done.thread} has ended; this is what came of it")
        return _note_result(done, graph, state)
    if done.progress is None:
        done.progress = _begin(request, done, context, state)
    if state.interrupts and request.critique is None:
        return _note_result(done, graph, state)
    if request.resume:
        config = config_to_resume(state, request.strategy, settings)
        if request.order is not None:
            state, config = await _steering_from(request, graph, config)
    else:
        config = config_of(done.thread, request.strategy, settings)
    async with open_store(context) as store:
        graph = load(request.strategy, saver, store)
        events = graph.astream(
            _start(request, state), config, context=context, stream_mode="custom", subgraphs=True, durability="sync"
        )
        try:
            await _follow(events, done, done.progress)
        except Misuse:
            # Refused before anything was paid for: there is nothing to resume, and the question must not stay
            # on the thread.
            if not request.resume and not done.progress.cost["model_calls"]:
                await restore_thread(graph, saver, state)
            raise
    _note_result(done, graph, await graph.aget_state(config_of(done.thread)))


async def _steering_from(
    request: Request, graph: Graph, config: RunnableConfig
) -> tuple[StateSnapshot, RunnableConfig]:
    """Return the state from which a steered tree search goes on, and its configuration: an earlier one if the request
    names a step."""
    last = config_of(config.get("configurable", {})["thread_id"])
    checkpoint = last if request.step is None else await earlier(graph, last, request.step)
    return await graph.aget_state(checkpoint), {**config, "configurable": {**checkpoint.get("configurable", {})}}


async def _follow(events: Any, done: Run, progress: Progress) -> None:
    """Show what a run tells until it stops. If that fails, the run ends before its database is closed: a write in
    mid-way would keep it locked."""
    async with aclosing(events):
        with display(progress):
            async for namespace, event in events:
                done.resumable = True
                if namespace:
                    _show_inner(event, progress)
                    continue
                progress.add(event)
                if not redrawable():
                    say(f"{event['seconds']:.1f} s, {pluralize(event['model_calls'], 'call')}: {line(event)}")


def _show_inner(event: Event, progress: Progress) -> None:
    """Show the events of a strategy inside this one; its cost is added when it has ended."""
    if event["event"] in ("begin", "end"):
        return
    note = {"event": f"- {event['event']}", **details(event)}
    progress.notes.append(line(note))
    if not redrawable():
        say(line(note))


async def _read(request: Request, name: str, graph: Graph, saver: Saver) -> StateSnapshot:
    """Read the state of the thread to run on.

    Raises:
        Misuse: if there is nothing to resume, or an unfinished run stands in the way of a new question.
    """
    state = await read_thread(graph, saver, name)
    if request.resume and request.order is None and not exists(state):
        raise Misuse(
            f'nothing to resume on thread {name}: there is no such thread; ask with: {request.command(name)} "..."'
        )
    if not request.resume and unfinished(state):
        resume = request.command(name, "--resume")
        raise Misuse(f"thread {name} has an unfinished run: go on with it: {resume}, or choose another thread")
    if request.critique is not None and not state.interrupts:
        raise Misuse(f"thread {name} does not wait for a critique: leave out --critique")
    return state


def _has_ended(request: Request, state: StateSnapshot) -> bool:
    """Tell whether a run that is to be resumed has nothing left to do: it may have been killed before it could show its
    answer."""
    return request.resume and request.order is None and request.critique is None and not unfinished(state)


def _check_user(context: Context, state: StateSnapshot) -> None:
    """Refuse another user's thread before anything is written to it."""
    owner, user = state.values.get("user"), getattr(context, "user", None)
    if owner is not None and owner != user:
        raise WrongThread(f"this thread belongs to user {owner!r}, not to {user!r}: choose another thread, or --user")


def _start(request: Request, state: StateSnapshot) -> Any:
    """Return the input of the graph. Where several workers wait for a person, the first that asked is answered."""
    if request.critique is not None:
        return Command(resume={state.interrupts[0].id: request.critique.strip() or "accept"})
    if request.order is not None:
        return request.order(state.values)
    return None if request.resume else {"messages": [("user", request.question)]}


def _begin(request: Request, done: Run, context: Context, state: StateSnapshot) -> Progress:
    """Say what runs where, and take in what a resumed run has already told."""
    how = "continued" if exists(state) else "new"
    if request.resume:
        how = "resumed"
    say(f"{request.strategy} on thread {done.thread} ({how})")
    assert done.choice is not None
    for text in done.choice.lines():
        say(text)
    progress = Progress(context)
    if request.resume:
        for event in replay(state.values):
            progress.add(event)
    return progress


def _note_result(done: Run, graph: Graph, state: StateSnapshot) -> None:
    """Note what has become of the run."""
    channels = graph.output_channels
    names = [channels] if isinstance(channels, str) else channels
    values = state.values
    shown = [name for name in names if name not in ("messages", "structured_response")]
    done.result = {name: plain(values.get(name)) for name in shown}
    if values.get("answer") and values.get("structured_response") is not None:
        done.result["structured_response"] = values["structured_response"]
    done.asks = state.interrupts[0].value if state.interrupts else None
    done.resumable = unfinished(state)


def _person_present(request: Request) -> bool:
    return not request.as_json and sys.stdin.isatty() and sys.stderr.isatty()


def _ask_person(asks: JsonMapping) -> str | None:
    """Ask the person at the terminal for a critique of a draft; None if they close the input."""
    show_draft(asks)
    try:
        return ask("Your critique (Enter accepts the draft): ")
    except EOFError:
        print(file=sys.stderr)
        return None
