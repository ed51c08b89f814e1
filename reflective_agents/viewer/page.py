"""A search as one page of HTML that needs nothing else: no network, no other file.

The page holds the picture as JSON, and a script that draws it. What models wrote becomes characters in the page, never
markup: the script writes text nodes only, and the page's policy forbids everything but the page's own script and style,
markup made by scripts included.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from string import Template

from reflective_agents.state.json_types import JsonMapping
from reflective_agents.viewer.picture import Picture

_FOLDER = Path(__file__).parent
_VENDOR = ("vendor/d3-hierarchy-3.1.3.min.js",)
_STYLES = ("page.css", "tree.css", "panel.css")
_HERE = "\0"
# Joined to one module, in this order.
_SCRIPTS = (
    *("elements.js", "given.js", "data.js", "layout.js", "drawing.js"),
    *("camera.js", "panel.js", "history.js", "main.js"),
)


def page(picture: Picture | None) -> str:
    """Build the page of a tree search; without one, a page that waits for it to be posted by the page around it."""
    before, after = split()
    return f"{before}{_embedded(picture)}{after}"


@cache
def _parts() -> tuple[str, str, str]:
    return style_of(*_STYLES), _joined(*_VENDOR), _joined(*(f"assets/{name}" for name in _SCRIPTS))


def _joined(*names: str) -> str:
    return "\n".join((_FOLDER / name).read_text("utf-8") for name in names)


def style_of(*names: str) -> str:
    """Return the style of a page: what all pages share, and its own files."""
    return _joined("assets/base.css", *(f"assets/{name}" for name in names))


def document(body: Path, **parts: str) -> str:
    """Return a page: its body, in the head that all pages share, with `title`, `policy`, `style` and what else it
    names filled in."""
    text = (_FOLDER / "document.html").read_text("utf-8").replace("$body", body.read_text("utf-8"))
    return Template(text).substitute(parts)


def split() -> tuple[str, str]:
    """Return what stands before and after the picture in the page of any tree search."""
    style, vendor, script = _parts()
    policy = _policy(style, vendor, script)
    return halves("page.html", "Search tree", policy, style=style, vendor=vendor, script=script)


def halves(name: str, title: str, policy: str, **parts: str) -> tuple[str, str]:
    """Return what stands before and after the picture in a page."""
    text = document(_FOLDER / name, title=title, policy=policy, picture=_HERE, **parts)
    before, _, after = text.partition(_HERE)
    return before, after


def _policy(style: str, *scripts: str, more_styles: Sequence[str] = ()) -> str:
    allowed, styles = (" ".join(map(_digest, texts)) for texts in (scripts, (style, *more_styles)))
    rules = ["default-src 'none'", f"script-src {allowed}", f"style-src {styles}", "img-src data:"]
    rules += ["base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"]
    return "; ".join(rules)


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _embedded(picture: JsonMapping | None) -> str:
    """Encode the picture as JSON that cannot close its HTML element, with lone surrogates as their escapes."""
    text = json.dumps(picture, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
