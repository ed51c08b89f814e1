"""Rubrics: a model judges each criterion apart, without knowing of the others."""

from pydantic import BaseModel, Field

from reflective_agents.nodes.asking.chat import ask
from reflective_agents.nodes.asking.transcript import quoted, request_text
from reflective_agents.nodes.evidence.looking_up import look_up
from reflective_agents.nodes.memo import at_once
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers.finding import Case, Finding, bounded
from reflective_agents.prompts import looking_up
from reflective_agents.prompts import rubric as prompts
from reflective_agents.state.context import Context, Model
from reflective_agents.state.schemas import Truth
from reflective_agents.state.verifier_forms import Criterion, Rubric


class Met(BaseModel):
    """Your judgement of one criterion."""

    reason: str = Field(description="What meets the criterion, or what is wrong or missing.")
    met: Truth = Field(description="Whether the answer meets the whole criterion.")


async def verify(step: Step[Context], rubric: Rubric, case: Case) -> Finding:
    """Judge all criteria at once, after a look at what can be looked up, where there are tools. The score is the share
    of the criteria that are met, by their weights.

    Raises:
        LimitReached, ModelFailed: if one cannot be judged.
    """
    found = await _look_up(step, rubric, case) if rubric.tools else ""
    judged = await at_once([_judge(step, rubric, criterion, case, found) for criterion in rubric.criteria])
    met, weight = 0.0, 0.0
    feedback: list[str] = []
    refused = False
    for criterion, verdict in zip(rubric.criteria, judged, strict=True):
        weight += criterion.weight
        if verdict.met:
            met += criterion.weight
        else:
            feedback.append(f"{criterion.criterion}: {verdict.reason}")
            refused = refused or criterion.must
    return Finding(score=met / weight, feedback=bounded("\n".join(feedback)), refused=refused)


async def _look_up(step: Step[Context], rubric: Rubric, case: Case) -> str:
    """Let the judge look things up, once for all criteria."""
    criteria = [quoted("criterion", each.criterion) for each in rubric.criteria]
    material = [request_text(case.run["messages"]), quoted("answer", case.answer), *criteria]
    model = _model(step, rubric)
    return await look_up(step, case.run_id, model, "\n".join(material), rubric.tools, reserved=len(criteria))


async def _judge(step: Step[Context], rubric: Rubric, criterion: Criterion, case: Case, found: str) -> Met:
    evidence = f"\n{looking_up.FOUND}\n{found}" if found else ""
    prompt = prompts.JUDGE.format_messages(
        request=request_text(case.run["messages"]),
        answer=quoted("answer", case.answer) + evidence,
        criterion=quoted("criterion", criterion.criterion),
    )
    return await ask(step, _model(step, rubric), prompt, Met, judging=True)


def _model(step: Step[Context], rubric: Rubric) -> Model:
    return rubric.model or getattr(step.context, "judge_model", None) or step.context.model
