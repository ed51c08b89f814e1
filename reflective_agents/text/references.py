"""Where the list of references of an answer begins, as code writes it: under a heading in any language."""

import re

_HEADING = re.compile(r"\n\n[^\n]{1,40}:\n(?=\[s?\d{1,3}\] )")


def split_list(text: str) -> tuple[str, str]:
    """Split an answer into its text and its list of references, which is empty if there is none."""
    body, *lists = _HEADING.split(text, maxsplit=1)
    return body, "".join(lists)
