"""OpenAI's agents on /v1/responses, which is their default: plain, with a tool, and streaming."""

import asyncio
import json
import sys

from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

PROMPT = "How warm is it there? weather for two"


@function_tool  # type: ignore[untyped-decorator]
def weather(city: str) -> str:
    """Tells the weather."""
    return f"20 degrees in {city}"


async def main(address: str) -> None:
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0)
    thinker, actor = (OpenAIResponsesModel(model=name, openai_client=client) for name in ("chain_of_thought", "react"))
    plain = await Runner.run(Agent(name="thinker", instructions="Be brief.", model=thinker), "Why?")
    agent = Agent(name="actor", model=actor, tools=[weather])
    streamed = Runner.run_streamed(agent, PROMPT)
    async for _ in streamed.stream_events():
        pass
    tools = await Runner.run(agent, PROMPT)
    found = {"plain": plain.final_output, "tools": tools.final_output, "stream": streamed.final_output}
    sys.stdout.write(json.dumps(found))


asyncio.run(main(sys.argv[1]))
