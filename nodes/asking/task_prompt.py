"""What a prompt says of a task before anything else: the goal, the rules, the actions, and worked examples."""

from collections.abc import Callable, Sequence

from reflective_agents.environments.base import Act, Environment, Example, State
from reflective_agents.prompts import task as prompts
from reflective_agents.state.families import OwnExample

Examples = bool | Sequence[OwnExample]


def task_prompt(environment: Environment, *, examples: Examples, request: str = "") -> str:
    """Describe a task to a role that acts, or that judges those who act; the text ends with an empty line.

    Args:
        environment: Where the task comes from.
        examples: Whether the environment's worked examples are shown, step by step; or others in their place.
        request: The task as it is shown: what is asked is no example.
    """
    actions = prompts.ACTIONS.format(actions=environment.actions)
    actions = f"{actions}. {environment.effects}".rstrip()
    return _join([*_task(environment), actions, *_example_texts(environment, examples, _steps, request)])


def short_task_prompt(environment: Environment, *, examples: Examples, request: str = "") -> str:
    """Describe a task to a role that answers at once: as `task_prompt`, but without the actions, and examples are
    thought out."""
    return _join([*_task(environment), *_example_texts(environment, examples, _reasoning, request)])


def _task(environment: Environment) -> list[str]:
    parts = []
    if environment.goal:
        parts.append(prompts.GOAL.format(goal=environment.goal))
    if environment.rules:
        parts.append(prompts.RULES.format(rules=environment.rules))
    return parts


def _join(parts: list[str]) -> str:
    return "\n".join([*parts, "", ""]) if parts else ""


def examples_text(examples: Examples) -> str:
    """Show the examples of an open question, step by step where they have steps: there are none but those of the
    settings."""
    return _join(_example_texts(None, examples, lambda example: _steps(example) or _reasoning(example)))


def _example_texts(
    environment: Environment | None, examples: Examples, shown: Callable[[Example], str], request: str = ""
) -> list[str]:
    chosen = environment.examples if environment and examples else ()
    if not isinstance(examples, bool) and examples:
        chosen = tuple(map(_from_setting, examples))
    texts = []
    for example in chosen:
        text = shown(example)
        if text and example.task not in request:
            words = prompts.SOLVED if example.solved else prompts.FAILED
            texts.append(words.format(example=f"{example.task}\n{text}", why=example.why))
    return texts


def _from_setting(setting: OwnExample) -> Example:
    acts = tuple(Act(*act) for act in setting.get("acts", ()))
    return Example(setting["task"], acts, setting.get("reasoning", ""))


def _reasoning(example: Example) -> str:
    return example.reasoning


def _steps(example: Example) -> str:
    lines = []
    for number, (thought, action, observation) in enumerate(example.acts, 1):
        lines += [f"Thought {number}: {thought}", f"Action {number}: {action}"]
        if observation:
            lines.append(f"Observation {number}: {observation}")
    return "\n".join(lines)


def articles_text(world: State) -> str:
    """Return the articles that a task brings with it, as text; empty if there are none."""
    data = (world.get("task") or {}).get("data") or {}
    articles = data.get("supporting") or []
    text = ""
    for title, sentences in articles:
        text += f"{title}: {''.join(sentences)}\n\n"
    return text
