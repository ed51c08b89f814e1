"""Evidence: looking things up, numbering what was found, and holding citations against it."""
