"""All attacks by name, and a while of them, as chance wills."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from random import Random

from bench.attack import breaking, sending
from bench.attack.target import Breach, Target, answering, targeted

Attack = Callable[[Target], Awaitable[None]]
ATTACKS: Mapping[str, Attack] = {
    attack.__name__: attack
    for attack in (
        sending.doubling_schemas,
        sending.deep_and_wide_schemas,
        sending.schemas_that_overflow,
        sending.forms_without_end,
        sending.prompts_that_grow,
        sending.halves_of_characters,
        sending.nested_bodies,
        sending.large_bodies,
        sending.many_names,
        sending.items_without_end,
        sending.states_of_no_checkpoint,
        sending.odd_addresses,
        sending.configurations_that_no_run_has,
        sending.numbers_beyond,
        sending.nearly_right_requests,
        breaking.send_with_input,
        breaking.updates_of_usage,
        breaking.goto_the_beginning,
        breaking.usage_as_input,
        breaking.many_nodes,
        breaking.decoy_assistants,
        breaking.strategies_not_offered,
        breaking.models_not_offered,
        breaking.assistants_of_the_server,
        breaking.limits_above_the_ceiling,
        breaking.settings_of_the_machine,
        breaking.bursts,
        breaking.what_is_anothers,
        breaking.closed_routes,
    )
}


async def attack(url: str, keys: tuple[str, str], name: str, random: Random) -> str:
    """Attack a server in one way; return what it did that it must not do, or nothing.

    Args:
        url: Where it is.
        keys: The keys of two users of it.
        name: One of `ATTACKS`.
        random: Decides the variant.
    """
    try:
        async with targeted(url, keys, random) as target, answering(url):
            await ATTACKS[name](target)
    except Breach as breach:
        return str(breach)
    return ""


async def campaign(url: str, keys: tuple[str, str], seed: int, seconds: float) -> dict[str, str]:
    """Attack a server for a while, in all ways in turns; return what it did that it must not do, by attack.

    Args:
        url: Where it is.
        keys: The keys of two users of it.
        seed: Decides the order and the variants: the same seed sends the same requests, but for
            the ids of threads.
        seconds: How long. The attack that is under way at the end is finished.
    """
    random, deadline = Random(seed), time.monotonic() + seconds
    breaches: dict[str, str] = {}
    for name in _in_turns(random):
        if time.monotonic() > deadline:
            return breaches
        variant = random.randrange(2**32)
        if breach := await attack(url, keys, name, Random(variant)):
            breaches.setdefault(name, f"{breach} (--only {name} --seed {variant})")
    raise AssertionError("there is always a next attack")


def _in_turns(random: Random) -> Iterable[str]:
    while True:
        yield from random.sample(list(ATTACKS), len(ATTACKS))
