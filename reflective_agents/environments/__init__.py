"""Tasks that answer an action with an observation and a reward."""
