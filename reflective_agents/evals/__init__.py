"""Data sets x strategies -> results: run, measure, compare and report."""
