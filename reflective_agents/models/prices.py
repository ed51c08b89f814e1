"""What calls to models cost, in US dollars: by the table of the settings, else by the prices that genai-prices lists.

Amounts are counted in nano-dollars, as integers: sums of reservations have to come out even. The shipped prices are
those of the installed release of genai-prices; they are never fetched.
"""

import asyncio
import math
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel

from reflective_agents.models.capabilities import address_of
from reflective_agents.models.providers import describe_model, is_ollama, ollama_url
from reflective_agents.offline import OfflineChatModel
from reflective_agents.state.errors import UnknownPrice
from reflective_agents.state.limits import NANO
from reflective_agents.state.prices import Price

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

_LOCAL = ("ollama", "offline")
"""Providers, as LangChain names them, whose models run on this machine."""
_OPENAI = "https://api.openai.com/v1"


class Rates(NamedTuple):
    """Nano-dollars for a token. With some providers those of a prompt cost less that come from their cache, and more
    that are written into it."""

    input: float
    cached: float
    written: float
    output: float

    def cost(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0, written_tokens: int = 0) -> int:
        """Return what a call costs, rounded up."""
        cached = min(cached_tokens, input_tokens)
        written = min(written_tokens, input_tokens - cached)
        prompt = cached * self.cached + written * self.written + (input_tokens - cached - written) * self.input
        # Rounded first: the sum of floats may lie a hair above a whole number, and would cost one more.
        return math.ceil(round(prompt + output_tokens * self.output, 6))


FREE = Rates(0, 0, 0, 0)


def rates_of(model: BaseChatModel, table: Mapping[str, Price], input_tokens: int = 0) -> Rates | None:
    """Return the prices of a model.

    Args:
        model: The model. One that runs on this machine costs nothing, unless the table says otherwise.
        table: Prices by the names of models; `*` stands for any characters, and the first name that fits counts.
        input_tokens: Length of the prompt, for providers whose prices depend on it.

    Returns:
        None if nobody knows them.
    """
    name = describe_model(model)["model_name"]
    if rates := _in_table(name, table):
        return rates
    if isinstance(model, OfflineChatModel) or is_ollama(model):
        return FREE
    provider = str(model._get_ls_params().get("ls_provider") or "")
    return _listed(name, provider, address_of(model), input_tokens)


def rates_by_name(
    name: str, provider: str, address: str, table: Mapping[str, Price], input_tokens: int = 0
) -> Rates | None:
    """Return the prices of a model of which only the name, the provider and the address are known, as `rates_of`."""
    if rates := _in_table(name, table):
        return rates
    if provider in _LOCAL or address == ollama_url():
        return FREE
    return _listed(name, provider, address, input_tokens)


def embedding_rates(embeddings: Embeddings, table: Mapping[str, Price]) -> Rates | None:
    """Return the prices of embeddings, as `rates_of`."""
    name = str(getattr(embeddings, "model", None) or type(embeddings).__name__)
    address = str(getattr(embeddings, "openai_api_base", None) or "")
    if rates := _in_table(name, table):
        return rates
    if address == ollama_url():
        return FREE
    return _listed(name, type(embeddings).__name__.removesuffix("Embeddings").lower(), address, 0)


def _in_table(name: str, table: Mapping[str, Price]) -> Rates | None:
    for pattern, price in table.items():
        # A table may name models as the settings do: openai:gpt-4.1-mini.
        if fnmatchcase(name, pattern) or fnmatchcase(name, pattern.partition(":")[2]):
            per = NANO / 1_000_000
            # Without a price for the cache its tokens cost what others do: rather too much than too little.
            cached = price.get("cached_input", price["input"])
            return Rates(price["input"] * per, cached * per, price["input"] * per, price["output"] * per)
    return None


def _listed(name: str, provider: str, address: str, input_tokens: int) -> Rates | None:
    """Look a price up, for a prompt of so many tokens."""
    listed = _in_list(name, provider, address)
    if listed is None:
        return None

    def nano(price: Any) -> float:
        dollars = getattr(price, "base", price)
        # Prices in steps: the last step that the prompt has passed counts for all of it.
        for tier in getattr(price, "tiers", ()):
            if input_tokens > tier.start:
                dollars = tier.price
        return float(dollars or 0) * NANO / 1_000_000

    usual = listed.input_mtok
    cached = usual if listed.cache_read_mtok is None else listed.cache_read_mtok
    written = usual if listed.cache_write_mtok is None else listed.cache_write_mtok
    return Rates(nano(usual), nano(cached), nano(written), nano(listed.output_mtok))


@lru_cache(maxsize=1024)
def _in_list(name: str, provider: str, address: str) -> "ModelPrice | None":
    """Find a model in the list. The address decides where a model has one: its name may be anything there."""
    try:
        from genai_prices import Usage, calc_price  # takes a third of a second, and offline nothing costs money
    except ModuleNotFoundError:  # installed without its dependencies: then only the table knows prices
        return None
    elsewhere = bool(address) and not address.startswith(_OPENAI)
    try:
        if elsewhere:
            return calc_price(Usage(), name, provider_api_url=address).model_price
        return calc_price(Usage(), name, provider_id=provider).model_price
    except LookupError:
        return None


async def check_price(model: BaseChatModel, table: Mapping[str, Price], *, required: bool) -> None:
    """Load what knows the price of a model, while the event loop goes on.

    Raises:
        UnknownPrice: if the price is `required` and nobody knows it.
    """
    loaded = "genai_prices" in sys.modules or isinstance(model, OfflineChatModel)
    rates = rates_of(model, table) if loaded else await asyncio.to_thread(rates_of, model, table)
    if rates is None and required:
        raise UnknownPrice(no_price(describe_model(model)["model_name"]))


def no_price(name: str) -> str:
    """Say what to do about a model without a price."""
    price = f'{{"{name}": {{"input": ..., "output": ...}}}}'
    return f"max_cost needs to know what {name} costs: give prices={price}, in dollars for a million tokens"
