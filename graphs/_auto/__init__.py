"""Auto: what serves this strategy alone."""
