"""Attacks on a server over HTTP, by name: the same on both servers, which are given these settings."""

import json
import os
from pathlib import Path
from random import Random, randrange

import pytest

from bench.attack.campaign import ATTACKS, attack
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
    """Attack in one way, in the variant that ATTACK_SEED or chance wills."""
    seed = int(os.environ.get("ATTACK_SEED") or randrange(2**32))
    if breach := await attack(address, USERS, name, Random(seed)):
        pytest.fail(f"{breach} (python -m bench.attack --only {name} --seed {seed})")
