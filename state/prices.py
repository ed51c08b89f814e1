"""The table of prices in the settings."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NotRequired, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, with_config
from pydantic_settings import NoDecode
from typing_extensions import TypedDict

from reflective_agents.state.errors import Misuse, reason_of

T = TypeVar("T")
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@with_config(ConfigDict(extra="forbid"))
class Price(TypedDict):
    """Dollars for a million tokens. `cached_input` is what those tokens of a prompt cost that the provider had in its
    cache; the same as others, if it is left out."""

    input: Dollars
    output: Dollars
    cached_input: NotRequired[Dollars]


def _parsed(value: T) -> T | JsonValue:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        table: JsonValue = json.loads(value)
        return table
    return value or None


Prices = Annotated[dict[str, Price] | str | None, NoDecode, BeforeValidator(_parsed)]
"""Prices by the names of models: as data, as JSON, or the path of a JSON file, which is read when a run begins."""


def table_of(prices: Mapping[str, Price] | str | None) -> Mapping[str, Price]:
    """Return the table that a setting gives.

    Raises:
        Misuse: if its file cannot be read.
    """
    if not isinstance(prices, str):
        return prices or {}
    try:
        # Every run begins here, so the file is read again only when it has changed.
        return _read(prices, Path(prices).stat().st_mtime_ns)
    except (OSError, ValidationError) as error:
        raise Misuse(f"the prices of {prices} cannot be read: {reason_of(error)}") from error


@lru_cache(maxsize=16)
def _read(path: str, _: int) -> Mapping[str, Price]:
    return TypeAdapter(dict[str, Price]).validate_json(Path(path).read_bytes())
