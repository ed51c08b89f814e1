"""The results of a run as one page of HTML that needs nothing else: no network, no script, no other file."""

from collections.abc import Collection
from pathlib import Path

from evals.charts import charts
from evals.results import Result
from evals.summary import Summary

_FOLDER = Path(__file__).parent


def page(summary: Summary, results: Collection[Result]) -> str:
    """Return the page. What models wrote stands in it as text, whatever it says."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = list(results)
    return environment.get_template("page.html").render(
        summary=summary, facts=facts(summary), charts=charts(summary, shown), results=shown
    )


def facts(summary: Summary) -> list[tuple[str, str]]:
    """Return the summary in words: what, and how much."""
    rows = [
        ("strategy", summary["strategy"]),
        ("data set", f"{summary['dataset']} ({summary['environment']})"),
        ("tasks", f"{summary['finished']:,} of {summary['tasks']:,}"),
        ("accuracy", _accuracy(summary)),
    ]
    rows += [(f"mean {name}", f"{value:.1%}") for name, value in summary["scores"].items()]
    rows += [(f"correct after trial {number}", f"{share:.1%}") for number, share in enumerate(summary["trials"], 1)]
    for name, spread in summary["cost"].items():
        said = f"mean {spread['mean']:,.1f}, median {spread['median']:,.1f}, in all {spread['total']:,.0f}"
        rows.append((f"{name.replace('_', ' ')} a task", said))
    rows += [(f"ended as {status}", f"{count:,}") for status, count in summary["outcomes"].items()]
    rows += [(f"crashed with {kind}", f"{count:,}") for kind, count in summary["errors"].items()]
    return rows


def _accuracy(summary: Summary) -> str:
    if summary["accuracy"] is None or summary["interval"] is None:
        return "not measured: no right answer is known"
    low, high = summary["interval"]
    counted = f"{summary['correct']:,} of {summary['measured']:,}"
    return f"{summary['accuracy']:.1%} ({counted}; 95 % interval {low:.1%} to {high:.1%})"
