"""How densely the code is written, beside code bases that read well: `python -m bench.density`.

Prints a row for this project without its tests, and for each of the others: how much of it is comprehensions and
comments, how long its functions are, and how many lines hold more than one comprehension. The others come from PyPI
into a temporary folder and are only read, never run.
"""

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.options import parser_of

ROOT = Path(__file__).parents[1]
OURS = tuple(ROOT / name for name in ("graphs", "nodes", "prompts", "state", "reflective_agents"))
OTHERS = {
    "httpx": "httpx==0.28.1",
    "treequest": "treequest==0.3.3",
    "deepagents": "deepagents==0.7.32",
    "inspect_ai": "inspect-ai==0.3.285",
}
"""The requirement that brings each folder of code."""
COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
HEAD = (
    "| code base | files | lines of code | comprehensions in 100 lines | lines with two | comments in 100 lines |"
    " median function | functions over 20 lines |\n|---|--:|--:|--:|--:|--:|--:|--:|"
)


class Density(NamedTuple):
    """The counts of one code base, or of one file.

    Attributes:
        files: How many files.
        code: Lines that hold code: no blank lines, comments or docstrings.
        comprehensions: Comprehensions and generator expressions.
        crowded: Lines on which more than one of them begins.
        comments: Comments, also those behind code.
        functions: Lines of each function, without its docstring.
    """

    files: int
    code: int
    comprehensions: int
    crowded: int
    comments: int
    functions: list[int]

    def row(self, name: str) -> str:
        """Return the row of the table."""
        long = sum(lines > 20 for lines in self.functions)
        figures = (
            f"{self.files:,}",
            f"{self.code:,}",
            f"{100 * self.comprehensions / self.code:.2f}",
            f"{self.crowded:,}",
            f"{100 * self.comments / self.code:.1f}",
            f"{median(self.functions):.0f}",
            f"{100 * long / len(self.functions):.0f} %",
        )
        return f"| {name} | {' | '.join(figures)} |"


def measure(source: str) -> Density:
    """Return the counts of one file.

    Raises:
        SyntaxError: if it is not Python.
    """
    tree = ast.parse(source)
    comments, code = _tokens(source)
    code -= _docstring_lines(tree)
    begins = Counter(node.lineno for node in ast.walk(tree) if isinstance(node, COMPREHENSION))
    crowded = sum(count > 1 for count in begins.values())
    functions = [_length(node) for node in ast.walk(tree) if isinstance(node, FUNCTION)]
    return Density(1, len(code), begins.total(), crowded, comments, functions)


def total(counts: Iterable[Density]) -> Density:
    """Return the counts of all files together."""
    files, code, comprehensions, crowded, comments, functions = zip(*counts, strict=True)
    lengths = list(chain.from_iterable(functions))
    return Density(sum(files), sum(code), sum(comprehensions), sum(crowded), sum(comments), lengths)


def sources(folders: Iterable[Path]) -> Iterator[str]:
    """Yield the text of each file of Python in folders, tests left out; links to folders are not followed."""
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            inside = path.relative_to(folder).parts
            if "tests" not in inside and "_vendor" not in inside:
                yield path.read_text()


def _tokens(source: str) -> tuple[int, set[int]]:
    """Return how many comments there are, and the numbers of the lines that hold anything else."""
    layout = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
    comments, code = 0, set[int]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments += 1
        elif token.type not in layout:
            code.update(range(token.start[0], token.end[0] + 1))
    return comments, code


def _docstring_lines(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines of all texts that are statements of their own."""
    lines = set[int]()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function from its first line to its last, without its docstring."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is None:
        return lines
    return lines - ((first.end_lineno or first.lineno) - first.lineno + 1)


def _download(requirements: Iterable[str], target: Path) -> None:
    command = [sys.executable, "-m", "uv", "--quiet", "pip", "install", "--no-deps", "--target", str(target)]
    subprocess.run([*command, *requirements], check=True, timeout=300)


def main() -> None:
    """Measure this project and the others, and print the table."""
    options = parser_of("bench.density", __doc__).parse_args()
    print(HEAD)
    print(total(map(measure, sources(OURS))).row("here"), flush=True)
    if options.quick:
        return
    with TemporaryDirectory() as folder:
        _download(OTHERS.values(), Path(folder))
        for name in OTHERS:
            print(total(map(measure, sources([Path(folder) / name]))).row(name), flush=True)


if __name__ == "__main__":
    main()
