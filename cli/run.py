"""`reflect run`: one question through a strategy, on a thread that outlives the process."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from langgraph.types import Command, StateSnapshot

from cli.artefact import plain, replay
from cli.checks import check
from cli.options import make_context
from cli.output import say, stderr
from cli.progress import Progress, details, display, line, redrawable
from cli.report import report, report_interruption, show_draft
from cli.request import Request, Run
from cli.store import open_store
from cli.strategies import load, settings_of
from cli.threads import (
    Graph,
    Saver,
    config_of,
    config_to_resume,
    exists,
    last_unfinished,
    new_name,
    open_saver,
    read_thread,
    settings_kept,
    unfinished,
)
from models.providers import close_models
from state.context import Context
from state.errors import Misuse, WrongThread


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
        _leg(request, done)
        if done.asks and not request.as_json and not _person_present(request):
            show_draft(done.asks)
        while done.asks and _person_present(request):
            critique = _ask_person(done.asks)
            if critique is None:
                break
            _leg(replace(request, question=None, thread=done.thread, resume=True, critique=critique), done)
    except KeyboardInterrupt:
        return report_interruption(request, done)
    return report(request, done)


def _leg(request: Request, done: Run) -> None:
    """Run until the end or until a person is asked. SIGTERM is treated like Ctrl-C."""

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        with suppress(NotImplementedError):  # on Windows
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            await _advance(request, done)
        finally:
            await close_models()

    try:
        asyncio.run(main())
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error


async def _advance(request: Request, done: Run) -> None:
    """Check everything, and only then write to the thread."""
    schema = settings_of(request.strategy)
    settings = request.settings
    context = make_context(schema, settings)
    if not request.resume:
        done.choice = await check(context, settings)
    async with open_saver() as saver:
        graph = load(request.strategy, saver)
        done.thread, state = await _choose_thread(request, graph, saver)
        if request.resume:
            settings = {**settings_kept(state), **settings}
            context = make_context(schema, settings)
            done.choice = await check(context, settings)
            done.resumable = True
        _check_user(context, state)
        if done.progress is None:
            done.progress = _begin(request, done, context, state)
        if state.interrupts and request.critique is None:
            return _settle(done, graph, state)
        if request.resume:
            config = config_to_resume(state, request.strategy, settings)
        else:
            config = config_of(done.thread, request.strategy, settings)
        async with open_store(context) as store:
            graph = load(request.strategy, saver, store)
            events = graph.astream(
                _start(request), config, context=context, stream_mode="custom", subgraphs=True, durability="sync"
            )
            await _follow(events, done, done.progress)
        _settle(done, graph, await graph.aget_state(config_of(done.thread)))


async def _follow(events: AsyncIterator[Any], done: Run, progress: Progress) -> None:
    """Show what a run tells until it stops."""
    with display(progress):
        async for namespace, event in events:
            done.resumable = True
            if namespace:
                _follow_inside(event, progress)
                continue
            progress.add(event)
            if not redrawable():
                say(f"{event['seconds']:.1f} s, {event['model_calls']} calls: {line(event)}")


def _follow_inside(event: dict[str, Any], progress: Progress) -> None:
    """Show what a strategy inside this one tells; its cost is told when it has ended."""
    if event["event"] in ("begin", "end"):
        return
    note = {"event": f"- {event['event']}", **details(event)}
    progress.notes.append(line(note))
    if not redrawable():
        say(line(note))


async def _choose_thread(request: Request, graph: Graph, saver: Saver) -> tuple[str, StateSnapshot]:
    """The thread to run on, and its state.

    Raises:
        Misuse: if there is nothing to resume, or an unfinished run stands in the way of a new question.
    """
    name = request.thread or (await last_unfinished(graph, saver) if request.resume else new_name(request.strategy))
    state = await read_thread(graph, saver, name)
    if request.resume and not unfinished(state):
        why = "its last run has ended" if exists(state) else "there is no such thread"
        raise Misuse(f'nothing to resume on thread {name}: {why}; ask with: {request.command(name)} "..."')
    if not request.resume and unfinished(state):
        ways = f"go on with it: {request.command(name, '--resume')}, or choose another thread"
        raise Misuse(f"thread {name} has an unfinished run: {ways}")
    if request.critique is not None and not state.interrupts:
        raise Misuse(f"thread {name} does not wait for a critique: leave out --critique")
    return name, state


def _check_user(context: Context, state: StateSnapshot) -> None:
    """Refuse another user's thread before anything is written to it."""
    owner, user = state.values.get("user"), getattr(context, "user", None)
    if owner is not None and owner != user:
        raise WrongThread(f"this thread belongs to user {owner!r}, not to {user!r}: choose another thread, or --user")


def _start(request: Request) -> Any:
    """What the graph is given."""
    if request.critique is not None:
        return Command(resume=request.critique.strip() or "accept")
    return None if request.resume else {"messages": [("user", request.question)]}


def _begin(request: Request, done: Run, context: Context, state: StateSnapshot) -> Progress:
    """Say what runs where, and take in what a resumed run has already told."""
    how = "resumed" if request.resume else "continued" if exists(state) else "new"
    assert done.choice is not None
    for said in (f"{request.strategy} on thread {done.thread} ({how})", *done.choice.lines()):
        say(said)
    progress = Progress(context)
    for event in replay(state.values) if request.resume else ():
        progress.add(event)
    return progress


def _settle(done: Run, graph: Graph, state: StateSnapshot) -> None:
    """Note what has become of the run."""
    channels = graph.output_channels
    names = [channels] if isinstance(channels, str) else channels
    done.result = {name: plain(state.values.get(name)) for name in names if name != "messages"}
    done.asks = state.interrupts[0].value if state.interrupts else None
    done.resumable = unfinished(state)


def _person_present(request: Request) -> bool:
    return not request.as_json and sys.stdin.isatty() and sys.stderr.isatty()


def _ask_person(asks: dict[str, Any]) -> str | None:
    """What the person at the terminal says of a draft; None if they close the input."""
    show_draft(asks)
    try:
        return stderr().input("Your critique (Enter accepts the draft): ")
    except EOFError:
        print(file=sys.stderr)
        return None
