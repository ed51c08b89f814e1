"""The groups in which settings are shown: what a user sets comes first, what serves research last."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from reflective_agents.state.effect import Replication

OWN: Final = "The strategy"
RESEARCH: Final = "For research"

SHARED: Mapping[str, str] = {
    "Models": "model judge_model critic_model fallback_models temperature judge_temperature seed thinking structured "
    "model_parameters",
    "Limits": "max_model_calls max_total_tokens max_cost prices max_seconds max_answer_tokens call_timeout",
    "The answer": "language answer_schema verifiers threshold verifier_timeout verify_sources min_words max_words",
    "Sources and tools": "search corpus tools client_tools calculator critic_tools agent",
    "Conversations and lessons": "context_window compact compact_model compact_share prompts experience "
    "experience_model experience_from memory_size",
    "Tasks": "environment docstore unsafe_code examples own_examples",
    RESEARCH: "acting selection judge_weight exploration_weight grading grades grade_samples proposals lists simulate "
    "max_rollouts expand_from max_lessons min_gain max_context_tokens comparisons batch votes step_samples max_repeats "
    "action_reward confidence_samples aggregate min_paths memory_queries fact_tokens recency importance relevance "
    "embeddings call_cost talk_again",
}
"""The settings of each group, in order. What is in none is the strategy's own, unless its type says that it only
repeats a paper's measurement: a `Replication` is for research, and is named here for its order alone."""
_GROUP = {name: group for group, names in SHARED.items() for name in names.split()}
GROUPS: Final = (OWN, *SHARED)
"""All groups, in the order in which they are shown."""


def group_of(name: str, field: FieldInfo) -> str:
    """Return the group of a setting."""
    repeats = any(isinstance(mark, Replication) for mark in field.metadata)
    return RESEARCH if repeats else _GROUP.get(name, OWN)


def grouped(schema: type[BaseModel]) -> dict[str, dict[str, FieldInfo]]:
    """Return the settings of a strategy by their groups, in the order in which they are shown; no group is empty."""
    listed = [name for name in _GROUP if name in schema.model_fields]
    own = [name for name in schema.model_fields if name not in _GROUP]
    groups: dict[str, dict[str, FieldInfo]] = {group: {} for group in GROUPS}
    for name in [*own, *listed]:
        field = schema.model_fields[name]
        groups[group_of(name, field)][name] = field
    return {group: fields for group, fields in groups.items() if fields}


def sort_form(form: dict[str, Any], schema: type[BaseModel]) -> None:
    """Bring the settings of a JSON schema into the order of their groups, each with the name of its group."""
    ordered: dict[str, Any] = {}
    for group, fields in grouped(schema).items():
        for name in fields:
            if name in form["properties"]:
                ordered[name] = {**form["properties"][name], "group": group}
    form["properties"] = ordered
