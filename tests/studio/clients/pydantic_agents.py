"""Pydantic's agents on /v1/responses: plain, in a conversation, with a tool, and with a call as the answer."""

import json
import sys

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class City(BaseModel):
    city: str


provider = OpenAIProvider(base_url=f"{sys.argv[1]}/v1", api_key="any")
thinker, actor = (OpenAIResponsesModel(name, provider=provider) for name in ("chain_of_thought", "react"))
agent = Agent(actor)


@agent.tool_plain  # type: ignore[untyped-decorator]
def weather(city: str) -> str:
    """Tells the weather."""
    return f"20 degrees in {city}"


plain = Agent(thinker, instructions="Be brief.").run_sync("Why?")
again = Agent(thinker).run_sync("How?", message_history=plain.all_messages())
tools = agent.run_sync("How warm is it there? weather for two")
form = Agent(actor, output_type=City).run_sync("Where?")
found = {"plain": plain.output, "again": again.output, "tools": tools.output, "form": form.output.model_dump()}
sys.stdout.write(json.dumps(found))
