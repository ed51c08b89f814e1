"""What serves `graphs.react` alone."""
