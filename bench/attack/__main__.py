"""Attacks a running server over HTTP: `python -m bench.attack --url http://127.0.0.1:8000 --key K --key L`.

The server asks for keys, has two users, and is started with the rules that `python -m bench.attack --policy` prints.
Ends with 1 if it did what it must not do.
"""

import asyncio
import json
import sys
from random import Random, randrange

from bench.attack.campaign import ATTACKS, attack, campaign
from bench.attack.target import POLICY
from bench.options import parser_of

SMALL = "doubling_schemas"
"""What the quick form tries."""


def main() -> int:
    """Attack, and print what the server did that it must not do."""
    parser = parser_of("bench.attack", __doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="where the server is")
    parser.add_argument("--key", action="append", default=[], help="the key of a user, twice")
    parser.add_argument("--seed", type=int, default=randrange(2**32), help="the same seed sends the same requests")
    parser.add_argument("--seconds", type=float, default=60, help="how long")
    parser.add_argument("--only", choices=sorted(ATTACKS), help="one attack, once")
    parser.add_argument("--policy", action="store_true", help="print the rules for the server, and nothing else")
    given = parser.parse_args()
    only = SMALL if given.quick else given.only
    if given.policy:
        print(json.dumps(POLICY))
        return 0
    first, second = [*given.key, "", ""][:2]
    print(f"seed {given.seed}", flush=True)
    if only:
        breach = asyncio.run(attack(given.url, (first, second), only, Random(given.seed)))
        breaches = {only: breach} if breach else {}
    else:
        breaches = asyncio.run(campaign(given.url, (first, second), given.seed, given.seconds))
    for name, breach in breaches.items():
        print(f"{name}: {breach}")
    return bool(breaches)


if __name__ == "__main__":
    sys.exit(main())
