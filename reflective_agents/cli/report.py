"""The report about a run that has stopped."""

import json
import sys

from reflective_agents.cli.output import clean, one_line, say, wrapped
from reflective_agents.cli.request import Request, Run
from reflective_agents.models.providers import OFFLINE
from reflective_agents.state.errors import NoDatabase
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.outcome import pluralize
from reflective_agents.state.run import Usage
from reflective_agents.state.secrets import redacted

ANSWERED, FAILED, WAITING, INTERRUPTED = 0, 1, 3, 130
_FAULTS = ("failed_calls", "parse_failures", "tool_errors")


def report(request: Request, run: Run) -> int:
    """Write the result on stdout, the cost and the way to go on upon stderr.

    Returns:
        The exit code.
    """
    if request.as_json:
        print(json.dumps(as_json(request, run)), flush=True)
    if run.asks:
        way = request.command(run.thread, "--resume", "--critique", '"accept"')
        say(f"thread {run.thread} waits for a critique; give it with: {way}")
        return WAITING
    outcome = run.result["outcome"]
    if not request.as_json:
        if sys.stderr.isatty():
            print(file=sys.stderr)  # sets the answer off from the progress above it
        if run.result["answer"] is not None:
            print(wrapped(clean(run.result["answer"])), end="\n\n")
            if data := run.result.get("structured_response"):
                print(clean(json.dumps(data, ensure_ascii=False, indent=2)), end="\n\n")
        by = f" (verified by: {outcome['verified_by']})" if "verified_by" in outcome else ""
        print(f"{outcome['status']}: {clean(outcome['reason'])}{by}", flush=True)
    say(f"cost: {cost_line(run.result['usage'])}")
    if run.choice and run.choice.model == OFFLINE and outcome.get("answered") is False:
        advice = ": try other words or" if request.settings.get("corpus") else ", its own in English: try --corpus or"
        say(f"the offline model only picks sentences from documents{advice} --model")
    say(f'continue with: {request.command(run.thread)} "..."')
    return FAILED if outcome["status"] == "failed" else ANSWERED


def report_interruption(request: Request, run: Run) -> int:
    """Say what is left of a run that was broken off.

    Returns:
        The exit code.
    """
    if run.resumable:
        say(f"interrupted; go on with: {request.command(run.thread, '--resume')}")
    elif run.result:
        say(f"interrupted after the run had ended; its answer is kept on thread {run.thread}")
    else:
        say("interrupted before the run began; nothing was written")
    return INTERRUPTED


def report_loss(request: Request, run: Run, error: NoDatabase) -> int:
    """Say how to go on with a run that has lost its database on the way.

    Returns:
        The exit code.
    """
    say(f"reflect: {redacted(str(error))}; then go on with: {request.command(run.thread, '--resume')}")
    return FAILED


def as_json(request: Request, run: Run) -> JsonObject:
    """Return all that is known of a run that has ended or waits for a person."""
    choice = run.choice
    assert choice is not None
    models = {"model": choice.model, "model_reason": choice.model_reason, **choice.helpers}
    searched = {"search": choice.search, "search_reason": choice.search_reason}
    where = {"strategy": request.strategy, "thread": run.thread}
    return {**where, **models, **searched, **run.result, "waiting_for": run.asks}


def cost_line(usage: Usage) -> str:
    """Describe the cost of a run in words; faults only if there were any."""
    spent = f"{pluralize(usage['model_calls'], 'call')}, {usage['total_tokens']:,} tokens, {usage['seconds']:.1f} s"
    spent += f", {money(usage)}" if usage["cost"] else ""
    faults = [f"{usage[name]} {name.replace('_', ' ')}" for name in _FAULTS if usage[name]]  # type: ignore[literal-required]
    return ", ".join([spent, *faults])


def money(usage: Usage) -> str:
    """Describe the money that a run has cost."""
    unknown = usage["unpriced_calls"]
    return f"${usage['cost']:,.6f}" + (f" (without {pluralize(unknown, 'call')} of unknown price)" if unknown else "")


def show_draft(asks: JsonMapping) -> None:
    """Show a person what they are asked to criticise."""
    say(f"draft for: {one_line(asks['request'], 100)}")
    print(f"\n{clean(asks['draft'])}\n", file=sys.stderr)
    for problem in asks.get("problems", []):
        say(f"problem: {problem}")
