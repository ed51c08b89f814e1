"""Recorded runs through the graphs of this project: `python -m bench.replays` writes docs/replays.md."""
