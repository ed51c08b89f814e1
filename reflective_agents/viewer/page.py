"""A search as one page of HTML that needs nothing else: no network, no other file.

The page holds the picture as JSON, and a script that draws it. What models wrote becomes characters in the page, never
markup: the script writes text nodes only, and the page's policy forbids everything but the page's own script and style,
markup made by scripts included.
"""

import json
from base64 import b64encode
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from string import Template

from reflective_agents.state.json_types import JsonMapping
from reflective_agents.viewer.picture import Picture

VIEWER = Path(__file__).parent
_HERE = "\0"


@dataclass(frozen=True)
class Page:
    """A kind of page: the files that it is made of.

    Attributes:
        body: The file of its body, which stands in the head that all pages share.
        title: Its title.
        styles: The files of its style, behind the one that all pages share.
        scripts: The files of its script, joined to one module in this order.
        vendor: Files of scripts that came from elsewhere.
        rules: Further rules of its policy, such as "connect-src 'self'".
    """

    body: Path
    title: str
    styles: tuple[Path, ...]
    scripts: tuple[Path, ...]
    vendor: tuple[Path, ...] = ()
    rules: tuple[str, ...] = ()

    @cached_property
    def parts(self) -> dict[str, str]:
        """The texts of its style and of its scripts."""
        shared = VIEWER / "assets" / "base.css"
        return {"style": joined(shared, *self.styles), "vendor": joined(*self.vendor), "script": joined(*self.scripts)}

    def html(self, *shown_in_it: "Page", **parts: str) -> str:
        """Build the page.

        Args:
            shown_in_it: The kinds of pages that its script opens, whose scripts and styles its policy allows, too.
            parts: What else its body names, filled in.
        """
        styles: list[str] = []
        scripts: list[str] = []
        for page in (self, *shown_in_it):
            styles.append(page.parts["style"])
            scripts += filter(None, (page.parts["vendor"], page.parts["script"]))
        policy = _policy(styles, scripts, self.rules)
        document = (VIEWER / "document.html").read_text("utf-8").replace("$body", self.body.read_text("utf-8"))
        return Template(document).substitute(title=self.title, policy=policy, **self.parts, **parts)

    @cached_property
    def halves(self) -> tuple[str, str]:
        """What stands before and after the data in any page of this kind."""
        before, _, after = self.html(picture=_HERE).partition(_HERE)
        return before, after

    def showing(self, picture: JsonMapping | None) -> str:
        """Build the page of some data; without any, a page that waits for them to be posted by the page around it."""
        before, after = self.halves
        return f"{before}{embedded(picture)}{after}"


def assets(folder: Path, *names: str) -> tuple[Path, ...]:
    """Return the files of these names among the assets in a folder."""
    return tuple(folder / "assets" / name for name in names)


def joined(*files: Path) -> str:
    """Return the texts of files, each on lines of its own."""
    return "\n".join(file.read_text("utf-8") for file in files)


def embedded(picture: JsonMapping | None) -> str:
    """Encode data as JSON that cannot close its HTML element, with lone surrogates as their escapes."""
    # "</script" ends the element wherever it stands, also within a string of JSON.
    text = json.dumps(picture, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _policy(styles: list[str], scripts: list[str], more: tuple[str, ...]) -> str:
    allowed, looks = " ".join(map(_digest, scripts)), " ".join(map(_digest, styles))
    rules = ["default-src 'none'", f"script-src {allowed}", f"style-src {looks}", "img-src data:"]
    # Trusted types: even a mistake in our script cannot make markup of a text.
    rules += ["base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"]
    return "; ".join([*rules, *more])


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


TREE = Page(
    VIEWER / "page.html",
    "Search tree",
    styles=assets(VIEWER, "page.css", "tree.css", "panel.css"),
    scripts=assets(
        VIEWER,
        *("elements.js", "given.js", "data.js", "layout.js", "drawing.js"),
        *("camera.js", "panel.js", "history.js", "main.js"),
    ),
    vendor=(VIEWER / "vendor" / "d3-hierarchy-3.1.3.min.js",),
)


def page(picture: Picture | None) -> str:
    """Build the page of a tree search; without one, a page that waits for it to be posted by the page around it."""
    return TREE.showing(picture)
