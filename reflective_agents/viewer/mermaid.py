"""A search tree as a Mermaid flowchart. What models wrote stands in it as characters, whatever it says."""

from collections.abc import Iterator

from reflective_agents.viewer.figures import figures, marks, numbers, pruned, says
from reflective_agents.viewer.picture import Picture

MOST_EDGES = 500
"""What Mermaid draws unless its page allows more (`maxEdges`)."""

_SHAPES = {"root": ('(("', '"))'), "action": ('["', '"]'), "answer": ('(["', '"])')}
_STYLES = {"solved": "stroke-width:3px", "best": "stroke-width:5px", "pruned": "stroke-dasharray:4 3"}
_PLAIN = frozenset(" .,!?'()/+-=*_")


def mermaid(picture: Picture, words: int = 40) -> str:
    """Draw the tree from left to right: shapes show the kinds, thick links the chosen path, dotted links pruned nodes.

    Args:
        picture: The search.
        words: Most characters of what a node says.
    """
    return "\n".join(_lines(picture, words)) + "\n"


def _lines(picture: Picture, words: int) -> Iterator[str]:
    seen, given_up = figures(picture), pruned(picture)
    yield "flowchart LR"
    for key, node in picture["nodes"].items():
        before, after = _SHAPES[node["kind"]]
        label = " ".join([key, node["kind"], *numbers(picture, node, seen), *marks(picture, key, given_up)])
        text = escaped(short(says(picture, node), words))
        yield f"    {_name(key)}{before}{label}<br/>{text}{after}"
    for key, node in picture["nodes"].items():
        if node["parent_id"] is not None:
            arrow = "-->"
            if key in picture["path"]:
                arrow = "==>"
            elif key in given_up:
                arrow = "-.->"
            yield f"    {_name(node['parent_id'])} {arrow} {_name(key)}"
    for mark, style in _STYLES.items():
        marked = [_name(key) for key in picture["nodes"] if mark in marks(picture, key, given_up)]
        if marked:
            yield f"    classDef {mark} {style}"
            yield f"    class {','.join(marked)} {mark}"


def _name(key: str) -> str:
    return "n" + key.replace(".", "_")


def short(text: str, length: int) -> str:
    """Return the beginning of a text on one line, without invisible characters."""
    visible = "".join(c if c.isprintable() else " " for c in text[: 10 * length])
    line = " ".join(visible.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def escaped(text: str) -> str:
    """Escape text for a label in quotes: whatever is neither alphanumeric nor harmless becomes an entity."""
    return "".join(map(_escaped_sign, text))


def _escaped_sign(sign: str) -> str:
    return sign if sign.isalnum() or sign in _PLAIN else f"#{ord(sign)};"
