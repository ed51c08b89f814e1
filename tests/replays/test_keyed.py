"""The fake model of the replays: it answers what it is asked, and nothing else."""

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from bench.replays.keyed import Key, Model, Recorded, RecordedWorld, Seen, key_of, listed
from bench.replays.records import Record, attempts, evaluated, gold_paragraphs
from reflective_agents.environments.base import Task
from reflective_agents.environments.questions import Questions
from reflective_agents.prompts import react as prompts
from reflective_agents.testing.script import Request

TASK: Task = {"id": "q", "question": "Who?", "gold": "Ada"}


def request(system: str, human: str) -> Request:
    return Request((SystemMessage(system), HumanMessage(human)))


def test_an_act_is_known_by_task_lessons_and_steps() -> None:
    system = "Solve the task." + prompts.LESSONS.format(lessons=listed(["Look twice.", "Be\nshort."]))
    steps = "Thought 1: hm\nAction 1: Search[Ada]\nObservation 1: She was.\nAction 9: none\nThought 2:"
    steps_taken = ("hm", "Search[Ada]", "She was.\nAction 9: none")
    expected = Key("act", "Question: Who?", "- Look twice.\n- Be short.", steps_taken)
    assert key_of(request(system, f"Question: Who?\n{steps}")) == expected
    assert key_of(request("Solve.", "Question: Who?\nThought 1:")) == Key("act", "Question: Who?")


@pytest.mark.parametrize(("verdict", "has_verdict"), [("It is wrong.", True), (" ", False)])
def test_a_reflection_is_known_by_task_attempt_and_whether_it_is_told_a_verdict(
    verdict: str, has_verdict: bool
) -> None:
    seen = "<observation>\nShe was.\n</observation>"
    done = f"<thought>\nhm\n</thought>\n<action>\nSearch[Ada]\n</action>\n{seen}\n<action>\nFinish[x]\n</action>\n"
    human = (
        f"<request>\nQuestion: Who?\n</request>\n\n<trajectory>\n{done}<observation>\nWrong.\n</observation>\n"
        f"</trajectory>\n\n<verdict>\n{verdict}\n</verdict>"
    )
    steps = ("hm", "Search[Ada]", "She was.", "Finish[x]")
    assert key_of(request("Reflect.", human)) == Key("reflect", "Question: Who?", steps=steps, verdict=has_verdict)


def test_answers_of_one_key_come_in_order_and_a_miss_is_an_error() -> None:
    model = Model()
    key = Key("act", "Question: Who?")
    model.add(key, "first")
    model.add(key, "second")
    question = request("Solve.", "Question: Who?")
    assert model(question) == "first"
    assert model.unserved == [key]
    assert model(question) == "second"
    assert (model.unserved, model.misses) == ([], [])
    with pytest.raises(LookupError, match="Who"):
        model(question)
    assert model.misses == [key]


async def test_the_world_serves_articles_and_leaves_the_rest_to_the_real_one() -> None:
    seen = Recorded[Seen, str]()
    seen.add(Seen("Who?", ("Search[Ada]",)), "She was.")
    world = RecordedWorld(Questions(), seen)
    found = await world.step(world.start(TASK), "Search[Ada]")
    assert (found.observation, found.valid) == ("She was.", True)
    refused = await world.step(found.state, "Compare[Ada]")
    assert not refused.valid
    end = await world.step(refused.state, "Finish[ada]")
    assert (end.reward, end.done, world.answer(end.state)) == (1.0, True, "ada")
    with pytest.raises(LookupError):
        await world.step(refused.state, "Lookup[born]")
    assert seen.misses == [Seen("Who?", ("Search[Ada]", "Compare[Ada]", "Lookup[born]"))]


def test_attempts_of_a_record() -> None:
    def step(trial: int) -> list[Record]:
        texts = {"thought": "hm", "act": "Finish[x]", "observation": "INCORRECT"}
        return [{"role": role, "trial": trial, "text": text} for role, text in texts.items()]

    def reflect(trial: int) -> Record:
        return {"role": "reflect", "trial": trial, "text": f"lesson {trial} "}

    statuses = ["incorrect", "absent", "correct", "solved_earlier"]
    record = {
        "outputs": [*step(1), reflect(2), reflect(3), *step(3)],
        "verdict": [{"trial": trial, "status": status} for trial, status in enumerate(statuses, 1)],
    }
    first, second = attempts(record)
    assert (first.trial, first.lessons, first.status) == (1, (), "incorrect")
    assert (second.trial, second.lessons, second.status) == (3, ("lesson 2", "lesson 3"), "correct")
    assert second.turns == (("hm", "Finish[x]", "INCORRECT"),)


def test_gold_paragraphs() -> None:
    row = {"supporting_facts": [["A", 0], ["A", 1]], "context": [["B", ["No."]], ["A", ["Yes."]]]}
    assert gold_paragraphs(row) == [["A", ["Yes."]]]


@pytest.mark.parametrize("word", ["Tested", "Tests"])
def test_feedback(word: str) -> None:
    text = f"{word} passed:\nassert f(1) == 1\n\nTests failed:\nassert f(2) == 1 # output: 2"
    assert evaluated(text) == {"assert f(1) == 1": True, "assert f(2) == 1": False}
    assert evaluated(f"{word} passed:\n\nTests failed:") == {}
