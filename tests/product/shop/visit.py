"""Visits the product: calls all its routes at once, and prints what they return."""

import json
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

with warnings.catch_warnings(action="ignore"):
    from fastapi.testclient import TestClient

    from shop.app import app

ROUTES = ("/desk/{thread}", "/desk/{thread}/now", "/explore/{thread}", "/opinion")
VISITS = 2

if __name__ == "__main__":
    with TestClient(app) as client, ThreadPoolExecutor(8) as pool:
        calls = [(route, f"{route.count('/')}{number}") for number in range(VISITS) for route in ROUTES]

        def call(visit: tuple[str, str]) -> object:
            route, thread = visit
            return client.post(route.format(thread=thread), params={"question": "What does UCT balance?"}).json()

        replies = [[route, reply] for (route, _), reply in zip(calls, pool.map(call, calls), strict=True)]
        again = call(("/desk/{thread}", "20"))
        json.dump({"replies": replies, "again": again, "history": client.get("/desk/20").json()}, sys.stdout)
