"""Reflection for an agent that somebody else has built: a middleware of LangChain's `create_agent`."""

from reflective_agents.middleware.reflection import ReflectionMiddleware as ReflectionMiddleware
