"""Delegating: strategies and agents at work within a run."""
