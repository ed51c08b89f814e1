"""The tasks in DSPy."""

from typing import Any

import dspy

from bench.peers.lines.tasks import CRITERION, City, population, problem, reward

dspy.configure(lm=dspy.LM("openai/scripted"))


def use_tool(question: str) -> Any:
    return dspy.ReAct("question -> answer", tools=[population])(question=question).answer


def revise(question: str) -> Any:
    def passes(args: Any, out: Any) -> float:
        return float(problem(out.answer) is None)

    return dspy.Refine(dspy.Predict("question -> answer"), N=3, reward_fn=passes, threshold=1)(question=question).answer


def choose(question: str) -> Any:
    judge, answer = dspy.Predict("question, answer -> score: float"), dspy.Predict("question -> answer")

    def reward(args: Any, out: Any) -> Any:
        return judge(question=question, answer=out.answer).score

    return dspy.BestOfN(answer, N=4, reward_fn=reward, threshold=1)(question=question).answer


def choose_by(question: str) -> Any:
    answer = dspy.Predict("question -> answer")
    best = dspy.BestOfN(answer, N=4, reward_fn=lambda args, out: reward(out.answer), threshold=1)
    return best(question=question).answer


def criteria(question: str) -> Any:
    judge = dspy.Predict("criterion, answer -> met: bool")

    def passes(args: Any, out: Any) -> float:
        return float(judge(criterion=CRITERION, answer=out.answer).met)

    return dspy.Refine(dspy.Predict("question -> answer"), N=3, reward_fn=passes, threshold=1)(question=question).answer


def fill_in(question: str) -> Any:
    class Ask(dspy.Signature):  # type: ignore[misc]
        question: str = dspy.InputField()
        city: City = dspy.OutputField()

    return dspy.Predict(Ask)(question=question).city


def stop(question: str) -> Any:
    return dspy.ReAct("question -> answer", tools=[population], max_iters=2)(question=question).answer


def go_on(first: str, second: str) -> Any:
    answer = dspy.Predict("question, history: dspy.History -> answer")
    turn = {"question": first, **answer(question=first, history=dspy.History(messages=[]))}
    return answer(question=second, history=dspy.History(messages=[turn])).answer
