"""What a prompt says of a task before anything else: the goal, the rules, the actions, and worked examples."""

from collections.abc import Callable, Sequence

from reflective_agents.environments.base import Act, Environment, Example, State
from reflective_agents.prompts import task as prompts
from reflective_agents.state.families import OwnExample

Examples = bool | Sequence[OwnExample]


def briefing(environment: Environment, *, examples: Examples, asked: str = "") -> str:
    """Brief a role that acts, or that judges those who act; the text ends with an empty line.

    Args:
        environment: Where the task comes from.
        examples: Whether the environment's worked examples are shown, step by step; or others in their place.
        asked: The task as it is shown: what is asked is no example.
    """
    actions = f"{prompts.ACTIONS.format(actions=environment.actions)}. {environment.effects}".rstrip()
    return _joined([*_task(environment), actions, *_worked(environment, examples, _steps, asked)])


def short_briefing(environment: Environment, *, examples: Examples, asked: str = "") -> str:
    """Brief a role that answers at once: as `briefing`, but without the actions, and examples are thought out."""
    return _joined([*_task(environment), *_worked(environment, examples, _reasoning, asked)])


def _task(environment: Environment) -> list[str]:
    goal = [prompts.GOAL.format(goal=environment.goal)] if environment.goal else []
    return [*goal, *([prompts.RULES.format(rules=environment.rules)] if environment.rules else [])]


def _joined(parts: list[str]) -> str:
    return "".join(f"{part}\n" for part in parts) + "\n" if parts else ""


def worked(examples: Examples) -> str:
    """Show the examples of an open question, step by step: there are none but those of the settings."""
    return _joined(_worked(None, examples, _steps))


def _worked(
    environment: Environment | None, examples: Examples, shown: Callable[[Example], str], asked: str = ""
) -> list[str]:
    own = [] if isinstance(examples, bool) else [_example(one) for one in examples]
    return [
        (prompts.SOLVED if one.solved else prompts.FAILED).format(example=f"{one.task}\n{shown(one)}", why=one.why)
        for one in own or (environment.examples if environment and examples else ())
        if shown(one) and one.task not in asked
    ]


def _example(own: OwnExample) -> Example:
    return Example(own["task"], tuple(Act(*act) for act in own.get("acts", ())), own.get("reasoning", ""))


def _reasoning(example: Example) -> str:
    return example.reasoning


def _steps(example: Example) -> str:
    lines = []
    for number, (thought, action, observation) in enumerate(example.acts, 1):
        lines += [f"Thought {number}: {thought}", f"Action {number}: {action}"]
        lines += [f"Observation {number}: {observation}"] if observation else []
    return "\n".join(lines)


def material(world: State) -> str:
    """Return the articles that a task brings with it, as text; empty if there are none."""
    data = (world.get("task") or {}).get("data") or {}
    articles = data.get("supporting") or []
    return "".join(f"{title}: {''.join(sentences)}\n\n" for title, sentences in articles)
