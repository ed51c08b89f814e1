"""The scripted model for the questions of the articles, as the command reaches it."""

from typing import Any

import pytest

from reflective_agents.graphs import graph_of
from reflective_agents.testing.articles import reply
from reflective_agents.testing.fake import FakeChatModel

CHINESE = "一家工厂买了{}台减速机，每台{}元；每台每小时用电{}元，每天运行{}小时。第一周连电费一共多少钱？"
ENGLISH = (
    "A workshop buys {} gear reducers at {} yuan each. Each uses {} yuan of power an hour and runs {} hours a day. "
    "What do they cost in the first week, power included?"
)


@pytest.mark.parametrize("question", [CHINESE, ENGLISH])
@pytest.mark.parametrize("numbers", [(12, 750, 0.5, 8), (3, 100, 2, 10)])
async def test_the_calculator_works_out_what_the_question_says(question: str, numbers: tuple[float, ...]) -> None:
    pieces, price, power, hours = numbers
    graph: Any = graph_of("react")
    request = {"messages": [("user", question.format(*numbers))]}
    out = await graph.ainvoke(request, context={"model": FakeChatModel(reply=reply), "search": "none"})
    assert f"{pieces * price + pieces * power * hours * 7:g}" in out["answer"]
    assert [step["action"].partition("(")[0].partition("[")[0] for step in out["steps"]] == ["calculator"]


async def test_a_teacher_criticises_the_essay_until_it_is_good() -> None:
    graph: Any = graph_of("reflection")
    request = {"messages": [("user", "Write an essay on why The Little Prince is relevant in modern childhood.")]}
    out = await graph.ainvoke(request, context={"model": FakeChatModel(reply=reply)})
    assert [draft["score"] for draft in out["drafts"]] == [0.3, 0.85]
    assert out["outcome"]["status"] == "solved"
