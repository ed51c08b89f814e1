"""The recorded plans, passages and votes of Tree of Thoughts in creative writing."""

import re
from collections import Counter
from pathlib import Path

from bench.replays.keyed import Recorded
from bench.replays.measured import UNEXPLAINED, Differences, Measured, together
from bench.replays.records import Record, load
from bench.replays.thoughts import LIMITS, Key, marked, run_of, unmarked
from reflective_agents.environments.base import Task
from reflective_agents.state.settings.tree_of_thoughts import TreeOfThoughtsContext
from reflective_agents.testing.script import Request

UNDECIDED = "All of them have their merits."
_CANDIDATE = re.compile(
    r"<candidate [^>]*>\n(?:<thought>\n.*?\n</thought>\n(?=<answer>))?"
    r"<(thought|answer)>\n(.*?)\n</\1>\n(?:<checked>\n.*?\n</checked>\n)?</candidate>",
    re.DOTALL,
)


class Author(Recorded[Key, str]):
    """A script that writes the plans and passages of a record in order, and casts its votes.

    A vote is recorded as the text that it is for, and named by the number that this text has in the prompt.
    """

    def __call__(self, request: Request) -> str:
        """Answer a request with what the log answers."""
        found = _CANDIDATE.findall(request.last)
        if not found:
            thoughts = [message.text for message in request.messages if message.type == "ai"]
            return self.take(Key("sample", "".join(thoughts)))
        kind, candidates = found[0][0], [text.strip() for _, text in found]
        chosen = self.take(Key("vote", kind))
        return f"The best choice is {candidates.index(chosen) + 1}" if chosen else UNDECIDED


def author(record: Record) -> Author:
    """Return the model of a record. Texts that are the same are told apart, so that none is merged."""
    model, (plans, passages) = Author(), samples(record)
    plan = plans[record["verdict"]["chosen"][0]]
    cast = [output for output in record["outputs"] if output["role"] == "vote"]
    for vote, kind, above, texts in zip(cast, ("thought", "answer"), ("", plan), (plans, passages), strict=True):
        for text in texts:
            model.add(Key("sample", above), text)
        for text, count in zip(texts, vote["counts"], strict=True):
            for _ in range(count):
                model.add(Key("vote", kind), text)
        for _ in range(vote["n"] - sum(vote["counts"])):
            model.add(Key("vote", kind), "")
    return model


def samples(record: Record) -> tuple[list[str], list[str]]:
    """Return the recorded texts of both steps."""
    by_step: list[list[str]] = [[], []]
    for output in record["outputs"]:
        if output["role"] == "sample":
            texts = by_step[output["step"]]
            words = output["text"].split()
            texts.append(marked(output["text"].strip(), sum(unmarked(text)[0].split() == words for text in texts)))
    return by_step[0], by_step[1]


async def votes(folder: Path, name: str) -> Measured:
    """Replay plans, passages, and the votes on both."""
    records, differences = load(folder, name), Differences()
    settings = TreeOfThoughtsContext(grades="vote", grade_samples=5, n=5, min_score=1, **LIMITS)
    models = [author(record) for record in records]
    tasks: list[Task] = [{"id": record["id"], "question": record["task"]["input"]} for record in records]
    results = await together(run_of(task, model, settings) for task, model in zip(tasks, models, strict=True))
    valid, chosen = [0, 0], [Counter[str](), Counter[str]()]
    for record, result in zip(records, results, strict=True):
        tree = result["tree"]
        for step, texts in enumerate(samples(record)):
            level = [node for node in tree.values() if node["depth"] == step + 1]
            valid[step] += int(sum(node["terms"]["votes"] for node in level))
            (best,) = [node for node in level if not result["stats"][node["id"]].get("own", {}).get("pruned")]
            index = texts.index(best.get("thought") or best["messages"][0].text)
            chosen[step][str(index)] += 1
            if index != record["verdict"]["chosen"][step]:
                differences.add(UNEXPLAINED, record["id"])
    figures = {
        "n": len(records),
        "valid_votes": valid,
        "chosen_step0": dict(sorted(chosen[0].items())),
        "chosen_step1": dict(sorted(chosen[1].items())),
    }
    return Measured(figures, differences, [*models])
