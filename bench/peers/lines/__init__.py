"""The same six tasks in this project, LangChain's create_agent, deepagents and DSPy: how many lines each takes."""
