"""What agents can call."""
