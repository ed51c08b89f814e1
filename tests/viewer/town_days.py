"""Days of towns as pictures, for the tests of their page."""

from typing import Any, cast

from reflective_agents.town.page import TownPicture
from reflective_agents.town.state import Portrait

USAGE: dict[str, Any] = {"model_calls": 12, "total_tokens": 3400, "seconds": 1.5}


def _memory(number: int, agent: str, text: str, **more: Any) -> dict[str, Any]:
    common = {
        "id": f"m{number}",
        "kind": "observation",
        "text": text,
        "created": 25200.0 + 1800 * more.get("step", 1) - 1800,
        "accessed": 28800.0,
        "importance": 3.0,
        "evidence": [],
        "archived": False,
        "agent": agent,
        "step": 1,
        "how": "own",
        "source": "",
        "talk": 0,
    }
    return {**common, **more}


def day(text: str = "There is a party.") -> TownPicture:
    """Anna and Ben in the Café; she tells him something, and he reflects on it. All texts of models are the one given
    where that is another."""
    own = text != "There is a party."
    doing = text if own else "drinks coffee"
    line = f'Anna said to Ben: "{text}"'
    moments = [
        {"step": step, "time": time, "agent": agent, "place": where, "doing": doing, "talk": talk}
        for step, time, agent, where, talk in [
            (1, "07:00", "Anna", "Café", 0),
            (1, "07:00", "Ben", "House", 0),
            (2, "07:30", "Anna", "Café", 1),
            (2, "07:30", "Ben", "Café", 1),
            (3, "08:00", "Anna", "Café", 0),
            (3, "08:00", "Ben", "House", 0),
        ]
    ]
    anna = [_memory(1, "Anna", text, how="told", step=0), _memory(2, "Anna", line, how="said", step=2, talk=1)]
    ben = [
        _memory(3, "Ben", line, how="heard", source="Anna", step=2, talk=1, archived=True),
        _memory(4, "Ben", f"Ben thinks: {text}", how="reflection", kind="reflection", step=3, evidence=["m3"]),
        _memory(5, "Ben", f"Ben thinks twice: {text}", how="reflection", kind="reflection", step=3, evidence=["m4"]),
    ]
    found = {"id": "m3", "score": 0.5, "recency": 1.0, "importance": 0.25, "relevance": 0.75}
    lines = [{"agent": "Anna", "text": text}, {"agent": "Ben", "text": "Oh."}]
    where = {"talk": 1, "step": 2, "time": "07:30", "place": "Café"}
    talk = {**where, "agents": ["Anna", "Ben"], "why": text, "lines": lines}
    return TownPicture(
        town="Testing",
        told=text,
        fact="party",
        minutes=30,
        places=["House", "Café"],
        day=cast(Any, moments),
        conversations=cast(Any, [talk]),
        retrievals=cast(Any, [{"agent": "Ben", "step": 3, "time": "08:00", "query": text, "found": [found]}]),
        agents=[
            Portrait(name=name, about=f"{name}: {text}", place="Café", plan=[], memories=cast(Any, memories))
            for name, memories in (("Anna", anna), ("Ben", ben))
        ],
        spread=cast(
            Any,
            [
                {"agent": "Anna", "knows": True, "memory": "m1", "text": text, "time": "07:00", "way": ["Anna"]},
                {"agent": "Ben", "knows": True, "memory": "m3", "text": line, "time": "07:30", "way": ["Anna", "Ben"]},
            ],
        ),
        outcome={"status": "answered", "reason": "the day is over (steps=3)"},
        usage=cast(Any, USAGE),
    )
