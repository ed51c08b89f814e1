"""Plan: what serves this strategy alone."""
