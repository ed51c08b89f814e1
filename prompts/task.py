"""What every role is told of an environment's tasks: it stands first in each prompt, and is the same in all of them."""

GOAL = "The task: {goal}"
RULES = "Rules: {rules}"
ACTIONS = "Legal actions: {actions}"
SOLVED = """
Example:
{example}
That is right."""
FAILED = """
Example of a failed try:
{example}
Why it failed: {why}"""
