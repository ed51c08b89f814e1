"""What the page is made of: the one library that came from elsewhere, and our own files."""

import hashlib
import re
from collections import Counter
from pathlib import Path

import pytest

from reflective_agents.town.page import town_page
from reflective_agents.viewer.items import items_page
from reflective_agents.viewer.page import page
from tests.evals.test_report import made
from tests.viewer.pictures import filled_with
from tests.viewer.town_days import day

VIEWER = Path(__file__).parents[2] / "reflective_agents" / "viewer"
TOWN = VIEWER.parent / "town"
LIVE = sorted(file for file in (VIEWER.parent / "serve" / "page").iterdir() if file.suffix != ".html")
OWN = sorted([*(VIEWER / "assets").iterdir(), *(TOWN / "assets").iterdir()])
# d3-hierarchy 3.1.3, dist/d3-hierarchy.min.js and LICENSE of the package with the integrity
# sha512-GRajN5ZcnEwYFWqqdzhG1qJ3+fDg6WWzk47TJg7ePY7yvYAgRfD2r1mUx+wviBOWuCwamCUzjwMSdato43jbGA==
VENDORED = {
    "d3-hierarchy-3.1.3.min.js": "971f374ce9fdbec711eb2358003e2bb755bff22ec6852dc5ebd59f987270db64",
    "d3-hierarchy-LICENSE": "2a6d2d5f32ba0b755ddbc1c833f766e30cdbe6ebe9a6d4e3e24427721f0b63d3",
}


def test_vendored_files_are_as_they_were_published() -> None:
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (VIEWER / "vendor").iterdir()}
    assert found == VENDORED


@pytest.mark.parametrize("file", [*OWN, *LIVE], ids=lambda file: file.name)
def test_own_files_are_short(file: Path) -> None:
    lines = file.read_text().splitlines()
    assert len(lines) <= 350
    assert [line for line in lines if len(line) > 120] == []


def test_a_rule_of_style_stands_once() -> None:
    styles = [file.read_text() for file in (*OWN, *LIVE) if file.suffix == ".css"]
    rules = [rule for style in styles for rule in {*re.findall(r"^[^\s@}/][^{}]*\{[^{}]*\}", style, re.MULTILINE)}]
    assert [rule for rule, times in Counter(rules).items() if times > 1] == []


def test_scripts_never_parse_markup() -> None:
    doors = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|eval\(|Function\(|createContextualFragment"
    )
    assert [file.name for file in (*OWN, *LIVE) if re.search(doors, file.read_text())] == []


def test_every_own_file_is_in_the_page() -> None:
    html = page(filled_with("x")) + town_page(day()) + made() + items_page("x", [])
    assert [file.name for file in OWN if file.read_text().strip() not in html] == []


def test_picture_cannot_end_its_element() -> None:
    html = page(filled_with("</script><!--<script>\ud800"))
    embedded = html.partition('id="picture">')[2].partition("</script>")[0]
    assert "<" not in embedded
    assert "\\ud800" in embedded
    assert html.count("</script>") == 3
    html.encode("utf-8")
