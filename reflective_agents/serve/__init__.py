"""The HTTP server: the strategies over Aegra and `langgraph dev`, for OpenAI's clients, MCP and browsers."""
