"""A search as one page of HTML that needs nothing else: no network, no other file.

The page holds the picture as JSON, and a script that draws it. What models wrote becomes characters in the page, never
markup: the script writes text nodes only, and the page's policy forbids everything but the page's own script and style,
markup made by scripts included.
"""

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from string import Template

from viewer.picture import Picture

_FOLDER = Path(__file__).parent
_VENDOR = ("vendor/d3-hierarchy-3.1.3.min.js",)
_STYLES = ("page.css", "tree.css", "panel.css")
# Joined to one module, in this order.
_SCRIPTS = ("data.js", "elements.js", "layout.js", "drawing.js", "camera.js", "panel.js", "history.js", "main.js")


def page(picture: Picture) -> str:
    """The page of a search."""
    style, vendor, script = _parts()
    template = Template((_FOLDER / "page.html").read_text("utf-8"))
    return template.substitute(
        policy=_policy(style, vendor, script), style=style, vendor=vendor, script=script, picture=_embedded(picture)
    )


@cache
def _parts() -> tuple[str, str, str]:
    style = _joined(*(f"assets/{name}" for name in _STYLES))
    return style, _joined(*_VENDOR), _joined(*(f"assets/{name}" for name in _SCRIPTS))


def _joined(*names: str) -> str:
    return "\n".join((_FOLDER / name).read_text("utf-8") for name in names)


def _policy(style: str, *scripts: str) -> str:
    allowed = " ".join(_digest(script) for script in scripts)
    rules = ["default-src 'none'", f"script-src {allowed}", f"style-src {_digest(style)}", "img-src data:"]
    rules += ["base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"]
    return "; ".join(rules)


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _embedded(picture: Picture) -> str:
    """The picture as JSON that cannot end the element it stands in, with half characters as their escapes."""
    text = json.dumps(picture, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
