"""Remembering: lessons of earlier runs, and what is kept of this one."""
