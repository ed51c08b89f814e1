"""The strategies: one compiled graph a file."""
