"""Trials: what serves this strategy alone."""
