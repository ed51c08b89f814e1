"""The tasks in its_hub, which chooses among answers: it has no tools, forms or threads, and revises nothing."""

import os
from typing import Any

from its_hub import AbstractOutcomeRewardModel, BestOfN, LLMJudge, OpenAICompatibleLanguageModel

from bench.peers.lines.tasks import reward

LM = OpenAICompatibleLanguageModel(os.environ["OPENAI_BASE_URL"], "test", "scripted")


def choose(question: str) -> Any:
    return BestOfN(LLMJudge(LM)).infer(LM, question, budget=4)["content"]


def choose_by(question: str) -> Any:
    class Reward(AbstractOutcomeRewardModel):  # type: ignore[misc]
        def score(self, messages: Any, **options: Any) -> Any:
            return [reward(conversation[-1].content) for conversation in messages]

        async def ascore(self, messages: Any, orchestrator: Any = None, **options: Any) -> Any:
            return self.score(messages)

    return BestOfN(Reward()).infer(LM, question, budget=4)["content"]
