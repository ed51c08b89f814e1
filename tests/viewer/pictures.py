"""Pictures of searches that never ran: small ones told by hand, and grown ones of any size."""

import random
from typing import Any

from reflective_agents.viewer.picture import Picture, complete

THOUGHTS = [
    "Two of the claims need a source: look for the date of the first tide tables.",
    "The moon's pull alone does not explain two high tides a day; find what the second bulge comes from.",
    "Compare spring and neap tides, then answer.",
    "The sources disagree about the height in the Bay of Fundy: check a third one.",
    "Ask for resonance in funnel-shaped bays.",
]


def node(key: str, kind: str = "action", **filled_with: Any) -> dict[str, Any]:
    parent = key.rpartition(".")[0] or None
    return {"id": key, "parent_id": parent, "depth": key.count("."), "kind": kind, **filled_with}


def figures(visits: int, total: float, closed: bool = False) -> dict[str, Any]:
    return {"visits": visits, "total": total, "closed": closed}


def small() -> Picture:
    """Three steps: a root, two children of which one is pruned later, and an answer below the other."""
    ai = {"type": "ai", "content": "Look it up.", "tool_calls": [{"name": "search", "args": {"query": "moon tides"}}]}
    tool = {"type": "tool", "content": "The moon pulls the water.", "tool_calls": []}
    answer = {"type": "ai", "content": "The moon pulls the water, twice a day.", "tool_calls": []}
    nodes: list[dict[str, Any]] = [
        node("0", "root"),
        node("0.0", messages=[ai, tool], action="search(moon tides)", observation=tool["content"], score=0.5),
        node("0.1", action="guess()", observation="Nothing.", score=0.25, critique="A guess.", model="small"),
        node("0.0.0", "answer", messages=[answer], score=1.0, reward=1.0, solved=True, done=True, samples=3),
    ]
    nodes[3]["terms"] = {"judge": 0.9, "consistency": 0.75}
    frames = [
        {"event": "start", "node": "0", "added": ["0"]},
        {
            "event": "expand",
            "node": "0",
            "added": ["0.0", "0.1"],
            "merged": 2,
            "calls": 3,
            "tokens": 1200,
            "stats": {"0": figures(2, 0.75), "0.0": figures(1, 0.5), "0.1": figures(1, 0.25)},
        },
        {
            "event": "simulate",
            "node": "0.0",
            "added": ["0.0.0"],
            "pruned": ["0.1"],
            "calls": 1,
            "tokens": 300,
            "reflection": "Do not guess.",
            "stats": {"0": figures(3, 1.75), "0.0": figures(2, 1.5), "0.0.0": figures(1, 1.0, closed=True)},
        },
    ]
    return complete(
        {
            "strategy": "lats",
            "question": "What do tides do?",
            "answer": "The moon pulls the water, twice a day.",
            "outcome": {"status": "solved", "reason": "reward 1"},
            "usage": {"model_calls": 4, "total_tokens": 1500, "seconds": 2.5},
            "weight": 1.0,
            "nodes": {own["id"]: own for own in nodes},
            "frames": frames,
            "path": ["0", "0.0", "0.0.0"],
            "reflections": [{"node": "0.1", "text": "Do not guess."}],
        }
    )


def filled_with(text: str) -> Picture:
    """A picture in which every text is this one."""
    message = {"type": "ai", "content": text, "tool_calls": [{"name": text, "args": {text: text}}]}
    fields: dict[str, Any] = {
        "messages": [message],
        "action": text,
        "observation": text,
        "critique": text,
        "model": text,
        "score": 0.5,
    }
    nodes = {key: node(key, **fields, terms={text: 0.5}) for key in ("0", "0.0")}
    return complete(
        {
            "strategy": text,
            "question": text,
            "answer": text,
            "outcome": {"status": text, "reason": text},
            "nodes": nodes,
            "frames": [{"event": text, "node": "0", "added": ["0", "0.0"], "reflection": text}],
            "path": ["0", "0.0"],
            "reflections": [{"node": "0", "text": text}],
        }
    )


