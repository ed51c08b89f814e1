"""Anthropic's client on /v1/messages: plain, streaming, with a tool, with a document, counted, refused."""

import json
import sys
from typing import Any

import anthropic

client: Any = anthropic.Anthropic(base_url=sys.argv[1], api_key="any", max_retries=0)
ASK = {"role": "user", "content": "How warm is it there? weather for two"}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "weather", "description": "Tells the weather.", "input_schema": CITY}


def create(model: str, *messages: Any, **fields: Any) -> Any:
    return client.messages.create(model=model, max_tokens=500, messages=[*messages], **fields)


plain = create("chain_of_thought", {"role": "user", "content": "Why?"}, system="Be brief.")
thinking = {"type": "enabled", "budget_tokens": 1024}
question = [{"role": "user", "content": "How?"}]
with client.messages.stream(model="chain_of_thought", max_tokens=2048, messages=question, thinking=thinking) as stream:
    text = "".join(stream.text_stream)
    streamed = stream.get_final_message()
first = create("react", ASK, tools=[WEATHER], tool_choice={"type": "any"})
results = [
    {"type": "tool_result", "tool_use_id": block.id, "content": f"20 degrees in {block.input['city']}"}
    for block in first.content
]
calls = {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]}
second = create("react", ASK, calls, {"role": "user", "content": results}, tools=[WEATHER])
source = {"type": "text", "media_type": "text/plain", "data": "Trams are blue."}
document = {"type": "document", "title": "Trams", "source": source}
shown = {"role": "user", "content": [document, {"type": "text", "text": "Which colour?"}]}
read = create("chain_of_thought", shown)
refused = 0
try:
    create("latz", ASK)
except anthropic.NotFoundError as error:
    refused = error.status_code
found = {
    "plain": plain.content[0].text,
    "counted": plain.usage.output_tokens > 0,
    "stream": text,
    "blocks": [block.type for block in streamed.content],
    "reasons": [message.stop_reason for message in (plain, streamed, first, second)],
    "tools": second.content[0].text,
    "document": read.content[0].text,
    "estimated": client.messages.count_tokens(model="react", messages=[ASK], tools=[WEATHER]).input_tokens > 100,
    "refused": refused,
}
sys.stdout.write(json.dumps(found))
