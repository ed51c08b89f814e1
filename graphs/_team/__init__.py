"""Team: what serves this strategy alone."""
