"""Typed state, settings and errors."""
