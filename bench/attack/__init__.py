"""Attacks on a running server over HTTP: whatever strangers send, it answers others and keeps its rules."""
