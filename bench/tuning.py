"""Tune the prompts of a strategy with GEPA (Agrawal et al. 2025, arXiv 2507.19457) on the tasks of a data set.

python -m bench.tuning chain_of_thought tasks.jsonl --prompt chain_of_thought.SOLVE --model openai:gpt-4.1-mini

Tasks run and answers are measured as by `reflect eval`. Every other task is for learning, the rest choose among the
candidates. The best one is written as a folder that the setting `prompts` takes.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gepa.api import optimize
from gepa.core.adapter import EvaluationBatch, ProposalFn
from gepa.core.result import GEPAResult
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate, SystemMessagePromptTemplate

from bench.options import parser_of
from reflective_agents.environments.base import Task
from reflective_agents.environments.registry import resolve_environment
from reflective_agents.evals.datasets import Dataset, load_dataset
from reflective_agents.evals.results import Result
from reflective_agents.evals.run import attempt
from reflective_agents.graphs import graph_of
from reflective_agents.models.providers import get_model
from reflective_agents.nodes.asking.wording import templates
from reflective_agents.state.settings import settings_of

AT_ONCE = 8
"""Tasks under way at once."""
Words = dict[str, str]
"""Texts by the names of templates, as the setting `prompts` takes them."""


Batch = EvaluationBatch[Result, Result]
"""What came of some tasks."""


@dataclass
class Adapter:
    """What GEPA has to know of the system that it tunes: how well a candidate does, and what went wrong."""

    strategy: str
    dataset: Dataset
    settings: Mapping[str, Any]
    runner: asyncio.Runner
    propose_new_texts: ProposalFn | None = None
    """GEPA's own way to propose a text is used."""

    def evaluate(self, batch: list[Task], candidate: Words, capture_traces: bool = False) -> Batch:
        """Run tasks with the prompts of a candidate. A prompt that cannot be used scores 0, and its result says why."""
        results = self.runner.run(self._run(batch, candidate))
        figure = resolve_environment(self.dataset.environment).figure
        scores = [result["scores"].get(figure, 0.0) for result in results]
        return Batch(outputs=results, scores=scores, trajectories=results if capture_traces else None)

    async def _run(self, batch: Sequence[Task], candidate: Words) -> list[Result]:
        context = settings_of(self.strategy).model_validate({**self.settings, "prompts": candidate})
        room = asyncio.Semaphore(AT_ONCE)

        async def run(task: Task) -> Result:
            async with room:
                return (await attempt(graph_of(self.strategy), self.dataset.environment, task, context)).result

        return await asyncio.gather(*map(run, batch))

    def make_reflective_dataset(
        self, candidate: Words, eval_batch: Batch, components_to_update: list[str]
    ) -> dict[str, list[dict[str, str]]]:
        """Say in words what came of each task, and which placeholders a prompt has to keep."""
        told = [_told(result, score) for result, score in zip(eval_batch.outputs, eval_batch.scores, strict=True)]
        return {name: [*told, {"Rule": _keep(candidate[name])}] for name in components_to_update}


def _told(result: Result, score: float) -> dict[str, str]:
    outcome = result["outcome"]
    why = result["error"] or (outcome["reason"] if outcome else "")
    feedback = f"Score {score:g}. The right answer is: {result['gold']}. {why}"
    return {"Inputs": result["question"], "Generated Outputs": result["answer"] or "", "Feedback": feedback}


def _keep(text: str) -> str:
    return f"Keep these placeholders as they are: {' '.join(re.findall(r'{[a-z_]+}', text))}"


def shipped(name: str) -> str:
    """Return the text of a template that a candidate replaces: of a chat its system message."""
    template = templates()[name]
    first = template.messages[0] if isinstance(template, ChatPromptTemplate) else None
    words = first.prompt if isinstance(first, SystemMessagePromptTemplate) else None
    return words.template if isinstance(words, PromptTemplate) else str(template)


def tune(
    strategy: str,
    dataset: Dataset,
    names: Sequence[str],
    *,
    settings: Mapping[str, Any],
    reflecting: BaseChatModel,
    runs: int,
) -> Words:
    """Return the best prompts that GEPA finds.

    Args:
        strategy: The strategy.
        dataset: The tasks, with their right answers.
        names: The templates that may change.
        settings: The settings of every run.
        reflecting: The model that reads what went wrong, right answers among it, and writes new prompts.
        runs: How many runs of a task it may take, about.
    """
    with asyncio.Runner() as runner:
        found: GEPAResult[Result, int] = optimize(
            seed_candidate={name: shipped(name) for name in names},
            trainset=dataset.tasks[::2],
            valset=dataset.tasks[1::2],
            adapter=Adapter(strategy, dataset, settings, runner),
            reflection_lm=lambda prompt: runner.run(reflecting.ainvoke(prompt)).text,
            max_metric_calls=runs,
        )
    assert isinstance(found.best_candidate, dict)
    return found.best_candidate


def write(words: Words, folder: Path) -> None:
    """Write prompts as the files that the setting `prompts` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in words.items():
        (folder / f"{name}.txt").write_text(f"{text}\n")


def main() -> None:
    """Tune, and write the best prompts."""
    parser = parser_of("bench.tuning", __doc__)
    parser.add_argument("strategy")
    parser.add_argument("data", type=Path)
    parser.add_argument("--prompt", action="append", required=True, help="a template, such as chain_of_thought.SOLVE")
    parser.add_argument("--model", default="offline", help="the model of the strategy")
    parser.add_argument("--reflecting", help="the model that writes prompts; default: the same")
    parser.add_argument("--runs", type=int, default=200, help="how many runs of a task it may take, about")
    parser.add_argument("--out", type=Path, default=Path("tuned"), help="the folder of the prompts")
    asked = parser.parse_args()
    if asked.quick:
        asked.runs = 10
    dataset = load_dataset(asked.data)
    settings = {"model": asked.model} | ({"environment": dataset.environment} if dataset.environment != "plain" else {})
    reflecting = get_model(asked.reflecting or asked.model, max_answer_tokens=2048)
    write(
        tune(asked.strategy, dataset, asked.prompt, settings=settings, reflecting=reflecting, runs=asked.runs),
        asked.out,
    )
    print(f"reflect eval {asked.strategy} {asked.data} --prompts {asked.out}")


if __name__ == "__main__":
    main()
