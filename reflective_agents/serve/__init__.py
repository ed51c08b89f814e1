"""The HTTP server: the strategies over Aegra and `langgraph dev`, for OpenAI's clients, MCP and browsers."""

import os

# LangGraph reads this once, when it is first imported. Without it, a checkpoint may name any function, which is called.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
