"""Finds programs and tests in the texts of models and tasks. Reads only; runs nothing."""

import ast
import builtins
import re
import textwrap
from itertools import pairwise

LONGEST_NAME = 200
"""Characters of the name of a function."""
_FENCED = re.compile(r"^[ \t]*```[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"(.+?\))\s*(?:==|=>|->|➞|→|returns|should return|is equal to)\s*(.+)")


def find_program(text: str, entry_point: str = "") -> str:
    """Return the program in a model's text: the fenced block that defines the entry point, or else the longest one.

    A fence that is never closed holds the rest. Text without a fence is taken to be the program.
    """
    blocks = _FENCED.findall(text) or [text]
    block = max(blocks, key=lambda block: (defines(block, entry_point), len(block)))
    return str(block).strip("\n").rstrip()


def defines(text: str, name: str) -> bool:
    """Return whether a text defines a function, a class or a variable of this name at the outermost level."""
    head = rf"^(?:(?:async\s+)?def\s+{re.escape(name)}\s*\(|class\s+{re.escape(name)}\b|{re.escape(name)}\s*=)"
    return name.isidentifier() and len(name) <= LONGEST_NAME and re.search(head, text, re.MULTILINE) is not None


def complete(prompt: str, entry_point: str, text: str) -> str:
    """Return the whole program: the text, if it defines the entry point; or else the prompt with the text as body.

    A body that is not indented, or of which only the first line lost its indentation, is corrected.
    """
    if defines(text, entry_point) or not defines(prompt, entry_point):
        return text
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or lines[0][0].isspace():
        return prompt + text
    # Models continue behind the prompt's last blanks. Where the first line opens a block, the second is
    # indented anyway.
    first_only = len(lines) > 1 and lines[1][0].isspace() and not lines[0].rstrip().endswith((":", "(", "[", "{"))
    return prompt + ("    " + text if first_only else textwrap.indent(text, "    "))


def find_examples(prompt: str, entry_point: str) -> list[str]:
    """Return the examples in a function's docstring as assertions.

    They are doctests, and lines such as `f(1) == 2` or `f(1) -> 2`, if the result is a literal.

    Args:
        prompt: Python source.
        entry_point: the function that an example must call.
    """
    lines = [line.strip() for line in prompt.split("\n")]  # the source: a docstring's value has other backslashes
    pairs = [(call[4:], want) for call, want in pairwise(lines) if call.startswith(">>> ")]
    for line in lines:
        if example := _EXAMPLE.fullmatch(line.removeprefix(">>> ")):
            pairs.append((example[1], example[2]))
    asserts: dict[str, None] = {}
    for call, want in pairs:
        call = call.strip()
        want = re.sub(r"""(?:\"{3}|'{3})$""", "", want).strip()
        if _is_example(call, want, entry_point):
            asserts[f"assert {call} == {want}"] = None
    return list(asserts)


def _is_example(call: str, want: str, entry_point: str) -> bool:
    try:
        ast.literal_eval(want)
        tree = ast.parse(call, mode="eval")
    except (SyntaxError, ValueError):
        return False
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    others = [name for name in names if name != entry_point]
    return entry_point in names and all(hasattr(builtins, name) for name in others)


def is_test(line: str, entry_point: str) -> bool:
    """Return whether a line is an assertion, and names the function that is tested."""
    try:
        body = ast.parse(line).body
    except (SyntaxError, ValueError):
        return False
    return len(body) == 1 and isinstance(body[0], ast.Assert) and entry_point in line
