"""The logs of questions: HotpotQA by ReAct, chain of thought and Reflexion, and FEVER by ReAct."""

import ast
import importlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from bench.records.sources import Unusable
from bench.replays.records import Record
from reflective_agents.environments.metrics import normalise_answer

Logs = Sequence[bytes]

LAST = 7
"""Steps after which an attempt at a claim was ended."""

_TRIAL = re.compile(r"^BEGIN TRIAL (\d+)$", re.MULTILINE)
_SECTION = re.compile(r"^-+ BEGIN (CORRECT|INCORRECT|HALTED) AGENTS -+$", re.MULTILINE)
_END = re.compile(r"^Correct answer: .*$", re.MULTILINE)
_STEP = re.compile(
    r"^Thought ?(\d*): ?(.*?)\nAction ?\1: ?(.*?)\nObservation ?\1: ?(.*?)(?=\nThought ?\d*:|\nReflections:|\Z)",
    re.MULTILINE | re.DOTALL,
)
_ACTED = re.compile(r"finish\[(.*)\]", re.IGNORECASE | re.DOTALL)
_LISTED = re.compile(r"^Reflections:\n((?:- .*\n?)+)", re.MULTILINE)
_APPENDED = re.compile(r"^Reflections: ?(.*)\Z", re.MULTILINE | re.DOTALL)
_CLAIM = re.compile(r"^(\d+) Claim: (.*)$", re.MULTILINE)
_ENDED = re.compile(r"^\{'steps': .*\}", re.MULTILINE)


def distractors(logs: Logs) -> Iterator[Record]:
    """Return the hundred questions with their articles, from a table that joblib has written.

    Raises:
        Unusable: if joblib or pandas is not installed.
    """
    try:
        joblib = importlib.import_module("joblib")
        importlib.import_module("pandas")
    except ModuleNotFoundError as missing:
        raise Unusable(f"the questions are a table of pandas: pip install joblib pandas ({missing.name})") from missing
    yield from with_articles(joblib.load(io.BytesIO(logs[0])).to_dict("records"))


def with_articles(rows: Iterable[dict[str, Any]]) -> Iterator[Record]:
    """Return questions with their articles, from the rows of the data set `hotpot_qa`.

    Args:
        rows: The rows; facts and articles are columns of titles and of numbers or sentences.
    """
    for number, row in enumerate(rows):
        facts, context = row["supporting_facts"], row["context"]
        yield {
            "id": f"hotpot/{row['id']}",
            "idx": number,
            "question": row["question"],
            "gold": row["answer"],
            "type": row["type"],
            "level": row["level"],
            "supporting_facts": [[title, int(n)] for title, n in zip(facts["title"], facts["sent_id"], strict=True)],
            "context": [
                [title, [*sentences]] for title, sentences in zip(context["title"], context["sentences"], strict=True)
            ],
        }


class _Agent(NamedTuple):
    """What a log shows of one attempt."""

    section: str
    steps: list[Record]
    lessons: list[str]


def trials(logs: Logs, tasks: Sequence[Record]) -> Iterator[Record]:
    """Return the attempts at each question, trial by trial.

    Args:
        logs: One log.
        tasks: The questions, as `distractors` gives them.
    """
    _, *parts = _TRIAL.split(logs[0].decode())
    shown = [_agents(text, tasks) for text in parts[1::2]]
    for task in tasks:
        yield _record(task, [agents.get(task["id"]) for agents in shown])


def _agents(text: str, tasks: Sequence[Record]) -> dict[str, _Agent]:
    """Return the attempts of one trial, by the question. They come in sections, each with the right answer last."""
    found: dict[str, _Agent] = {}
    _, *sections = _SECTION.split(text)
    for section, body in zip(sections[::2], sections[1::2], strict=True):
        for agent in _END.split(body)[:-1]:
            if (task := _task(agent, tasks)) is not None:
                found[task["id"]] = _Agent(section, _steps(agent), _lessons(agent))
    return found


