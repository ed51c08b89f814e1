"""The product's agents: a supervisor with two workers, and a deep agent, which share a model, and an advisor with a
better one, in whose place the others' answers when it is busy."""

from dataclasses import dataclass
from typing import Any

from deepagents import create_deep_agent
from langchain.chat_models import init_chat_model
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph_supervisor import create_supervisor
from pydantic import BaseModel, Field

from reflective_agents.graphs import lats, react, reflection, with_settings


@dataclass
class Customer:
    """Who asks: the product's own context."""

    tenant: str


class Opinion(BaseModel):
    """What the product shows of an answer."""

    summary: str = Field(description="The answer in a sentence.")
    stars: int = Field(ge=1, le=5, description="How sure it is.")


MODEL = init_chat_model("openai:test")
BETTER = init_chat_model("openai:better").with_fallbacks([MODEL])
researcher = with_settings(react.graph, name="researcher", model=MODEL, search="none", max_actions=3)
writer = with_settings(reflection.graph, name="writer", model=MODEL, max_rounds=2)
thinker = with_settings(lats.graph, name="thinker", model=MODEL, search="none", n=2, max_expansions=2)
advisor = with_settings(react.graph, name="advisor", model=BETTER, search="none", answer_schema=Opinion)


def desk(saver: BaseCheckpointSaver[Any]) -> Any:
    """Return the help desk: a supervisor that lets the researcher and then the writer work."""
    agents: list[Any] = [researcher, writer]
    return create_supervisor(agents, model=MODEL, context_schema=Customer).compile(checkpointer=saver)


def explorer(saver: BaseCheckpointSaver[Any]) -> Any:
    """Return a deep agent that asks the thinker."""
    subagent: Any = {"name": "thinker", "description": "Tries several ways.", "runnable": thinker}
    return create_deep_agent(model=MODEL, subagents=[subagent], context_schema=Customer, checkpointer=saver)
