"""The options that all scripts share."""

import argparse

MISSED = 3
"""How a script ends that has measured everything, and has missed a goal; with 1 it would seem to have crashed."""


def parser_of(module: str, doc: str | None) -> argparse.ArgumentParser:
    """Return a parser of a script's options; each script has a quick form, which the tests run.

    Args:
        module: The script, as `python -m` takes it.
        doc: Its docstring, of which the first paragraph is shown.
    """
    about = (doc or "").partition("\n\n")[0]
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("--quick", action="store_true", help="only see whether it works: the figures mean nothing")
    return parser
