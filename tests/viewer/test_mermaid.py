"""Trees as Mermaid flowcharts."""

import pytest

from reflective_agents.viewer.mermaid import escaped, mermaid, short
from tests.viewer.pictures import filled_with, small


def test_tree_as_a_flowchart() -> None:
    assert mermaid(small()) == (
        "flowchart LR\n"
        '    n0(("0 root N=3 Q=0.58<br/>What do tides do?"))\n'
        '    n0_0["0.0 action N=2 Q=0.75 UCT=1.49<br/>Look it up."]\n'
        '    n0_1["0.1 action N=1 Q=0.25 UCT=1.30 pruned<br/>guess()"]\n'
        '    n0_0_0(["0.0.0 answer N=1 Q=1.00 UCT=1.83 solved best<br/>The moon pulls the water, twice a day."])\n'
        "    n0 ==> n0_0\n"
        "    n0 -.-> n0_1\n"
        "    n0_0 ==> n0_0_0\n"
        "    classDef solved stroke-width:3px\n"
        "    class n0_0_0 solved\n"
        "    classDef best stroke-width:5px\n"
        "    class n0_0_0 best\n"
        "    classDef pruned stroke-dasharray:4 3\n"
        "    class n0_1 pruned\n"
    )


@pytest.mark.parametrize(
    "text", ['"]; click n0 "javascript:x"', "<b>x</b>", "a\nend\n%% b", "`x`", "#quot;", "\u202e\x00"]
)
def test_text_cannot_leave_its_label(text: str) -> None:
    lines = mermaid(filled_with(text)).splitlines()
    labels = [line for line in lines if "<br/>" in line]
    assert len(labels) == 2
    for line in labels:
        said_of_it = line.partition("<br/>")[2].removesuffix('"]')
        assert not {*said_of_it} & {*'"<>&`;\n'} - {";"}
        assert escaped(short(text, 40)) == said_of_it


def test_entities_stand_for_what_would_be_read_as_markup() -> None:
    assert escaped('a<b>"#1" é 潮') == "a#60;b#62;#34;#35;1#34; é 潮"
    assert short("one\n two\u202e " * 50, 12) == "one two one…"
