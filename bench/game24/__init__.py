"""Games of 24: what the searches solve at equal cost, what their parts are worth, and what chance explains."""
