"""The scripts that drive the searches. `drive.py` runs in a peer's own interpreter, where nothing of this project is
installed: a driver imports the standard library and its peer only."""
