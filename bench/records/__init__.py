"""Makes the recorded runs from the logs that others published: `python -m bench.records FOLDER`.

The logs are not ours to hand on. `sources.json` names for each set the repository, the commit, the files with their
SHA-256, and the SHA-256 of the records that come of them; `Clones` reads the files, the modules beside it turn them
into records.
"""
