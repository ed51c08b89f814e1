"""Reflection: what serves this strategy alone."""
