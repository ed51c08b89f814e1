"""The data sets that are replayed, each with how; and the page that shows the figures."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.replays.ballots import votes
from bench.replays.beams import bfs
from bench.replays.measured import Measured
from bench.replays.programs import programs
from bench.replays.puzzles import dfs
from bench.replays.questions import fever, hotpot
from bench.replays.samples import game24

PAGE = Path(__file__).parents[2] / "docs" / "replays.md"

Replay = Callable[[Path, str], Awaitable[Measured]]

_react = partial(hotpot, actor="react")
_thought = partial(hotpot, actor="chain_of_thought")
_with_gold = partial(hotpot, actor="chain_of_thought", gold=True)

REPLAYS: dict[str, Replay] = {
    "reflexion_hotpot_react_davinci003": _react,
    "react_hotpot_base_davinci003": _react,
    "reflexion_hotpot_react_claude": _react,
    "reflexion_hotpot_cotgt_gpt4": _with_gold,
    "cotgt_hotpot_base_gpt4": _with_gold,
    "reflexion_hotpot_cotgt_gpt35": _with_gold,
    "reflexion_hotpot_cotgt_davinci003": _with_gold,
    "reflexion_hotpot_cot_davinci003": _thought,
    "cot_hotpot_base_davinci003": _thought,
    "react_fever_gpt3": fever,
    "tot_game24_cot100": game24,
    "tot_game24_io100": game24,
    "tot_game24_bfs": bfs,
    "tot_crosswords_dfs": dfs,
    "tot_text_votes": votes,
}
SANDBOXED: dict[str, Replay] = {
    "lats_humaneval_gpt4_new": programs,
    "lats_humaneval_gpt35_4tst": programs,
    "lats_cot_humaneval_gpt35": programs,
    "lats_cot_mbpp_gpt35": programs,
}
"""Those that run programs."""

LONG = (
    *("tot_game24_bfs", "tot_crosswords_dfs"),
    *("lats_cot_mbpp_gpt35", "lats_cot_humaneval_gpt35", "lats_humaneval_gpt35_4tst", "lats_humaneval_gpt4_new"),
    *("reflexion_hotpot_react_davinci003", "reflexion_hotpot_react_claude", "reflexion_hotpot_cot_davinci003"),
    "react_hotpot_base_davinci003",
)
"""What takes more than ten seconds of processor time: `make test-all` leaves it to `make published`."""

HEAD = """# Replays of recorded runs

What real models said in the public logs of ReAct, Reflexion, Tree of Thoughts and LATS is replayed through the graphs,
nodes, parsers and environments of this project. A fake chat model answers what the log answers to the same task, with
the same lessons, after the same actions; it knows no other answer, and each recorded one has to be asked for. So the
figures say that the strategies, the parsers and the scoring do what the published runs did. They say nothing of how a
model of today would answer.

`python -m bench.replays` writes this page, and `make test-all published` checks each line. The records lie beside the
checkout, in `../shared/recorded`, or where the variable `RECORDED` says. Anyone can make them:

```console
python -m bench.records                    # prints which repositories to clone, at which commits
python -m bench.records FOLDER             # turns their logs into records, each set compared by its hash
python -m bench.records FOLDER --to RUNS   # puts them elsewhere: RECORDED=RUNS python -m bench.replays
```

Without them every script that needs them says so. `n` is the number of tasks that a figure stands on. Reasons for
differences are found by rule, from the program, its tests and the log (`bench/replays/reasons.py`), never from a list
of tasks.

## Figures

| data set | model | published | here | differences | command |
|---|---|---|---|---|---|
"""

TAIL = """
## What is not replayed

- `reflexion_humaneval_gpt4`, `reflexion_mbpp_gpt4`: the log has neither the first programs of failed tasks nor any
  feedback. `simple_humaneval_gpt4`, `simple_humaneval_gpt4_b`, `simple_mbpp_gpt4`: one program per task, and no
  feedback. The tests of the environment `programming` run the last program of every eighth task of these files against
  the hidden tests.
- `tot_crosswords_cot_io10`: sampled boards, which the tests of the environment `crosswords` score.
- `lats_webshop_traces`, `lats_tot_hotpot_trace`: three searches and one, which `tests/replays/test_lats_trace.py` and
  `tests/replays/test_traces.py` follow step by step. `game24_llm_cache`: the model of the tables in
  [search-results.md](search-results.md).
- `python -m bench.records` does not make `lats_webshop_traces`, `lats_tot_hotpot_trace`, `bench_blocksworld_v1`,
  `bench_rap_blocksworld`, `locomo_corrections`, `small_models` and the three sets of the next line. No figure of this
  page needs them. The verdicts `exec_pass` come from running the programs here, with five seconds for each; one first
  program of `lats_humaneval_gpt4_new` needs sympy.
- `react_webshop_gpt3`, `reflexion_alfworld_memories`, `reflexion_webshop_memories`: not used. There is no environment
  for WebShop or ALFWorld here, and of the last two only the reflections are recorded, not the attempts.
- `bench_*` are tasks without model outputs.
- What is compared: tasks, lessons, thoughts, actions, the observations of `Search` and `Lookup`, and whether a
  reflection is told a verdict. A replay fails if a prompt lacks one of them. The wording of instructions is not
  compared.
- `tot_crosswords_dfs`: the search without pruning is not in the log. `tot_game24_bfs`: of what the judges said only the
  labels are, so that `completion_tokens` cannot be counted.
- In the `tot_*` logs any line of a reply is a step, a word may be entered twice, and a full board goes on: the worlds
  of these replays allow it. A line that a step has proposed before is worth 0 there without a call: the model marks it,
  and the world rewards it with 0. Each clue was judged in a call of its own, and one that is impossible pruned: here
  one call says so. The proposals of a state were kept: here the model says them again. In the environments of this
  project steps have to be legal, and equal states are visited once.
- In `lats_*` the records without any output are left out, as in the published figure.
- In the `lats_*` logs with reflections the programs between the first and the last one are missing. The first one is
  run against the tests that its feedback names, all reflections come as one lesson, and the last one follows.

## Differences

A number after `#` is the trial.
"""


def row(name: str, known: dict[str, Any], measured: Measured) -> str:
    """Return the line of a data set.

    Args:
        name: the data set.
        known: what the manifest says of it.
        measured: the outcome of its replay.
    """
    published = known["expected"]["dev"]
    theirs = "; ".join(f"{figure} {_written(published[figure])}" for figure in measured.figures)
    ours = "; ".join(_written(value) for value in measured.figures.values())
    count = sum(map(len, measured.differences.values()))
    differs = f"[{count}](#{name})" if count else "none"
    target = "published" if name in LONG else "test-all"
    command = f'`make {target} ARGS="tests/replays -k {name}"`'
    return f"| {name} | {known['model']} | {theirs} | {ours} | {differs} | {command} |"


def section(name: str, measured: Measured) -> str:
    """Return the list of a data set's differences, task by task with the reason; empty if there are none."""
    lines = [f"- {reason}: {', '.join(tasks)}" for reason, tasks in measured.differences.items()]
    return "\n".join([f"\n### {name}\n", *lines, ""]) if lines else ""


def _written(figure: Any) -> str:
    return " ".join(map(str, figure)) if isinstance(figure, list) else str(figure)
