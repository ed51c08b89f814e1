"""Defects that once went unnoticed: each is put into a copy of the project, and tests of `make test` have to fail."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.forking import RunModule, forking
from tests.test_contributing import COPIED, ROOT

pytestmark = [pytest.mark.process, pytest.mark.thorough]


class Defect(NamedTuple):
    """A line of a file, what it becomes, and the tests that notice it."""

    file: str
    line: str
    becomes: str
    tests: str


HYBRID, FINDING = "reflective_agents/memory/rankings/hybrid.py", "tests/memory/test_finding.py"
GUMBEL, ROUNDS = "reflective_agents/tree_search/algorithms/gumbel.py", "tests/tree_search/algorithms/test_gumbel.py"
PACKAGE = "reflective_agents/"
ALGORITHMS = PACKAGE + "tree_search/algorithms/"
WEIGHTS = "SESSION, SPEAKER, PERIOD = 1.2, 0.4, 0.5"
DEFECTS = {
    "memories: no session": Defect(HYBRID, WEIGHTS, "SESSION, SPEAKER, PERIOD = 0, 0.4, 0.5", FINDING),
    "memories: no speaker": Defect(HYBRID, WEIGHTS, "SESSION, SPEAKER, PERIOD = 1.2, 0, 0.5", FINDING),
    "memories: no time": Defect(HYBRID, WEIGHTS, "SESSION, SPEAKER, PERIOD = 1.2, 0.4, 0", FINDING),
    "memories: no neighbours": Defect(HYBRID, "NEAR = 0.7", "NEAR = 0.0", FINDING),
    "memories: no neighbours by words": Defect(HYBRID, "+= NEAR * normalise(near)", "+= 0", FINDING),
    "memories: no neighbours by meaning": Defect(HYBRID, "NEAR * normalise(line.around(cosines))", "0", FINDING),
    "memories: no substance": Defect(HYBRID, "SUBSTANCE = 0.4", "SUBSTANCE = 0.0", FINDING),
    "Gumbel: below the root by the policy alone": Defect(
        GUMBEL, "_visits(stats[child]) / (1 + tried) - policy[child]", "-policy[child]", ROUNDS
    ),
    "Gumbel: no sample counts": Defect(GUMBEL, 'log(get_extra(node, "samples", 1))', "0.0", ROUNDS),
    "Gumbel: no values below the root": Defect(
        GUMBEL, "{node: _logit(stats[node]) + _sigma(value(stats[node]), most)", "{node: _logit(stats[node])", ROUNDS
    ),
    "reflection: a score of 0 is accepted": Defect(
        "graphs/reflection.py",
        "accepts(critique.accept, critique.score)",
        "critique.accept",
        "tests/graphs/test_reflection.py",
    ),
    "reflexion: a problem is told twice": Defect(
        "graphs/reflexion.py",
        'problems = [*last["problems"], ',
        'problems = [*last["problems"], *last["problems"], ',
        "tests/graphs/test_reflexion.py",
    ),
    # One at least for each room: what the quick tests of a room have to notice, however few they become.
    "UCT: what was seldom visited is avoided": Defect(
        ALGORITHMS + "mcts.py",
        "/ visits + weight * math.sqrt(math.log(max(parent_visits, 1)) / visits)",
        "/ visits - weight * math.sqrt(math.log(max(parent_visits, 1)) / visits)",
        "tests/tree_search/algorithms/test_mcts.py",
    ),
    "beam: one too many": Defect(
        ALGORITHMS + "beam.py",
        "len(beam) < self.beam",
        "len(beam) <= self.beam",
        "tests/tree_search/algorithms/test_beam.py",
    ),
    "arithmetic: whole division is none": Defect(
        PACKAGE + "tools/arithmetic.py",
        "ast.FloorDiv: operator.floordiv",
        "ast.FloorDiv: operator.truediv",
        "tests/tools/test_arithmetic.py",
    ),
    "meter: no call is kept for the form": Defect(
        PACKAGE + "models/meter.py",
        "self._context.max_model_calls - self._reserved_calls - self",
        "self._context.max_model_calls - self",
        "tests/nodes/asking/test_answer_form.py",
    ),
    "meter: a call that a cache has answered counts": Defect(
        PACKAGE + "models/meter.py",
        'self._usage["model_calls"] -= 1 - reservation.calls',
        "pass",
        "tests/models/test_usage.py",
    ),
    "meter: it counts for a part of the run": Defect(
        PACKAGE + "models/meter.py",
        "charge_bills(calls=reservation.calls - 1, tokens=spent)",
        "charge_bills(calls=0, tokens=spent)",
        "tests/models/test_usage.py",
    ),
    "tree search: a judge is shown the lessons of earlier runs": Defect(
        PACKAGE + "tree_search/lessons.py",
        ' for lesson in lessons if not lesson.get("earlier")]',
        " for lesson in lessons]",
        "tests/nodes/remembering/test_experience.py",
    ),
    "critic: it is shown the lessons of earlier runs": Defect(
        "nodes/asking/critics.py",
        "request=request_text(conversation),\n        draft",
        'request="\\n".join(message.text for message in conversation),\n        draft',
        "tests/nodes/remembering/test_experience.py",
    ),
    "prices: a step that was not passed counts": Defect(
        PACKAGE + "models/prices.py", "input_tokens > tier.start", "True", "tests/models/test_prices.py"
    ),
    "faults: an overloaded server is not tried again": Defect(
        PACKAGE + "models/faults.py", "in (408, 409, 429)", "in (408, 409)", "tests/models/test_streams.py"
    ),
    "Game of 24: a number may be used twice": Defect(
        PACKAGE + "environments/game24_steps.py",
        "if step.left is not None and list(step.left) != left:",
        "if False:",
        "tests/environments/test_game24.py",
    ),
    "citations: what was never found is not reported": Defect(
        "nodes/evidence/citations.py",
        "        if self.wrong:",
        "        if not self.wrong:",
        "tests/nodes/evidence/test_citations.py",
    ),
    "normal forms: an article counts": Defect(
        PACKAGE + "text/normal.py", r"(?:a|an|the) (?=", r"(?:a|an) (?=", "tests/text/test_normal.py"
    ),
    "gate: a run may be begun with feedback": Defect(
        PACKAGE + "serve/gate.py", 'request.get("feedback_keys")', 'request.get("feedback")', "tests/serve/test_gate.py"
    ),
    "policy: no limit is below every limit": Defect(
        PACKAGE + "serve/policy.py", "(value or math.inf) > most", "(value or 0) > most", "tests/serve/test_policy.py"
    ),
    "verifiers: exactly the threshold is not enough": Defect(
        "nodes/verifiers/verdict.py",
        "found.score >= (form.threshold or context.threshold)",
        "found.score > (form.threshold or context.threshold)",
        "tests/contract/test_verifiers.py",
    ),
    "scorers: the answer stands anywhere": Defect(
        PACKAGE + "evals/scorers.py",
        "return answer_in(body) or bare(body)",
        "return bare(body)",
        "tests/evals/test_scorers.py",
    ),
    "pages: a node shows its total for its mean": Defect(
        PACKAGE + "viewer/figures.py",
        'stats["total"] / stats["visits"]',
        'stats["total"]',
        "tests/viewer/test_picture.py",
    ),
    "log: as much as for debugging": Defect(
        PACKAGE + "telemetry/log.py",
        'os.environ.get("REFLECT_LOG_LEVEL") or "INFO"',
        'os.environ.get("REFLECT_LOG_LEVEL") or "DEBUG"',
        "tests/telemetry/test_log.py",
    ),
    "passages: of any length": Defect(
        PACKAGE + "web_search/passages.py",
        "if words + more > PASSAGE_WORDS * 1.25 or sentence.end() - begin > LONGEST_PASSAGE:",
        "if sentence.end() - begin > LONGEST_PASSAGE:",
        "tests/web_search/test_passages.py",
    ),
    "outcome: a score of 0 is enough": Defect(
        "state/outcome.py",
        "return verdict and score > 0 and score >= least",
        "return verdict and score >= least",
        "tests/state/test_outcome.py",
    ),
    "ReAct: one action too many": Defect(
        "graphs/react.py",
        "len(steps) >= context.max_actions",
        "len(steps) > context.max_actions",
        "tests/graphs/test_react.py",
    ),
    "LATS: one lesson too many": Defect(
        "graphs/lats.py",
        "len(self.failed) >= self.max_lessons",
        "len(self.failed) > self.max_lessons",
        "tests/graphs/test_lats_tasks.py",
    ),
    "plan: one more plan than allowed": Defect(
        "graphs/plan.py",
        "if plans > context.max_replans:",
        "if plans > context.max_replans + 1:",
        "tests/graphs/test_plan.py",
    ),
    "transcript: lessons are taken for the user's words": Defect(
        "nodes/asking/transcript.py",
        "if not message.additional_kwargs.get(LESSONS)]",
        "if True]",
        "tests/nodes/remembering/test_experience.py",
    ),
    "trials: a mode that shows the last attempt does not": Defect(
        "nodes/remembering/lessons.py",
        'in ("last_attempt", "last_attempt_and_reflexion")',
        'in ("last_attempt",)',
        "tests/graphs/test_trials.py",
    ),
    "command: a line that fits is cut": Defect(
        PACKAGE + "cli/output.py",
        "if len(line) <= length else",
        "if len(line) < length else",
        "tests/cli/test_output.py",
    ),
    "offline: a follow-up question is read alone": Defect(
        PACKAGE + "offline/reading.py",
        "len(terms(question)) < 3",
        "len(terms(question)) < 0",
        "tests/offline/test_model.py",
    ),
}


# Of the plugins of pytest, which the libraries bring along.
IMPORTED = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project."""
    copy = tmp_path_factory.mktemp("defects")
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("old_data"))
    for name in ("pyproject.toml", "langgraph.json", "CONTRIBUTING.md", "docs", "bench"):
        (copy / name).symlink_to(ROOT / name)
    return copy


@pytest.fixture(scope="module")
def run_module(project: Path) -> Iterator[RunModule]:
    """Return what runs a module of the copy, whose own modules are imported with the defect."""
    with forking(project, "bench", "reflective_agents", "tests") as run:
        yield run


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_noticed(name: str, project: Path, run_module: RunModule, tmp_path: Path) -> None:
    defect = DEFECTS[name]
    file = project / defect.file
    sound = file.read_text()
    assert sound.count(defect.line) == 1
    file.write_text(sound.replace(defect.line, defect.becomes))
    try:
        options = ["-qx", "-p", "no:cacheprovider", "-W", IMPORTED, "-m", "not thorough"]
        options.append(f"--basetemp={tmp_path / 'ran'}")  # other runs of pytest clear the one that all have in common
        ran = run_module("pytest", *options, defect.tests)
    finally:
        file.write_text(sound)
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stdout + ran.stderr
    assert re.search("AssertionError|DID NOT RAISE|ModelFailed", ran.stdout), ran.stdout
