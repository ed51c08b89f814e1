"""Tree of thoughts: what serves this strategy alone."""
