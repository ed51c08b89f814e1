"""Measures other libraries' tree searches beside this project's: each in an environment and a process of its own."""
