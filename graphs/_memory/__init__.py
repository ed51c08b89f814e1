"""Memory: what serves this strategy alone."""
