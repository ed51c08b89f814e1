"""What the solver of `graphs.auto` is told beside the prompts of the strategies that it works by."""

FORM = """If the request asks for a fact, a number, a name or a choice, end with a line 'Answer: ...' that holds the \
answer alone, as short as possible. If it asks for a text, such as to write, to explain, to weigh or to research \
something, reply with that text alone, as long as it needs to be, without such a line."""
