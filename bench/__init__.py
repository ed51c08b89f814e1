"""Measures what the strategies cost: `python -m bench` prints the figures beside what this project owes."""
