"""How the live page sets what models write: as elements of its own making, in linear time, and never as markup."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.viewer.test_page import MARKUP

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
PACKAGE = Path(__file__).parents[2] / "reflective_agents"
SCRIPTS = ("viewer/assets/elements.js", "serve/page/markdown.js")
LINK = 'target="_blank" rel="noopener noreferrer"'
SIZE = 50_000

SET = {
    "a *b* **c** ~~d~~ __e__ _f_": "<p>a <em>b</em> <strong>c</strong> <del>d</del> <strong>e</strong> <em>f</em></p>",
    "***both*** and *a **b** c*": "<p><em><strong>both</strong></em> and <em>a <strong>b</strong> c</em></p>",
    "2 * 3 * 4, snake_case_name, x_1 + y_2, 5*": "<p>2 * 3 * 4, snake_case_name, x_1 + y_2, 5*</p>",
    "*a **b* c": "<p><em>a **b</em> c</p>",
    r"\*a\* \[1] C:\dir": r"<p>*a* [1] C:\dir</p>",
    "`a*b*` ``a`b`` `open": "<p><code>a*b*</code> <code>a`b</code> `open</p>",
    "one\ntwo\n\nthree": "<p>one\ntwo</p><p>three</p>",
    "# A\n## B *c*\ntext\n---": "<h3>A</h3><h4>B <em>c</em></h4><p>text</p><hr>",
    "#1 is no heading": "<p>#1 is no heading</p>",
    "> a\n> > b": "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>",
    "- a\n- b\n  - c\n\nd": "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul><p>d</p>",
    "3. a\n4. b\nlazy": '<ol start="3"><li>a</li><li>b\nlazy</li></ol>',
    "- a\n\n  b": "<ul><li><p>a</p><p>b</p></li></ul>",
    "a | b\n--|:-:\n1 | `x` \\| y\n\nz": (
        '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th>a</th><th>b</th></tr>'
        "</thead><tbody><tr><td>1</td><td><code>x</code> | y</td></tr></tbody></table></div><p>z</p>"
    ),
    "a | b": "<p>a | b</p>",
    "[x](https://a.example/b_c(d)) <https://a.example>": (
        f'<p><a href="https://a.example/b_c(d)" {LINK}>x</a> <a href="https://a.example" {LINK}>https://a.example</a></p>'
    ),
    "See https://a.example/x_y. (https://a.example)": (
        f'<p>See <a href="https://a.example/x_y" {LINK}>https://a.example/x_y</a>. '
        f'(<a href="https://a.example" {LINK}>https://a.example</a>)</p>'
    ),
    "![x](https://a.example/i.png)": f'<p><a href="https://a.example/i.png" {LINK}>x</a></p>',
    "[x](javascript:alert(1)) [x](data:text/html,x) xhttp://a": (
        "<p>[x](javascript:alert(1)) [x](data:text/html,x) xhttp://a</p>"
    ),
    "a [1][2, 1] b[3] c": "<p>a <i>1</i><i>2,1</i> b[3] c</p>",
    "a &lt; <b onclick=x>b</b>": "<p>a &amp;lt; &lt;b onclick=x&gt;b&lt;/b&gt;</p>",
}
CODE = (
    '<figure class="code"><figcaption><span>{language}</span><button type="button" class="copy">Copy</button>'
    '</figcaption><pre tabindex="0"><code>{text}</code></pre></figure>'
)
SET["1. a\n   ```\n   x\n   ```"] = f'<ol start="1"><li>a{CODE.format(language="text", text="x")}</li></ol>'
SET["```c++\na <b\n\n# c\n```\nd"] = CODE.format(language="c++", text="a &lt;b\n\n# c") + "<p>d</p>"
SET["~~~\n```"] = CODE.format(language="text", text="```")

HOSTILE = [
    *(
        "[",
        "*a ",
        "**",
        "*",
        "_a",
        "~~",
        "`",
        "``a`",
        "h",
        "http://%",
        "![",
        "[a](",
        "[a](https://a ",
        "[1, ",
        "\\",
        "<",
    ),
    *(
        "- ",
        "> ",
        "# ",
        "1. ",
        "|",
        "| a ",
        "a\n",
        "\n",
        "- a\n",
        "  - a\n",
        "> a\n",
        ">" * 50 + "\n",
        "|a|b|\n|-|-|\n",
    ),
    *("```\n", "~~~", "- - ", "* * ", "=", "-   x\n\n\n", "*a **b ", "[1]", "https://a.example/( "),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bench(browser: Browser) -> AsyncIterator[Page]:
    """Return a page that has the scripts, and cites the sources 1 and 2."""
    page = await browser.new_page()
    scripts = "\n".join((PACKAGE / name).read_text() for name in SCRIPTS)
    cite = """(numbers) => (numbers.every((number) => number < 3) ? el("i", {}, String(numbers)) : null)"""
    made = f"window.made = (text) => {{ const box = el('div'); box.append(...markdown(text, {cite})); return box; }};"
    await page.add_script_tag(content=f"{{ {scripts}\n{made} }}")
    yield page
    await page.close()


async def test_markdown_becomes_elements(bench: Page) -> None:
    made = await bench.evaluate("texts => texts.map((text) => made(text).innerHTML)", [*SET])
    assert dict(zip(SET, made, strict=True)) == SET


async def test_nothing_is_read_as_markup(bench: Page) -> None:
    names = await bench.evaluate("text => [...made(text).querySelectorAll('*')].map((one) => one.localName)", MARKUP)
    assert {*names} <= {"p", "em", "strong"}
    assert await bench.evaluate("() => window.hacked ?? null") is None


@pytest.mark.thorough
async def test_the_time_grows_with_the_text_and_no_tree_is_too_deep(bench: Page) -> None:
    script = """([part, size]) => {
      const deep = (one) => 1 + Math.max(0, ...[...one.children].slice(0, 100).map(deep));
      const time = (text) => {
        const began = performance.now();
        const box = made(text);
        return [performance.now() - began, deep(box)];
      };
      const text = part.repeat(Math.ceil(size / part.length));
      return [time(text.slice(0, size / 8))[0], ...time(text)];
    }"""
    for part in HOSTILE:
        before, seconds, depth = await bench.evaluate(script, [part, SIZE])
        assert seconds < 40 * before + 500, part
        assert depth < 60, part
