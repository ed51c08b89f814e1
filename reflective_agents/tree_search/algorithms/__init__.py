"""Search algorithms over plain data."""
