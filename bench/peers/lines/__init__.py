"""The same eight tasks in this project, LangChain's create_agent, deepagents, DSPy and its_hub: lines and calls."""
