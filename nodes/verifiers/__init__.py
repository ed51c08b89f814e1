"""Verifiers of the user's own: what they find in an answer, and the verdict that this comes to."""
