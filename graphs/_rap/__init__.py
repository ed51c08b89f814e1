"""RAP: what serves this strategy alone."""