def grown(size: int, n: int = 5, depth: int = 8, seed: int = 0) -> Picture:
    """A search of so many nodes, grown by expanding leaves at random, the better ones rather."""
    chance = random.Random(seed)
    nodes: dict[str, Any] = {"0": node("0", "root")}
    stats = {"0": figures(1, 0.3)}
    frames: list[dict[str, Any]] = [{"event": "start", "node": "0", "added": ["0"], "stats": dict(stats)}]
    leaves = ["0"]
    while len(nodes) < size:
        leaf = max(chance.sample(leaves, min(4, len(leaves))), key=lambda key: stats[key]["total"])
        leaves.remove(leaf)
        added = [_child(leaf, index, stats[leaf], chance) for index in range(min(n, size - len(nodes)))]
        nodes |= {new["id"]: new for new in added}
        leaves += [new["id"] for new in added if new["kind"] == "action" and new["depth"] < depth]
        changed = _seen(stats, added)
        stats |= changed
        costs = {"calls": len(added) + 1, "tokens": chance.randrange(2000, 9000), "merged": chance.randrange(3)}
        ids = [new["id"] for new in added]
        frames.append({"event": "expand", "node": leaf, "added": ids, "stats": changed, **costs})
        if frames[-1]["merged"] == 2 and len(leaves) > 9:
            frames[-1]["pruned"] = [leaves.pop(0)]
    best = max((key for key in nodes if nodes[key]["kind"] == "answer"), key=lambda key: nodes[key]["score"])
    nodes[best] |= {"solved": True, "score": 1.0, "reward": 1.0}
    parts = best.split(".")
    return complete(
        {
            "strategy": "lats",
            "question": "Why are there two high tides a day in most places but only one in the Gulf of Mexico?",
            "answer": nodes[best]["messages"][0]["content"],
            "outcome": {"status": "solved", "reason": f"node {best} has a reward of 1"},
            "usage": {"model_calls": 6 * len(frames), "total_tokens": 5000 * len(frames), "seconds": 41.5},
            "weight": 1.0,
            "nodes": nodes,
            "frames": frames,
            "path": [".".join(parts[: i + 1]) for i in range(len(parts))],
        }
    )


def _child(parent: str, index: int, above: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    kind = "answer" if parent.count(".") > 1 and chance.random() < 0.25 else "action"
    value = min(max(above["total"] / above["visits"] + chance.uniform(-0.25, 0.3), 0.02), 0.95)
    thought = chance.choice(THOUGHTS)
    fields: dict[str, Any] = {
        "score": round(value, 3),
        "done": kind == "answer",
        "samples": chance.choice([1, 1, 1, 2]),
    }
    fields["terms"] = {"judge": round(min(value * 1.1, 1.0), 3), "consistency": 0.4}
    fields["critique"] = "The step is sound, but it names no source for its second claim; the next one should."
    if kind == "action":
        query = chance.choice(["second tidal bulge", "Gulf of Mexico diurnal tide"])
        call = {"name": "search", "args": {"query": query}}
        fields["messages"] = [{"type": "ai", "content": thought, "tool_calls": [call]}]
        fields["action"] = f"search({query})"
        fields["observation"] = (
            '[{"title": "Tide", "url": "corpus:tide.md", "content": "The basin answers to one period."}]'
        )
    else:
        fields["messages"] = [
            {"type": "ai", "content": f"Because the basin's own period suits one. {thought}", "tool_calls": []}
        ]
    return node(f"{parent}.{index}", kind, **fields)


def _seen(stats: dict[str, Any], added: list[dict[str, Any]]) -> dict[str, Any]:
    changed = {new["id"]: figures(1, new["score"], closed=new["done"]) for new in added}
    current = added[0]["parent_id"]
    while current:
        before = stats[current]
        changed[current] = figures(before["visits"] + len(added), before["total"] + sum(new["score"] for new in added))
        current = current.rpartition(".")[0]
    return changed
