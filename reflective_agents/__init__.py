"""Agents that look at what they did and do better: each strategy is a compiled LangGraph graph.

from reflective_agents.graphs.lats import graph
"""
