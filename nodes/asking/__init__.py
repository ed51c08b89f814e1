"""Asking models: one call, many samples, a vote, forms of answers, and the words of a task."""
