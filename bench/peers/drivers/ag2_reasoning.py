"""AG2's ReasoningAgent: beam search that rates each step, or LATS that rates final answers."""

import json
import os
from importlib import import_module
from typing import Any


class Search:
    """A `ReasoningAgent`, asked by a user; the setting is its `reason_config` as JSON."""

    def __init__(self, setting: str) -> None:
        model = {"model": "bench", "base_url": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}
        self._agent = import_module("autogen.agents.experimental").ReasoningAgent(
            "thinker",
            llm_config={"config_list": [model], "cache_seed": None},
            reason_config=json.loads(setting),
            silent=True,
        )
        user = import_module("autogen").UserProxyAgent
        self._user = user("user", human_input_mode="NEVER", code_execution_config=False)

    def run(self, question: str) -> None:
        """Search."""
        self._user.initiate_chat(self._agent, message=question, max_turns=1, silent=True)

    def root(self) -> Any:
        """Return the root: the question."""
        return self._agent._root
