"""The offline model as a planner, as a supervisor, as a judge of reports and as a worker that may say it has failed."""

from typing import TypeVar

from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel

from reflective_agents.nodes.delegating.forms import Delegation, Plan, Verdict
from reflective_agents.offline.model import OfflineChatModel

T = TypeVar("T", bound=BaseModel)
THREE = "What does UCT balance, how do agents keep lessons, and which budgets limit calls?"
TEAM = '<member name="finder">\nYou search.\n</member>\n<member name="critic">\nYou criticise.\n</member>'
GOOD = "UCT balances exploration and exploitation [1].\n\nReferences:\n[1] corpus:uct.md"


def filled(schema: type[T], *messages: str) -> T:
    prompt: list[BaseMessage] = [HumanMessage(message) for message in messages]
    value = OfflineChatModel().with_structured_output(schema).invoke(prompt)
    assert isinstance(value, schema)
    return value


def candidate(number: int, author: str, answer: str) -> str:
    return f'<candidate number="{number}">\n<author>\n{author}\n</author>\n<answer>\n{answer}\n</answer>\n</candidate>'


def goals(*messages: str) -> list[tuple[str, str, list[str]]]:
    return [(goal.id, goal.goal, goal.needs) for goal in filled(Plan, *messages).subgoals]


def test_a_request_of_several_questions_is_split_at_them() -> None:
    assert goals(THREE) == [
        ("1", "What does UCT balance?", []),
        ("2", "How do agents keep lessons?", []),
        ("3", "Which budgets limit calls?", []),
    ]


def test_a_single_question_needs_to_know_what_its_words_mean() -> None:
    assert goals("Why is reflection useful in AI?") == [
        ("1", "What is reflection?", []),
        ("2", "What is AI?", []),
        ("3", "Why is reflection useful in AI?", ["1", "2"]),
    ]
    assert goals("What is it?") == [("1", "What is it?", [])]


def test_what_has_failed_is_tried_in_another_way() -> None:
    request, failed = "Is coral useful for submarines?", '<failure id="1">\nIMPOSSIBLE\n</failure>'
    first = f'So far:\n<subgoal id="1">\nIs coral deep?\n</subgoal>\n{failed}'
    assert goals(request, first) == [("2", "What is coral?", []), ("3", "What is deep?", [])]
    last = f'So far:\n<subgoal id="1">\nWhat is coral?\n</subgoal>\n{failed}'
    assert goals(request, last) == [("2", request, [])]


def test_each_member_has_its_turn_and_the_critic_is_told_to_criticise() -> None:
    first = filled(Delegation, "What does UCT balance?", f"{TEAM}\nNothing yet.")
    assert (first.best, first.done) == (0, False)
    assert [(task.to, task.task) for task in first.tasks] == [("finder", "What does UCT balance?")]
    second = filled(Delegation, "What does UCT balance?", f"{TEAM}\n{candidate(1, 'finder', GOOD)}")
    assert (second.best, second.score, second.done) == (1, 1.0, False)
    assert [(task.to, task.task) for task in second.tasks] == [("critic", "Criticise the latest report.")]
    criticised = candidate(2, "critic", "Coverage 100%.")
    third = filled(Delegation, "What does UCT balance?", f"{TEAM}\n{candidate(1, 'finder', GOOD)}\n{criticised}")
    assert (third.best, third.done) == (1, True)


def test_the_work_goes_on_while_no_report_is_good_enough() -> None:
    bad = candidate(1, "finder", "Nobody knows.") + candidate(2, "critic", "Coverage 0%.")
    decision = filled(Delegation, "What does UCT balance?", f"{TEAM}\n{bad}")
    assert decision.done is False
    assert [task.to for task in decision.tasks] == ["finder"]


def test_a_verdict_names_the_best_candidate() -> None:
    answers = f"{candidate(4, 'ada', 'Nobody knows.')}\n{candidate(5, 'bob', GOOD)}"
    verdict = filled(Verdict, f"<request>\nWhat does UCT balance?\n</request>\n{answers}")
    assert (verdict.best, verdict.score, verdict.solved) == (5, 1.0, True)


REPORT = f'<report id="1">\n{GOOD}\n</report>'


def test_reports_are_evidence_that_is_cited_as_they_cite_it() -> None:
    answer = OfflineChatModel().invoke([HumanMessage(f"Known:\n{REPORT}"), HumanMessage("What does UCT balance?")]).text
    assert answer == GOOD


def test_what_a_report_says_of_itself_is_no_evidence() -> None:
    empty = "<report>\nThis is an offline extractive model, and it found nothing to answer this from.\n</report>"
    answer = OfflineChatModel().invoke([HumanMessage(f"Known:\n{empty}"), HumanMessage("Which model found UCT?")]).text
    assert answer == "This is an offline extractive model, and it found nothing to answer this from."


def test_a_critic_grades_the_latest_report() -> None:
    aim = "<aim>\n<request>\nWhat do UCT and bread balance?\n</request>\n</aim>"
    reply = OfflineChatModel().invoke(
        [HumanMessage(f"The aim:\n{aim}\n{REPORT}"), HumanMessage("Criticise the latest report.")]
    )
    assert reply.text.startswith("Coverage 67%")
    assert "Not covered: bread." in reply.text


def test_a_worker_that_is_told_how_says_that_it_has_failed() -> None:
    failure = HumanMessage('<aim failure="IMPOSSIBLE">\nSo.\n</aim>')
    assert OfflineChatModel().invoke([failure, HumanMessage("Who baked it?")]).text.startswith("IMPOSSIBLE: This is an")


def test_a_vote_names_the_answer_with_the_best_grade() -> None:
    answers = f"{candidate(1, 'ada', 'Nobody knows.')}\n{candidate(2, 'bob', GOOD)}\n{candidate(3, 'cyd', 'So.')}"
    request = HumanMessage(f"<request>\nWhat does UCT balance?\n</request>\n{answers}")
    assert OfflineChatModel().invoke([request]).text == "The best choice is 2"


def test_of_plans_the_vote_goes_to_the_one_that_is_most_about_the_question() -> None:
    plans = "\n".join(f'<candidate number="{n}">\n{text}\n</candidate>' for n, text in enumerate(["Bread.", "UCT!"], 1))
    request = HumanMessage(f"<request>\nWhat does UCT balance?\n</request>\n{plans}")
    assert OfflineChatModel().invoke([request]).text == "The best choice is 2"