def _task(agent: str, tasks: Sequence[Record]) -> Record | None:
    """Return the question of an attempt: the longest of those that its text asks."""
    fitting = [task for task in tasks if f"Question: {task['question']}" in agent]
    return max(fitting, key=lambda task: len(task["question"]), default=None)


def _steps(agent: str) -> list[Record]:
    steps: list[Record] = []
    for number, *texts in _STEP.findall(agent.strip()):
        counted = {"step": int(number)} if number else {}
        for role, text in zip(("thought", "act", "observation"), texts, strict=True):
            steps.append({"role": role, "text": text.strip(), **counted})
    return steps


def _lessons(agent: str) -> list[str]:
    """Return the reflections that were in a prompt: a list before the question, or lines below the attempt."""
    if listed := _LISTED.search(agent):
        return [line.removeprefix("- ").strip() for line in listed[1].splitlines()]
    appended = _APPENDED.search(agent.strip())
    return [line.strip() for line in appended[1].splitlines() if line.strip()] if appended else []


def _record(task: Record, shown: Sequence[_Agent | None]) -> Record:
    outputs: list[Record] = []
    verdicts: list[Record] = []
    before: list[str] = []
    solved = False
    for trial, agent in enumerate(shown, 1):
        if solved or agent is None:
            verdicts.append({"trial": trial, "status": "solved_earlier" if solved else "absent"})
            continue
        goes_on = agent.lessons[: len(before)] == before
        new, before = agent.lessons[len(before) if goes_on else 0 :], agent.lessons
        outputs += [{"role": "reflect", "trial": trial, "text": text} for text in new]
        outputs += [{**step, "trial": trial} for step in agent.steps]
        acts = [step["text"] for step in agent.steps if step["role"] == "act"]
        ended = _ACTED.fullmatch(acts[-1]) if acts else None
        answer = ended[1] if ended else None
        solved = agent.section == "CORRECT"
        verdicts.append(
            {
                "trial": trial,
                "status": agent.section.lower(),
                "answer": answer,
                "em": int(answer is not None and normalise_answer(answer) == normalise_answer(task["gold"])),
                "reflections_in_prompt": len(agent.lessons),
            }
        )
    kept = {name: task[name] for name in ("idx", "question", "gold", "type")}
    return {"id": task["id"], "task": kept, "outputs": outputs, "verdict": verdicts}


def claims(logs: Logs) -> Iterator[Record]:
    """Return the attempts at FEVER's claims, which a notebook has printed."""
    printed = "".join(
        "".join(output.get("text", []))
        for cell in json.loads(logs[0])["cells"]
        for output in cell.get("outputs", [])
        if output.get("name") == "stdout"
    )
    _, *parts = _CLAIM.split(printed)
    for number, claim, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        ended = _ENDED.search(body)
        if ended is None:
            continue
        verdict: dict[str, Any] = ast.literal_eval(ended[0])
        yield {
            "id": f"fever/{number}",
            "task": {"idx": int(number), "claim": claim, "gold": verdict["gt_answer"]},
            "outputs": _steps(body[: ended.start()]),
            "verdict": {
                "answer": verdict["answer"],
                "em": int(verdict["em"]),
                "env_steps": verdict["steps"],
                "finished": int(verdict["steps"] <= LAST),
            },
        }


def questions(logs: Logs) -> Iterator[Record]:
    """Return HotpotQA's questions without articles."""
    for number, row in enumerate(json.loads(logs[0])):
        yield {"id": f"hotpotdev/{number}", "question": row["question"], "gold": row["answer"], "type": row["type"]}


def facts(logs: Logs) -> Iterator[Record]:
    """Return FEVER's claims."""
    for number, line in enumerate(logs[0].decode().splitlines()):
        row = json.loads(line)
        yield {"id": f"fever/{number}", "claim": row["claim"], "gold": row["label"]}
