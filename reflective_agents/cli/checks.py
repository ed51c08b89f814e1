"""Refuses, before anything is written, what a run could not do: models and sources that cannot be had."""

import asyncio
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from reflective_agents.models.prices import check_price
from reflective_agents.models.providers import OFFLINE, choose_model, model_for
from reflective_agents.nodes.checks import check_sources
from reflective_agents.state.context import Context, Model
from reflective_agents.state.extras import need, need_for_memory
from reflective_agents.state.families import SearchContext
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.state.prices import table_of
from reflective_agents.state.settings.memory import MemoryContext
from reflective_agents.state.settings.town import TownContext
from reflective_agents.town.files import load_town
from reflective_agents.web_search.engines import choose_search
from reflective_agents.web_search.own import name_of
from reflective_agents.web_search.services import UNTESTED

_LABELS = {OFFLINE: "offline extractive model", "local": "local corpus", "none": "no search", "tavily": "Tavily"}
_LABELS |= {name: f"{name} (untested)" for name in UNTESTED}


@dataclass(frozen=True)
class Choice:
    """Which model and search a run uses, and why; `helpers` holds the judge or critic if it is another model, and
    `models` all of them."""

    model: str
    model_reason: str
    models: tuple[Model, ...] = ()
    helpers: dict[str, str] = field(default_factory=dict)
    search: str | None = None
    search_reason: str | None = None
    searches: bool = True

    def lines(self) -> list[str]:
        """Describe the choice in words, one line each."""
        lines = [f"model: {_LABELS.get(self.model, self.model)} ({self.model_reason})"]
        lines += [f"{name.replace('_', ' ')}: {_LABELS.get(model, model)}" for name, model in self.helpers.items()]
        if self.search and self.searches:
            lines.append(f"search: {_LABELS.get(self.search, self.search)} ({self.search_reason})")
        return lines


async def check(context: Context, settings: JsonMapping) -> Choice:
    """Look at all that the settings need; `settings` are those that do not come from the environment.

    Raises:
        Misuse: if one of them cannot be had; the text says what to do.
    """
    ladder = getattr(context, "ladder", None)
    model, reason = choose_model(ladder[0] if ladder else settings.get("model"))
    helpers = _set(context, "judge_model", "critic_model", "compact_model")
    lists = _set(context, "arms", "proposers", "ladder")
    models = (model, *helpers.values(), *chain(*lists.values()), *(context.fallback_models or ()))
    for name in models:
        chat = model_for(context, name)
        await check_price(chat, table_of(context.prices), required=context.max_cost is not None)
    await check_sources(context)
    if isinstance(context, TownContext):
        await asyncio.to_thread(load_town, context.town)
    if isinstance(context, TownContext | MemoryContext):
        need_for_memory()
        from reflective_agents.models.embeddings import get_embeddings

        get_embeddings(context.embeddings)
    helpers |= {name: ", ".join(models) for name, models in lists.items()}
    if not isinstance(context, SearchContext):
        return Choice(str(model), reason, models, helpers)
    search, search_reason = choose_search(context.search)
    engine = search if isinstance(search, str) else name_of(search)
    return Choice(str(model), reason, models, helpers, engine, search_reason, context.searches)


def _set(context: Context, *names: str) -> dict[str, Any]:
    """Return those of these settings that the strategy has, and that are set."""
    values = {name: getattr(context, name, None) for name in names}
    return {name: value for name, value in values.items() if value}


def need_for_statistics() -> None:
    """Refuse to begin an evaluation that could not be ended.

    Raises:
        Misuse: if what calculates its figures is not installed.
    """
    need("scipy", extra="evals", purpose="an evaluation")


def need_for_frames() -> None:
    """Refuse to begin an export that could not be written.

    Raises:
        Misuse: if what writes data frames is not installed.
    """
    need("pyarrow", extra="parquet", purpose="a data frame")


def need_for_figures() -> None:
    """Refuse to begin figures that could not be drawn.

    Raises:
        Misuse: if what draws them is not installed.
    """
    need("matplotlib", extra="figures", purpose="a figure")
