"""Putting the final answer into the form that the caller asked for."""

import json
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict

from reflective_agents.nodes.asking.chat import ask
from reflective_agents.nodes.asking.transcript import quoted, request_text
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import answer_form as prompts
from reflective_agents.state.answer_schema import as_held, type_faults
from reflective_agents.state.callers_schemas import expanded
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.outcome import Outcome, Status, stopped
from reflective_agents.state.run import RunState
from reflective_agents.tools.schema_faults import schema_faults


async def in_form(
    state: RunState, step: Step[Context], answer: str, outcome: Outcome
) -> tuple[JsonObject | None, Outcome]:
    """Put an answer into the form of the setting `answer_schema`, with one more call of the model unless it fits.

    Without that setting, what an agent of the user's own has answered as a JSON object is that object.

    Returns:
        The answer as data, with the outcome as it was. If it cannot be had, None, with an outcome that adds why.
    """
    schema = step.context.answer_schema
    if schema is None:
        return (_read_object(answer) if getattr(step.context, "agent", None) else None), outcome
    data = _read_object(answer)
    if data is not None and not await _faults(schema, data):
        return as_held(schema, data), outcome
    step.meter.spend_last()
    prompt = prompts.FILL.format_messages(request=request_text(state["messages"]), answer=quoted("answer", answer))
    try:
        form = await ask(
            step,
            step.context.model,
            prompt,
            _form(json.dumps(schema)),
            lambda form: _faults(schema, form.model_extra or {}),
        )
    except (LimitReached, ModelFailed) as error:
        ended = stopped(error)
        reason = f"{outcome['reason']}; the answer was not put into its form: {ended['reason']}"
        before = outcome.copy()
        # The text was verified, and the form that was asked for is not there.
        before.pop("verified_by", None)
        status: Status = "limit_reached" if "limit" in ended else "exhausted"
        return None, {**before, **ended, "status": status, "reason": reason}
    return as_held(schema, form.model_extra or {}), outcome


def _read_object(text: str) -> JsonObject | None:
    """Return the JSON object that a text is; None if it is something else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


async def _faults(schema: JsonMapping, data: JsonMapping) -> str:
    return "; ".join(await schema_faults(schema, dict(data))) or type_faults(schema, data)


@lru_cache(maxsize=32)
def _form(schema: str) -> type[BaseModel]:
    """Return a class that takes any object and describes itself to models as the schema does."""
    shown = expanded([json.loads(schema)])[0]

    class Answer(BaseModel):
        model_config = ConfigDict(extra="allow")

        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> JsonObject:
            return {**shown, "title": cls.__name__}

    return Answer
