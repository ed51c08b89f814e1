"""The plots of the page, each a picture with its words; drawn with Matplotlib, and without colour still readable."""

import base64
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from evals.results import Result
from evals.summary import Summary, cost_of, wilson

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _FILL = "#1f4e79", "#c9d8e8"
_STYLE = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "reflective-agents"}
_COSTS = {"model_calls": "model calls a task", "total_tokens": "tokens a task", "seconds": "seconds a task"}


class Chart(NamedTuple):
    """A plot."""

    title: str
    words: str
    """What it shows, for those who do not see it."""
    picture: str
    """The picture as an address that holds all its data."""


def charts(summary: Summary, results: Sequence[Result]) -> list[Chart]:
    """Return the plots for which there is something to be seen."""
    import matplotlib

    known = [result for result in results if result["usage"]]
    with matplotlib.rc_context(_STYLE):  # type: ignore[arg-type]  # its keys are Literals
        drawn = [_accuracy(summary)] if summary["interval"] else []
        drawn += [_trials(summary)] if summary["trials"] else []
        drawn += [
            _histogram(label, [cost_of(result, name) for result in known]) for name, label in _COSTS.items() if known
        ]
    return drawn


def _accuracy(summary: Summary) -> Chart:
    """The accuracy with its interval, and the means of the other figures."""
    assert summary["accuracy"] is not None
    assert summary["interval"] is not None
    low, high = summary["interval"]
    names = ["accuracy", *summary["scores"]]
    values = [summary["accuracy"], *summary["scores"].values()]
    figure, axes = _figure(height=0.8 + 0.45 * len(names))
    axes.plot(values, names, "o", color=_INK)
    axes.hlines(0, low, high, color=_INK, linewidth=2)
    axes.plot([low, high], [0, 0], "|", color=_INK, markersize=12)
    for row, value in enumerate(values):
        axes.annotate(f"{value:.1%}", (value, row), (0, 7), textcoords="offset points", ha="center")
    axes.set(xlim=(-0.02, 1.02), ylim=(len(names) - 0.4, -0.8))
    words = f"Accuracy {values[0]:.1%}, 95 % interval {low:.1%} to {high:.1%}."
    means = [f"Mean {name}: {value:.1%}." for name, value in summary["scores"].items()]
    return Chart("Accuracy and mean scores", " ".join([words, *means]), _picture(figure))


def _trials(summary: Summary) -> Chart:
    """The share of tasks that are correct after each trial, in its interval."""
    shares, n = summary["trials"], summary["measured"]
    numbers = range(1, len(shares) + 1)
    bands = [wilson(round(share * n), n) for share in shares]
    figure, axes = _figure()
    axes.fill_between(numbers, [low for low, _ in bands], [high for _, high in bands], color=_FILL, linewidth=0)
    axes.plot(numbers, shares, "o-", color=_INK)
    for number, share in zip(numbers, shares, strict=True):
        axes.annotate(f"{share:.1%}", (number, share), (0, 7), textcoords="offset points", ha="center")
    axes.set(
        xlabel="trial", ylabel="share of tasks correct", xticks=numbers, xlim=(0.7, len(shares) + 0.3), ylim=(0, 1.05)
    )
    said = ", ".join(f"{share:.1%} after trial {number}" for number, share in zip(numbers, shares, strict=True))
    return Chart("Correct after each trial", f"Share of tasks correct: {said}.", _picture(figure))


def _histogram(label: str, values: Sequence[float]) -> Chart:
    from matplotlib.ticker import MaxNLocator

    figure, axes = _figure()
    counts, edges, _ = axes.hist(values, bins="auto" if len(set(values)) > 1 else 1, color=_FILL, edgecolor=_INK)
    axes.set(xlabel=label, ylabel="tasks", xlim=(0, None))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    most = int(max(range(len(edges) - 1), key=lambda i: float(counts[i])))
    words = f"From {min(values):,.0f} to {max(values):,.0f}; most often {edges[most]:,.0f} to {edges[most + 1]:,.0f}."
    return Chart(label[0].upper() + label[1:], words, _picture(figure))


def _figure(height: float = 3.0) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, height), layout="constrained")
    return figure, figure.subplots()


def _picture(figure: "Figure") -> str:
    drawn = io.BytesIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + base64.b64encode(drawn.getvalue()).decode()
