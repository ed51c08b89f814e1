"""Describes what is run as plain data, by which an interrupted run is known again."""

from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any

from reflective_agents.environments.base import Environment
from reflective_agents.environments.registry import resolve_environment
from reflective_agents.evals.datasets import Dataset
from reflective_agents.evals.results import About
from reflective_agents.evals.scorers import Scorer, ScorerLike, name_of, resolve_scorer
from reflective_agents.state.context import Context
from reflective_agents.state.json_types import JsonObject
from reflective_agents.text.structure import Json


def about(strategy: str, context: Context, dataset: Dataset, scorer: ScorerLike = None) -> About:
    """Return what is run, as plain data. Of an object, such as a model, only its kind is kept."""
    environment = resolve_environment(dataset.environment, unsafe_code=getattr(context, "unsafe_code", False))
    settings: JsonObject = {}
    for name, value in context.model_dump().items():
        is_plain = isinstance(getattr(context, name), dict | list)
        settings[name] = _plain(value) if is_plain else _scalar(value)
    versions = {"python": python_version()}
    for library in ("reflective-agents", "langgraph", "langchain-core"):
        versions[library] = _version(library)
    description: About = {
        "strategy": strategy,
        "settings": settings,
        "dataset": dataset.name,
        "environment": dataset.environment_name,
        "fingerprint": dataset.fingerprint,
        "tasks": len(dataset.tasks),
        "versions": versions,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return scored_by(description, scorer, resolve_scorer(scorer, environment, context), environment)


def scored_by(description: About, scorer: ScorerLike, resolved: Scorer, environment: Environment) -> About:
    """Return what was run with what scores its answers now; a measure of the environment's own needs no name."""
    new = description.copy()
    new.pop("scorer", None)
    new["correct_if"] = resolved.correct_if
    name = name_of(scorer)
    is_its_own = name == "em" and environment.figure == "em"
    if name is not None and not is_its_own:
        new["scorer"] = name
    return new


def _plain(value: Any) -> Json:
    match value:
        case dict():
            return {str(name): _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case _:
            return _scalar(value)


def _scalar(value: Any) -> Json:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return type(value).__name__


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:  # run from a checkout
        return "not installed"
