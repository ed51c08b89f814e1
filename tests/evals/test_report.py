"""The page: opened in a browser where there is one, whole in itself, and what models wrote is text on it."""

import base64
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from evals.charts import charts
from evals.extras import need
from evals.report import facts, page
from evals.results import Result
from evals.summary import summarise
from state.errors import Misuse
from tests.evals.fakes import attempts, make_about, make_result

EVIL = "</div></td></table><script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"
SPOOF = "{{ summary }} \u202e &amp; \ud800 \x00"


def results() -> list[Result]:
    crash = make_result("<i>c</i>", False, usage=None, outcome=None, answer=None, error=f"ValueError: {EVIL}")
    evil = make_result("a", answer=EVIL, question=EVIL, gold=EVIL, trials=attempts(False, True))
    return [evil, make_result("b", False, answer=SPOOF, calls=7), crash, make_result("d", None)]


def made() -> str:
    return page(summarise(make_about(settings={"model": EVIL}), results()), results())


class Reader(HTMLParser):
    """What is on a page: its text, its tags, and every attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def opened(file: Path, folder: Path) -> str:
    """The page after a browser has opened it; as it was written where there is none."""
    browser = shutil.which("chromium")
    if browser is None:
        return file.read_text("utf-8")
    switches = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command = [browser, *switches, f"--user-data-dir={folder}", "--dump-dom", file.as_uri()]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.decode("utf-8")


def test_page_in_a_browser(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(made(), "utf-8", errors="replace")
    seen = Reader(opened(file, tmp_path / "profile"))
    assert "script" not in seen.tags
    assert seen.text.count("document.title = 'owned'</script>") == 5
    assert "fake on numbers" in seen.text
    assert "33.3% (1 of 3; 95 % interval 6.1% to 79.2%)" in " ".join(seen.text.split())
    assert not [name for _, name, _ in seen.attributes if name.startswith("on")]


def test_page_needs_nothing_else() -> None:
    seen = Reader(made())
    addresses = [value for _, name, value in seen.attributes if name in ("src", "href", "action", "data", "srcset")]
    assert addresses
    assert all(value.startswith("data:image/svg+xml;base64,") for value in addresses)
    assert not {"link", "iframe", "object", "base"} & set(seen.tags)
    policy = [value for tag, name, value in seen.attributes if tag == "meta" and name == "content"]
    assert any(value.startswith("default-src 'none'") for value in policy)


def test_every_picture_has_words() -> None:
    seen = Reader(made())
    words = [value for tag, name, value in seen.attributes if (tag, name) == ("img", "alt")]
    assert len(words) == 5
    assert words[0].startswith("Accuracy 33.3%, 95 % interval 6.1% to 79.2%.")
    assert words[1] == "Share of tasks correct: 0.0% after trial 1, 33.3% after trial 2."
    assert words[2] == "From 2 to 7; most often 2 to 4."


def test_pictures_are_whole_and_the_same_each_time() -> None:
    summary = summarise(make_about(), results())
    drawn, again = charts(summary, results()), charts(summary, results())
    assert drawn == again
    for chart in drawn:
        svg = ElementTree.fromstring(base64.b64decode(chart.picture.partition(",")[2]))
        assert svg.tag.endswith("svg")
        assert not [node for node in svg.iter() if node.tag.endswith("script")]


@pytest.mark.parametrize("answered", [[], [make_result("a", None)], [make_result("a", False, usage=None, error="E")]])
def test_page_of_little(answered: list[Result]) -> None:
    summary = summarise(make_about(), answered)
    assert "<main>" in page(summary, answered)
    assert dict(facts(summary))["accuracy"].startswith("not measured" if summary["accuracy"] is None else "0.0%")


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    need("json")
    monkeypatch.setattr("evals.extras.find_spec", lambda name: None)
    with pytest.raises(Misuse, match=r"jinja2, scipy missing: .*pip install -e '\.\[evals\]'"):
        need("jinja2", "scipy")


def test_figures_in_words() -> None:
    rows: dict[str, Any] = dict(facts(summarise(make_about(), results())))
    assert rows["tasks"] == "4 of 4"
    assert rows["model calls a task"] == "mean 3.7, median 2.0, in all 11"
    assert rows["correct after trial 2"] == "33.3%"
    assert rows["crashed with ValueError"] == "1"
