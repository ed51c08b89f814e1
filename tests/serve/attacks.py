"""Attacks on a server over HTTP, by name and for a while: the same on both servers, which are given these settings."""

import json
import os
from pathlib import Path
from random import Random, randrange

import pytest

from bench.attack.campaign import ATTACKS, attack, campaign
from bench.attack.target import POLICY
from tests.serve import rights

NAMES = list(ATTACKS)
USERS = (rights.KEYS["ann"], rights.KEYS["bob"])


def settings(folder: Path) -> dict[str, str]:
    """Return the environment of a server that is to be attacked."""
    environment = rights.settings(folder)
    (folder / "policy.json").write_text(json.dumps(POLICY))
    return environment


async def keeps_its_rules(address: str, name: str) -> None:
    """Attack in one way."""
    if breach := await attack(address, USERS, name, Random(name)):
        pytest.fail(breach)


async def keeps_its_rules_for_a_while(address: str) -> None:
    """Attack in all ways, for as long as ATTACK_SECONDS says, as ATTACK_SEED or chance wills."""
    seed = int(os.environ.get("ATTACK_SEED") or randrange(2**32))
    if breaches := await campaign(address, USERS, seed, float(os.environ.get("ATTACK_SECONDS") or 10)):
        pytest.fail("\n".join([f"seed {seed}", *(f"{name}: {breach}" for name, breach in breaches.items())]))
