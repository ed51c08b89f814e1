"""Whether a strategy could work with its settings: asked once at the beginning of a run, for itself and its workers."""

import asyncio

from reflective_agents.models.images import images_of
from reflective_agents.models.providers import choose_model, describe_model
from reflective_agents.nodes.acting.agent import environment_of
from reflective_agents.nodes.asking.chat import check_model, model_of
from reflective_agents.nodes.asking.wording import replacements
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers.program import check_program
from reflective_agents.state.context import Context, Model
from reflective_agents.state.errors import Misuse
from reflective_agents.state.families import SearchContext, TaskContext
from reflective_agents.state.prices import table_of
from reflective_agents.state.verifier_forms import Rubric
from reflective_agents.state.verifiers import VerifiedContext
from reflective_agents.web_search.corpus import open_corpus
from reflective_agents.web_search.engines import choose_search
from reflective_agents.web_search.own import name_of

_ONLY_IF_GIVEN = ("compact_model", "experience_model", "proposers", "ladder", "fallback_models")
_MODELS = ("model", "judge_model", "critic_model", "arms", *_ONLY_IF_GIVEN)
"""The settings that name models, and those that are not the same as `model` where they are not given."""


async def check_settings(step: Step[Context], context: Context) -> dict[str, str]:
    """Refuse settings that a strategy could not work with.

    Args:
        step: The node that asks.
        context: The settings, of the run or of a worker.

    Returns:
        The names of the models and of the web search that the settings choose.

    Raises:
        Misuse: if a setting has no effect beside the others; if a model does not exist; if there are images, and they
            cannot be shown; as `check_sources`.
    """
    # What a strategy hands on was not chosen for this one, and may well have no effect here.
    if not context.is_handed_on:
        context.check_effect()
    if getattr(context, "environment", None) is not None and any(map(images_of, step.meter.questions)):
        raise Misuse("the tasks of an environment are text: ask without images, or without an environment")
    chosen: dict[str, str] = {}
    for name in type(context).model_fields:
        setting = getattr(context, name)
        if name in _MODELS and (setting or name not in _ONLY_IF_GIVEN):
            chosen[name] = await _check_models(step, name, setting)
    for form in context.forms if isinstance(context, VerifiedContext) else []:
        await check_program(form)
        if isinstance(form, Rubric) and form.model is not None:
            await check_model(step, form.model)
    await check_sources(context)
    return chosen | _search(context)


async def check_sources(context: Context) -> None:
    """Refuse files, folders and programs that the settings need, and that cannot be had on this machine.

    Raises:
        Misuse: if one is missing or cannot be read: prices, prompts, a corpus, a docstore, or what an
            environment needs, such as a sandbox.
    """
    table_of(context.prices)
    if context.prompts:
        replacements(context.prompts)
    if isinstance(context, SearchContext) and _reads_corpus(context):
        await asyncio.to_thread(open_corpus, context.corpus)
    if isinstance(context, TaskContext) and (environment := await environment_of(context)):
        await environment.ready()


async def _check_models(step: Step[Context], name: str, setting: Model | list[Model] | None) -> str:
    if setting is None and name != "model":
        return "same as model"
    models = setting if isinstance(setting, list) else [setting]
    return ", ".join([await _model_name(step, model) for model in models])


async def _model_name(step: Step[Context], model: Model) -> str:
    await check_model(step, model)
    chosen, _ = choose_model(model)
    return chosen if isinstance(chosen, str) else describe_model(model_of(step, chosen))["model_name"]


def _reads_corpus(context: SearchContext) -> bool:
    return choose_search(context.search)[0] == "local" and bool(context.searches or context.corpus)


def _search(context: Context) -> dict[str, str]:
    if not isinstance(context, SearchContext) or not context.searches:
        return {}
    kind, _ = choose_search(context.search)
    return {"search": kind if isinstance(kind, str) else name_of(kind)}
