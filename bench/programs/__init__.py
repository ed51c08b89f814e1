"""Choosing among programs by the tests that the same model wrote."""
