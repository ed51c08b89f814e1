"""Aggregation: what serves this strategy alone."""
